"""TOML text in, plain tables out."""

import re
import tomllib
from collections.abc import Mapping
from typing import Any

from pgversus.errors import StudyError, StudyFileError
from pgversus.study.file.values import shown
from pgversus.text.documents import is_nested_deeper
from pgversus.text.redaction import without_secrets

MOST_LEVELS = 16
"""Of tables in tables. The schema needs six; whatever walks a document may then call itself."""
_LONGEST_KEY = 1000
"""It stands in every message about what is in it."""
_DOTTED = re.compile(r"(?<![A-Za-z0-9_-])(?:(?:[A-Za-z0-9_-]++|\"[^\"\n]*+\"|'[^'\n]*+')[ \t]*+\.[ \t]*+){200}")
"""A key of so many parts, for which tomllib takes time that grows with their square."""

_PLACE = re.compile(r"(.*) \(at (?:line ([0-9]+), column ([0-9]+)|end of document)\)", re.DOTALL)
_TWICE = re.compile(r"overwrite|twice|mutate")
# tomllib's words for a key or a table that is there already.


def parse_document(text: str, file: str) -> Mapping[str, Any]:
    """The document as nested dicts and lists; StudyFileError when the text is no TOML."""
    if _DOTTED.search(text):
        raise _too_deep(file)
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(text, file, str(error)) from None
    except (RecursionError, ValueError):
        # ValueError is a number that is thousands of digits long.
        raise _refused(_problem(file, "a value is nested too deeply, or too long a number")) from None
    if is_nested_deeper(document, MOST_LEVELS):
        raise _too_deep(file)
    if _has_long_key(document):
        raise _refused(_problem(file, f"a key of more than {_LONGEST_KEY} characters"))
    return document


def _too_deep(file: str) -> StudyFileError:
    return _refused(_problem(file, f"tables nested more than {MOST_LEVELS} deep"))


def _syntax_error(text: str, file: str, message: str) -> StudyFileError:
    match = _PLACE.fullmatch(message)
    lines = text.replace("\r\n", "\n").split("\n")
    if match is None:
        return _refused(_problem(file, message))
    line, column = (int(match[2]), int(match[3])) if match[2] else (len(lines), len(lines[-1]) + 1)
    written = lines[line - 1] if line <= len(lines) else ""
    return _refused(_problem(f"{file}, line {line}, column {column}", _found(written, column), because=match[1]))


def _found(line: str, column: int) -> str:
    if without_secrets(line) != line:
        # A part of the line could be that part of a password which no pattern knows any more.
        return shown(line.strip())
    before, rest = line[: column - 1].strip(), line[column - 1 :].strip()
    if rest:
        return shown(rest)
    return f"the end of the line, after {shown(before)}" if before else "the end of the line"


def _problem(where: str, found: str, *, because: str = "") -> StudyError:
    said = f": {because[:1].lower()}{because[1:]}" if because else ""
    return StudyError(
        without_secrets(f"this is no TOML{said}"),
        slug="study-file-syntax",
        where=where,
        found=found,
        expected="TOML: key = value, text in quotes, [table]",
        to_do="each key and each table stands only once"
        if _TWICE.search(because)
        else 'text stands in quotes, and a list in brackets: server = ["16.12", "17.8"]',
    )


def _refused(problem: StudyError) -> StudyFileError:
    # Nothing else can be said of such a file: it is its only problem.
    return StudyFileError(
        "the study file has 1 problem", slug="study-file", where=problem.where.partition(",")[0], problems=(problem,)
    )


def _has_long_key(value: Any) -> bool:
    if isinstance(value, list):
        return any(map(_has_long_key, value))
    if not isinstance(value, Mapping):
        return False
    return any(len(key) > _LONGEST_KEY or _has_long_key(item) for key, item in value.items())
