"""Captured plans of each arm are compared with the baseline's; doubts about them are reported first."""

from dataclasses import replace
from typing import Any

import pytest

from pgversus.answers.plans import RowsMethod, compared
from pgversus.errors import WorkloadError
from pgversus.lab.plan_checks import check_plan_restored, check_rewrite, check_same_statements
from pgversus.plans.levels import PlanLevel
from pgversus.records.plans import Captured, CapturedPlans, UncertaintyKind
from pgversus.report.plans import override_text, plan_warnings, plans_document, statement_text
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from tests.builders import comparison
from tests.unit.plans.captures import OFF, captured, plans_of, with_rows
from tests.unit.plans.raw import node, scan

LABELS = ("16", "17", "18")


def test_each_contender_is_compared_with_the_baseline() -> None:
    arms = [captured(None, scan("t")), captured(None, scan("t")), captured(None, scan("t", "Index Scan"))]
    check_same_statements(LABELS, arms)
    found = compared(comparison(LABELS).arms, CapturedPlans(arms=tuple(arms), undone_by=((None, None), (None, OFF))))
    assert [(one.labels, one.difference.level) for one in found.compared] == [
        (("16", "17"), PlanLevel.IDENTICAL),
        (("16", "18"), PlanLevel.OPERATORS),
    ]
    assert {statement_text(one.statement) for one in found.compared} == {"q.sql, statement 2: SELECT 2"}
    assert (plan_warnings(found), found.unlike) == ([], ())
    assert [override_text(one) for one in found.compared] == [
        "",
        "with enable_x = off (a planner setting that 16 does not have), 18 uses the plan of 16",
    ]


def test_different_rows_and_statistics_are_reported() -> None:
    arms = captured(scan("t")), captured(scan("t"), rows=4, statistics="b")
    found = compared(comparison(LABELS[:2]).arms, plans_of(*arms))
    assert [one.rows and one.rows.is_same for one in found.compared] == [False]
    assert [text.split(":")[0] for text in plan_warnings(found)] == [
        "the rows of 17 differ from those of 16",
        "the statistics of public.t differ between 16 and 17",
    ]


def test_different_statistics_have_a_cause() -> None:
    captures = plans_of(captured(scan("t")), captured(scan("t"), statistics="b"))
    one, other = comparison(LABELS[:2]).arms
    targets = [
        replace(arm, settings=(Setting(name="default_statistics_target", value=str(10 + arm.index)),))
        for arm in (one, other)
    ]
    external = replace(other, server=RunningServer(uri="postgresql:///b"))
    for arms, words in (
        ((one, other), "may differ by chance (--full-statistics makes those of tables of up to 3 million rows equal)"),
        (targets, "whose default_statistics_target differs: plans may differ because of it"),
        ((one, external), "(run ANALYZE on both servers"),
    ):
        (warning,) = plan_warnings(compared(arms, captures))
        assert words in warning


ONE = captured(scan("t"))
FIRST, SECOND = with_rows(ONE, in_order="1"), with_rows(ONE, in_order="2")
BY_CHANCE = with_rows(ONE, UncertaintyKind.VOLATILE, digest="y")


@pytest.mark.parametrize(
    ("arms", "method", "is_same", "warning"),
    [
        ((FIRST, FIRST), RowsMethod.ORDERED, True, ""),
        ((FIRST, SECOND), RowsMethod.ORDERED, False, "17 returns the rows in a different order from 16"),
        (
            (FIRST, with_rows(ONE, in_order="2", digest="y")),
            RowsMethod.ORDERED,
            False,
            "the rows of 17 differ from those of 16",
        ),
        # One of the two does not prove the order, or comes from an older version.
        ((FIRST, ONE), RowsMethod.MULTISET, True, ""),
        ((ONE, with_rows(ONE, digest="y")), RowsMethod.MULTISET, False, "the rows of 17 differ from those of 16"),
        ((ONE, with_rows(ONE, UncertaintyKind.VOLATILE)), RowsMethod.MULTISET, True, ""),
        # The values of written rows are unknown on one of the two.
        ((ONE, with_rows(ONE, digest=None)), RowsMethod.NUMBER, True, ""),
        (
            (captured(scan("t"), rows=4), with_rows(ONE, digest=None)),
            RowsMethod.NUMBER,
            False,
            "the rows of 17 differ from those of 16",
        ),
        ((with_rows(ONE, UncertaintyKind.CLOCK, digest=None), ONE), RowsMethod.NUMBER, True, ""),
        ((ONE, BY_CHANCE), RowsMethod.NOT_COMPARABLE, None, "the rows of 17 and 16 cannot be compared"),
    ],
)
def test_rows_are_compared_in_order_where_both_plans_prove_it(
    arms: tuple[Captured, Captured], method: RowsMethod, *, is_same: bool | None, warning: str
) -> None:
    found = compared(comparison(LABELS[:2]).arms, plans_of(*arms))
    ((document,), (one,)) = plans_document(found)["comparisons"], found.compared
    assert one.rows is not None
    assert (one.rows.method, one.rows.is_same) == (method, is_same)
    assert (document["rows_compared"], document["same_rows"]) == (method.value, is_same)
    assert bool(document["rows_uncertain"]) is (is_same is None)
    assert [text.split(":")[0] for text in plan_warnings(found)] == ([warning] if warning else [])


AGAIN = ("17 with the plans of 16", "16", "17")


@pytest.mark.parametrize("rewritten", [FIRST, ONE, BY_CHANCE])
def test_a_rewrite_is_accepted_unless_its_rows_certainly_differ(rewritten: Captured) -> None:
    # The rows of the baseline are not its responsibility.
    check_rewrite(AGAIN, plans_of(rewritten, with_rows(ONE, digest="z"), FIRST))


@pytest.mark.parametrize(
    ("rewritten", "found"),
    [(SECOND, "the same rows in a different order"), (with_rows(ONE, digest="y"), "different rows")],
)
def test_a_rewrite_with_different_rows_is_refused(rewritten: Captured, found: str) -> None:
    with pytest.raises(WorkloadError) as caught:
        check_rewrite(AGAIN, plans_of(rewritten, FIRST, FIRST))
    assert (caught.value.slug, caught.value.found) == ("workload-rewrite-not-equivalent", found)


def test_different_statements_are_not_compared() -> None:
    with pytest.raises(WorkloadError) as caught:
        check_same_statements(LABELS[:2], [captured(scan("t")), captured(scan("t"), scan("t"))])
    assert (caught.value.slug, caught.value.found) == ("workload-other-statements", "1 statement and 2 statements")


OLD, NEW = scan("t"), scan("t", "Index Scan", Index_Name="i")


def spilled(blocks: int) -> dict[str, Any]:
    return node("Sort", scan("t"), Sort_Key=["t.a"], Temp_Written_Blocks=blocks, Sort_Method="quicksort")


@pytest.mark.parametrize(
    ("back", "old", "new"),
    [
        (OLD, OLD, NEW),
        # The newer planner knows that the rows are sorted.
        (OLD, node("Sort", OLD, Sort_Key=["t.a"]), NEW),
        # The plan was always the same: its execution differed, and is as before again.
        (spilled(9), spilled(9), spilled(0)),
        (spilled(0), spilled(0), spilled(0)),
        (None, None, None),
    ],
)
def test_a_restored_plan_is_accepted(
    back: dict[str, Any] | None, old: dict[str, Any] | None, new: dict[str, Any] | None
) -> None:
    check_plan_restored(("17 with the plans of 16", "16", "17"), plans_of(*(captured(one) for one in (back, old, new))))


@pytest.mark.parametrize(
    ("back", "old", "new"), [(NEW, OLD, NEW), (spilled(0), spilled(9), spilled(0)), (None, OLD, NEW)]
)
def test_a_plan_other_than_the_old_one_is_refused(
    back: dict[str, Any] | None, old: dict[str, Any], new: dict[str, Any]
) -> None:
    plans = plans_of(*(captured(one) for one in (back, old, new)))
    with pytest.raises(WorkloadError) as caught:
        check_plan_restored(("17 with the plans of 16", "16", "17"), plans)
    assert caught.value.slug == "workload-plan-not-restored"
    assert "17 with the plans of 16" in caught.value.where


def three(*statements: tuple[dict[str, Any], dict[str, Any], dict[str, Any]]) -> CapturedPlans:
    """Arms with these plans: the contender under the old plans, the baseline, the contender."""
    return plans_of(*(captured(*arm) for arm in zip(*statements, strict=True)))


def test_if_a_plan_has_changed_other_statements_may_execute_differently() -> None:
    labels = ("17 with the plans of 16", "16", "17")
    check_plan_restored(labels, three((OLD, OLD, NEW), (spilled(0), spilled(9), spilled(0))))


@pytest.mark.parametrize("changed", [(OLD, OLD, NEW), (spilled(9), spilled(9), spilled(0))])
def test_restoring_a_plan_must_not_make_another_statement_spill(
    changed: tuple[dict[str, Any], dict[str, Any], dict[str, Any]],
) -> None:
    plans = three(changed, (spilled(9), spilled(0), spilled(0)))
    with pytest.raises(WorkloadError) as caught:
        check_plan_restored(("17 with the plans of 16", "16", "17"), plans)
    assert "statement 2" in caught.value.where
