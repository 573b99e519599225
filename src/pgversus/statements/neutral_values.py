"""Values for parameters that are no values of a column and hardly affect a plan, such as constants in a result."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pgparse

from pgversus.statements.parsing import dicts_in

_OF_TYPE = {
    **dict.fromkeys(("smallint", "integer", "bigint", "numeric", "real", "double precision"), "0"),
    **dict.fromkeys(("text", "character varying", "character", "name"), "x"),
    **dict.fromkeys(("date", "timestamp without time zone", "timestamp with time zone"), "2000-01-01"),
    **dict.fromkeys(("json", "jsonb"), "{}"),
    "boolean": "false",
    "interval": "1 day",
    "uuid": "00000000-0000-0000-0000-000000000000",
}
_UNIT = "day"
_WITH_UNIT = frozenset({"date_trunc", "date_part", "extract"})
"""Functions whose first argument is a unit of time."""
_INTERVAL = "interval"


def neutral_values(text: str, types: Sequence[str]) -> dict[int, str]:
    """Return values by number of the parameter, for those that are one of the following.

    A column of the result, or of a subquery of EXISTS; a value of CASE; a later argument of coalesce; the unit of time
    of a function; an interval. types: types of the parameters, in order, as PostgreSQL names them.
    """
    tree = pgparse.parse(text)[0]["stmt"]
    found = {number: _INTERVAL for number, type_name in enumerate(types, start=1) if type_name == _INTERVAL}
    replaceable, units = set(_of_result(tree)), set[int]()
    for node in dicts_in(tree):
        replaceable |= set(_replaceable(node))
        if "funcname" in node and node["funcname"][-1].get("String", {}).get("sval") in _WITH_UNIT:
            units |= set(parameters_among(node.get("args", ())[:1]))
    found |= {number: types[number - 1] for number in replaceable if number <= len(types)}
    values = {number: _OF_TYPE[type_name] for number, type_name in found.items() if type_name in _OF_TYPE}
    return {**values, **dict.fromkeys(units, _UNIT)}


def _of_result(statement: Mapping[str, Any]) -> Iterator[int]:
    """Yield the parameters that are columns of the result of a query, also of each part of a UNION."""
    waiting = [statement["SelectStmt"]] if "SelectStmt" in statement else []
    while waiting:
        query = waiting.pop()
        waiting += [query[side] for side in ("larg", "rarg") if side in query]
        yield from parameters_among(one.get("ResTarget", {}).get("val", {}) for one in query.get("targetList", ()))


def _replaceable(node: Mapping[str, Any]) -> Iterator[int]:
    """Yield the parameters that are columns of a subquery of EXISTS, or values of CASE or of coalesce."""
    if node.get("subLinkType") == "EXISTS_SUBLINK":
        yield from _of_result(node.get("subselect", {}))
    if "CaseExpr" in node:
        case = node["CaseExpr"]
        yield from parameters_among([case.get("defresult", {}), *(one["CaseWhen"]["result"] for one in case["args"])])
    if "CoalesceExpr" in node:
        yield from parameters_among(node["CoalesceExpr"]["args"][1:])


def parameters_among(expressions: Any) -> Iterator[int]:
    """Yield the numbers of those expressions that are parameters, with or without a cast."""
    for one in expressions:
        bare = one["TypeCast"]["arg"] if "TypeCast" in one else one
        if "ParamRef" in bare:
            yield bare["ParamRef"].get("number", 0)
