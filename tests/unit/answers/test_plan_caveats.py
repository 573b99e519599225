"""Caveats from plans."""

from dataclasses import replace

import pytest

from pgversus.answers.caveats import plan_caveats
from pgversus.records.plans import CapturedPlans, SampledPlans
from pgversus.report.caveats import caveat_text
from tests.builders import comparison
from tests.unit.plans.captures import captured, plans_of
from tests.unit.plans.raw import scan

ALIKE = plans_of(captured(scan("t")), captured(scan("t")))
ONE_OTHER = SampledPlans(told=200, others=1, example="[]")


@pytest.mark.parametrize(
    ("plans", "not_explained", "slugs"),
    [
        (None, "", []),
        (None, "a statement fails", ["plans-not-captured"]),
        (ALIKE, "", []),
        (plans_of(captured(scan("t")), captured(scan("t"), rows=4)), "", ["other-rows"]),
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


def test_different_rows_are_reported_with_their_statement() -> None:
    plans = plans_of(captured(scan("t")), captured(scan("t"), rows=4))
    (caveat,) = plan_caveats(comparison(), plans, "")
    assert caveat.arm == 1
    assert "17.8 returns different rows from 16.12" in caveat_text(caveat)
    assert "q.sql, statement 1: SELECT 1" in caveat_text(caveat)
