"""Values for parameters whose values no source reports, from statistics of the columns that they are compared with.

The value of a parameter often decides the plan, so there are two classes of values: common and rare ones.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pgparse

from pgversus.statements.neutral_values import neutral_values, parameters_among
from pgversus.statements.parsing import dicts_in
from pgversus.statements.statement import Sample, ValueClass
from pgversus.text.sql import NAME, quoted_name, unquoted_name

_NAME = rf"{NAME}\.{NAME}"
_CAST = r"::[\w ]+(?:\([\d,]+\))?"
_COLUMN = rf"(?:(?<!\w)\((?P<cast>{_NAME})\){_CAST}|(?P<plain>{_NAME}))"
_OPERATOR = r"(?P<operator><>|<=|>=|=|<|>|~~\*?)"
_PARAMETER = r"(?P<any>(?:ANY|ALL) \()?(?P<open>\()?\$(?P<number>\d+)(?(open)\))"
_COMPARED = re.compile(rf"{_COLUMN} {_OPERATOR} {_PARAMETER}")
_IN_LIST = re.compile(rf"{_COLUMN} (?:=|<>) (?:ANY|ALL) \(\(?ARRAY\[(?P<list>[^\]]*)\]")
_IN_ARRAY = re.compile(r"(?<![\w$])\$(\d+)")
_COMPARED_WITH = re.compile(rf"{_PARAMETER}(?:{_CAST})? {_OPERATOR} {_COLUMN}")
_TURNED = {"<": ">", ">": "<", "<=": ">=", ">=": "<="}
_ASSIGNED, _ANY = ":=", " ANY"
_FROM, _TO = frozenset({">", ">="}), frozenset({"<", "<="})
_CASE_SENSITIVE_LIKE = "~~"
_SPECIAL_IN_LIKE = re.compile(r"[\\%_]")
_LIKE = frozenset({_CASE_SENSITIVE_LIKE, "~~*"})
_NUMBERS = frozenset({"smallint", "integer", "bigint", "numeric", "real", "double precision"})
"""Types whose values are ordered as numbers; as text, the values of most other types are in their order."""
_PREFIX = 3
"""Number of characters of a value in a pattern for LIKE."""
_ARRAY_VALUES = 3
"""Number of values in an array that is one parameter, as in `ANY ($1)`."""
_LIMITS = {"limitCount": "10", "limitOffset": "0"}
_LOW = {ValueClass.COMMON: (0.25, 0.5), ValueClass.RARE: (0.5, 0.98)}
_HIGH = {ValueClass.COMMON: (0.75, 0.5), ValueClass.RARE: (0.51, 0.02)}
"""Bounds of a range as fractions of the rows: if it has two bounds, and if its other side is open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Column:
    """A column of a table."""

    table: str
    """Quoted and qualified where necessary, as in SQL."""
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterUse:
    """A column with which a parameter is compared, or to which it is assigned."""

    number: int
    """Number of the parameter, from 1."""
    column: Column
    operator: str
    """From the column's side: `created > $1` has `>`, `id = ANY ($1)` has `= ANY`, and `SET id = $1` has `:=`."""
    place: int = 0
    """Its place in a list: 1 for `$4` in `id IN ($3, $4)`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ColumnValues:
    """Values of a column from its statistics, as text. Either may be empty."""

    most_common: tuple[str, ...]
    """The most common one first."""
    histogram: tuple[str, ...]
    """In ascending order, with equal numbers of rows between neighbors; without the most common values."""
    is_unique: bool = False
    """Whether a unique index contains the column, so that another row's value cannot be assigned."""


def uses_in_plan(plan: Mapping[str, Any]) -> list[ParameterUse]:
    """Return the columns that a generic plan compares with parameters. plan: EXPLAIN (VERBOSE, FORMAT JSON)."""
    nodes = list(_nodes(plan))
    tables = {
        node["Alias"]: f"{quoted_name(node['Schema'])}.{quoted_name(node['Relation Name'])}"
        for node in nodes
        if {"Alias", "Schema", "Relation Name"} <= node.keys()
    }
    found = []
    for node in nodes:
        for name, text in node.items():
            if isinstance(text, str) and name.endswith(("Cond", "Filter")):
                for column, operator, number, place in _comparisons(text):
                    alias, _, plain = column.rpartition(".")
                    table = tables.get(unquoted_name(alias))
                    if table is not None:
                        of = Column(table=table, name=unquoted_name(plain))
                        found.append(ParameterUse(number=number, column=of, operator=operator, place=place))
    return found


def assigned(text: str) -> list[ParameterUse]:
    """Return the columns that an UPDATE sets to parameters."""
    fields = _tree(text).get("UpdateStmt", {})
    relation = fields.get("relation", {})
    table = ".".join(quoted_name(relation[part]) for part in ("schemaname", "relname") if part in relation)
    return [
        ParameterUse(number=number, column=Column(table=table, name=target["ResTarget"]["name"]), operator=_ASSIGNED)
        for target in fields.get("targetList", ())
        for number in parameters_among([target["ResTarget"].get("val", {})])
    ]


def limits(text: str) -> dict[int, str]:
    """Return values for the parameters of LIMIT and OFFSET, by number."""
    return {
        number: value
        for node in dicts_in(_tree(text))
        for name, value in _LIMITS.items()
        for number in parameters_among([node.get(name, {})])
    }


def chosen_samples(
    text: str,
    types: Sequence[str],
    uses: Sequence[ParameterUse],
    known: Mapping[Column, ColumnValues],
) -> list[Sample]:
    """Return a sample with common and one with rare values; one if they are equal, none if a value is unknown.

    types: types of the parameters, in order, as PostgreSQL names them. uses: the first one of each parameter counts.
    """
    fixed, neutral = limits(text), neutral_values(text, types)
    samples = []
    for value_class in ValueClass:
        values: list[str] = []
        for number, type_name in enumerate(types, start=1):
            options = (fixed.get(number), _value(number, type_name, uses, known, value_class), neutral.get(number))
            # An empty text is a value.
            value = next((one for one in options if one is not None), None)
            if value is None:
                return []
            values.append(value)
        samples.append(Sample(text=text, values=tuple(values), value_class=value_class))
    return samples[: len({sample.values for sample in samples})]


def _value(
    number: int,
    type_name: str,
    uses: Sequence[ParameterUse],
    known: Mapping[Column, ColumnValues],
    value_class: ValueClass,
) -> str | None:
    for use in uses:
        values = known.get(use.column)
        if use.number != number or values is None or not (values.most_common or values.histogram):
            continue
        if use.operator == _ASSIGNED and values.is_unique:
            return None
        if use.operator in _FROM | _TO:
            others = {one.operator for one in uses if one.column == use.column and one.number != number}
            return _bound(use.operator, others, _ascending(values, type_name), value_class)
        likely = _values(values, value_class)
        if use.operator.endswith(_ANY):
            return "{" + ",".join(map(_element, likely[:_ARRAY_VALUES])) + "}"
        if use.operator in _LIKE:
            return _pattern(likely[0], use.operator, value_class)
        return likely[min(use.place, len(likely) - 1)]
    return None


def _pattern(value: str, operator: str, value_class: ValueClass) -> str:
    """Return a pattern that the value matches: by its beginning, as in a completion, or anywhere, as in a search."""
    is_prefix = operator == _CASE_SENSITIVE_LIKE and value_class is ValueClass.COMMON
    beginning = _SPECIAL_IN_LIKE.sub(r"\\\g<0>", value[:_PREFIX])
    return f"{beginning}%" if is_prefix else f"%{beginning}%"


def _values(values: ColumnValues, value_class: ValueClass) -> Sequence[str]:
    """Return values of the class, at least one: the most common ones, or some from the middle of the others."""
    middle = values.histogram[len(values.histogram) // 2 :] or values.histogram
    if value_class is ValueClass.COMMON:
        return values.most_common or middle
    return middle or values.most_common[::-1]


def _ascending(values: ColumnValues, type_name: str) -> Sequence[str]:
    """Return the values in ascending order: the histogram or, without one, the most common ones."""
    if values.histogram:
        return values.histogram
    # Statistics have these in the order of their frequency.
    if type_name in _NUMBERS:
        try:
            return sorted(values.most_common, key=float)
        except ValueError:
            # The column is cast: a money or a text column.
            pass
    return sorted(values.most_common)


def _bound(operator: str, others: set[str], ordered: Sequence[str], value_class: ValueClass) -> str:
    """Return the bound of a range. others: operators of other bounds on the same column."""
    fractions, opposite = (_LOW, _TO) if operator in _FROM else (_HIGH, _FROM)
    fraction = fractions[value_class][0 if others & opposite else 1]
    return ordered[min(len(ordered) - 1, int(fraction * len(ordered)))]


def _comparisons(text: str) -> Iterator[tuple[str, str, int, int]]:
    """Yield column, operator, number of the parameter, and its place in a list, of each comparison in a condition."""
    for found in _IN_LIST.finditer(text):
        for place, number in enumerate(_IN_ARRAY.findall(found["list"])):
            yield found["cast"] or found["plain"], "=", int(number), place
    for found in _COMPARED.finditer(text):
        operator = found["operator"] + (_ANY if found["any"] else "")
        yield found["cast"] or found["plain"], operator, int(found["number"]), 0
    for found in _COMPARED_WITH.finditer(text):
        operator = found["operator"]
        yield found["cast"] or found["plain"], _TURNED.get(operator, operator), int(found["number"]), 0


def _nodes(plan: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from _nodes(child)


def _tree(text: str) -> Mapping[str, Any]:
    (statement,) = pgparse.parse(text)
    tree: Mapping[str, Any] = statement["stmt"]
    return tree


def _element(value: str) -> str:
    """Return a value as an element of an array in text form."""
    return '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
