"""Conversion of value objects to JSON and back: objects are read back equal to those written.

Secrets are the exception: they are removed when writing, and again when reading, since earlier versions stored them.
"""

import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Annotated, Any, TypeVar

from pydantic import AfterValidator, BeforeValidator, Field, TypeAdapter
from pydantic_core import from_json

from pgversus.records.preparation import Preparation
from pgversus.store.rows import Seconds
from pgversus.study.comparison import Comparison
from pgversus.study.study import Context, StudyKind, StudyMetadata
from pgversus.text.documents import document_without_secrets
from pgversus.text.redaction import code_without_secrets, message_without_secrets

_ADDED = {
    "block": {"host": "TEXT"},
    "trial": {"ratio_error": "REAL", "windows": "INTEGER"},
    "explained_arm": {"index_keys": "TEXT"},
    "plan": {"more_runs": "TEXT", "ordered_digest": "TEXT", "uncertainties": "TEXT"},
}
"""Columns added since the first results: names and types, by table."""


def add_missing_columns(database: sqlite3.Connection) -> None:
    """Add the columns that older results lack, so that blocks can be added."""
    for table, added in _ADDED.items():
        for name in added.keys() - _columns(database, table):
            database.execute(f"ALTER TABLE {table} ADD COLUMN {name} {added[name]}")


def added_columns(database: sqlite3.Connection, table: str) -> dict[str, str]:
    """Return expressions for SELECT of the columns added since the first results: the name, or NULL if missing."""
    there = _columns(database, table)
    return {name: name if name in there else "NULL" for name in _ADDED[table]}


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {row[1] for row in database.execute(f"PRAGMA table_info({table})")}


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFact:
    """A context without its number."""

    levels: tuple[tuple[str, str], ...]
    comparison: Comparison


def _with_kind(study: object) -> object:
    """Add the kind to the metadata of older results, in which only a study had a title."""
    if isinstance(study, dict) and "kind" not in study:
        kind = StudyKind.STUDY if study.get("title") or study.get("contexts") != 1 else StudyKind.COMPARISON
        return {**study, "kind": kind}
    return study


STUDY: TypeAdapter[StudyMetadata] = TypeAdapter(Annotated[StudyMetadata, BeforeValidator(_with_kind)])
CONTEXT = TypeAdapter(ContextFact)
PREPARATION = TypeAdapter(Preparation)
STEPS = TypeAdapter(dict[str, Seconds])
_STUDY = "study"
T = TypeVar("T")

_LARGEST = 2**63
_Scalar = (
    str | bool | Annotated[int, Field(ge=-_LARGEST, le=_LARGEST)] | Annotated[float, Field(allow_inf_nan=False)] | None
)


def _with_numbers(host: dict[str, Any]) -> dict[str, Any]:
    for name in ("cpus", "cpus_usable", "memory_bytes"):
        value = host.get(name)
        if value is not None and (not isinstance(value, int) or isinstance(value, bool) or value < 1):
            raise ValueError(f"{name} is not a number")
    return host


_Texts = dict[str, str | None]
_FACTS: Mapping[str, TypeAdapter[Any]] = {
    "asked": TypeAdapter(dict[str, str]),
    "budget_s": TypeAdapter(Seconds | None),
    "builds": TypeAdapter(dict[str, _Texts]),
    "client": TypeAdapter(_Texts),
    "ended": TypeAdapter(str),
    "host": TypeAdapter(Annotated[dict[str, _Scalar], AfterValidator(_with_numbers)]),
    "loaded": TypeAdapter(list[str]),
    "not_attributed": TypeAdapter(dict[Annotated[str, Field(pattern=r"^[0-9]{1,9}-[0-9]{1,9}$")], str]),
    "not_prepared": TypeAdapter(dict[Annotated[str, Field(pattern=r"^[0-9]{1,9}$")], str]),
}
"""Types of facts in JSON; facts of other names are not read by code."""


def fact_of(name: str, text: str) -> Any:
    """Return the value of a fact; ValueError for invalid JSON or a value that is not valid for this name."""
    text = fact_without_secrets(name, text)
    return _FACTS[name].validate_json(text) if name in _FACTS else from_json(text, allow_inf_nan=False)


def fact_without_secrets(name: str, text: str) -> str:
    """Return the JSON of a fact without secrets. Except in the study, texts may be messages of any program."""
    return document_without_secrets(text, code_without_secrets if name == _STUDY else message_without_secrets)


def study_without_secrets(study: StudyMetadata) -> StudyMetadata:
    """Return the metadata of a study as it is stored."""
    return _without_secrets(STUDY, study)


def context_without_secrets(context: Context) -> Context:
    """Return a context as it is stored, apart from the URIs of its servers."""
    fact = ContextFact(levels=context.levels, comparison=context.comparison)
    hidden = _without_secrets(CONTEXT, fact)
    return context if hidden is fact else replace(context, levels=hidden.levels, comparison=hidden.comparison)


def _without_secrets(adapter: TypeAdapter[T], value: T) -> T:
    text = adapter.dump_json(value).decode()
    hidden = document_without_secrets(text)
    return value if hidden is text else adapter.validate_json(hidden)
