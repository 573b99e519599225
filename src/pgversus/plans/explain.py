"""What EXPLAIN (FORMAT JSON) printed to plans: as a server returns it, as psql prints it, as auto_explain logs it."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pgversus.errors import PlanError
from pgversus.plans.plan import Plan
from pgversus.plans.reading import plan_nodes
from pgversus.plans.structure import MOST_DEPTH, checked_root, is_number
from pgversus.text.documents import is_nested_deeper, parts_without_secrets
from pgversus.text.redaction import may_hold_secrets, message_without_secrets

_COLUMN = "QUERY PLAN"
_TEXT_FORMAT = re.compile(r"\(cost=\d|\(actual time=|^[ \t]*->[ \t]+\w", re.MULTILINE)
_CSV_FIELD = re.compile(r'"((?:[^"]++|"")*+)(?:"|\Z)')
_OTHER_FORMAT = re.compile(r"\s*(?:<explain\b|- Plan:)")
_MS_PER_S = 1000.0
_CONTEXT, _WIDER_CONTEXT = 40, 1000
_TOO_DEEP = "more levels than any plan has"
_MOST_LEVELS = 2 * MOST_DEPTH + 10
"""Of lists and objects in each other: two for each node, and some around the plan and inside of its last node."""
_EXPECTED = "what EXPLAIN (FORMAT JSON) prints"


def read_plans(text: str, where: str) -> list[Plan]:
    """Every plan in a text, in its order: one for each statement that was explained.

    where: the text is from, for messages. PlanError for what is no JSON of EXPLAIN, is cut off, or is no plan. What
    a major to come adds to plans is not looked at.
    """
    documents = list(_documents(text, where))
    entries = [entry for document in documents for entry in _entries(document, where)]
    if may_hold_secrets(text):
        # Here, where every plan comes by that is shown or compared.
        entries = _without_secrets(entries, where)
    if not entries:
        raise _no_plan(where, "no plan in it")
    places = [where] if len(entries) == 1 else [f"{where}, plan {number}" for number in range(1, len(entries) + 1)]
    return [_plan(entry, place) for entry, place in zip(entries, places, strict=True)]


def _documents(text: str, where: str) -> Iterator[Any]:
    """Each JSON value, one behind the other."""
    bare = _without_table(text.lstrip("\ufeff"))
    if not bare.strip():
        raise _no_plan(where, "nothing")
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
            # Python reads no number of thousands of digits.
            raise _no_plan(where, str(error)) from error
        if is_nested_deeper(value, _MOST_LEVELS):
            raise _no_plan(where, _TOO_DEEP)
        yield value


def _next(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\n":
        position += 1
    return position


def _without_table(text: str) -> str:
    """Without what psql draws around it: a heading, a rule, a + at the end of lines, a count of rows; or as CSV."""
    lines = text.strip().splitlines()
    if not lines or lines[0].strip().strip('"') != _COLUMN:
        return text
    if lines[1:] and lines[1].startswith('"'):
        # Python's own reader of CSV takes no field of more than 128 kB.
        return "\n".join(found[1].replace('""', '"') for found in _CSV_FIELD.finditer("\n".join(lines[1:])))
    inside = [line for line in lines[1:] if not re.fullmatch(r"\s*-+\s*|\(\d+ rows?\)", line)]
    return "\n".join(line[:-1].rstrip() if line.endswith("+") else line for line in inside)


def _entries(document: Any, where: str) -> Iterator[Any]:
    """What could be plans: an array of them, one of its own, or rows with a column of them."""
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
        planning_s=_seconds(entry.get("Planning Time")),
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
        return _no_plan(where, "a plan in EXPLAIN's text format")
    is_cut = not text[error.pos :].strip() or error.msg.startswith("Unterminated")
    near = _near(text, error.pos)
    return PlanError(
        "a plan is cut off" if is_cut else "this is no JSON",
        slug="plan-cut-off" if is_cut else "plan-no-json",
        where=f"{where}, line {error.lineno}, column {error.colno}",
        found=f"it ends with ... {near}" if is_cut else f"{error.msg} near ... {near}",
        expected=_EXPECTED,
        to_do="save the whole of it: psql -XAtqc 'EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) ...' > plan.json",
    )


def _near(text: str, position: int) -> str:
    """What stands there, unless a password may: of a part of a text nobody could tell."""
    around = text[max(0, position - _WIDER_CONTEXT) : position + _WIDER_CONTEXT]
    if message_without_secrets(around) != around:
        return "(not shown, because a password may be in it)"
    return " ".join(text[max(0, position - _CONTEXT) : position + _CONTEXT].split())


def _no_plan(where: str, found: str) -> PlanError:
    return PlanError(
        "there is no plan to compare",
        slug="plan-none",
        where=where,
        found=found,
        expected=_EXPECTED,
        to_do="psql -XAtqc 'EXPLAIN (ANALYZE, BUFFERS, VERBOSE, FORMAT JSON) ...' > plan.json",
    )
