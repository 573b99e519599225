"""The comparison after a verdict: three arms, of which the first differs from each other one in one respect."""

from dataclasses import replace

import pytest

from pgversus.study.counterfactual import (
    BASELINE_AGAIN,
    CONTENDER_AGAIN,
    OLD_PLANS,
    PlanRestoration,
    counterfactual_study,
    rounds_of_three,
    settings_together,
)
from pgversus.study.design import Design
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison

FITTED = Design(seed=7, window_s=3.0, rounds=2)
RESTORATION = PlanRestoration(settings=(Setting(name="enable_hashjoin", value="off"), Setting(name="jit", value="off")))


def study(*settings: Setting) -> Study:
    requested = comparison(("15", "16", "17"))
    requested = replace(requested, arms=tuple(replace(arm, settings=settings) for arm in requested.arms))
    context = Context(number=3, levels=(("load", "c4"),), comparison=requested)
    return Study(name="s", title="t", question="q", contexts=(context,), seed=1, budget_s=60.0, published="x")


def requested_study(restoration: PlanRestoration, *settings: Setting, fitted: Design = FITTED) -> Study:
    whole = study(*settings)
    return counterfactual_study(
        whole, whole.contexts[0], fitted, 2, restoration, blocks=8, rounds=rounds_of_three(fitted.rounds)
    )


def test_the_contender_with_old_plans_is_compared_with_both_arms() -> None:
    found = requested_study(RESTORATION)
    (context,) = found.contexts
    arms = context.comparison.arms
    assert [arm.label for arm in arms] == ["17 with the plans of 15", "15", "17"]
    assert [arm.index for arm in arms] == [OLD_PLANS, BASELINE_AGAIN, CONTENDER_AGAIN]
    assert arms[OLD_PLANS].settings == RESTORATION.settings
    assert replace(arms[OLD_PLANS], index=2, label="17", settings=()) == arms[CONTENDER_AGAIN]
    assert context.levels == (("load", "c4"),)
    assert context.comparison.factors == ("server", "enable_hashjoin", "jit")
    assert (found.verdicts, found.published) == (2, None)


def test_the_arms_are_not_consecutive_versions() -> None:
    timeline = replace(study(), kind=StudyKind.TIMELINE)
    of = counterfactual_study(timeline, timeline.contexts[0], FITTED, 2, RESTORATION, blocks=8, rounds=2)
    assert of.kind is StudyKind.COMPARISON


@pytest.mark.parametrize(
    ("rounds", "most", "of_three_arms"),
    [(8, 100.0, 6), (8, 5.9, 4), (8, 3.9, 2), (8, -1.0, 2), (2, 0.0, 1), (50, 7, 6)],
)
def test_blocks_have_fewer_rounds_if_starts_take_long(rounds: int, most: float, of_three_arms: int) -> None:
    assert rounds_of_three(rounds, most=most) == of_three_arms


@pytest.mark.parametrize(("rounds", "of_three_arms"), [(50, 34), (8, 6), (6, 4), (4, 2), (2, 1), (1, 1)])
def test_windows_keep_their_length_and_blocks_their_duration(rounds: int, of_three_arms: int) -> None:
    design = requested_study(RESTORATION, fitted=replace(FITTED, rounds=rounds)).contexts[0].comparison.design
    assert (design.window_s, design.rounds, design.fixed_blocks) == (3.0, of_three_arms, 8)
    assert (design.window_is_given, design.rounds_are_given) == (True, True)


def test_the_precision_of_a_comparison_does_not_apply_to_its_attribution() -> None:
    found = requested_study(RESTORATION, fitted=replace(FITTED, precision=0.01))
    assert found.contexts[0].comparison.design.precision is None


def test_a_restoring_setting_overrides_that_of_the_arm() -> None:
    arm = requested_study(RESTORATION, Setting(name="jit", value="on"), Setting(name="work_mem", value="8MB"))
    settings = {one.name: one.value for one in arm.contexts[0].comparison.arms[OLD_PLANS].settings}
    assert settings == {"jit": "off", "work_mem": "8MB", "enable_hashjoin": "off"}


def test_a_rewrite_replaces_the_script() -> None:
    restoration = PlanRestoration(rewrite=Script(name="fenced.sql", text="SELECT 1;"))
    comparison_ = requested_study(restoration).contexts[0].comparison
    workloads = [arm.workload for arm in comparison_.arms]
    assert all(isinstance(one, PgbenchWorkload) for one in workloads)
    assert [one.name for one in workloads] == ["fenced.sql", "select-only", "select-only"]
    assert comparison_.factors == ("server", "workload")
    assert restoration.text == "fenced.sql"


@pytest.mark.parametrize(
    ("found", "together"),
    [
        ([], ()),
        ([(("a", "off"),), (("a", "off"), ("b", "1"))], ("a=off", "b=1")),
        ([(("a", "off"),), (("a", "on"),)], None),
    ],
)
def test_conflicting_settings_of_statements_cannot_be_combined(
    found: list[tuple[tuple[str, str], ...]], together: tuple[str, ...] | None
) -> None:
    settings = settings_together(found)
    assert (None if settings is None else tuple(map(str, settings))) == together
