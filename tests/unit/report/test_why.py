"""Reasons for a difference, from plans and counters, without claiming more than was measured."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pgversus.answers.answer import Answer, AttributionResult, Caveat
from pgversus.answers.plans import PlansAnswer
from pgversus.records.plans import CapturedPlans, RemainingDifference
from pgversus.records.trials import Block
from pgversus.report.json_document import document
from pgversus.report.markdown import markdown
from pgversus.report.sentences import answer_sentences
from pgversus.report.study_page import study_page
from pgversus.report.why import study_why, why_of
from pgversus.stats.attribution import BoundedValue
from tests.builders import answer, study_answer
from tests.unit.plans.captures import OFF, captured, plans_of
from tests.unit.plans.raw import node, scan
from tests.unit.report import cases

OLD, NEW = captured(scan("t")), captured(scan("t", "Index Scan", Index_Name="i"))
CHANGED, UNDONE, SAME = plans_of(OLD, NEW), plans_of(OLD, NEW, undone_by=OFF), plans_of(OLD, OLD)
INDEXED = scan("t", "Index Scan", Index_Name="i")
ON = replace(OFF, candidate=replace(OFF.candidate, settings=(("enable_x", "on"),)))
AT_ODDS = replace(plans_of(captured(scan("t"), scan("t")), captured(INDEXED, INDEXED)), undone_by=((OFF, ON),))


def failed(words: str) -> AttributionResult:
    return AttributionResult(restoration="", found=None, failure=words, wall_s=0.0)


def claim(of: Answer) -> str:
    (why,) = why_of(of)
    return why.claim


@pytest.mark.parametrize(
    ("share", "begins"),
    [
        ((0.98, 0.93, 1.03), "The plans of 17.8 are the cause. With enable_x = off, 17.8 uses the plans of 16.12."),
        ((0.7, 0.55, 0.9), "The plans of 17.8 are the main cause. With enable_x = off"),
        (
            (0.2, -0.1, 0.6),
            "With enable_x = off, 17.8 uses the plans of 16.12. Measured in 8 blocks: 6x [5.5x, 6.5x] in total",
        ),
        (None, "With enable_x = off, 17.8 uses the plans of 16.12. Measured in 8 blocks: 6x [5.5x, 6.5x] in total"),
    ],
)
def test_plans_are_called_the_cause_only_if_measured(share: tuple[float, float, float] | None, begins: str) -> None:
    reported = claim(cases.with_plans(cases.faster(), UNDONE, cases.attributed(share)))
    assert reported.startswith(begins)
    assert ("cause" in reported) is (share is not None and share[1] >= 0.5)


def test_the_parts_are_stated_as_factors_and_as_time_per_transaction() -> None:
    reported = claim(cases.with_plans(cases.faster(), UNDONE, cases.attributed((0.98, 0.93, 1.03))))
    assert (
        "in 8 blocks: 6x [5.5x, 6.5x] in total = 5x [4.5x, 5.5x] from plans x 1.2x [1.1x, 1.3x] from everything else"
        in reported
    )
    assert "Plans account for 98.0 % of the change on the log scale (95 % CI 93.0 % to 103 %)" in reported
    assert "Per transaction: 56.8 ms saved due to plans, 58 ms saved in total" in reported
    assert "Of the time difference, plans account for 99.0 %. This share depends on the order in which" in reported
    assert "other changes make no difference that matters" in reported
    assert reported.endswith("The measurement took 1 min 1 s.")


@pytest.mark.parametrize(
    ("of", "plans", "more", "words"),
    [
        (
            cases.faster(),
            CHANGED,
            None,
            "no settings were found that restore the plans of 16.12 on 17.8. A rewrite can",
        ),
        (
            cases.faster(),
            UNDONE,
            None,
            "The effect of the plans was not measured: the run ended before this step or skipped it.",
        ),
        (
            cases.faster(),
            replace(CHANGED, is_searched=False),
            None,
            "pgversus did not search for settings that restore the old plans",
        ),
        (cases.faster(), UNDONE, failed("no room"), "The effect of the plans was not measured: no room."),
        (cases.undecided(), UNDONE, None, "was not measured: the comparison is undecided"),
        (cases.undecided(), SAME, None, "The captured plans of 17.8 are the same as those of 16.12."),
        (cases.faster(), SAME, None, "No counter of the servers' work differs significantly."),
        (
            cases.faster(),
            AT_ODDS,
            None,
            "the settings that restore the plans of 16.12 on 17.8 contradict each other.",
        ),
    ],
)
def test_without_a_measurement_no_cause_is_claimed(
    of: Answer, plans: CapturedPlans, more: AttributionResult | None, words: str
) -> None:
    reported = claim(cases.with_plans(of, plans, more))
    assert words in reported
    assert "cause" not in reported


@pytest.mark.parametrize(
    ("whole", "words"),
    [
        ((0.8, 0.7, 0.9), "CHECK: this measurement contradicts the verdict (-20.0 % [-30.0 %, -10.0 %])."),
        (
            (1.1, 0.9, 1.3),
            "does not confirm the verdict: its interval includes zero difference (+10.0 % [-10.0 %, +30.0 %]).",
        ),
    ],
)
def test_a_measurement_that_does_not_confirm_the_verdict_names_no_cause(
    whole: tuple[float, float, float], words: str
) -> None:
    one = cases.attributed((0.98, 0.93, 1.03))
    assert one.found is not None
    other = replace(one.found, whole=BoundedValue(value=whole[0], low=whole[1], high=whole[2]))
    reported = claim(cases.with_plans(cases.faster(), UNDONE, replace(one, found=other)))
    assert words in reported
    assert "cause" not in reported
    assert words not in claim(cases.with_plans(cases.faster(), UNDONE, one))


def test_remaining_differences_from_the_old_plans_are_named() -> None:
    near = plans_of(OLD, NEW, undone_by=replace(OFF, but_for=RemainingDifference.SORTS))
    words = "With enable_x = off, 17.8 uses the plans of 16.12, except for sorts."
    assert words in claim(cases.with_plans(cases.faster(), near, cases.attributed((0.98, 0.93, 1.03))))
    # Or only the plans that the measurement itself has captured differ in sorts.
    measured = replace(cases.attributed((0.98, 0.93, 1.03)), is_but_for_sorts=True)
    assert words in claim(cases.with_plans(cases.faster(), UNDONE, measured))


def test_time_that_may_be_zero_is_not_called_saved() -> None:
    one = cases.attributed((0.02, -0.1, 0.1))
    assert one.found is not None
    little = replace(one.found, plans_s=BoundedValue(value=1e-5, low=-1e-5, high=3e-5))
    reported = claim(cases.with_plans(cases.faster(), UNDONE, replace(one, found=little)))
    assert "Per transaction: no certain change due to plans, 58 ms saved in total" in reported


def test_plans_under_load_are_not_claimed_to_be_the_captured_ones() -> None:
    caveat = Caveat(slug="other-plans-under-load", arm=1, values={"arm": "17.8", "others": 150, "plans": 200})
    same = cases.with_plans(cases.faster(), SAME)
    assert claim(replace(same, caveats=(*same.caveats, caveat))) == (
        "The captured plans of 17.8 are those of 16.12, but others were used under load (see the caveats)."
    )


def counted(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with a tenth fewer buffers on the second arm."""
    return [
        block._replace(
            trials={
                arm: trial._replace(
                    counters={"buffers_hit": trial.transactions * (100.0 - 10 * arm + block.number / 100)}
                )
                for arm, trial in block.trials.items()
            }
        )
        for block in blocks
    ]


def test_with_equal_plans_counters_that_differ_are_listed_with_their_intervals() -> None:
    reported = claim(cases.with_plans(answer(counted(cases.steady(1.1))), SAME))
    assert "The captured plans of 17.8 are the same as those of 16.12, and do not explain the difference." in reported
    assert "shared buffer hits per transaction -10.0 % [-10.0 %, -10.0 %]" in reported


def test_different_statistics_are_noted() -> None:
    other = plans_of(OLD, captured(scan("t", "Index Scan", Index_Name="i"), statistics="b"))
    (why,) = why_of(cases.with_plans(cases.faster(), other))
    assert [note.split(":")[0] for note in why.notes] == ["the statistics of public.t differ between 16.12 and 17.8"]


def test_only_changed_statements_are_described() -> None:
    plans = plans_of(captured(scan("t"), scan("u")), captured(scan("t"), node("Sort", scan("u"), Sort_Key=["u.a"])))
    (why,) = why_of(cases.with_plans(cases.faster(), plans))
    assert [one.statement for one in why.changed] == ["q.sql, statement 2: SELECT 2"]
    assert any("Sort" in sentence for sentence in why.changed[0].sentences)


def test_the_document_of_an_interrupted_attribution_has_its_number_of_blocks() -> None:
    for blocks in (3, 0, None):
        one = AttributionResult(restoration=cases.RESTORATION, found=None, failure="", wall_s=20.0, blocks=blocks)
        shown = document(cases.with_plans(cases.faster(), UNDONE, one))
        assert shown["verdicts"][0]["attribution"]["blocks"] == blocks


def test_plans_of_contexts_beyond_the_shown_ones_are_not_read() -> None:
    def unread() -> PlansAnswer:
        raise AssertionError("read")

    answers = [cases.with_plans(cases.faster(), UNDONE), replace(cases.faster(), plans=unread)]
    assert next(study_why(study_answer(answers))).claim


def test_every_format_contains_the_attribution() -> None:
    found = cases.with_plans(cases.faster(), UNDONE, cases.attributed((0.98, 0.93, 1.03)))
    study = study_answer([found])
    (why,) = study_page(study, with_published=False).why
    assert "The plans of 17.8 are the cause." in why.claim
    text = markdown(study)
    assert "The plans of 17.8 are the cause." in text
    assert "<details><summary>q.sql, statement 1: SELECT 1: different plan" in text
    shown = document(found)
    assert shown["plans"]["comparisons"][0]["undone_by"]["settings"] == {"enable_x": "off"}
    reported = shown["verdicts"][0]["attribution"]
    assert (reported["plans_recalled_by"], reported["rest_verdict"]) == (cases.RESTORATION, "equivalent")
    assert reported["share_of_plans"] == {"value": 0.98, "low": 0.93, "high": 1.03}
    assert document(cases.faster())["plans"] is None
    assert document(cases.faster())["verdicts"][0]["attribution"] is None


def test_a_comparison_without_plans_does_not_mention_them() -> None:
    assert why_of(cases.faster()) == []
    assert why_of(cases.operation()) == []


@pytest.mark.parametrize(
    ("plans", "more", "brief"),
    [
        (SAME, None, ["The captured plans of 17.8 are the same as those of 16.12."]),
        (CHANGED, None, ["The plans of 17.8 differ from those of 16.12; their effect was not measured."]),
        (
            UNDONE,
            cases.attributed((0.7, 0.55, 0.9)),
            [
                "The plans of 17.8 are the main cause.",
                "Plans account for 70 % of the change on the log scale (95 % CI 55 % to 90 %).",
            ],
        ),
        (
            UNDONE,
            cases.attributed(None),
            ["The plans of 17.8 differ from those of 16.12.", "The share due to plans cannot be determined."],
        ),
    ],
)
def test_the_brief_claim_does_not_repeat_the_verdict(
    plans: CapturedPlans, more: AttributionResult | None, brief: list[str]
) -> None:
    (why,) = why_of(cases.with_plans(cases.faster(), plans, more))
    assert [sentence.replace(".0 %", " %") for sentence in why.brief] == brief


def test_an_attribution_has_the_form_of_the_verdict() -> None:
    one = cases.attributed(None)
    assert one.found is not None
    small = BoundedValue(value=1.2, low=1.1, high=1.3)
    found = replace(one.found, whole=small, plans=small, rest=small)
    less = cases.with_plans(cases.faster(), UNDONE, replace(one, found=found))
    assert "+20.0 % [+10.0 %, +30.0 %] in total, +20.0 %" in claim(less)
    more = cases.with_plans(cases.faster(), UNDONE, one)
    assert "6x [5.5x, 6.5x] in total = 5x" in claim(more)
    # The sentence and the tables then have factors as well.
    assert " 1.1x tps (95 % CI " in answer_sentences(more)[0]


def test_an_attribution_with_grave_caveats_is_marked_check() -> None:
    doubtful = replace(cases.attributed((0.98, 0.93, 1.03)), needs_check=True, results="r/attributions/context-1-arm-1")
    reported = claim(cases.with_plans(cases.faster(), UNDONE, doubtful))
    assert reported.startswith("CHECK the caveats in r/attributions/context-1-arm-1. The plans of 17.8 are the cause.")


def test_the_same_plan_with_different_execution_is_described_as_such() -> None:
    spilled, in_memory = (
        captured(node("Sort", scan("t"), Sort_Key=["t.a"], Temp_Written_Blocks=blocks)) for blocks in (9, 0)
    )
    plans = plans_of(spilled, in_memory, undone_by=OFF)
    assert claim(cases.with_plans(cases.faster(), plans)).startswith(
        "The captured plans of 17.8 are the same as those of 16.12, but executed differently."
    )
    reported = claim(cases.with_plans(cases.faster(), plans, cases.attributed((0.98, 0.93, 1.03))))
    assert reported.startswith(
        "The cause is how 17.8 executes its plans. With enable_x = off, 17.8 executes its plans as 16.12 does."
    )


def test_an_attribution_in_the_opposite_direction_explains_nothing() -> None:
    """The faster arm is slower in the attribution: the parts are stated without a cause."""
    turned = cases.attributed((0.98, 0.93, 1.03))
    assert turned.found is not None
    slower = replace(turned.found, whole=BoundedValue(value=0.5, low=0.4, high=0.6))
    assert "cause" not in claim(cases.with_plans(cases.faster(), UNDONE, replace(turned, found=slower)))


def test_equal_plans_with_different_work_are_shown_with_their_amounts() -> None:
    old, new = (captured(scan("t", Shared_Hit_Blocks=blocks)) for blocks in (44_000, 98))
    found = cases.with_plans(cases.faster(), plans_of(old, new))
    assert "but do different amounts of work (q.sql, statement 1: SELECT 1: total blocks accessed" in claim(found)
    (why,) = why_of(found)
    assert [one.headline for one in why.changed] == ["same plan, different amounts of work"]
    (unexplained,) = why_of(cases.with_plans(cases.undecided(), plans_of(old, new)))
    assert unexplained.changed == []


def test_a_counter_of_one_side_is_shown_with_its_values() -> None:
    blocks = [
        block._replace(
            trials={
                arm: trial._replace(counters={"temp_bytes": trial.transactions * 8192.0 * arm})
                for arm, trial in block.trials.items()
            }
        )
        for block in cases.steady(1.1)
    ]
    reported = claim(cases.with_plans(answer(blocks), SAME))
    assert "(0 bytes on 16.12, 8.19 kB on 17.8)" in reported


def test_plans_are_not_called_the_same_without_saying_what_is_not_compared() -> None:
    def tested(condition: str) -> dict[str, Any]:
        return scan("t", Filter=condition, Plans=[scan("u", Parent_Relationship="SubPlan", Subplan_Name="SubPlan 1")])

    plans = plans_of(captured(tested("(SubPlan 1)")), captured(tested("(ANY (a = (SubPlan 1).col1))")))
    (why,) = why_of(cases.with_plans(cases.undecided(), plans))
    assert why.claim.endswith("Tests of subplans are not compared, because only one of the servers prints them.")
    assert why.brief[0].endswith("only one of the servers prints them.")
