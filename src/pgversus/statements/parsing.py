"""PostgreSQL's own parser, for one statement: its kind and its fingerprint."""

import hashlib
from dataclasses import dataclass
from functools import lru_cache

import pgparse

from pgversus.statements.statement import StatementKind

_READS = frozenset({"SelectStmt"})
_WRITES = frozenset({"InsertStmt", "UpdateStmt", "DeleteStmt", "MergeStmt"})
_LONGEST = 1_000_000
"""Maximum number of characters. The parser's tree needs a hundred times the memory of the text."""
_REMEMBERED = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """The parser's result for a text."""

    fingerprint: str
    kind: StatementKind
    problem: str = ""
    """Why the text is not one statement; empty if it is."""


@lru_cache(maxsize=_REMEMBERED)
def parsed(text: str) -> Parsed:
    """Parse a text with the grammar of PostgreSQL 17. A text that is not one statement has the kind UNKNOWN."""
    if len(text) > _LONGEST:
        return _unknown(text, f"a text of more than {_LONGEST:,} characters")
    if "\0" in text:
        return _unknown(text, "a zero byte in the text")
    try:
        trees = pgparse.parse(text)
        fingerprint = pgparse.fingerprint(text)
    except (pgparse.PGQueryError, ValueError, RecursionError) as error:
        return _unknown(text, str(error) or type(error).__name__)
    if len(trees) != 1:
        return _unknown(text, f"{len(trees)} statements in one text" if trees else "no statement")
    return Parsed(fingerprint=fingerprint, kind=_kind(trees[0]["stmt"]))


def _kind(tree: dict[str, dict[str, object]]) -> StatementKind:
    ((node, fields),) = tree.items()
    # SELECT INTO creates a table.
    if node in _READS and "intoClause" not in fields:
        return StatementKind.READS
    return StatementKind.WRITES if node in _WRITES else StatementKind.UTILITY


def _unknown(text: str, problem: str) -> Parsed:
    """Return the result for a text that is not one statement. Its fingerprint ignores differences in white space."""
    digest = hashlib.sha256(" ".join(text.split()).encode(errors="surrogatepass")).hexdigest()[:16]
    return Parsed(fingerprint=digest, kind=StatementKind.UNKNOWN, problem=problem)
