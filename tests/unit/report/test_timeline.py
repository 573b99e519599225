"""A timeline of three versions: bars, verdicts against the first one, and plans against the one before."""

import io
from dataclasses import replace

import pytest

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.plans import compared
from pgversus.answers.timeline import plan_steps
from pgversus.records.plans import Captured
from pgversus.report.console import SafeConsole
from pgversus.report.markdown import markdown
from pgversus.report.page.page import page_html
from pgversus.report.summary import print_summary
from pgversus.report.terminal import print_study_answer
from pgversus.report.timeline import timeline_table
from pgversus.study.study import StudyKind
from tests.builders import answer, comparison, rate_block, rate_blocks, study_answer
from tests.unit.plans.captures import captured, plans_of
from tests.unit.plans.raw import scan

SEQUENTIAL, INDEXED = captured(scan("t")), captured(scan("t", "Index Scan", Index_Name="i"))
STEADY = [1000.0, 1001.0, 999.0, 1000.0, 1002.0, 998.0]


def timeline(*plans: Captured, labels: tuple[str, ...] = ("15", "16", "17")) -> StudyAnswer:
    """Return a timeline whose last version is twice as fast as the others."""
    series = [STEADY] * (len(labels) - 1) + [[2 * rate for rate in STEADY]]
    measured = answer(rate_blocks(*series), comparison(labels))
    if plans:
        measured = replace(measured, plans=lambda: compared(measured.comparison.arms, plans_of(*plans)))
    study = study_answer([measured])
    one = replace(study.answers[0], context=measured.context)
    metadata = replace(study.study, kind=StudyKind.TIMELINE, title="", question="")
    return replace(study, answers=(one,), study=metadata)


def test_each_version_has_a_bar_and_a_verdict_against_the_first() -> None:
    table = timeline_table(timeline().answers[0])
    labels, bars, plans, *_, verdicts = zip(*table.rows, strict=True)
    assert labels == ("15", "16", "17")
    assert [len(bar) for bar in bars] == [15, 15, 30]
    assert plans == ("", "", "")
    assert verdicts[0] == ""
    assert verdicts[2] == "faster"
    assert table.notes == []


def test_a_ratio_from_fewer_blocks_than_the_first_version_is_marked() -> None:
    blocks = [rate_block(n, 1000.0 + n % 2, 1001.0, 2000.0 if n <= 4 else None) for n in range(1, 7)]
    *_, verdicts = zip(*timeline_table(answer(blocks, comparison(("15", "16", "17")))).rows, strict=True)
    assert verdicts[2] == "faster (4 of 6 blocks)"


def test_a_version_without_a_plan_is_skipped() -> None:
    nothing = replace(INDEXED, statements=tuple(replace(one, explained=None) for one in INDEXED.statements))
    measured = timeline(SEQUENTIAL, INDEXED, nothing, SEQUENTIAL, labels=("14", "15", "16", "17")).answers[0]
    notes = timeline_table(measured).notes
    assert [note.partition(":")[0] for note in notes] == ["14 to 15", "15 to 17"]


def test_plans_are_compared_with_the_version_before() -> None:
    there_and_back = timeline(SEQUENTIAL, INDEXED, SEQUENTIAL).answers[0]
    assert [[step.has_changed for step in steps] for steps in plan_steps(there_and_back)] == [[True], [True]]
    later = timeline(SEQUENTIAL, SEQUENTIAL, INDEXED).answers[0]
    table = timeline_table(later)
    assert [row[2] for row in table.rows] == ["", "", "changed"]
    (note,) = table.notes
    assert note.startswith("16 to 17: ")
    assert "i" in note


@pytest.mark.slow
def test_every_report_has_the_timeline() -> None:
    study = timeline(SEQUENTIAL, SEQUENTIAL, INDEXED)
    summary, full = (SafeConsole(file=io.StringIO(), width=200) for _ in range(2))
    print_summary(study, summary)
    print_study_answer(study, full)
    for console in (summary, full):
        assert isinstance(console.file, io.StringIO)
    texts = [summary.file.getvalue(), full.file.getvalue(), markdown(study), page_html(study)]  # type: ignore[attr-defined]
    for text in texts:
        assert "█" * 30 in text
        assert "16 to 17: " in text


def test_a_version_without_results_has_no_bar() -> None:
    measured = answer(rate_blocks(STEADY, [None] * 6), comparison(("15", "16")))
    table = timeline_table(measured)
    assert [row[1] for row in table.rows] == ["█" * 30, ""]
    assert table.rows[1][3:] == ("", "", "", "undecided")


def test_the_label_of_the_first_version_is_escaped_in_markdown() -> None:
    text = markdown(timeline(labels=("./a|b<i>", "16", "17")))
    assert "| vs ./a\\|b\\<i\\> |" in text
