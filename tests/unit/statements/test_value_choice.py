"""Values from statistics: the columns that parameters meet in a plan, and the values of two classes."""

from dataclasses import replace
from typing import Any

import pytest

from pgversus.statements.neutral_values import neutral_values
from pgversus.statements.statement import Sample, ValueClass
from pgversus.statements.value_choice import (
    Column,
    ColumnValues,
    ParameterUse,
    assigned,
    chosen_samples,
    limits,
    uses_in_plan,
)

CUSTOMER = Column(table='"app"."orders"', name="customer_id")
MADE = Column(table='"app"."orders"', name="made")
KNOWN = {
    CUSTOMER: ColumnValues(most_common=("7", "8"), histogram=("1", "3", "5", "9")),
    MADE: ColumnValues(most_common=(), histogram=tuple(f"day {number:02}" for number in range(100))),
}


def scan(condition: str, **others: Any) -> dict[str, Any]:
    return {
        "Node Type": "Seq Scan",
        "Schema": "app",
        "Relation Name": "orders",
        "Alias": "o",
        "Filter": condition,
        **others,
    }


def use(number: int, operator: str, column: Column = CUSTOMER) -> ParameterUse:
    return ParameterUse(number=number, column=column, operator=operator)


@pytest.mark.parametrize(
    ("condition", "found"),
    [
        ("(o.customer_id = $1)", [use(1, "=")]),
        ("((o.customer_id)::text = ($2)::text)", [use(2, "=")]),
        ("(($1)::numeric < (o.customer_id)::numeric(10,2))", [use(1, ">")]),
        ('((o."customer_id" >= $1) AND (o.customer_id <= $2))', [use(1, ">="), use(2, "<=")]),
        ("(o.customer_id = ANY ($3))", [use(3, "= ANY")]),
        ('(o."a""b" = $1)', [use(1, "=", Column(table=CUSTOMER.table, name='a"b'))]),
        ("(o.customer_id ~~ $1)", [use(1, "~~")]),
        # The parameter is a part of a larger expression.
        ("((now() - $1) <= o.customer_id)", []),
        (
            "(o.customer_id = ANY (ARRAY[$1, $2]))",
            [use(1, "="), replace(use(2, "="), place=1)],
        ),
        (
            "((o.customer_id)::text = ANY ((ARRAY[$1, $2])::text[]))",
            [use(1, "="), replace(use(2, "="), place=1)],
        ),
        ("(other.customer_id = $1)", []),
        ("((o.customer_id + 1) = $1)", []),
        ("(lower(o.customer_id) = $1)", []),
    ],
)
def test_a_condition_names_the_column_that_a_parameter_is_compared_with(
    condition: str, found: list[ParameterUse]
) -> None:
    assert uses_in_plan({"Node Type": "Limit", "Plans": [scan(condition)]}) == found


def test_an_index_condition_counts_as_well() -> None:
    assert uses_in_plan(scan("", **{"Index Cond": "(o.customer_id = $1)"})) == [use(1, "=")]


def test_an_update_assigns_parameters_to_columns() -> None:
    found = assigned("UPDATE app.orders SET customer_id = $1, made = now() WHERE id = $2")
    assert found == [use(1, ":=")]
    assert assigned("SELECT $1") == []


def test_limits_have_usual_values() -> None:
    text = "SELECT * FROM (SELECT * FROM t LIMIT $2) AS s WHERE a = $1 OFFSET $3"
    assert limits(text) == {2: "10", 3: "0"}


def values(text: str, types: list[str], *uses: ParameterUse) -> dict[ValueClass | None, tuple[str | None, ...]]:
    return {one.value_class: one.values for one in chosen_samples(text, types, uses, KNOWN)}


def test_common_and_rare_values_come_from_the_statistics() -> None:
    found = values("SELECT * FROM t WHERE c = $1", ["integer"], use(1, "="))
    assert found == {ValueClass.COMMON: ("7",), ValueClass.RARE: ("5",)}


@pytest.mark.parametrize(
    ("uses", "common", "rare"),
    [
        ((use(1, ">", MADE),), ("day 50",), ("day 98",)),
        ((use(1, "<", MADE),), ("day 50",), ("day 02",)),
        ((use(1, ">=", MADE), use(2, "<", MADE)), ("day 25", "day 75"), ("day 50", "day 51")),
    ],
)
def test_common_ranges_are_wide_and_rare_ones_narrow(
    uses: tuple[ParameterUse, ...], common: tuple[str, ...], rare: tuple[str, ...]
) -> None:
    found = values("SELECT 1", ["date"] * len(uses), *uses)
    assert found == {ValueClass.COMMON: common, ValueClass.RARE: rare}


@pytest.mark.parametrize(
    ("type_name", "common"), [("integer", ("1", "10")), ("text", ("1", "9")), ("numeric", ("1", "10"))]
)
def test_bounds_from_most_common_values_are_in_order(type_name: str, common: tuple[str, str]) -> None:
    known = {MADE: ColumnValues(most_common=("9", "10", "1"), histogram=())}
    uses = [use(1, ">=", MADE), use(2, "<=", MADE)]
    first, *_ = chosen_samples("SELECT $1, $2", [type_name, type_name], uses, known)
    assert first.values == common


def test_lists_and_patterns_have_their_own_form() -> None:
    assert values("SELECT 1", ["integer[]"], use(1, "= ANY"))[ValueClass.COMMON] == ('{"7","8"}',)
    assert values("SELECT 1", ["text"], use(1, "~~", MADE)) == {
        ValueClass.COMMON: ("day%",),
        ValueClass.RARE: ("%day%",),
    }
    # ILIKE.
    assert values("SELECT 1", ["text"], use(1, "~~*", MADE))[ValueClass.COMMON] == ("%day%",)


def test_a_column_of_arrays_has_arrays_as_values() -> None:
    known = {MADE: ColumnValues(most_common=("{1,2}", "{3}"), histogram=())}
    for operator in ("=", ":="):
        first, *_ = chosen_samples("SELECT $1", ["integer[]"], [use(1, operator, MADE)], known)
        assert first.values == ("{1,2}",)


def test_values_of_other_rows_are_not_assigned_to_unique_columns() -> None:
    text = "UPDATE orders SET customer_id = $1 WHERE made = $2"
    uses = [use(2, "=", MADE), use(1, ":=")]
    assert chosen_samples(text, ["integer", "date"], uses, KNOWN)
    unique = {**KNOWN, CUSTOMER: replace(KNOWN[CUSTOMER], is_unique=True)}
    assert chosen_samples(text, ["integer", "date"], uses, unique) == []
    # Such a column may be compared with any value.
    assert chosen_samples("SELECT $1", ["integer"], [use(1, "=")], unique)


def test_values_of_a_column_that_is_cast_need_not_be_numbers() -> None:
    known = {CUSTOMER: ColumnValues(most_common=("$2.00", "$1.00"), histogram=())}
    assert chosen_samples("SELECT $1", ["numeric"], [use(1, ">=")], known)


def test_classes_with_equal_values_are_executed_once() -> None:
    found = values("SELECT 1", ["date"], use(1, "=", MADE))
    assert list(found) == [ValueClass.COMMON]


def test_an_unknown_column_leaves_the_statement_without_values() -> None:
    text = "SELECT 1 FROM t WHERE customer_id = $1 AND lower(name) = $2"
    assert chosen_samples(text, ["integer", "text"], [use(1, "=")], KNOWN) == []
    empty = {CUSTOMER: ColumnValues(most_common=(), histogram=())}
    assert chosen_samples("SELECT 1 FROM t WHERE customer_id = $1", ["integer"], [use(1, "=")], empty) == []


@pytest.mark.parametrize(
    ("text", "types", "found"),
    [
        ("SELECT $1 AS one FROM t WHERE a = $2", ["integer", "integer"], {1: "0"}),
        ("SELECT $1::text UNION ALL SELECT $2", ["text", "text"], {1: "x", 2: "x"}),
        (
            "SELECT CASE WHEN a = $1 THEN $2 ELSE $3 END, coalesce(b, $4) FROM t",
            ["text", "integer", "integer", "boolean"],
            {2: "0", 3: "0", 4: "false"},
        ),
        (
            "SELECT date_trunc($1, a) FROM t WHERE a > now() - $2::interval",
            ["text", "interval"],
            {1: "day", 2: "1 day"},
        ),
        ("SELECT 1 FROM t WHERE extract($1 FROM a) = $2", ["text", "numeric"], {1: "day"}),
        ("SELECT 1 FROM t WHERE EXISTS (SELECT $1 FROM u WHERE u.a = $2)", ["integer", "integer"], {1: "0"}),
        # They decide which rows are found.
        ("WITH p AS (SELECT $1 AS id) SELECT * FROM t JOIN p USING (id)", ["integer"], {}),
        ("SELECT 1 FROM t WHERE a IN (SELECT $1) OR a = (SELECT $2)", ["integer", "integer"], {}),
        ("INSERT INTO t SELECT $1, a FROM u", ["integer"], {}),
        ("UPDATE t SET a = $1 WHERE b = $2", ["integer", "integer"], {}),
        ("INSERT INTO t AS x (a) VALUES ($1) ON CONFLICT (a) DO UPDATE SET a = $2", ["integer", "integer"], {}),
        ("SELECT $1 FROM t", ["point"], {}),
    ],
)
def test_constants_that_hardly_affect_a_plan_are_neutral(text: str, types: list[str], found: dict[int, str]) -> None:
    assert neutral_values(text, types) == found


def test_a_parameter_of_the_result_needs_no_column() -> None:
    text = "SELECT $1 AS one FROM t WHERE customer_id = $2 LIMIT $3"
    common, _rare = chosen_samples(text, ["integer", "integer", "bigint"], [use(2, "=")], KNOWN)
    assert common.values == ("0", "7", "10")


def test_a_chosen_sample_has_the_text_of_its_statement() -> None:
    text = "SELECT * FROM t WHERE c = $1 LIMIT $2"
    common, _rare = chosen_samples(text, ["integer", "bigint"], [use(1, "=")], KNOWN)
    assert common == Sample(text=text, values=("7", "10"), value_class=ValueClass.COMMON)


def test_an_empty_text_is_a_value() -> None:
    known = {CUSTOMER: ColumnValues(most_common=("", "x"), histogram=())}
    common, rare = chosen_samples("SELECT $1", ["text"], [use(1, "=")], known)
    assert (common.values, rare.values) == (("",), ("x",))


def test_special_characters_of_a_pattern_are_escaped() -> None:
    known = {CUSTOMER: ColumnValues(most_common=("a_%\\b",), histogram=())}
    sample, *_ = chosen_samples("SELECT $1", ["text"], [use(1, "~~")], known)
    assert sample.values == ("a\\_\\%%",)


def test_parameters_with_casts_have_values() -> None:
    assert limits("SELECT FROM t LIMIT $1::int OFFSET CAST($2 AS int)") == {1: "10", 2: "0"}
    assert [one.number for one in assigned("UPDATE t SET a = $1::text")] == [1]
    assert uses_in_plan(scan("(o.customer_id <> ALL ($1))"))[0].operator == "<> ANY"
