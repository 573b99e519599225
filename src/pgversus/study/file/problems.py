"""Collects all problems of a study file, so that a user need not fix one mistake per run.

This module writes the messages for violations of the schema. The valid rest of the document is checked elsewhere.
"""

import copy
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pgversus.errors import PgversusError, StudyError, StudyFileError
from pgversus.study.file.description import Schema, example_at, names_at, nearest, schema_at, schema_text, tables_with
from pgversus.study.file.document import KeyPlaces, Path, Place, as_key, as_toml, shown, shown_value
from pgversus.study.file.schema import StudyTable
from pgversus.text.redaction import without_secrets

MOST_PROBLEMS = 1000
"""Nobody would read more, and each one takes time to search for similar names."""


class Problems:
    """Collects problems and their places; `refuse` raises them all."""

    def __init__(self, file: str, places: KeyPlaces) -> None:
        self._file = file
        self.places = places
        """Keys of the checked document: the file, and then the file with its profile merged in."""
        self._found: list[tuple[Place, StudyError]] = []
        self._known: set[tuple[str, str, str]] = set()
        self._broken: set[Path] = set()
        """Paths with problems. The next two sets index them: there may be many, and every key is looked up."""
        self._beginnings: set[Path] = set()
        self._tables: set[str | int] = set()
        """First parts of paths that have two parts: kind and name of one of several tables."""

    def add(self, path: Path, error: StudyError, *, spoils: bool = True) -> None:
        """Add a problem; its `where` is set to the file, line, table and key of the path.

        spoils: whether the value at the path becomes unknown, so that other problems may be its consequences.

        StudyFileError when there are too many problems.
        """
        place = self.places.of(path)
        error.where = f"{self._file}, {without_secrets(str(place))}"
        for part in ("what", "found", "expected", "to_do"):
            setattr(error, part, without_secrets(getattr(error, part)))
        if spoils:
            self.mark(path)
        if (error.slug, error.where, error.what) not in self._known:
            self._known.add((error.slug, error.where, error.what))
            self._found.append((place, error))
        if len(self._found) >= MOST_PROBLEMS:
            self.refuse()

    @contextmanager
    def catch(self, path: Path, *, to_do: str | None = None) -> Iterator[None]:
        """Add the error of a parser that does not know about files. to_do: replaces advice about options."""
        try:
            yield
        except StudyFileError:
            # There are too many problems.
            raise
        except StudyError as error:
            if to_do is not None:
                error.to_do = to_do
            self.add(path, error)
        except PgversusError as error:
            self.add(
                path,
                StudyError(error.what, slug=error.slug, found=error.found, expected=error.expected, to_do=error.to_do),
            )

    def mark(self, path: Path) -> None:
        """Mark a path that cannot be checked because of a known problem."""
        self._broken.add(path)
        self._beginnings.update(path[:length] for length in range(len(path) + 1))
        if len(path) == 2:  # noqa: PLR2004 - kind and name
            self._tables.add(path[0])

    def concern(self, *path: str | int) -> bool:
        """Return whether a problem is known at, above or below this path, so that further checks would be guesses."""
        return self.lost(*path) or path in self._beginnings

    def lost(self, *path: str | int) -> bool:
        """Return whether the value at this path is unknown because of a problem at or above it."""
        return any(path[:length] in self._broken for length in range(len(path) + 1))

    def lost_names(self, kind: str) -> bool:
        """Return whether some names of a kind of table are unknown because one of the tables is invalid as a whole."""
        several = f"{kind}s"
        return self.lost(kind) or self.lost(several) or several in self._tables

    def bring_up(self, inner: Path) -> None:
        """Copy problems inside `inner`, a profile, to the document that it is merged into."""
        for path in [path for path in self._broken if path[: len(inner)] == inner != path]:
            self.mark(path[len(inner) :])

    def refuse(self) -> None:
        """Raise StudyFileError with all problems in the order of the file, if there are any."""
        if not self._found:
            return
        problems = tuple(error for _, error in sorted(self._found, key=lambda pair: pair[0]))
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        more = " or more" if len(problems) >= MOST_PROBLEMS else ""
        raise StudyFileError(
            f"the study file has {count}{more}", slug="study-file", where=self._file, problems=problems
        )


_OF_A_NAME = "[key]"
# pydantic's marker for an error in the key itself.


def valid_part(document: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """Return a copy of the document without parts that violate the schema; each violation is added to the problems."""
    kept = copy.deepcopy(dict(document))
    try:
        StudyTable.model_validate(document)
    except ValidationError as error:
        # Missing keys come last, because such a key may be present but misspelt.
        for details in sorted(error.errors(include_url=False), key=lambda found: found["type"] == "missing"):
            path = details["loc"][:-1] if _is_of_a_name(details) else details["loc"]
            if details["type"] != "missing" or not problems.lost(*path):
                problems.add(path, _problem(details, path, problems))
                problems.mark(_take_out(kept, path))
    return kept


def _is_of_a_name(details: ErrorDetails) -> bool:
    """Return whether the error is in the key itself. Checks the input as well, because a key may equal the marker."""
    *_, owner, last = ("", *details["loc"])
    return last == _OF_A_NAME and details["type"].startswith("string_") and details["input"] == owner


def _problem(details: ErrorDetails, path: Path, problems: Problems) -> StudyError:
    name, value = str(path[-1]), details["input"]
    if details["type"] == "extra_forbidden":
        return _unknown_key(path, problems)
    if details["type"] == "missing":
        return StudyError(
            f"the key {as_key(name)} is missing",
            slug="study-file-missing-key",
            found="no such key",
            expected=schema_text(schema_at(path)),
            to_do=example_at(path) or "",
        )
    if _is_of_a_name(details):
        return StudyError(
            f"invalid name {shown(name)}",
            slug="study-file-bad-value",
            found=shown(name),
            expected="letters, digits and _"
            if path[-2] == "variables"
            else "at most 80 letters, digits and . _ + : @ -",
            to_do="remove spaces: names are used in labels and folder names",
        )
    schema = schema_at(path)
    return StudyError(
        f"invalid value of {_key_of(path)}",
        slug="study-file-bad-value",
        found=shown_value(next(part for part in reversed(path) if isinstance(part, str)), value),
        expected=schema_text(schema) + (" without NUL characters" if isinstance(value, str) and "\0" in value else ""),
        to_do=_remedy(path, value, schema),
    )


def _unknown_key(path: Path, problems: Problems) -> StudyError:
    name, names = str(path[-1]), names_at(path[:-1])
    meant = nearest(name, names)
    if meant is not None:
        # The value of the intended key is unknown, so keys that depend on it cannot be checked.
        problems.mark((*path[:-1], meant))
    elsewhere = [header or "the top, above the first [table]" for header in tables_with(name)]
    if elsewhere:
        to_do = f"it belongs in {' or '.join(elsewhere)}"
    else:
        to_do = f"did you mean {meant}?" if meant else "remove the key"
    return StudyError(
        f"unknown key {as_key(name)}",
        slug="study-file-unknown-key",
        found=as_key(name),
        expected=", ".join(names),
        to_do=to_do,
    )


def _key_of(path: Path) -> str:
    names = [part for part in path if isinstance(part, str)]
    return as_key(names[-1]) if isinstance(path[-1], str) else f"an item of {as_key(names[-1])}"


def _remedy(path: Path, value: Any, schema: Schema) -> str:
    name = as_key(next(part for part in reversed(path) if isinstance(part, str)))
    is_setting = path[-2:-1] in (("factors",), ("settings",))
    if isinstance(value, Mapping) and is_setting and value:
        inner = as_key(f"{path[-1]}.{next(iter(value))}")
        return f"quote a name that contains a dot: {inner} = {as_toml(['1', '2']) if path[-2] == 'factors' else '1'}"
    if "enum" in schema and isinstance(value, str):
        meant = nearest(value, schema["enum"]) or schema["enum"][0]
        return as_toml(meant) if isinstance(path[-1], int) else f"{name} = {as_toml(meant)}"
    if schema.get("type") == "array" and isinstance(value, str | int | float):
        wants_text = schema["items"].get("type") == "string" and not isinstance(value, str | bool)
        return f"{name} = [{as_toml(str(value) if wants_text else value)}]"
    if schema.get("type") == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return f"quote it: {as_toml(str(value))}"
    if path[0] in ("exclude", "only"):
        return f"write one level in each [[{path[0]}]]"
    return example_at(path) or (f"{name} = {as_toml(['on', 'off'] if path[-2:-1] == ('factors',) else 'on')}")


def _take_out(document: dict[str, Any], path: Path) -> Path:
    """Remove the innermost key that contains a mistake and return its path. A list is removed as a whole."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    owner: Any = document
    for part in path[:-1]:
        if isinstance(owner, dict) and part not in owner:
            # Already removed because of another mistake in it.
            return path
        owner = owner[part]
    owner.pop(path[-1], None)
    return path
