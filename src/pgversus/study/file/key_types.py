"""The types of keys in a study file, and the base of its tables."""

import math
from typing import Annotated, Any

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from pgversus.study.comparison import CacheState
from pgversus.study.counters import COUNTERS
from pgversus.study.metrics import BY_NAME
from pgversus.study.workload import LARGEST_INT, VARIABLE_NAME

LARGEST_INTEGER = 2**63 - 1
# TOML's limit.


def _as_configured(value: object) -> str:
    if isinstance(value, bool):
        return "on" if value else "off"
    return _as_written(value)


def _as_pgbench_variable(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else _as_written(value)


def _as_written(value: object) -> str:
    if isinstance(value, str) and "\0" not in value:
        return value
    is_integer = isinstance(value, int) and abs(value) <= LARGEST_INTEGER
    is_number = isinstance(value, float) and math.isfinite(value)
    if not isinstance(value, bool) and (is_integer or is_number):
        return repr(value)
    raise PydanticCustomError("value", "not a value")


def _as_quantity(value: object) -> str:
    if isinstance(value, str) and value in QUANTITIES:
        return value
    raise PydanticCustomError("quantity", "neither metric nor counter")


_SCALAR = {"type": ["string", "number", "boolean"]}
QUANTITIES = (*BY_NAME, *COUNTERS)
"""Values that can be shown in addition to the metric of the verdict."""

Text = Annotated[str, Field(min_length=1, pattern=r"^[^\u0000]*$")]
Name = Annotated[str, Field(min_length=1, max_length=80, pattern=r"^[\w.+:@-]+$")]
"""Name of a workload, dataset, load or profile, used in labels and folder names."""
Value = Annotated[str, BeforeValidator(_as_configured), WithJsonSchema(_SCALAR)]
"""A setting's value as in postgresql.conf."""
VariableName = Annotated[str, Field(min_length=1, pattern=f"^{VARIABLE_NAME}$")]
VariableValue = Annotated[str, BeforeValidator(_as_pgbench_variable), WithJsonSchema(_SCALAR)]
Quantity = Annotated[str, BeforeValidator(_as_written), WithJsonSchema({"type": ["string", "number"]})]
"""A duration or a share; plain numbers have the same meaning as on the command line."""
QuantityName = Annotated[
    str, BeforeValidator(_as_quantity), WithJsonSchema({"type": "string", "enum": list(QUANTITIES)})
]
Count = Annotated[int, Field(ge=1, le=LARGEST_INT)]
Cache = Annotated[CacheState, Field(strict=False)]
# TOML has no enums, so this text is converted, although the schema is otherwise strict.


def key(meaning: str, *, default: str, example: Any) -> Any:
    """Return an optional key. default: described in words, for the reference; example: a valid value."""
    return Field(default=None, description=meaning, examples=[example], json_schema_extra={"x-default": default})


class Table(BaseModel):
    """The base of all tables: strict, and without unknown keys."""

    model_config = ConfigDict(strict=True, extra="forbid", frozen=True)
