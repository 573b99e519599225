"""Caveats from plans."""

from dataclasses import replace

import pytest

from pgversus.answers.caveats import plan_caveats
from pgversus.records.plans import CapturedPlans, SampledPlans, UncertaintyKind
from pgversus.report.caveats import caveat_text
from tests.builders import comparison
from tests.unit.plans.captures import captured, plans_of, with_rows
from tests.unit.plans.raw import scan

ONE = captured(scan("t"))
ALIKE = plans_of(captured(scan("t")), captured(scan("t")))
ONE_OTHER = SampledPlans(told=200, others=1, example="[]")


@pytest.mark.parametrize(
    ("plans", "not_explained", "slugs"),
    [
        (None, "", []),
        (None, "a statement fails", ["plans-not-captured"]),
        (ALIKE, "", []),
        (plans_of(captured(scan("t")), captured(scan("t"), rows=4)), "", ["other-rows"]),
        (plans_of(with_rows(ONE, in_order="1"), with_rows(ONE, in_order="2")), "", ["other-order"]),
        (plans_of(ONE, with_rows(ONE, UncertaintyKind.SAMPLE, digest="y")), "", ["rows-not-comparable"]),
        # Equal rows need no excuse.
        (plans_of(ONE, with_rows(ONE, UncertaintyKind.SAMPLE)), "", []),
        (replace(ALIKE, sampled=(SampledPlans(told=9, others=0), ONE_OTHER)), "", ["other-plans-under-load"]),
        (
            replace(ALIKE, sampled=(SampledPlans(told=0, others=0, failure="no auto_explain"), ONE_OTHER)),
            "",
            ["plans-not-sampled", "other-plans-under-load"],
        ),
    ],
)
def test_doubts_about_plans_are_caveats(plans: CapturedPlans | None, not_explained: str, slugs: list[str]) -> None:
    assert [caveat.slug for caveat in plan_caveats(comparison(), plans, not_explained)] == slugs


def test_uncertain_rows_are_reported_with_their_reasons() -> None:
    uncertain = with_rows(ONE, UncertaintyKind.VOLATILE, UncertaintyKind.LIMIT_WITH_TIES, digest="y")
    (caveat,) = plan_caveats(comparison(), plans_of(ONE, uncertain), "")
    assert caveat_text(caveat) == (
        "the rows of 17.8 and 16.12 cannot be compared: q.sql, statement 1: SELECT 1 (f is volatile: rows may "
        "differ by chance, f may return any of the rows that tie in the ORDER BY)"
    )


def test_different_rows_are_reported_with_their_statement() -> None:
    plans = plans_of(captured(scan("t")), captured(scan("t"), rows=4))
    (caveat,) = plan_caveats(comparison(), plans, "")
    assert caveat.arm == 1
    assert "the rows of 17.8 differ from those of 16.12" in caveat_text(caveat)
    assert "q.sql, statement 1: SELECT 1" in caveat_text(caveat)
