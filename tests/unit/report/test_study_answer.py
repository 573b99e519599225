"""The one answer to a study: counts, the worst verdict, undecided verdicts with one advice, and what to do."""

import re
from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer, StudyAnswer, Unanswered
from pgversus.report.overview import worst_first
from pgversus.report.page.verdicts import answer_lines
from pgversus.report.study_answer import study_sentences
from pgversus.stats.confidence import Verdict
from pgversus.study.design import StopReason
from pgversus.study.study import Context
from tests.builders import study_answer
from tests.unit.report import cases


def placed(*answers: Answer) -> list[Answer]:
    """Return the answers of one study file, each in a context of its own."""
    return [
        replace(
            one,
            context=Context(number=number, levels=(("workload", f"w{number}"),), comparison=one.comparison),
            is_from_file=True,
        )
        for number, one in enumerate(answers, start=1)
    ]


def of(*answers: Answer, stopped: StopReason = StopReason.DECIDED, unreached: int = 0) -> StudyAnswer:
    found = placed(*answers)
    left = Context(number=len(found) + 1, levels=(), comparison=found[0].comparison)
    missing = Unanswered(context=left, failure=None, stopped=stopped)
    return study_answer(found, stopped=stopped, unanswered=[missing] * unreached)


def budget(sentence: str) -> int:
    (minutes,) = re.findall(r"--budget (\d+)m", sentence)
    return int(minutes)


def test_counts_and_the_worst_verdict_come_first() -> None:
    counts, worst, todo = study_sentences(of(cases.faster(), cases.slower_by_half(), cases.equivalent()))
    assert counts == "3 verdicts: 1 slower, 1 faster, 1 equivalent."
    assert worst.startswith("Worst: workload=w2 load=c4: 17.8 is slower than 16.12: -60.0 % tps")
    assert todo == "No further measurement is needed."


def test_without_a_slower_contender_there_is_no_worst_verdict() -> None:
    assert study_sentences(of(cases.faster(), cases.equivalent()))[1] == "No contender was found to be slower."


def test_one_context_has_the_sentences_of_a_comparison() -> None:
    (only,) = study_sentences(of(cases.faster()))
    assert only.startswith("17.8 is faster than 16.12")


def test_undecided_verdicts_have_one_budget_for_all_of_them() -> None:
    (single,) = study_sentences(of(cases.undecided()))
    *_first, advice = study_sentences(of(cases.undecided(), cases.undecided(), cases.faster()))
    assert advice.startswith("2 verdicts are undecided. The verdicts need about ")
    assert budget(advice) > budget(single)


def test_contexts_that_were_not_reached_are_part_of_the_budget() -> None:
    def advised(unreached: int) -> int:
        found = study_sentences(of(cases.undecided(), cases.faster(), stopped=StopReason.BUDGET, unreached=unreached))
        return budget(" ".join(found))

    assert advised(0) < advised(1) < advised(4)


def test_verdicts_with_different_needs_have_different_advice() -> None:
    text = " ".join(study_sentences(of(cases.undecided(), cases.hopeless())))
    assert "workload=w1 load=c4: 1 verdict is undecided. A verdict takes about " in text
    assert "workload=w2 load=c4: 1 verdict is undecided. This host is currently too noisy" in text


@pytest.mark.parametrize(
    ("stopped", "words"),
    [(StopReason.BUDGET, "larger --budget to resume"), (StopReason.INTERRUPTED, "same command again to resume")],
)
def test_contexts_that_were_not_reached_are_resumed(stopped: StopReason, words: str) -> None:
    assert words in study_sentences(of(cases.faster(), stopped=stopped, unreached=1))[-1]


def test_problems_come_before_more_time() -> None:
    _counts, _worst, *todo = study_sentences(of(cases.invalid(), cases.mixed_builds(), cases.undecided()))
    assert [line.split()[0] for line in todo] == ["Fix", "Fix", "1"]


def test_the_page_shows_undecided_verdicts_in_one_line() -> None:
    answer = of(cases.undecided(), cases.faster(), cases.undecided())
    lines, rest = answer_lines(answer, worst_first(answer))
    assert [line.place for line in lines] == ["workload=w2 load=c4", "workload=w1 load=c4, workload=w3 load=c4"]
    assert (lines[1].text, lines[1].light.kind) == ("2 verdicts are undecided.", Verdict.UNDECIDED.value)
    assert budget(lines[1].next) > 0
    assert rest == 0


def test_decided_verdicts_without_their_precision_are_not_called_undecided() -> None:
    answer = of(cases.imprecise(), cases.imprecise())
    lines, _rest = answer_lines(answer, worst_first(answer))
    assert lines[-1].text == "2 intervals did not reach the precision of ±1.0 %."
    assert lines[-1].light.kind == "caution"
