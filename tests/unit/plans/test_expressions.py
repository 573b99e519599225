"""Conditions are normalized across major versions."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.plans.expressions import (
    Expressions,
    SubplanNames,
    closing,
    outside_strings,
    own_names,
    split_inside,
    split_outside,
    without_tests,
)
from tests.bounded import processor_time

OLD = SubplanNames(["InitPlan 1 (returns $0,$1)", "SubPlan 3", "CTE c", "InitPlan 2 (returns $12)"])
NEW = SubplanNames(["InitPlan 2", "SubPlan 1", "CTE c", "InitPlan 3"])


def spelled(text: str, names: SubplanNames = OLD) -> str:
    return Expressions(names).respell(text)


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(a = 1)", ["a = 1"]),
        ("((t.b = t.a) AND (t.c > 1))", ["t.a = t.b", "t.c > 1"]),
        ("((a > 1) AND ((b > 2) OR (c > 3)))", ["(b > 2) OR (c > 3)", "a > 1"]),
        ("((a > 1) AND ((b > 2) AND (c > 3)))", ["a > 1", "b > 2", "c > 3"]),
        ("(label = 'it''s ( AND ) x'::text)", ["label = 'it''s ( AND ) x'::text"]),
        ('("a AND b" > 3)', ['"a AND b" > 3']),
        ("(a > 1) AND (b > 2)", ["a > 1", "b > 2"]),
        ("(CASE WHEN ((a) AND (b)) THEN 1 ELSE 2 END = 1)", ["CASE WHEN ((a) AND (b)) THEN 1 ELSE 2 END = 1"]),
        ("(1 = t.a)", ["t.a = 1"]),
        ("(((b.id + 1)) = a.id)", ["a.id = b.id + 1"]),
        ("false", ["false"]),
        ("(id = ANY ('{1,2}'::integer[]))", ["id = ANY ('{1,2}'::integer[])"]),
    ],
)
def test_conditions_are_split_at_and(text: str, parts: list[str]) -> None:
    assert sorted(Expressions(OLD).conjuncts(text)) == sorted(parts)


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("(v = $0)", "(v = (InitPlan 2).col1)"),
        ("(v = $1)", "(v = (InitPlan 2).col2)"),
        ("(v = $12)", "(v = (InitPlan 3).col1)"),
        ("(SubPlan 3)", "(ANY (c.c1 = (SubPlan 1).col1))"),
        ("(NOT (hashed SubPlan 3))", "(NOT (ANY (s.id = (hashed SubPlan 1).col1)))"),
        ("((a > 1) OR (hashed SubPlan 3))", "((a > 1) OR EXISTS(hashed SubPlan 1))"),
        ("(SubPlan 3)", "(ALL (s.v > (SubPlan 1).col1))"),
        ("(SubPlan 3)", "(ANY ((a = (SubPlan 1).col1) AND (b = (SubPlan 1).col2)))"),
        ("((SubPlan 3) = 5)", "((SubPlan 1) = 5)"),
        ("(x = ANY (SubPlan 3))", "(x = ANY ARRAY(SubPlan 1))"),
        ("(SubPlan 3)", "(ROW(a, b) < ROW((SubPlan 1).col1, (SubPlan 1).col2))"),
        ("(SubPlan 3)", "(rescan SubPlan 1)"),
    ],
)
def test_subplans_of_different_majors_are_normalized(old: str, new: str) -> None:
    # Majors up to 16 do not print tests.
    assert spelled(old, OLD) == without_tests(spelled(new, NEW))


def test_text_that_resembles_a_subplan_is_unchanged() -> None:
    assert spelled("(label = '$0 (SubPlan 3)')") == "(label = '$0 (SubPlan 3)')"
    assert spelled("(id = $3)") == "(id = $3)"


@pytest.mark.parametrize("text", ["sum(a) OVER (?)", "sum(a) OVER w1", 'sum(a) OVER "my w"'])
def test_names_of_windows_are_normalized(text: str) -> None:
    assert spelled(text) == "sum(a) OVER w"


def test_generated_aliases_are_renamed_by_relation_and_order() -> None:
    def numbered(t: str, part: str, b: str) -> Expressions:
        return Expressions(OLD, own_names(["t", "mine_1", "own_1"], {t: "t", part: "part_b", b: "B"}))

    one, other = numbered("t_1", "part_7", "B_2"), numbered("t_5", "part_2", "B_1")
    assert one.respell("(t_1.id = t.id)") == other.respell("(t_5.id = t.id)")
    assert one.respell("(part_7.k > 1)") == other.respell("(part_2.k > 1)")
    assert one.respell('("B_2".k > 1)') == other.respell('("B_1".k > 1)')
    assert one.respell("(mine_1.id > 1)") == "(mine_1.id > 1)"
    assert one.respell("(own_1.id > 1)") == "(own_1.id > 1)"
    assert Expressions(OLD, own_names(["a_1"], {"a_7": "a"})).respell("(a_1.x = a_7.x)") == "(a_1.x = a_2.x)"
    assert one.respell("(x = 't_1.id')") == "(x = 't_1.id')"
    assert one.respell("(not_1.t_1.id > at_1.id)") == "(not_1.t_1.id > at_1.id)"


@given(st.text("ab=(AND )'\"$[]", max_size=40))
def test_any_text_is_accepted(text: str) -> None:
    assert Expressions(OLD).conjuncts(text) is not None
    assert "AND".join(split_outside(text, "AND")) == text
    assert outside_strings(text, lambda part: part) == text
    assert 0 <= closing(text, 0) <= len(text)


@pytest.mark.parametrize(
    "text",
    [
        "(" * 50_000,
        "(" * 50_000 + ")" * 50_000,
        "((a > 1) AND " * 10_000 + "true" + ")" * 10_000,
        "(a = 1) AND " * 10_000,
        "(ANY (" * 20_000,
        "(ANY (" * 20_000 + "(SubPlan 1).col1" + "))" * 20_000,
        "((ROW(a) < ROW((SubPlan 1).col1)) AND " * 5_000,
        " = " * 30_000,
        "[(" * 30_000,
        "'" * 50_001,
        '"' * 50_001,
        'OVER "' * 20_000,
        "t_1." * 20_000,
    ],
    ids=lambda text: text[:20],
)
def test_a_long_condition_is_read_quickly(text: str) -> None:
    spelling = Expressions(OLD, own_names((), {f"t_{number}": "t" for number in range(1, 2000)}))
    with processor_time():
        assert spelling.conjuncts(text) is not None


def test_generated_aliases_of_many_partitions_are_renamed_quickly() -> None:
    with processor_time():
        spelling = Expressions(OLD, own_names((), {f"t_{number}": "t" for number in range(2, 20_000)}))
        assert spelling.respell("(t_2.id = t_19999.id)") == "(t_1.id = t_19998.id)"


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("(((a) AND (b)))", ["a", "b"]),
        ("((a AND b) OR c) AND d", ["(a AND b) OR c", "d"]),
        ("(a) AND ((b) AND ((c) AND (d AND e)))", ["a", "b", "c", "d", "e"]),
        ("(x = ' AND ') AND y", ["x = ' AND '", "y"]),
        ("(a[1] AND b)", ["a[1]", "b"]),
        ("(a AND b", ["(a AND b"]),
    ],
)
def test_parenthesized_parts_are_split_again(text: str, parts: list[str]) -> None:
    assert split_inside(text, " AND ") == parts
