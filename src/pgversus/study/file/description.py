"""The schema in words, for messages and the reference, and as JSON Schema, for editors."""

from collections.abc import Callable, Collection, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from itertools import islice
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pgversus.study.file.document import Path, as_toml
from pgversus.study.file.schema import StudyTable
from pgversus.study.workload import LARGEST_INT


class _WithoutNull(GenerateJsonSchema):
    """Generates optional keys without null, which TOML does not have."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


@cache
def json_schema() -> Mapping[str, Any]:
    """Return the JSON schema of a study file."""
    schema: dict[str, Any] = _tidied(StudyTable.model_json_schema(schema_generator=_WithoutNull))
    properties = schema.pop("properties")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pgversus study file",
        **schema,
        # pydantic lists inherited keys first.
        "properties": {"title": properties["title"], **properties},
    }


@cache
def flat_schema() -> Mapping[str, Any]:
    """Return the schema without references, so that the path of a key can be followed."""
    schema = dict(json_schema())
    flat: dict[str, Any] = _resolved(schema, schema.pop("$defs"))
    return flat


def _tidied(part: Any) -> Any:
    """Return the schema without pydantic's titles, which repeat names, and with names restricted to their pattern."""
    if isinstance(part, list):
        return [_tidied(item) for item in part]
    if not isinstance(part, dict):
        return part
    closed = {"additionalProperties": False} if "patternProperties" in part else {}
    kept = {key: value for key, value in part.items() if key != "title" or not isinstance(value, str)}
    return {key: _tidied(value) for key, value in kept.items()} | closed


def _resolved(part: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(part, list):
        return [_resolved(item, definitions) for item in part]
    if not isinstance(part, dict):
        return part
    own = {key: value for key, value in part.items() if key != "$ref"}
    if "$ref" in part:
        own = {**definitions[part["$ref"].rpartition("/")[2]], **own}
    return {key: _resolved(value, definitions) for key, value in own.items()}


Schema = Mapping[str, Any]

_MOST_COMPARED = 100
# Number of names, and of characters per name: finding the nearest takes time proportional to their product.
_MOST_LISTED = 24

_PLAIN = {"object": "a table", "boolean": "true or false"}
_NUMBERS = {"number": "number", "integer": "whole number"}


def schema_at(path: Path) -> Schema:
    """Return the part of the schema for a path; empty without one."""
    schema = flat_schema()
    for part in path:
        schema = _child(schema, part)
    return schema


def names_at(path: Path) -> list[str]:
    """Return the keys that the schema defines for a table, without user-defined names."""
    return list(schema_at(path).get("properties", ()))


def tables_with(name: str) -> list[str]:
    """Return the headers of the tables that have a key of this name; an empty text stands for the top of the file."""
    return [header for header, schema in tables() if name in schema.get("properties", ())]


def tables() -> Iterator[tuple[str, Schema]]:
    """Yield header and schema of every table with its own keys, except profiles and tables that may be repeated."""
    top = flat_schema()
    yield "", top
    for name, schema in top["properties"].items():
        if "properties" in schema:
            yield f"[{name}]", schema


def nearest(name: str, names: list[str], *, cutoff: float = 0.6) -> str | None:
    """Return the name that was probably meant. cutoff: required similarity; 1 means equal."""
    if len(name) > _MOST_COMPARED:
        return None
    by_lower = {known.lower(): known for known in names[:_MOST_COMPARED] if len(known) <= _MOST_COMPARED}
    found = get_close_matches(name.lower(), by_lower, n=1, cutoff=cutoff)
    return by_lower[found[0]] if found else None


def listed(names: Collection[Any], *, show: Callable[[Any], str] = str, joint: str = ", ") -> str:
    """Return the names on one line, truncated if there are many. show: formats each name that is shown."""
    rest = len(names) - _MOST_LISTED
    return joint.join(map(show, islice(names, _MOST_LISTED))) + (f" and {rest} more" if rest > 0 else "")


def schema_text(schema: Schema) -> str:
    """Describe a valid value: `a whole number of at least 1`, `a list of texts`."""
    if "enum" in schema:
        return listed(schema["enum"], show=as_toml, joint=" or ")
    kind = schema.get("type")
    if isinstance(kind, list):
        return "text, a number, true or false" if "boolean" in kind else "text or a number"
    if kind == "array":
        return f"a list{' with at least one item' if schema.get('minItems') else ''}: {schema_text(schema['items'])}"
    if kind == "string":
        return "text in quotes" + (", not empty" if schema.get("minLength") else "")
    if kind in _PLAIN:
        return _PLAIN[kind]
    return f"a {_NUMBERS[kind]}{_limits(schema)}" if kind in _NUMBERS else "another value"


def example_at(path: Path) -> str | None:
    """Return an example line for a key; None if the schema has none."""
    names = [part for part in path if isinstance(part, str)]
    while path and isinstance(path[-1], int):
        path = path[:-1]
    schema = schema_at(path)
    examples = schema.get("examples", ())
    return f"{names[-1]} = {as_toml(examples[0])}" if examples else None


def _child(schema: Schema, part: str | int) -> Schema:
    if isinstance(part, int):
        items: Schema = schema.get("items", {})
        return items
    if part in schema.get("properties", ()):
        named: Schema = schema["properties"][part]
        return named
    patterns = list(schema.get("patternProperties", {}).values())
    others = patterns[0] if patterns else schema.get("additionalProperties", {})
    return others if isinstance(others, Mapping) else {}


def _limits(schema: Schema) -> str:
    least, most = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        return f" above {schema['exclusiveMinimum']}"
    if most is not None and most < LARGEST_INT:
        return f" from {least} to {most}"
    return "" if least is None else f" of at least {least}"
