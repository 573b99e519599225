"""The answer on one screen."""

import io
import math
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from rich.cells import cell_len
from rich.console import Console

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.report.console import WIDEST
from pgversus.report.overview import verdict_rows
from pgversus.report.sentences import answer_sentences
from pgversus.report.study_answer import study_sentences
from pgversus.report.summary import print_sentences, print_summary, summary_picture
from pgversus.report.terminal import print_answer, print_study_answer
from pgversus.report.values import study_quantity_rows, value_text
from pgversus.study.metrics import Metric
from pgversus.study.study import StudyKind, StudyMetadata
from tests.builders import answer, comparison, rate_block, study_answer
from tests.real_results import STUDIES, unpacked
from tests.unit.report.cases import CASES, steady

SCREENS = {100: 30, 80: 35}
"""Lines by columns."""


def as_study(answer: Answer) -> StudyAnswer:
    study = StudyMetadata(
        name="compare", title="", question="", kind=StudyKind.COMPARISON, seed=1, verdicts=1, contexts=1
    )
    return StudyAnswer(study=study, answers=(answer,), unanswered=(), stopped=answer.stopped, results=answer.results)


def summary(answer: Answer) -> str:
    file = io.StringIO()
    print_summary(as_study(answer), Console(file=file, width=WIDEST))
    return file.getvalue()


def arms_table(answer: Answer) -> list[str]:
    """Return the lines between the verdict and the next section."""
    return summary(answer).split("\n\n")[1].splitlines()


def lines_on_terminal(answer: StudyAnswer, columns: int) -> int:
    """Return the lines of the summary on a terminal, where lines that are too long continue on the next."""
    file = io.StringIO()
    # The folder of a test has a long name.
    print_summary(replace(answer, results="pgversus-results/my-study"), Console(file=file, width=WIDEST), columns)
    return sum(max(1, math.ceil(cell_len(line) / columns)) for line in file.getvalue().splitlines())


@pytest.mark.parametrize("columns", SCREENS)
@pytest.mark.parametrize("study", STUDIES)
def test_the_summary_of_a_study_fits_on_a_screen(study: str, columns: int, tmp_path: Path) -> None:
    # Three of the later studies have rows that are wider than 80 columns, more caveats, or more sentences.
    more = 3 if study in ("quick/block-size", "quick/io-combine-limit", "quick/versions-15-to-18") else 0
    assert lines_on_terminal(read_answer(unpacked(study, tmp_path)), columns) <= SCREENS[columns] + more


@pytest.mark.parametrize("columns", SCREENS)
@pytest.mark.parametrize("case", CASES)
def test_the_summary_of_a_comparison_fits_on_a_screen(case: str, columns: int) -> None:
    assert lines_on_terminal(as_study(CASES[case]()), columns) <= SCREENS[columns]


@pytest.mark.parametrize("case", CASES)
def test_the_summary_starts_with_the_verdict_and_ends_with_the_next_command(case: str) -> None:
    answer = CASES[case]()
    lines = summary(answer).splitlines()
    sentences = answer_sentences(answer)
    assert lines[: len(sentences)] == sentences
    assert lines[-2] == f"results: {answer.results}"
    assert lines[-1] == f"next: pgversus report {answer.results} --verbose"


def test_a_picture_with_any_command_as_its_title_is_valid_xml() -> None:
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


def test_a_ratio_from_fewer_blocks_than_the_baseline_is_marked() -> None:
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
    print_sentences(as_study(answer), Console(file=file, width=WIDEST))
    assert file.getvalue().splitlines() == answer_sentences(answer)


def test_quiet_prints_the_answer_to_a_study_once() -> None:
    study, file = study_answer([CASES["slower_by_half"](), CASES["faster"]()]), io.StringIO()
    print_sentences(study, Console(file=file, width=WIDEST))
    assert file.getvalue().splitlines() == study_sentences(study)
    assert file.getvalue().count("17.8 is slower than 16.12") == 1


def one_slightly_and_one_much_faster() -> Answer:
    blocks = [rate_block(n, 100.0, 104.9 + n % 2 / 5, 300.0 + n % 3) for n in range(1, 9)]
    return answer(blocks, comparison(("15", "16", "17")))


@pytest.mark.parametrize("show", [print_summary, print_study_answer])
def test_one_output_has_one_form_of_ratio(show: Callable[[StudyAnswer, Console], None]) -> None:
    file = io.StringIO()
    show(as_study(one_slightly_and_one_much_faster()), Console(file=file, width=WIDEST))
    # The distance to a bound of a mean is not a ratio of arms.
    text = re.sub(r"±[0-9.]+ %|95 % CI", "", file.getvalue())
    assert "16 is faster than 15: 1.05x tps" in text
    assert "[+" not in text
    assert "+4." not in text
    low, high = re.search(r"1\.05x  \[([0-9.]+)x, ([0-9.]+)x\]", text).groups()  # type: ignore[union-attr]
    assert low != high


def test_columns_of_a_study_have_one_form_of_ratio() -> None:
    study = study_answer([CASES["faster"](), answer(steady(3.0))])
    changes = [row.change for row in verdict_rows(study)]
    assert changes == ["1.1x", "3x"]
    assert {row.quantity.change[-1:] for row in study_quantity_rows(study)} <= {"x", ""}


def test_every_column_of_numbers_has_a_heading() -> None:
    file = io.StringIO()
    print_answer(CASES["tail_latency"](), Console(file=file, width=WIDEST))
    heads = [line.split() for line in file.getvalue().splitlines() if line.endswith(("95 % CI", "blocks"))]
    assert heads[0][:3] == ["p95", "latency", "±"] or heads[0][0] == "tps"
    assert all("±" in words or "change" in words for words in heads)
