"""Parses the output of EXPLAIN (FORMAT JSON) as servers return it, psql prints it, and auto_explain logs it."""

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from pgversus.errors import PlanError
from pgversus.plans.nodes import plan_nodes
from pgversus.plans.plan import BLOCKS, COUNTS, REMOVED, Plan
from pgversus.text.documents import is_nested_deeper, parts_without_secrets
from pgversus.text.redaction import may_hold_secrets, message_without_secrets

_TEXTS = (
    "Node Type",
    "Strategy",
    "Partial Mode",
    "Join Type",
    "Operation",
    "Command",
    "Parent Relationship",
    "Subplan Name",
    "Relation Name",
    "Schema",
    "Alias",
    "Index Name",
    "CTE Name",
    "Sort Method",
    "Sort Space Type",
)
_NUMBERS = (
    "Plan Rows",
    "Actual Rows",
    "Actual Loops",
    "Actual Total Time",
    "Temp Written Blocks",
    "Sort Space Used",
    "Peak Memory Usage",
    *COUNTS,
    *BLOCKS,
    *REMOVED,
)
_NUMBER, _ENDLESS = "a number", "a number out of range"
_LARGEST = 1e18
"""No server counter reaches this value, so EXPLAIN cannot have printed a larger one."""
_PLAN = "Plan"
_BELOW = "Plans"
MOST_DEPTH = 250
"""Maximum depth of nodes. Planning a join with this many tables takes hours."""
MOST_NODES = 20_000
"""Maximum number of nodes per plan, reached when reading ten thousand partitions."""
_LONGEST_SHOWN = 60


def checked_root(entry: Any, where: str) -> Mapping[str, Any]:
    """Return the "Plan" of one explained statement after checking all nodes; PlanError names an invalid one."""
    if not isinstance(entry, Mapping):
        raise _malformed(where, _kind(entry), 'an object with "Plan" in it')
    if not isinstance(root := entry.get(_PLAN), Mapping):
        # A utility statement (CREATE INDEX, ...) has no plan.
        found = _keys(entry)
        raise _malformed(where, found if _PLAN not in entry else f'"Plan" is {_kind(root)}', '"Plan", an object')
    stack, nodes = [(root, f"{where}, Plan", 1)], 0
    while stack:
        node, path, depth = stack.pop()
        nodes += 1
        if depth > MOST_DEPTH or nodes > MOST_NODES:
            raise _malformed(
                where, "more nodes than pgversus accepts", f"at most {MOST_NODES} nodes, at most {MOST_DEPTH} deep"
            )
        _check(node, path)
        below = node.get(_BELOW, [])
        if not isinstance(below, list) or not all(isinstance(child, Mapping) for child in below):
            raise _malformed(f"{path}, Plans", _kind(below), "a list of nodes")
        stack += [(child, f"{path}, Plans[{number}]", depth + 1) for number, child in enumerate(below)]
    return root


def _check(node: Mapping[str, Any], path: str) -> None:
    if "Node Type" not in node:
        raise _malformed(path, _keys(node), 'a node with a "Node Type"')
    for name in _TEXTS:
        if name in node and not isinstance(node[name], str):
            raise _malformed(f"{path}, {name}", _kind(node[name]), "text")
    for name in _NUMBERS:
        if name in node and not is_number(node[name]):
            found = _kind(node[name])
            raise _malformed(f"{path}, {name}", _ENDLESS if found == _NUMBER else found, _NUMBER)


def is_number(value: Any) -> bool:
    """Return whether the value is a usable number: not a boolean, and not too large."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < _LARGEST


def _keys(found: Mapping[str, Any]) -> str:
    """Return the first keys, formatted for a message."""
    shown = [repr(key if len(key) <= _LONGEST_SHOWN else f"{key[:_LONGEST_SHOWN]}...") for key in islice(found, 5)]
    return ", ".join(shown) or "an empty object"


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", bool: "true or false", type(None): "null"}
    return names.get(type(value), _NUMBER)


def _malformed(where: str, found: str, expected: str) -> PlanError:
    return PlanError(
        "this plan is not in the format of EXPLAIN (FORMAT JSON)",
        slug="plan-malformed",
        where=where,
        found=found,
        expected=expected,
        to_do="use the unchanged output of EXPLAIN; only statements that have a plan can be compared",
    )


_COLUMN = "QUERY PLAN"
_TEXT_FORMAT = re.compile(r"\(cost=\d|\(actual time=|^[ \t]*->[ \t]+\w", re.MULTILINE)
_CSV_FIELD = re.compile(r'"((?:[^"]++|"")*+)(?:"|\Z)')
_OTHER_FORMAT = re.compile(r"\s*(?:<explain\b|- Plan:)")
_MS_PER_S = 1000.0
_CONTEXT, _WIDER_CONTEXT = 40, 1000
_TOO_DEEP = "more levels than pgversus accepts"
_MOST_LEVELS = 2 * MOST_DEPTH + 10
"""Maximum nesting of lists and objects: two levels per node, and some around the plan and inside its last node."""
_EXPECTED = "output of EXPLAIN (FORMAT JSON)"


def read_plans(text: str, where: str) -> list[Plan]:
    """Return all plans in a text, in order, one per explained statement.

    where: the source of the text, for messages. PlanError if the text is not JSON from EXPLAIN, is truncated, or
    contains an invalid plan. Properties that future majors add to plans are ignored.
    """
    documents = list(_documents(text, where))
    entries = [entry for document in documents for entry in _entries(document, where)]
    if may_hold_secrets(text):
        # Secrets are removed here, because all plans that are shown or compared pass through here.
        entries = _without_secrets(entries, where)
    if not entries:
        raise _no_plan(where, "no plan")
    places = [where] if len(entries) == 1 else [f"{where}, plan {number}" for number in range(1, len(entries) + 1)]
    return [_plan(entry, place) for entry, place in zip(entries, places, strict=True)]


def _documents(text: str, where: str) -> Iterator[Any]:
    """Yield each of the concatenated JSON values."""
    bare = _without_table(text.lstrip("\ufeff"))
    if not bare.strip():
        raise _no_plan(where, "empty input")
    if _OTHER_FORMAT.match(bare):
        raise _no_plan(where, "a plan in another format of EXPLAIN")
    decoder = json.JSONDecoder()
    position = 0
    while (position := _next(bare, position)) < len(bare):
        try:
            value, position = decoder.raw_decode(bare, position)
        except json.JSONDecodeError as error:
            raise _no_json(bare, error, where) from error
        except RecursionError as error:
            raise _no_plan(where, _TOO_DEEP) from error
        except ValueError as error:
            # Python limits the digits of integers that it reads.
            raise _no_plan(where, "a number with thousands of digits") from error
        if is_nested_deeper(value, _MOST_LEVELS):
            raise _no_plan(where, _TOO_DEEP)
        yield value


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _without_table(text: str) -> str:
    """Remove psql's formatting: heading, rule, + at the ends of lines, row count; or CSV quoting."""
    lines = text.strip().splitlines()
    if not lines or lines[0].strip().strip('"') != _COLUMN:
        return text
    if lines[1:] and lines[1].startswith('"'):
        # Python's CSV reader limits fields to 128 kB.
        return "\n".join(found[1].replace('""', '"') for found in _CSV_FIELD.finditer("\n".join(lines[1:])))
    inside = [line for line in lines[1:] if not re.fullmatch(r"\s*-+\s*|\(\d+ rows?\)", line)]
    return "\n".join(line[:-1].rstrip() if line.endswith("+") else line for line in inside)


def _entries(document: Any, where: str) -> Iterator[Any]:
    """Yield possible plans: from an array, a single object, or rows with a column of plans."""
    for entry in document if isinstance(document, list) else [document]:
        if isinstance(entry, Mapping) and _COLUMN in entry:
            inside = entry[_COLUMN]
            for value in _documents(inside, where) if isinstance(inside, str) else [inside]:
                yield from value if isinstance(value, list) else [value]
        else:
            yield entry


def _plan(entry: Any, where: str) -> Plan:
    root = checked_root(entry, where)
    serialization = entry.get("Serialization")
    jit = entry.get("JIT")
    settings = entry.get("Settings")
    query = entry.get("Query Text")
    return Plan(
        nodes=plan_nodes(root),
        execution_s=_seconds(entry.get("Execution Time")),
        serialization_s=_seconds(serialization.get("Time")) if isinstance(serialization, Mapping) else None,
        settings={str(name): str(value) for name, value in settings.items()} if isinstance(settings, Mapping) else {},
        jit_functions=_count(jit.get("Functions")) if isinstance(jit, Mapping) else None,
        query=str(query) if query is not None else None,
    )


def _count(value: Any) -> int | None:
    return int(value) if is_number(value) else None


def _seconds(value: Any) -> float | None:
    return value / _MS_PER_S if is_number(value) else None


def _without_secrets(entries: list[Any], where: str) -> list[Any]:
    try:
        return [parts_without_secrets(entry) for entry in entries]
    except RecursionError as error:
        raise _no_plan(where, _TOO_DEEP) from error


def _no_json(text: str, error: json.JSONDecodeError, where: str) -> PlanError:
    if _TEXT_FORMAT.search(text):
        return _no_plan(where, "a plan in the text format of EXPLAIN")
    is_cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
    near = _near(text, error.pos)
    return PlanError(
        "a plan is truncated" if is_cut else "invalid JSON",
        slug="plan-cut-off" if is_cut else "plan-no-json",
        where=f"{where}, line {error.lineno}, column {error.colno}",
        found=f"it ends with ... {near}" if is_cut else f"{error.msg} near ... {near}",
        expected=_EXPECTED,
        to_do="save the whole output: psql -XAtqc 'EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) ...' > plan.json",
    )


def _near(text: str, position: int) -> str:
    """Return the text around a position, unless it may contain a password, which may be cut beyond recognition."""
    around = text[max(0, position - _WIDER_CONTEXT) : position + _WIDER_CONTEXT]
    if message_without_secrets(around) != around:
        return "(not shown, because it may contain a password)"
    return " ".join(text[max(0, position - _CONTEXT) : position + _CONTEXT].split())


def _no_plan(where: str, found: str) -> PlanError:
    return PlanError(
        "no usable plan found",
        slug="plan-none",
        where=where,
        found=found,
        expected=_EXPECTED,
        to_do="psql -XAtqc 'EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) ...' > plan.json",
    )
