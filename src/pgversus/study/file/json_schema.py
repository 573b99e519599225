"""The JSON schema of a study file: for editors, for the reference, and for messages about keys."""

from collections.abc import Mapping
from functools import cache
from typing import Any

from pydantic.json_schema import GenerateJsonSchema, JsonSchemaValue
from pydantic_core import core_schema

from pgversus.study.file.schema import StudyFile


class _WithoutNull(GenerateJsonSchema):
    """TOML has no null: what may be absent is just not required."""

    def nullable_schema(self, schema: core_schema.NullableSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])

    def default_schema(self, schema: core_schema.WithDefaultSchema) -> JsonSchemaValue:
        return self.generate_inner(schema["schema"])


@cache
def json_schema() -> Mapping[str, Any]:
    """The JSON schema of a study file."""
    schema: dict[str, Any] = _tidied(StudyFile.model_json_schema(schema_generator=_WithoutNull))
    properties = schema.pop("properties")
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "pgversus study file",
        **schema,
        # pydantic puts what is inherited first.
        "properties": {"title": properties["title"], **properties},
    }


@cache
def flat_schema() -> Mapping[str, Any]:
    """The same without references, to be walked along the path of a key."""
    schema = dict(json_schema())
    flat: dict[str, Any] = _resolved(schema, schema.pop("$defs"))
    return flat


def _tidied(part: Any) -> Any:
    """Without pydantic's titles, which repeat the names, and with names of tables that are held to their pattern."""
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
