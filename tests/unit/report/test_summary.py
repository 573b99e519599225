"""The answer on one screen."""

import io
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest
from rich.console import Console

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.sentences import answer_sentences
from pgversus.report.summary import print_sentences, print_summary, summary_picture
from pgversus.report.values import value_text
from pgversus.study.metrics import Metric
from pgversus.study.study import StudyKind, StudyMetadata
from tests.builders import answer, comparison, rate_block
from tests.unit.report.cases import CASES

SCREEN = 40
"""Number of lines; a line of 200 characters takes three lines of 80 columns."""


def as_study(answer: Answer) -> StudyAnswer:
    study = StudyMetadata(
        name="compare", title="", question="", kind=StudyKind.COMPARISON, seed=1, verdicts=1, contexts=1
    )
    return StudyAnswer(study=study, answers=(answer,), unanswered=(), stopped=answer.stopped, results=answer.results)


def summary(answer: Answer) -> str:
    file = io.StringIO()
    print_summary(as_study(answer), Console(file=file, width=10_000))
    return file.getvalue()


def arms_table(answer: Answer) -> list[str]:
    """Return the lines between the verdict and the next section."""
    return summary(answer).split("\n\n")[1].splitlines()


@pytest.mark.parametrize("case", CASES)
def test_the_summary_fits_on_a_screen_and_starts_with_the_verdict(case: str) -> None:
    answer = CASES[case]()
    lines = summary(answer).splitlines()
    assert len(lines) <= SCREEN
    sentences = answer_sentences(answer)
    assert lines[: len(sentences)] == sentences
    assert lines[-2] == f"results: {answer.results}"
    assert lines[-1] == f"next: pgversus report {answer.results} --verbose"


def test_a_picture_with_any_command_as_its_title_is_xml() -> None:
    study = as_study(CASES["faster"]())
    typed = replace(study, invocation=replace(study.invocation, command="pgversus compare '\x1b[31m' <"))
    assert "\\x1b[31m" in "".join(ET.fromstring(summary_picture(typed)).itertext())  # noqa: S314 - our own


@pytest.mark.parametrize("case", CASES)
def test_every_arm_has_one_row_with_its_verdict(case: str) -> None:
    answer = CASES[case]()
    lines = arms_table(answer)
    for arm in answer.comparison.arms:
        (row,) = [line for line in lines if line.startswith(f"{arm.label} ")]
        if arm.index and answer.analysis.results:
            assert answer.analysis.result_of(arm.index).verdict.value in row


@pytest.mark.parametrize(
    ("case", "form"), [("faster", "%"), ("slower_by_half", "%"), ("operation", "%"), ("hopeless", "x")]
)
def test_all_ratios_have_the_same_form(case: str, form: str) -> None:
    table = "\n".join(arms_table(CASES[case]())[1:])
    assert (" %" in table) == (form == "%")
    assert ("x" in table) == (form == "x")


def test_an_arm_is_shown_with_the_range_of_its_blocks() -> None:
    answer = CASES["faster"]()
    values = [block.trials[0].tps for block in answer.blocks]
    (row,) = [line for line in arms_table(answer) if line.startswith("16.12 ")]
    assert f"{value_text(Metric.TPS, min(values))} to {value_text(Metric.TPS, max(values))}" in row


def test_a_ratio_from_fewer_blocks_than_the_baseline_has_says_so() -> None:
    blocks = [rate_block(n, 100.0 + n % 2, 150.0, 120.0 if n <= 4 else None) for n in range(1, 7)]
    lines = arms_table(answer(blocks, comparison(("15", "16", "17"))))
    (full,) = [line for line in lines if line.startswith("16 ")]
    (short,) = [line for line in lines if line.startswith("17 ")]
    assert full.endswith("faster")
    assert short.endswith("faster (4 of 6 blocks)")


@pytest.mark.parametrize(("transactions", "shown"), [(100, {"p50", "p95"}), (500, {"p50", "p95", "p99"})])
def test_percentiles_are_shown_only_from_enough_transactions(transactions: int, shown: set[str]) -> None:
    blocks = [rate_block(n, 100.0, 110.0, transactions=transactions) for n in range(1, 7)]
    names = {line.split()[0] for line in summary(answer(blocks)).splitlines() if line.strip()}
    assert names & {"p50", "p95", "p99"} == shown


def test_quiet_prints_only_the_sentence() -> None:
    answer, file = CASES["faster"](), io.StringIO()
    print_sentences(as_study(answer), Console(file=file, width=10_000))
    assert file.getvalue().splitlines() == answer_sentences(answer)
