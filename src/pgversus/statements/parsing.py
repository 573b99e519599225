"""PostgreSQL's own parser: the statements of a text, and the kind and the fingerprint of each."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise
from typing import Any

import pgparse

from pgversus.statements.client_scripts import without_commands
from pgversus.statements.statement import StatementKind
from pgversus.text.sql import quoted_parts, without_comments

_READS = frozenset({"SelectStmt"})
_WRITES = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})
_LONGEST = 1_000_000
"""Maximum number of characters. The parser's tree needs a hundred times the memory of the text."""
_REMEMBERED, _LONGEST_REMEMBERED = 10_000, 10_000
"""Texts, and characters of each: the executions of a log repeat a few statements, but not INSERTs of many rows."""
_NUMBERED = re.compile(r"\d\d")
"""What the parser's fingerprint ignores in the names of tables."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The parser's result for a text."""

    fingerprint: str
    kind: StatementKind
    problem: str = ""
    """Why the text is not one statement; empty if it is."""


def parsed(text: str) -> Parsed:
    """Parse a text with the grammar of PostgreSQL 17. A text that is not one statement has the kind UNKNOWN."""
    return _remembered(text) if len(text) <= _LONGEST_REMEMBERED else _parsed(text)


def _parsed(text: str) -> Parsed:
    trees, problem = _trees(text)
    if not problem and len(trees) != 1:
        problem = f"{len(trees)} statements in one text" if trees else "no statement"
    if problem:
        return _unknown(text, problem)
    tree = trees[0]["stmt"]
    return Parsed(fingerprint=_fingerprint(text, tree), kind=_kind(tree))


_remembered = lru_cache(maxsize=_REMEMBERED)(_parsed)


def separated(text: str) -> list[str]:
    """Return the statements of a text, each with the comments before it.

    If the text cannot be parsed, it is split at semicolons outside quotes, so that one statement does not hide others.
    Commands of pgbench and psql are omitted.
    """
    trees, problem = _trees(text)
    if problem:
        return _split(without_commands(text))
    # The parser counts bytes.
    encoded = text.encode()
    edges = [*(tree.get("stmt_location", 0) for tree in trees), len(encoded)]
    return [encoded[start:end].decode() for start, end in pairwise(edges)]


def _split(text: str) -> list[str]:
    """Return the parts of a text that end with a semicolon outside quotes, and the rest."""
    parts, begin, after = [], 0, 0
    for opening, end in [*quoted_parts(text), (len(text), len(text))]:
        while (found := text.find(";", after, opening)) >= 0:
            parts.append(text[begin : found + 1])
            begin = after = found + 1
        after = end
    rest = text[begin:]
    if parts and not without_comments(rest).strip():
        # A comment at the end is not a statement.
        parts[-1] += rest
    else:
        parts.append(rest)
    return [part for part in parts if without_comments(part).strip(" \n\t\r;")]


def dicts_in(tree: Any) -> Iterator[Mapping[str, Any]]:
    """Yield every dict in a parse tree, in no particular order."""
    waiting = [tree]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            yield one
            waiting += one.values()
        elif isinstance(one, list):
            waiting += one


def _fingerprint(text: str, tree: Any) -> str:
    """Return the parser's fingerprint, but tell apart events_2023 and events_2024, and f(a, b) and f(b, a)."""
    found, nodes = pgparse.fingerprint(text), list(dicts_in(tree))
    names = (one["RangeVar"].get("relname", "") for one in nodes if "RangeVar" in one)
    numbered = {name for name in names if _NUMBERED.search(name)}
    orders = {_order(one["args"]) for one in nodes if len(one.get("args") or ()) > 1 and "boolop" not in one}
    others = [*sorted(numbered), *sorted(order for order in orders if order)]
    return _digest("\0".join([found, *others])) if others else found


def _order(arguments: Sequence[Any]) -> str:
    """Return the order of the columns among the arguments of a function; empty without a column."""
    fields = [one.get("ColumnRef", {}).get("fields") for one in arguments]
    return json.dumps([_names(one) for one in fields]) if any(fields) else ""


def _names(fields: Sequence[Any] | None) -> list[str]:
    """Return the parts of the name of a column; empty for another argument."""
    return [part["String"]["sval"] for part in fields or () if "String" in part]


def _trees(text: str) -> tuple[list[Any], str]:
    """Return the tree of each statement in a text, and why the text cannot be parsed; empty if it can."""
    if len(text) > _LONGEST:
        return [], f"a text of more than {_LONGEST:,} characters"
    if "\0" in text:
        return [], "a zero byte in the text"
    try:
        return pgparse.parse(text), ""
    except (pgparse.PGQueryError, ValueError, RecursionError) as error:
        return [], str(error) or type(error).__name__


def _kind(tree: Mapping[str, Mapping[str, Any]]) -> StatementKind:
    ((node, fields),) = tree.items()
    if node not in _READS | _WRITES or _creates_table(fields):
        return StatementKind.UTILITY
    queries = [one["CommonTableExpr"]["ctequery"] for one in fields.get("withClause", {}).get("ctes", ())]
    # WITH may contain statements that write, at the top level only.
    return StatementKind.WRITES if any(_WRITES & found.keys() for found in (tree, *queries)) else StatementKind.READS


def _creates_table(fields: Mapping[str, Any]) -> bool:
    """Return whether a query is SELECT INTO. Of several, as in a UNION, the first one has the clause."""
    while "larg" in fields:
        fields = fields["larg"]
    return "intoClause" in fields


def _unknown(text: str, problem: str) -> Parsed:
    """Return the result for a text that is not one statement. Its fingerprint ignores differences in white space."""
    return Parsed(fingerprint=_digest(" ".join(text.split())), kind=StatementKind.UNKNOWN, problem=problem)


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="surrogatepass")).hexdigest()[:16]
