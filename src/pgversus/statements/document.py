"""Statements as `pgversus statements --json` writes them, which are a source again."""

import re
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field, NonNegativeInt, TypeAdapter, ValidationError

from pgversus.errors import StudyError
from pgversus.statements.statement import Sample
from pgversus.text.validation import first_problem

SCHEMA = "pgversus.statements/1"
DOCUMENT_HEAD = re.compile(r'\s*\{\s*"schema"\s*:\s*"' + re.escape(SCHEMA) + '"')
"""The beginning of a document."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedStatement:
    """A statement of a document, without the properties that follow from its text."""

    text: Annotated[str, Field(min_length=1)]
    calls: NonNegativeInt
    seconds: Annotated[float, Field(ge=0, allow_inf_nan=False)]
    rows: NonNegativeInt | None
    samples: tuple[Sample, ...]
    name: str
    is_prepared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _StatementList:
    statements: tuple[ListedStatement, ...]


_LIST = TypeAdapter(_StatementList)


def statements_of_document(text: str, where: str) -> tuple[ListedStatement, ...]:
    """Return the statements of a document; StudyError if it is damaged. where: its path, for the message."""
    try:
        return _LIST.validate_json(text).statements
    except ValidationError as error:
        raise StudyError(
            "this file is not a list of statements",
            slug="statements-bad-document",
            where=where,
            found=first_problem(error),
            expected=f"a document of the schema {SCHEMA}",
            to_do="pgversus statements SOURCE... --json -o statements.json",
        ) from error
