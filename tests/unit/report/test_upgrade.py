"""The answer of an upgrade check, from hand-made blocks: six of the screening, more of the confirmation."""

import io
import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from pgversus.answers import upgrade as upgrade_module
from pgversus.answers.answer import OTHER_ROWS, Answer, AttributionResult, Caveat, StudyAnswer, Unanswered
from pgversus.answers.findings import Finding, UpgradeAnswer
from pgversus.answers.known_findings import KnownFindings
from pgversus.answers.upgrade import contexts_to_confirm, upgrade_answers
from pgversus.cli.answer import exit_code
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import ExitCode, StudyError, WorkloadError
from pgversus.lab.failures import failures_of_first_run
from pgversus.records.preparation import RestoreProblem
from pgversus.records.trials import NOTHING_FINISHED, FailedTrial, Phase
from pgversus.report.console import SafeConsole
from pgversus.report.json_document import json_pieces, study_document
from pgversus.report.markdown import markdown
from pgversus.report.page.page import page_html
from pgversus.report.study_answer import study_sentences
from pgversus.report.summary import print_summary
from pgversus.report.terminal import print_study_answer
from pgversus.report.upgrade_tables import finding_tables
from pgversus.statements.statement import ValueClass
from pgversus.study.comparison import Comparison
from pgversus.study.design import Design, StopReason
from pgversus.study.study import ApplicationStatement, Context, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import answer, comparison, rate_block, study_answer
from tests.unit.plans.captures import OFF, captured, generic, plans_of
from tests.unit.plans.raw import node, scan
from tests.unit.report import cases

_NOISE = (0.02, -0.03, 0.01, 0.015, -0.025, 0.01)


def screened(effect: float, turn: int = 0) -> Answer:
    """Six blocks with a spread of 2 %, which is the same for all statements; `turn` changes their order."""
    blocks = [rate_block(n, 1000.0, 1000.0 * effect * (1 + _NOISE[(n + turn) % 6])) for n in range(1, 7)]
    return answer(blocks, comparison(design=Design(fixed_blocks=6, seed=7)), stopped=StopReason.BLOCKS)


def check(
    *answers: Answer,
    seconds: tuple[float, ...],
    confirmed: Mapping[int, Answer] | None = None,
    failure: str = "",
) -> StudyAnswer:
    """An upgrade check of these answers, and of a statement without values.

    confirmed: answers of the confirmation, by number of the statement. failure: why another statement fails.
    """
    left = Context(number=len(answers) + 1, levels=(), comparison=answers[0].comparison)
    missing = [Unanswered(context=left, failure=failure, stopped=StopReason.DECIDED)] if failure else []
    study = study_answer(answers, unanswered=missing)
    statements = [
        ApplicationStatement(
            name=str(number), text=f"SELECT {number}", context=number, calls=10, seconds=time, obstacle=""
        )
        for number, time in enumerate(seconds, start=1)
    ]
    left_out = ApplicationStatement(
        name="99", text="SELECT $1", context=None, calls=1, seconds=10.0, obstacle="no values for its parameters"
    )
    again = [
        replace(one, context=replace(study.answers[number - 1].context, number=place))
        for place, (number, one) in enumerate((confirmed or {}).items(), start=1)
    ]
    return replace(
        study,
        study=replace(study.study, kind=StudyKind.UPGRADE_CHECK, statements=(*statements, left_out)),
        confirmation=replace(study_answer(again), answers=tuple(again)) if again else None,
    )


def only(study: StudyAnswer) -> UpgradeAnswer:
    (upgrade,) = upgrade_answers(study)
    return upgrade


SAME = (screened(1.0), screened(1.001, 1), screened(0.999, 2), screened(1.0, 3))


def test_statements_that_differ_in_the_screening_are_to_be_confirmed() -> None:
    assert contexts_to_confirm(check(*SAME, seconds=(1.0,) * 4)) == []
    different = (screened(0.8), *SAME, screened(1.3))
    assert contexts_to_confirm(check(*different, seconds=(1.0,) * 6)) == [1, 6]


def test_findings_are_ordered_by_importance_then_share() -> None:
    other_rows = replace(screened(1.0), caveats=(Caveat(slug=OTHER_ROWS, arm=1, values={}),))
    study = check(
        screened(0.8),
        screened(0.7, 1),
        other_rows,
        *SAME,
        screened(1.3, 2),
        screened(1.4, 1),
        seconds=(50.0, 10.0, 10.0, 5.0, 30.0, 10.0, 10.0, 10.0, 10.0, 5.0),
        confirmed={2: cases.slower_by_half(), 9: cases.faster()},
        failure="relation t does not exist",
    )
    upgrade = only(study)
    found = [(one.finding, one.statement.name) for one in upgrade.findings]
    assert found[:4] == [
        (Finding.OTHER_ROWS, "3"),
        (Finding.FAILS, "10"),
        (Finding.SLOWER, "2"),
        (Finding.LIKELY_SLOWER, "1"),
    ]
    assert [name for finding, name in found if finding is Finding.NO_DIFFERENCE] == ["5", "6", "7", "4"]
    assert found[-2:] == [(Finding.LIKELY_FASTER, "8"), (Finding.FASTER, "9")]
    assert upgrade.having(Finding.FAILS)[0].failure == "relation t does not exist"


@pytest.mark.parametrize(
    ("message", "finding"),
    [("ERROR:  division by zero", Finding.FAILS), (NOTHING_FINISHED, Finding.NOT_MEASURED)],
)
def test_windows_that_were_too_short_are_not_a_failure_of_the_statement(message: str, finding: Finding) -> None:
    blocks = [
        rate_block(n, 1000.0, None)._replace(failures=(FailedTrial(arm=1, phase=Phase.MEASURE, message=message),))
        for n in range(1, 7)
    ]
    failed = answer(blocks, comparison(), stopped=StopReason.FAILED, invalid=frozenset({1}))
    upgrade = only(check(failed, *SAME, seconds=(1.0,) * 5))
    assert [(one.statement.name, one.failure) for one in upgrade.having(finding)] == [("1", message)]


@pytest.mark.parametrize(
    ("message", "finding"),
    [("ERROR:  division by zero", Finding.FAILS), (NOTHING_FINISHED, Finding.LIKELY_SLOWER)],
)
def test_a_statement_that_fails_only_in_the_confirmation_fails(message: str, finding: Finding) -> None:
    blocks = [
        rate_block(n, 1000.0, None)._replace(failures=(FailedTrial(arm=1, phase=Phase.MEASURE, message=message),))
        for n in range(1, 4)
    ]
    failed = answer(blocks, comparison(), stopped=StopReason.FAILED, invalid=frozenset({1}))
    study = check(screened(0.8), *SAME, seconds=(1.0,) * 5, confirmed={1: failed})
    (found,) = only(study).having(finding)
    assert found.failure == (message if finding is Finding.FAILS else "")
    # Windows that were too short are no failure of the statement.
    assert exit_code(study, ()) is (ExitCode.FAILED_TRIALS if finding is Finding.FAILS else ExitCode.DONE)
    assert exit_code(study, ("undecided",)) is (
        ExitCode.FAIL_ON if finding is Finding.LIKELY_SLOWER else ExitCode.FAILED_TRIALS
    )


def test_a_plan_that_is_executed_differently_is_not_a_changed_plan() -> None:
    spill = {"Sort Space Type": "Disk", "Sort Method": "external merge", "Sort Space Used": 900}
    memory = {"Sort Space Type": "Memory", "Sort Method": "quicksort", "Sort Space Used": 900}
    sort = node("Sort", scan("t"), Sort_Key=["a"])
    old, new, other = captured({**sort, **spill}), captured({**sort, **memory}), captured(scan("t"))
    same = cases.with_plans(SAME[0], plans_of(old, new))
    changed = cases.with_plans(SAME[1], plans_of(old, other))
    upgrade = only(check(same, changed, *SAME[2:], seconds=(1.0,) * 4))
    assert [one.statement.name for one in upgrade.having(Finding.CHANGED_PLAN)] == ["2"]
    (executed,) = [one for one in upgrade.findings if one.statement.name == "1"]
    assert executed.changed
    assert not executed.has_changed_plan


def test_a_confirmation_replaces_the_ratio_and_the_claim_of_the_screening() -> None:
    study = check(screened(0.8), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.equivalent()})
    (found,) = only(study).having(Finding.EQUIVALENT)
    assert found.log_ratio is not None
    assert abs(found.log_ratio.point) < 0.01
    study = check(screened(0.8), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.undecided()})
    assert [one.statement.name for one in only(study).having(Finding.LIKELY_SLOWER)] == ["1"]


def test_the_change_of_the_load_weights_each_statement_by_its_time() -> None:
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: cases.slower_by_half()})
    load = only(study).load
    assert load is not None
    # 20 of 90 seconds take 2.5 times as long.
    assert load.ratio == pytest.approx((20 / 0.4 + 70) / 90, rel=0.01)
    assert load.low < load.ratio < load.high
    assert load.share == pytest.approx(0.9)


def test_the_total_time_names_the_share_of_statements_without_a_ratio() -> None:
    failure = FailedTrial(arm=1, phase=Phase.MEASURE, message="ERROR:  no")
    blocks = [rate_block(n, 1000.0, None)._replace(failures=(failure,)) for n in range(1, 7)]
    failed = answer(blocks, comparison(), stopped=StopReason.FAILED, invalid=frozenset({1}))
    load, _coverage = study_sentences(check(failed, *SAME, seconds=(45.0, 45.0, 0.0, 0.0, 0.0)))
    assert "without the statements that fail, find no rows or were not measured (45.0 % of the load)." in load


def test_the_sentences_count_the_statements_that_need_attention_and_give_the_coverage() -> None:
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: cases.slower_by_half()})
    load, coverage = study_sentences(study)
    assert load.startswith("Total time on 17.8, as the client sees it: +33")
    assert load.endswith("1 statement needs attention (1 slower).")
    assert coverage == (
        "5 of 6 statements were checked, 90.0 % of the load. "
        "Left out: 1 statement, 10.0 % (no values for its parameters)."
    )
    load, _coverage = study_sentences(check(*SAME, seconds=(90.0, 0.0, 0.0, 0.0)))
    assert load.endswith("No statement needs attention.")


def with_planning(study: StudyAnswer) -> StudyAnswer:
    """The same check, whose last statement is the planning of the others."""
    *others, planning, left_out = study.study.statements
    statements = (*others, replace(planning, is_planning=True), left_out)
    return replace(study, study=replace(study.study, statements=statements))


def test_planning_with_full_statistics_is_named() -> None:
    study = with_planning(check(*SAME, screened(0.8), seconds=(90.0, 0.0, 0.0, 0.0, 0.0)))
    first, *others = study.answers
    arms = tuple(replace(arm, dataset=replace(arm.dataset, full_statistics=True)) for arm in first.comparison.arms)
    full = replace(first, comparison=replace(first.comparison, arms=arms))
    target, _ = study_sentences(replace(study, answers=(full, *others)))
    assert ". It was measured with full statistics, which take longer to read" in target


def test_the_planning_of_all_statements_has_a_sentence_of_its_own_and_no_share() -> None:
    study = with_planning(check(*SAME, screened(0.8), seconds=(90.0, 0.0, 0.0, 0.0, 0.0)))
    target, coverage = study_sentences(study)
    assert "Planning time: +25" in target
    assert "full statistics" not in target
    assert target.endswith("No statement needs attention.")
    assert coverage.startswith("4 of 5 statements were checked")
    (planned,) = (one for one in only(study).findings if one.statement.is_planning)
    assert (planned.finding, planned.share) == (Finding.LIKELY_SLOWER, None)
    table, _left_out = finding_tables(study, 10)
    assert [row[:3] for row in table.rows if "planning" in row[0]] == [
        ("planning of all statements", "likely slower", "")
    ]
    target, _ = study_sentences(with_planning(check(*SAME, seconds=(90.0, 0.0, 0.0, 0.0))))
    assert "No difference found in planning time (between -" in target


@pytest.mark.parametrize(("now", "shown"), [(scan("t"), "same"), (scan("t", "Index Scan", Index_Name="i"), "changed")])
def test_generic_plans_of_statements_without_values_are_compared(now: dict[str, Any], shown: str) -> None:
    plans = plans_of(*(replace(captured(), statements=(generic(plan),)) for plan in (scan("t"), now)))
    planning = cases.with_plans(SAME[3], replace(plans, is_searched=False))
    study = with_planning(check(*SAME[:3], planning, seconds=(90.0, 0.0, 0.0, 0.0)))
    _table, left_out = finding_tables(study, 10)
    assert [row[-1] for row in left_out.rows] == [shown]
    notes = ["generic plan of 99 on 17.8: Seq Scan on t is now Index Scan using i on t"] if shown == "changed" else []
    assert [note.partition(";")[0] for note in left_out.notes] == notes
    (document,) = [one for upgrade in study_document(study)["upgrades"] for one in upgrade["left_out"]]
    assert document["has_changed_plan"] is (shown == "changed")
    assert bool(document["plan_changes"]) is (shown == "changed")
    # They say nothing about the time of planning.
    (planned,) = (one for one in only(study).findings if one.statement.is_planning)
    assert (planned.finding, planned.changed) == (Finding.NO_DIFFERENCE, ())


def test_a_statement_whose_table_lacks_an_index_is_marked() -> None:
    plans = plans_of(captured(scan("t")), captured(scan("t")))
    facts = SAME[0].arms
    rejected = [RestoreProblem(item=f"INDEX {table}_i", message="no", is_setting=False, table=table) for table in "tu"]
    arms = (facts[0], replace(facts[1], not_restored=tuple(rejected)))
    with_index = replace(cases.with_plans(SAME[0], plans), arms=arms)
    study = check(with_index, *SAME[1:], seconds=(1.0,) * 4)
    table, _left_out = finding_tables(study, 10)
    assert [row[0].partition(":")[0] for row in table.rows if "CHECK" in row[1]] == ["1"]
    assert "CHECK 1: a server rejected parts of its tables: INDEX t_i" in table.notes


@pytest.mark.parametrize(("rows", "in_application", "is_noted"), [(0, 5.0, True), (0, 0.2, False), (1, 5.0, False)])
def test_a_query_that_finds_nothing_here_is_noted(rows: int, in_application: float, *, is_noted: bool) -> None:
    arm = captured({**scan("t"), "Actual Rows": rows})
    study = check(cases.with_plans(SAME[0], plans_of(arm, arm)), *SAME[1:], seconds=(1.0,) * 4)
    first, *others = study.study.statements
    statements = (replace(first, rows_per_call=in_application), *others)
    study = replace(study, study=replace(study.study, statements=statements))
    table, _left_out = finding_tables(study, 10)
    assert ("1 finds no rows here, but 5 per call in the application" in table.notes) is is_noted


@pytest.mark.parametrize(("value_class", "is_noted"), [(ValueClass.RARE, True), (None, False)])
def test_a_list_of_unknown_length_is_noted(value_class: ValueClass | None, *, is_noted: bool) -> None:
    study = check(*SAME, seconds=(1.0,) * 4)
    first, *others = study.study.statements
    listed = replace(first, text="SELECT FROM t WHERE a IN ($1, $2 /*, ... */)", value_class=value_class)
    study = replace(study, study=replace(study.study, statements=(listed, *others)))
    table, _left_out = finding_tables(study, 10)
    assert ("1 has a list of unknown length: it is executed with 10 values" in table.notes) is is_noted
    documents = [one for upgrade in study_document(study)["upgrades"] for one in upgrade["statements"]]
    assert [one["has_list_of_unknown_length"] for one in documents].count(True) == is_noted


def test_functions_that_may_write_are_named() -> None:
    study = check(*SAME, seconds=(1.0,) * 4)
    first, *others = study.study.statements
    statements = (replace(first, volatile_functions=("app.count_up()",)), *others)
    table, _left_out = finding_tables(replace(study, study=replace(study.study, statements=statements)), 10)
    assert table.notes == ["1 calls app.count_up(), which may write: its transactions are rolled back"]


@pytest.mark.parametrize(
    ("stopped", "step"),
    [
        (None, "run the same command again."),
        (StopReason.INTERRUPTED, "run the same command again."),
        (StopReason.BUDGET, "run the same command with a larger --budget."),
        # More time would not help.
        (StopReason.BLOCKS, ""),
    ],
)
def test_likely_findings_have_a_next_step(stopped: StopReason | None, step: str) -> None:
    study = check(screened(0.8), *SAME[1:], seconds=(1.0,) * 4)
    if stopped is not None:
        study = replace(study, confirmation=replace(study, answers=(), unanswered=(), stopped=stopped))
    steps = [f"To confirm the likely findings, {step}"] if step else []
    assert study_sentences(study)[2:] == steps


@pytest.mark.parametrize(
    ("stopped", "step"),
    [
        (StopReason.INTERRUPTED, "Run the same command again to resume."),
        (StopReason.BUDGET, "Run the same command with a larger --budget to resume."),
    ],
)
def test_statements_that_were_not_reached_have_a_next_step(stopped: StopReason, step: str) -> None:
    study = check(*SAME, seconds=(1.0,) * 5)
    left = Unanswered(
        context=Context(number=5, levels=(), comparison=SAME[0].comparison), failure=None, stopped=stopped
    )
    assert study_sentences(replace(study, unanswered=(left,), stopped=stopped))[-1] == step


def test_without_times_there_are_no_shares() -> None:
    study = check(*SAME, seconds=(0.0,) * 4)
    *executed, left_out = study.study.statements
    silent = (*executed, replace(left_out, seconds=0.0))
    load, coverage = study_sentences(replace(study, study=replace(study.study, statements=silent)))
    assert load == "17.8 compared with 16.12. No statement needs attention."
    assert coverage == "4 of 5 statements were checked. Left out: 1 statement (no values for its parameters)."


def test_the_summary_has_a_row_for_each_statement() -> None:
    page = io.StringIO()
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: cases.slower_by_half()})
    print_summary(study, SafeConsole(file=page, width=200))
    text = page.getvalue()
    assert "from 16.12 to 17.8" in text
    rows = [line.split() for line in text.splitlines() if "SELECT" in line and "no values" not in line]
    assert rows[0][:5] == ["slower", "20.0", "%", "-60.0", "%"]
    assert rows[1][:5] == ["no", "difference", "found", "70.0", "%"]
    assert len(rows) == 5


def test_every_report_has_the_findings_instead_of_the_verdicts_of_the_screening() -> None:
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: cases.slower_by_half()})
    console = SafeConsole(file=io.StringIO(), width=200)
    print_study_answer(study, console)
    assert isinstance(console.file, io.StringIO)
    for text in (console.file.getvalue(), markdown(study), page_html(study)):
        assert "from 16.12 to 17.8" in text
        assert "1 statement needs attention" in text
        assert text.count("no difference found") == 4
        assert "verdicts:" not in text


def test_the_document_has_every_statement() -> None:
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: cases.slower_by_half()})
    document = json.loads("".join(json_pieces(study_document(study))))
    (upgrade,) = document["upgrades"]
    assert [one["finding"] for one in upgrade["statements"]] == ["slower", *["no difference found"] * 4]
    assert upgrade["statements"][0]["ratio"] == pytest.approx(0.4, rel=0.01)
    assert upgrade["left_out"][0]["obstacle"] == "no values for its parameters"
    assert document["kind"] == "upgrade check"


@pytest.mark.parametrize(
    ("confirmed", "fail_on", "code"),
    [
        (cases.slower_by_half(), ("slower",), ExitCode.FAIL_ON),
        (cases.slower_by_half(), ("undecided",), ExitCode.DONE),
        (cases.equivalent(), ("slower", "undecided"), ExitCode.DONE),
        (None, ("slower",), ExitCode.DONE),
        (None, ("undecided",), ExitCode.FAIL_ON),
    ],
)
def test_only_confirmed_statements_fail_as_slower(
    confirmed: Answer | None, fail_on: tuple[str, ...], code: ExitCode
) -> None:
    again = {} if confirmed is None else {1: confirmed}
    study = check(screened(0.8), *SAME, seconds=(1.0,) * 5, confirmed=again)
    assert exit_code(study, fail_on) is code


def test_a_failure_sets_the_exit_code_unless_it_is_known() -> None:
    failing = check(*SAME, seconds=(1.0,) * 5, failure="the load fails on 17.8 (ERROR: no such function)")
    assert exit_code(failing, ()) is ExitCode.FAILED_TRIALS
    document = "".join(json_pieces(study_document(failing)))
    assert exit_code(failing, (), known=KnownFindings(document, "check.json")) is ExitCode.DONE
    # A trial that failed once, of a statement that was measured all the same.
    repeated = replace(screened(1.0), failed_trials=1)
    assert exit_code(check(repeated, *SAME, seconds=(1.0,) * 5), ()) is ExitCode.DONE


def test_different_rows_fail_if_requested() -> None:
    other_rows = replace(screened(1.0), caveats=(Caveat(slug=OTHER_ROWS, arm=1, values={}),))
    study = check(other_rows, *SAME, seconds=(1.0,) * 5)
    assert exit_code(study, ("rows",)) is ExitCode.FAIL_ON
    assert exit_code(study, ("slower", "undecided")) is ExitCode.DONE
    assert exit_code(check(*SAME, seconds=(1.0,) * 4), ("rows",)) is ExitCode.DONE
    assert exit_code(study_answer([other_rows]), ("rows",)) is ExitCode.FAIL_ON


def test_findings_of_an_earlier_check_do_not_fail_again() -> None:
    study = check(screened(0.4), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.slower_by_half()})
    document = "".join(json_pieces(study_document(study)))
    assert exit_code(study, ("slower",)) is ExitCode.FAIL_ON
    assert exit_code(study, ("slower",), known=KnownFindings(document, "known.json")) is ExitCode.DONE
    other_target = KnownFindings(document.replace("17.8", "18.4"), "known.json")
    assert exit_code(study, ("slower",), known=other_target) is ExitCode.FAIL_ON
    only_likely = KnownFindings(document.replace('"slower"', '"likely slower"'), "known.json")
    assert exit_code(study, ("slower",), known=only_likely) is ExitCode.FAIL_ON


def test_a_known_statement_that_has_become_slower_fails_again() -> None:
    before = check(screened(0.4), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.slower_by_half()})
    known = KnownFindings("".join(json_pieces(study_document(before))), "known.json")
    much_slower = answer([rate_block(n, 1000.0, 100.0 + n) for n in range(1, 7)])
    now = check(screened(0.1), *SAME, seconds=(1.0,) * 5, confirmed={1: much_slower})
    assert exit_code(now, ("slower",), known=known) is ExitCode.FAIL_ON


def test_planning_never_sets_the_exit_code() -> None:
    study = check(*SAME, screened(0.4), seconds=(90.0, 0.0, 0.0, 0.0, 0.0), confirmed={5: cases.slower_by_half()})
    assert exit_code(study, ("slower",)) is ExitCode.FAIL_ON
    assert exit_code(with_planning(study), ("slower", "undecided")) is ExitCode.DONE


@pytest.mark.parametrize(
    ("before", "now", "code"),
    [
        ("SELECT a FROM t WHERE b IN ($1)", "SELECT a FROM t WHERE b IN ($1, $2)", ExitCode.DONE),
        ("SELECT a FROM t WHERE b = 'rare'", "SELECT a FROM t WHERE b = 'common'", ExitCode.FAIL_ON),
    ],
)
def test_a_known_statement_may_have_longer_lists_but_no_other_constants(before: str, now: str, code: ExitCode) -> None:
    study = check(screened(0.4), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.slower_by_half()})
    first, *others = study.study.statements

    def with_text(text: str) -> StudyAnswer:
        return replace(study, study=replace(study.study, statements=(replace(first, text=text), *others)))

    document = "".join(json_pieces(study_document(with_text(before))))
    assert exit_code(with_text(now), ("slower",), known=KnownFindings(document, "known.json")) is code


@pytest.mark.parametrize("document", ["", "[]", "{}", '{"upgrades": [{"target": "17"}]}'])
def test_a_document_without_findings_is_refused_as_known_findings(document: str) -> None:
    with pytest.raises(StudyError) as caught:
        KnownFindings(document, "known.json")
    assert (caught.value.slug, caught.value.where) == ("study-no-known-findings", "known.json")


def test_an_interrupted_confirmation_is_an_interrupted_check() -> None:
    study = check(screened(0.8), *SAME, seconds=(1.0,) * 5, confirmed={1: cases.undecided()})
    assert study.confirmation is not None
    assert exit_code(study, ()) is ExitCode.DONE
    interrupted = replace(study.confirmation, stopped=StopReason.INTERRUPTED)
    assert exit_code(replace(study, confirmation=interrupted), ()) is ExitCode.INTERRUPTED


def undone(also_changes: tuple[str, ...] | None, measured: Mapping[str, float]) -> StudyAnswer:
    """A check whose first statement is slower and has an undo. measured: the effect on other statements, by name."""
    override = replace(OFF, also_changes=also_changes)
    slower = cases.with_plans(
        cases.slower_by_half(),
        plans_of(captured(scan("t")), captured(scan("t", "Index Scan", Index_Name="i")), undone_by=override),
        cases.attributed((0.98, 0.93, 1.03)),
    )
    study = check(screened(0.4), *SAME, seconds=(20.0, 70.0, 0.0, 0.0, 0.0), confirmed={1: slower})
    assert study.confirmation is not None
    effects = [
        replace(one, context=replace(one.context, comparison=of_script(one.comparison, f"{name}.sql")))
        for one, name in zip(
            study_answer([screened(effect, turn) for turn, effect in enumerate(measured.values())]).answers,
            measured,
            strict=True,
        )
    ]
    found = {(1, 1): replace(study_answer(effects), answers=tuple(effects))} if effects else {}
    return replace(study, confirmation=replace(study.confirmation, side_effects=found))


def of_script(found: Comparison, name: str) -> Comparison:
    load = PgbenchWorkload(scripts=(Script(name=name, text="SELECT 1;"),))
    return replace(found, arms=tuple(replace(arm, workload=load) for arm in found.arms))


def notes(study: StudyAnswer) -> str:
    table, _left_out = finding_tables(study, most=100)
    return "\n".join(table.notes)


def test_statements_that_are_left_out_are_listed_with_the_reason() -> None:
    study = check(*SAME, seconds=(60.0, 20.0, 0.0, 0.0))
    *executed, left_out = study.study.statements
    with_values = (replace(executed[0], values=("5", None)), *executed[1:], left_out)
    study = replace(study, study=replace(study.study, statements=with_values))
    table, others = finding_tables(study, 10)
    assert (others.title, len(others.rows)) == ("left out", 1)
    assert others.rows[0][1] == "no values for its parameters"
    assert others.rows[0][2].endswith(" %")
    assert any(row[0].endswith(" [5, NULL]") for row in table.rows)
    statements = tuple(one for one in study.study.statements if one.context is not None)
    assert len(finding_tables(replace(study, study=replace(study.study, statements=statements)), 10)) == 1


def test_settings_that_undo_a_slower_statement_are_shown_with_their_side_effects() -> None:
    names = ("2", "3", "4", "5")
    measured = dict(zip(names, (0.7, 1.0, 1.001, 0.999), strict=True))
    study = undone(("2.sql", "3.sql", "4.sql", "5.sql", "lost.sql"), measured)
    text = notes(study)
    assert "enable_x = off also changes the plans of 5 other statements: 2 (" in text
    assert "3 (no difference found, [" in text
    assert text.endswith("lost (not measured).")
    (upgrade,) = json.loads("".join(json_pieces(study_document(study))))["upgrades"]
    effects = upgrade["statements"][0]["undone_by"]["side_effects"]
    assert [(one["statement"], one["differs"]) for one in effects[:2]] == [("2", True), ("3", False)]
    assert effects[0]["low"] < 0.7 < effects[0]["high"]
    unknown = {"statement": "lost", "share": None, "differs": False, "ratio": None, "low": None, "high": None}
    assert effects[-1] == unknown
    assert upgrade["statements"][0]["undone_by"]["change_of_total_time"] is None
    assert "total time on 17.8" not in text


def test_settings_that_undo_a_slower_statement_are_weighed_against_their_side_effects() -> None:
    study = undone(("2.sql",), {"2": 0.7, "3": 1.0, "4": 1.001, "5": 0.999})
    (upgrade,) = json.loads("".join(json_pieces(study_document(study))))["upgrades"]
    ratios = {one["statement"]["name"]: one["ratio"] for one in upgrade["statements"]}
    undo = upgrade["statements"][0]["undone_by"]
    effect = undo["side_effects"][0]
    total_s = sum(one.seconds for one in study.study.statements)
    assert effect["share"] == pytest.approx(70 / total_s)
    own = 20 / total_s / ratios["1"] * (undo["plans"]["value"] - 1)
    other = 70 / total_s / ratios["2"] * (1 / effect["ratio"] - 1)
    assert undo["change_of_total_time"] == pytest.approx(own + other)
    assert f"2 ({100 * 70 / total_s:.1f} % of the load; -30" in notes(study)
    assert "Altogether, enable_x = off changes the total time on 17.8 by about +" in notes(study)


def test_settings_may_have_no_side_effects_or_unknown_ones() -> None:
    assert "enable_x = off changes the plan of no other statement." in notes(undone((), {}))
    assert "other statement" not in notes(undone(None, {}))
    unknown = undone((), {})
    assert unknown.confirmation is not None
    (slower,) = unknown.confirmation.answers
    not_measured = replace(slower, attributions={1: AttributionResult(failure="no budget is left")})
    study = replace(unknown, confirmation=replace(unknown.confirmation, answers=(not_measured,)))
    assert "other statement" not in notes(study)
    (upgrade,) = json.loads("".join(json_pieces(study_document(undone(None, {})))))["upgrades"]
    assert upgrade["statements"][0]["undone_by"]["side_effects"] is None


def test_a_confirmation_of_the_other_sign_contradicts_the_screening() -> None:
    tending = answer([rate_block(n, 1000.0, 1000.0 * (1.03 + _NOISE[n % 6])) for n in range(1, 7)])
    for effect, finding in ((1.25, Finding.LIKELY_FASTER), (0.8, Finding.NO_DIFFERENCE)):
        study = check(screened(effect), *SAME, seconds=(1.0,) * 5, confirmed={1: tending})
        (found,) = [one for one in only(study).findings if one.statement.name == "1"]
        assert found.finding is finding


def failing(arm: int) -> Answer:
    """An answer in which every trial of an arm failed."""
    failure = FailedTrial(arm=arm, phase=Phase.MEASURE, message="ERROR:  no such function")
    speeds = [(None, 1000.0), (1000.0, None)][arm]
    blocks = [rate_block(n, *speeds)._replace(failures=(failure,)) for n in range(1, 7)]
    return answer(blocks, comparison(), stopped=StopReason.FAILED, invalid=frozenset({1}))


def test_a_statement_that_fails_on_the_source_does_not_need_attention() -> None:
    upgrade = only(check(failing(0), failing(1), *SAME, seconds=(1.0,) * 6))
    findings = {one.statement.name: one.finding for one in upgrade.findings}
    assert (findings["1"], findings["2"]) == (Finding.NOT_MEASURED, Finding.FAILS)
    for arm, finding in (("16.12", Finding.NOT_MEASURED), ("17.8", Finding.FAILS)):
        error = failed_first_run(arm)
        upgrade = only(check(*SAME, seconds=(1.0,) * 5, failure=error.summary))
        assert {one.statement.name: one.finding for one in upgrade.findings}["5"] is finding


def test_a_first_run_that_hangs_on_one_target_says_nothing_about_another() -> None:
    study = check(*SAME, seconds=(1.0,) * 5, failure="the first run of the load did not finish in time on 16.0 (q.sql)")
    assert {one.statement.name: one.finding for one in only(study).findings}["5"] is Finding.FAILS
    others = ["15.14", "16.0"]
    (missing,) = study.unanswered
    found = upgrade_module._not_measured(study.study.statements[0], None, missing, others)
    assert found.finding is Finding.NOT_MEASURED
    found = upgrade_module._not_measured(study.study.statements[0], None, missing, ["15.14", "17.8"])
    assert found.finding is Finding.FAILS


def failed_first_run(arm: str) -> WorkloadError:
    """Return the error of a first run that fails on an arm."""
    with (
        pytest.raises(WorkloadError) as caught,
        failures_of_first_run(arm, PgbenchWorkload(scripts=()), 60.0, "fix it"),
    ):
        raise TrialFailedError("ERROR:  no such function")
    return caught.value


def test_only_statements_with_a_result_are_called_checked() -> None:
    study = check(failing(1), *SAME, seconds=(10.0, 20.0, 20.0, 20.0, 10.0, 10.0), failure="no")
    assert study_sentences(study)[-1] == (
        "4 of 7 statements were checked, 70.0 % of the load. Left out: 2 statements, 20.0 % (execution fails), "
        "1 statement, 10.0 % (no values for its parameters)."
    )


def test_a_statement_with_two_classes_of_values_counts_once() -> None:
    study = check(screened(0.6), screened(0.6, 1), *SAME, seconds=(1.0,) * 6, confirmed={})
    first, second, *others = study.study.statements
    statements = (first, replace(second, text=first.text), *others)
    target, coverage, *_ = study_sentences(replace(study, study=replace(study.study, statements=statements)))
    assert target.endswith("1 statement needs attention (1 likely slower).")
    assert coverage.startswith("5 of 6 statements were checked")


def test_a_check_in_which_everything_failed_says_so() -> None:
    study = check(*SAME, seconds=(1.0,) * 4)
    missing = tuple(Unanswered(context=one.context, failure="no", stopped=StopReason.DECIDED) for one in study.answers)
    (coverage,) = study_sentences(replace(study, answers=(), unanswered=missing))
    assert coverage.startswith("0 of 5 statements were checked")
    assert "4 statements, 28.6 % (no result)" in coverage


@pytest.mark.parametrize(("rows", "is_noted"), [(0, True), (1, False)])
def test_a_statement_that_finds_no_rows_to_write_is_noted(rows: int, *, is_noted: bool) -> None:
    arm = captured(
        node("ModifyTable", node("Seq Scan", Actual_Rows=rows), Operation="Delete", Relation_Name="t", Actual_Rows=0)
    )
    study = check(cases.with_plans(SAME[0], plans_of(arm, arm)), *SAME[1:], seconds=(1.0,) * 4)
    table, _left_out = finding_tables(study, 10)
    assert ("1 finds no rows to write here: its values may be older than the data" in table.notes) is is_noted


def test_grave_caveats_of_a_confirmation_are_named() -> None:
    drifting = replace(cases.slower_by_half(), caveats=(Caveat(slug="drift", arm=None, values={}),))
    study = check(screened(0.6), *SAME, seconds=(1.0,) * 5, confirmed={1: drifting})
    table, _left_out = finding_tables(study, 10)
    assert table.rows[0][1] == "slower (CHECK)"
    assert table.notes[0].startswith("CHECK 1: see the caveats in ")


def test_a_statement_that_is_slower_and_returns_other_rows_fails_on_both() -> None:
    other_rows = replace(screened(0.6), caveats=(Caveat(slug=OTHER_ROWS, arm=1, values={}),))
    study = check(other_rows, *SAME, seconds=(1.0,) * 5, confirmed={1: cases.slower_by_half()})
    assert exit_code(study, ("slower",)) is ExitCode.FAIL_ON
    assert exit_code(study, ("rows",)) is ExitCode.FAIL_ON
