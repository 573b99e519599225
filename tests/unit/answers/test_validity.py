"""Which verdicts are called valid."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer, Caveat, Unanswered
from pgversus.answers.validity import Doubt, Validity, doubts, validity, validity_of_study
from pgversus.stats.confidence import Verdict
from pgversus.study.design import Design, StopReason
from pgversus.study.study import Context
from tests.builders import answer, comparison, rate_block, study_answer
from tests.unit.report import cases


def with_caveat(slug: str, of: Answer) -> Answer:
    return replace(of, caveats=(Caveat(slug=slug),))


def wide() -> Answer:
    """A difference whose size may be anything from less than 3 times to more than 8 times."""
    return answer([rate_block(n, 1000.0, 5000.0 * 1.5 ** (-1) ** n) for n in range(1, 7)])


def few() -> Answer:
    """A difference found in two blocks."""
    return answer(cases.steady(1.5, blocks=2), comparison(design=Design(fixed_blocks=2)), stopped=StopReason.BLOCKS)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        (cases.faster(), []),
        (cases.equivalent(), []),
        (cases.undecided(), []),
        (cases.invalid(), []),
        (with_caveat("few-processors", cases.faster()), []),
        (with_caveat("not-restarted", cases.faster()), [Doubt.CAVEATS]),
        (with_caveat("disturbed-windows", cases.faster()), [Doubt.CAVEATS]),
        (with_caveat("host-stolen", cases.faster()), [Doubt.CAVEATS]),
        (with_caveat("mixed-builds", cases.faster()), [Doubt.CAVEATS]),
        (with_caveat("disturbed-windows", cases.undecided()), []),
        (with_caveat("mixed-builds", cases.undecided()), [Doubt.CAVEATS]),
        (wide(), [Doubt.WIDE_INTERVAL]),
        (few(), [Doubt.FEW_BLOCKS]),
    ],
)
def test_every_reason_for_caution_is_found(found: Answer, expected: list[Doubt]) -> None:
    assert doubts(found, found.analysis.results[0]) == expected


def test_only_decided_verdicts_without_doubts_are_valid() -> None:
    found = {name: cases.CASES[name]() for name in ("faster", "undecided", "invalid", "mixed_builds")}
    assert {name: validity(one, one.analysis.results[0]) for name, one in found.items()} == {
        "faster": Validity.VALID,
        "undecided": Validity.UNDECIDED,
        "invalid": Validity.INVALID,
        "mixed_builds": Validity.CAUTION,
    }


def test_a_wide_interval_and_few_blocks_need_caution_although_decided() -> None:
    assert [one.analysis.results[0].verdict for one in (wide(), few())] == [Verdict.FASTER, Verdict.FASTER]
    assert validity_of_study(study_answer([wide(), cases.faster()])) is Validity.CAUTION


def test_a_study_without_measurements_is_invalid() -> None:
    assert validity_of_study(study_answer([])) is Validity.INVALID


@pytest.mark.parametrize(
    ("failure", "case", "expected"),
    [
        (None, cases.faster, Validity.PARTLY_UNDECIDED),
        (None, cases.undecided, Validity.UNDECIDED),
        ("it fails", cases.faster, Validity.CAUTION),
    ],
)
def test_a_study_with_contexts_that_have_no_results_is_not_valid(
    failure: str | None, case: Callable[[], Answer], expected: Validity
) -> None:
    context = Context(number=2, levels=(("workload", "w2"),), comparison=comparison())
    stopped = StopReason.BUDGET if failure is None else StopReason.FAILED
    lost = Unanswered(context=context, failure=failure, stopped=stopped)
    assert validity_of_study(study_answer([case()], unanswered=[lost])) is expected
