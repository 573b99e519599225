"""A document against the schema: every mistake in our own words, and what remains when they are taken out."""

import copy
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from pgversus.errors import StudyError
from pgversus.study.file.description import Schema, example_at, in_words, names_at, nearest, schema_at, tables_with
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.schema import StudyFile
from pgversus.study.file.values import as_key, as_toml, shown, shown_value

_OF_A_NAME = "[key]"
# pydantic's mark of a mistake in the key itself.


def valid_part(document: Mapping[str, Any], problems: Problems) -> dict[str, Any]:
    """A copy of the document without what the schema refuses; each refusal is added to the problems."""
    kept = copy.deepcopy(dict(document))
    try:
        StudyFile.model_validate(document)
    except ValidationError as error:
        # A key that is missing comes last: it may stand there misspelt.
        for details in sorted(error.errors(include_url=False), key=lambda found: found["type"] == "missing"):
            path = details["loc"][:-1] if _is_of_a_name(details) else details["loc"]
            if details["type"] != "missing" or not problems.lost(*path):
                problems.add(path, _problem(details, path, problems))
                problems.mark(_take_out(kept, path))
    return kept


def _is_of_a_name(details: ErrorDetails) -> bool:
    """Whether the mistake is in the key itself, which is then what was looked at. Any key may look like the mark."""
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
            expected=in_words(schema_at(path)),
            to_do=example_at(path) or "",
        )
    if _is_of_a_name(details):
        return StudyError(
            f"{shown(name)} is no name",
            slug="study-file-bad-value",
            found=shown(name),
            expected="letters, digits and _"
            if path[-2] == "variables"
            else "at most 80 letters, digits and . _ + : @ -",
            to_do="without spaces: names stand in labels and in names of folders",
        )
    schema = schema_at(path)
    return StudyError(
        f"this is no value of {_key_of(path)}",
        slug="study-file-bad-value",
        found=shown_value(next(part for part in reversed(path) if isinstance(part, str)), value),
        expected=in_words(schema) + (" without NUL characters" if isinstance(value, str) and "\0" in value else ""),
        to_do=_remedy(path, value, schema),
    )


def _unknown_key(path: Path, problems: Problems) -> StudyError:
    name, names = str(path[-1]), names_at(path[:-1])
    meant = nearest(name, names)
    if meant is not None:
        # What it would have said is not known, so nothing that depends on it can be judged.
        problems.mark((*path[:-1], meant))
    elsewhere = [header or "the top, above the first [table]" for header in tables_with(name)]
    if elsewhere:
        to_do = f"it belongs in {' or '.join(elsewhere)}"
    else:
        to_do = f"{meant}, if that is meant" if meant else "leave it out"
    return StudyError(
        f"there is no key {as_key(name)} here",
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
        return f"a name with a dot in it is quoted: {inner} = {as_toml(['1', '2']) if path[-2] == 'factors' else '1'}"
    if "enum" in schema and isinstance(value, str):
        meant = nearest(value, schema["enum"]) or schema["enum"][0]
        return as_toml(meant) if isinstance(path[-1], int) else f"{name} = {as_toml(meant)}"
    if schema.get("type") == "array" and isinstance(value, str | int | float):
        wants_text = schema["items"].get("type") == "string" and not isinstance(value, str | bool)
        return f"{name} = [{as_toml(str(value) if wants_text else value)}]"
    if schema.get("type") == "string" and isinstance(value, int | float) and not isinstance(value, bool):
        return f"in quotes: {as_toml(str(value))}"
    if path[0] in ("exclude", "only"):
        return f"one level in each [[{path[0]}]]"
    return example_at(path) or (f"{name} = {as_toml(['on', 'off'] if path[-2:-1] == ('factors',) else 'on')}")


def _take_out(document: dict[str, Any], path: Path) -> Path:
    """Remove the innermost key on the way to a mistake; its path. A list with a wrong item goes as a whole."""
    while path and isinstance(path[-1], int):
        path = path[:-1]
    owner: Any = document
    for part in path[:-1]:
        if isinstance(owner, dict) and part not in owner:
            # Taken out already, for another mistake in it.
            return path
        owner = owner[part]
    owner.pop(path[-1], None)
    return path
