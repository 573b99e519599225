"""A study in every format: complete, with user text escaped and numbers unchanged."""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from pgversus.answers.answer import Answer, Caveat, StudyAnswer, Unanswered, about
from pgversus.api import StudyResults
from pgversus.cli.output import rendered
from pgversus.records.trials import Phase
from pgversus.report.arm_tables import arm_value_rows, time_rows, tps_table
from pgversus.report.console import WIDEST
from pgversus.report.json_document import STUDY_SCHEMA, json_pieces, study_document
from pgversus.report.markdown import escaped, markdown, paragraph
from pgversus.report.methodology import study_lines
from pgversus.report.overview import joint_caveats, not_measured, overview_sentences, shared_caveats, verdict_rows
from pgversus.report.terminal import print_answer, print_study_answer
from pgversus.report.tidy_tables import TidyTable, arrow_table, csv_lines, parquet_bytes, trial_table, verdict_table
from pgversus.stats.confidence import Verdict
from pgversus.study.dataset import Dataset
from pgversus.study.design import StopReason
from pgversus.study.metrics import Metric
from pgversus.study.study import Skipped
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import answer as answer_of
from tests.builders import comparison, judged_by, operation_block, study_answer, vacuum
from tests.unit.report.cases import CASES

FIGURES = (
    "workload,clients,scale,level,tps,confounded\n"
    "w1,4,1,16.12,100,\nw1,4,1,17.8,110,\nw2,1,1,16.12,100,\nw2,1,1,17.8,110,data of two sizes\n"
)


def whole() -> StudyAnswer:
    """Return a study with a faster, a slower and an equivalent context, and one that could not be measured."""
    answers = [CASES[name]() for name in ("faster", "slower_by_half", "equivalent")]
    failure = 'ERROR:  relation "x" does not exist'
    lost = Unanswered(context=answers[0].context, failure=failure, stopped=StopReason.DECIDED)
    return study_answer(answers, unanswered=[lost], published=FIGURES)


def terminal(answer: StudyAnswer, columns: int | None = None) -> str:
    file = io.StringIO()
    print_study_answer(answer, Console(file=file, width=WIDEST), columns, with_published=True)
    return file.getvalue()


def as_json(answer: StudyAnswer) -> str:
    return "".join(json_pieces(study_document(answer)))


def as_csv(table: TidyTable) -> str:
    return "".join(csv_lines(table))


def rows_of(table: TidyTable) -> list[dict[str, Any]]:
    return [dict(zip(table.columns, row, strict=True)) for row in table.rows]


FORMS: dict[str, Callable[[StudyAnswer], str]] = {
    "terminal": terminal,
    "markdown": lambda answer: markdown(answer, with_published=True),
    "csv": lambda answer: as_csv(verdict_table(answer)),
    "json": as_json,
}


@pytest.mark.parametrize("form", FORMS)
def test_every_format_contains_every_context_and_every_verdict(form: str) -> None:
    text = FORMS[form](whole())
    for row in verdict_rows(whole()):
        assert row.contender in text
        assert row.verdict.value in text
    for number in (1, 2, 3):
        assert f"w{number}" in text


@pytest.mark.parametrize("form", ["terminal", "markdown", "json"])
def test_an_unmeasured_context_is_reported_with_its_error(form: str) -> None:
    assert "does not exist" in FORMS[form](whole())


def test_the_number_of_verdicts_that_share_the_error_is_stated() -> None:
    assert "The chance that any of the 4 verdicts is wrong is at most 1 in 20" in overview_sentences(whole())[0]
    assert study_document(whole())["verdicts_sharing_the_error"] == 4


def test_the_document_is_json_without_nan_with_the_keys_that_programs_rely_on() -> None:
    text = as_json(whole())
    made = study_document(whole())
    found = json.loads(text)
    # The output equals that of the standard library, except for the spelling of numbers.
    assert found == {name: list(value) if isinstance(value, Iterator) else value for name, value in made.items()}
    assert [line.rpartition(":")[0] for line in text.splitlines()] == [
        line.rpartition(":")[0] for line in json.dumps(found, indent=2, allow_nan=False).splitlines()
    ]
    assert text.isascii()
    assert found["schema"] == STUDY_SCHEMA == "pgversus.study/1"
    assert [one["context"] for one in found["verdicts"]] == [
        "workload=w1 load=c4",
        "workload=w2 load=c4",
        "workload=w3 load=c4",
    ]
    assert [one["verdict"] for one in found["verdicts"]] == ["faster", "slower", "equivalent"]
    assert found["contexts"][0]["levels"] == {"workload": "w1", "load": "c4"}
    assert found["not_measured"][0]["failed"] is True


def test_rows_of_a_terminal_table_are_not_truncated() -> None:
    assert "…" not in terminal(whole(), columns=40)


def test_a_sentence_is_one_line_in_a_pipe_and_wrapped_on_a_terminal() -> None:
    sentence = overview_sentences(whole())[0]
    assert sentence in terminal(whole()).splitlines()
    assert sentence not in terminal(whole(), columns=40).splitlines()


def test_markdown_in_user_text_is_escaped() -> None:
    text = markdown(whole())
    assert text.startswith("## Two \\| workloads\n\nIs one of them \\*faster\\*?")
    assert escaped("<script>\n| `a` [b](c)") == "\\<script\\> \\| \\`a\\` \\[b\\](c)"
    columns = {
        line.replace("\\|", "").count("|") for line in text.splitlines() if line.startswith("|") and "faster" in line
    }
    assert len(columns) == 1


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("~~x~~ &lt; $a$", "\\~\\~x\\~\\~ \\&lt; \\$a\\$"),
        ("ask @team, a.sql@3", "ask @&#8203;team, a.sql@3"),
        ("as in #123 and GH-4", "as in \\#&#8203;123 and GH-&#8203;4"),
        (":white_check_mark: at 12:30", ":&#8203;white\\_check\\_mark: at 12:30"),
        ("-93.6 %", "-93.6 %"),
        ("\x1b[2J", "\\\\x1b\\[2J"),
    ],
)
def test_special_syntax_of_github_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("1. Is it?", "1\\. Is it?"),
        ("2) Is it?", "2\\) Is it?"),
        ("- Is it?", "\\- Is it?"),
        ("+ Is it?", "\\+ Is it?"),
        ("---", "\\---"),
        ("17.8 is faster", "17.8 is faster"),
        ("Is it?", "Is it?"),
    ],
)
def test_a_paragraph_does_not_become_a_list(text: str, shown: str) -> None:
    assert paragraph(text) == shown
    answer = whole()
    assert f"\n\n{shown}\n\n" in markdown(replace(answer, study=replace(answer.study, question=text)))


CONTROL = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
HOSTILE = "\x1b[2J\x1b]0;mine\x07 \x9b1m \x7f\b\r\u202egnorw\u2066 \u200e\u200f\u061c\u2028"


def hostile() -> StudyAnswer:
    """Return a study in which every text contains control characters."""
    one = CASES["faster"]()
    arms = tuple(replace(arm, label=f"{arm.label}{HOSTILE}") for arm in one.comparison.arms)
    caveat = Caveat(slug="not-resumed", values={"failure": f"ERROR:  {HOSTILE}"})
    placed = replace(one, comparison=replace(one.comparison, arms=arms), caveats=(caveat,), client=HOSTILE)
    lost = Unanswered(context=one.context, failure=HOSTILE, stopped=StopReason.DECIDED)
    answer = study_answer([placed], unanswered=[lost])
    return replace(answer, study=replace(answer.study, title=HOSTILE, question=HOSTILE), results=HOSTILE)


@pytest.mark.parametrize("form", ["terminal", "markdown", "single"])
def test_control_characters_in_texts_are_escaped(form: str) -> None:
    answer = hostile()
    text: str
    if form == "single":
        text = rendered(lambda console, columns: print_answer(answer.answers[0], console, columns))
    elif form == "terminal":
        text = rendered(lambda console, columns: print_study_answer(answer, console, columns))
    else:
        text = markdown(answer)
    assert not CONTROL.search(text)
    assert "x1b" in text
    assert "u202e" in text


def test_json_and_csv_keep_every_character() -> None:
    document = json.loads(as_json(hostile()))
    assert document["title"] == HOSTILE
    (row,) = csv.DictReader(io.StringIO(as_csv(verdict_table(hostile())), newline=""))
    assert row["contender"] == f"17.8{HOSTILE}"


def test_the_table_of_verdicts_has_full_precision_and_empty_fields_for_missing_numbers() -> None:
    rows = list(csv.DictReader(io.StringIO(as_csv(verdict_table(whole())))))
    answers = whole().answers
    for row, one in zip(rows, answers, strict=True):
        ratio = one.analysis.results[0].ratios[one.analysis.metric]
        assert float(row["ratio"]) == ratio.value
        assert (row["load"], row["verdict"]) == ("c4", one.analysis.results[0].verdict.value)
    interrupted = study_answer([CASES["interrupted"]()])
    (row,) = csv.DictReader(io.StringIO(as_csv(verdict_table(interrupted))))
    assert row["low"] == row["high"] == ""


def test_the_table_of_trials_has_a_row_per_trial_with_the_message_of_failed_ones() -> None:
    answer = study_answer([CASES["invalid"]()])
    rows = rows_of(trial_table(answer))
    blocks = answer.answers[0].blocks
    assert len(rows) == sum(len(block.trials) + len(block.failures) for block in blocks)
    failed = [row for row in rows if row["status"] == "failed"]
    assert failed
    assert all(row["failed_words"] and row["tps"] is None for row in failed)


@pytest.mark.slow
def test_arrow_tables_have_the_same_values_with_types() -> None:
    rows = rows_of(verdict_table(whole()))
    table = arrow_table(verdict_table(whole()))
    assert table.column_names == list(rows[0])
    assert table["ratio"].to_pylist() == [row["ratio"] for row in rows]
    assert str(table["blocks"].type) == "int64"
    assert parquet_bytes(verdict_table(whole()))[:4] == b"PAR1"


@pytest.mark.slow
@pytest.mark.parametrize("made", [verdict_table, trial_table])
def test_types_of_columns_do_not_depend_on_the_measurements(made: Callable[[StudyAnswer], TidyTable]) -> None:
    cases = ("faster", "invalid", "interrupted", "too_few", "tail_latency", "operation", "steps")
    tables = [arrow_table(made(study_answer([CASES[name]()]))) for name in cases]
    types: dict[str, set[str]] = {}
    for table in tables:
        for field in table.schema:
            types.setdefault(field.name, set()).add(str(field.type))
    assert all(len(found) == 1 for found in types.values())
    assert set().union(*types.values()) == {"string", "int64", "double"}
    together = pa.concat_tables(tables, promote_options="default")
    assert together.num_rows == sum(table.num_rows for table in tables)


def test_a_verdict_lists_each_caveat_once_and_in_order() -> None:
    one = CASES["faster"]()
    stolen, few = (about(slug, one.comparison.baseline, share=0.1) for slug in ("host-stolen", "throttled"))
    answer = study_answer([replace(one, caveats=(stolen, replace(stolen, arm=1), few))])
    assert [row["caveats"] for row in rows_of(verdict_table(answer))] == ["host-stolen throttled"]
    assert StudyResults(answer).verdicts[0].caveats == ("host-stolen", "throttled")
    assert json.loads(as_json(answer))["verdicts"][0]["caveats"] == ["host-stolen", "throttled"]


def test_compared_workloads_are_shown_for_each_row_and_each_arm() -> None:
    one = CASES["faster"]()
    first, second = one.comparison.arms
    workload = PgbenchWorkload(scripts=(Script(name="other", text="SELECT 2;"),), clients=4)
    arms = (first, replace(second, workload=workload, dataset=Dataset(pgbench_scale=9)))
    placed = study_answer([replace(one, comparison=replace(one.comparison, arms=arms))])
    answer = replace(placed, answers=(replace(placed.answers[0], context=one.context),))
    assert [row["workload"] for row in rows_of(verdict_table(answer))] == ["other"]
    assert {(row["arm"], row["workload"]) for row in rows_of(trial_table(answer))} == {
        ("16.12", "select-only"),
        ("17.8", "other"),
    }
    found = json.loads(as_json(answer))
    assert found["verdicts"][0]["workload"] == "other"
    arms_found = found["contexts"][0]["arms"]
    assert [arm["workload"]["scripts"][0]["text"] for arm in arms_found] == [None, "SELECT 2;"]
    assert [arm["dataset"]["pgbench_scale"] for arm in arms_found] == [1, 9]
    assert [verdict.workload for verdict in StudyResults(answer).verdicts] == ["other"]


def test_rows_are_in_the_order_of_the_study() -> None:
    assert [row.verdict for row in verdict_rows(whole())] == [Verdict.FASTER, Verdict.SLOWER, Verdict.EQUIVALENT]
    assert all(math.isfinite(float(row.blocks)) for row in verdict_rows(whole()))


def test_a_grave_caveat_marks_its_row_in_every_table() -> None:
    grave = CASES["mixed_builds"]()
    answer = study_answer([CASES["equivalent"](), grave])
    assert [row.check for row in verdict_rows(answer)] == ["", "CHECK"]
    assert "CHECK" in terminal(answer)
    assert "CHECK" in markdown(answer)
    assert "CHECK" not in markdown(study_answer([CASES["equivalent"](), CASES["faster"]()]))


def test_a_kind_of_caveat_is_one_line_whatever_its_numbers() -> None:
    def disturbed(share: float) -> Answer:
        one = CASES["faster"]()
        return replace(one, caveats=(about("host-disturbed", one.comparison.baseline, share=share),))

    clean = replace(CASES["faster"](), caveats=())
    (line,) = shared_caveats(study_answer([disturbed(0.12), disturbed(0.3), clean]))
    assert line.startswith("while 16.12 was measured, user-mode code of other programs used 12 % of the CPU time")
    assert line.endswith("(host-disturbed) [workload=w1 load=c4; similar in 1 other context (of 3)]")
    (line,) = shared_caveats(study_answer([disturbed(0.12), disturbed(0.12), clean]))
    assert line.endswith("[workload=w1 load=c4, workload=w2 load=c4]")


def failed_on_both() -> StudyAnswer:
    """Return a study with failed trials of both arms in two contexts, and of the contender alone in a third."""

    arms = CASES["faster"]().comparison.arms

    def failed(arm: int, number: int) -> Caveat:
        return about("failed-trials", arms[arm], failed=number, blocks=3, phase=Phase.MEASURE, failure="no disk")

    found = [(failed(0, 1), failed(1, 2)), (failed(0, 1), failed(1, 3)), (failed(1, 2),)]
    return study_answer([replace(CASES["faster"](), caveats=caveats) for caveats in found])


def test_a_kind_of_caveat_is_one_line_per_arm() -> None:
    how = "the first failed during measurement: no disk (failed-trials)"
    similar = "[workload=w1 load=c4; similar in 2 other contexts (of 3)]"
    assert shared_caveats(failed_on_both()) == [
        f"failed trials of 16.12 that were dropped: 1 of 3; {how} [workload=w1 load=c4, workload=w2 load=c4]",
        f"failed trials of 17.8 that were dropped: 2 of 3; {how} {similar}",
    ]


def test_a_screen_has_one_line_per_kind_of_caveat() -> None:
    how = "the first failed during measurement: no disk (failed-trials)"
    where = "[workload=w1 load=c4; similar in 2 other contexts (of 3)]"
    assert joint_caveats(failed_on_both()) == [
        f"failed trials of 16.12 / 17.8 that were dropped: 1 / 2 of 3; {how} {where}"
    ]


def test_long_caveats_of_several_arms_are_not_joined() -> None:
    arms = CASES["faster"]().comparison.arms
    caveats = [about("plans-not-sampled", arm, failure=f"{arm.label} " + 40 * "x") for arm in arms]
    (line,) = joint_caveats(study_answer([replace(CASES["faster"](), caveats=tuple(caveats))]))
    assert "17.8 x" not in line
    assert line.endswith("(similar for 17.8) (plans-not-sampled)")


def test_caveats_in_different_words_are_not_joined() -> None:
    arms = CASES["faster"]().comparison.arms
    caveats = [about("not-steady", arm, is_faster=arm.index == 0, share=0.08) for arm in arms]
    (line,) = joint_caveats(study_answer([replace(CASES["faster"](), caveats=tuple(caveats))]))
    assert re.search("16.12 became 8 % faster .*; 17.8 became 8 % slower", line)


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_the_same_caveat_of_two_arms_is_shown_for_both(form: str) -> None:
    text = FORMS[form](failed_on_both())
    assert "failed trials of 16.12 that were dropped: 1 of 3" in text
    assert "failed trials of 17.8 that were dropped: 2 of 3" in text


def test_the_same_caveat_of_many_arms_names_each_arm() -> None:
    labels = [f"arm{number}" for number in range(50)]
    requested = comparison(labels)
    one = answer_of([], requested, caveats=[about("drift", arm, correlation=0.6) for arm in requested.contenders])
    lines = shared_caveats(study_answer([one]))
    assert len(lines) < 10
    assert all(any(re.search(rf"\b{label}\b", line) for line in lines) for label in labels[1:])


def test_the_method_is_described_once_for_all_contexts() -> None:
    lines = study_lines(whole())
    assert lines[0] == "PostgreSQL 16.12 (zonky, gcc 7.5.0), PostgreSQL 17.8 (zonky, gcc 7.5.0)"
    assert lines[1] == "pgbench 18.6"
    assert all(line in terminal(whole()) for line in lines)


def test_a_skipped_level_is_reported_with_its_reason() -> None:
    skipped = study_answer(
        [CASES["faster"]()], skipped=[Skipped(label="io_combine_limit=1 on 16.12", reason="no such setting")]
    )
    assert "io_combine_limit=1 on 16.12: no such setting" in not_measured(skipped)
    assert study_document(skipped)["left_out"][0]["reason"] == "no such setting"


def test_markdown_of_hundreds_of_verdicts_fits_into_a_pull_request() -> None:
    many = study_answer([CASES["faster"]()] * 300)
    text = markdown(many, with_published=True)
    assert len(text) < 65_536
    assert "100 of 300 verdicts are shown. See pgversus report --format csv for all of them." in text


def test_published_ratios_are_numbers_in_the_document() -> None:
    first = study_document(whole())["published"][0]
    assert first["published_ratio"] == pytest.approx(1.1)
    assert first["low"] < first["ratio"] < first["high"]
    assert (first["agreement"], first["different_conditions"], first["confounded"]) == ("agrees", [], None)
    second = study_document(whole())["published"][1]
    assert second["agreement"] == "cannot tell"
    assert second["different_conditions"] == [{"name": "clients", "measured": "4", "published": "1"}]
    assert second["confounded"] == "data of two sizes"


@pytest.mark.parametrize("form", ["terminal", "markdown"])
def test_a_different_condition_and_a_confounded_figure_are_named_next_to_the_ratio(form: str) -> None:
    text = FORMS[form](whole())
    assert "agrees" in text
    assert "cannot tell: clients 4 here, 1 published" in text
    assert "confounded: data of two sizes" in text


def test_every_column_of_markdown_has_a_header() -> None:
    text = markdown(study_answer([CASES["mixed_builds"](), CASES["faster"]()], published=FIGURES), with_published=True)
    assert "| context | contender | published | measured | 95 % CI | agreement |" in text
    heads = [line for line, below in pairwise(text.splitlines()) if below.startswith("| :--")]
    assert len(heads) > 2
    assert not [line for line in heads if "" in [cell.strip() for cell in line.strip("|").split("|")]]


def test_the_tps_of_each_level_is_listed_by_workload() -> None:
    found = tps_table(whole())
    assert found is not None
    assert found.workloads == ("w1", "w2", "w3")
    assert [(place, arm) for place, arm, *_ in found.rows] == [("load=c4", "16.12"), ("load=c4", "17.8")]
    for (_, _, *cells), arm in zip(found.rows, (0, 1), strict=True):
        for cell, one in zip(cells, whole().answers, strict=True):
            assert float(cell.replace(" ", "")) == pytest.approx(
                one.analysis.arm_values[arm][Metric.TPS].value, rel=1e-3
            )
    assert tps_table(study_answer([CASES["faster"]()])) is None


def test_repeated_rounds_are_counted_in_every_report() -> None:
    one = CASES["faster"]()
    blocks = tuple(block._replace(repeated_rounds=2) for block in one.blocks)
    answer = study_answer([replace(one, blocks=blocks), CASES["equivalent"]()])
    line = f"{2 * len(blocks)} rounds of windows measured again after a disturbance"
    assert line in study_lines(answer)
    assert line in terminal(answer)
    assert not any("measured again" in text for text in study_lines(whole()))


def mixed() -> StudyAnswer:
    """Return a study of a load, an operation, and an operation with two steps."""
    return study_answer([CASES[name]() for name in ("faster", "operation", "steps")])


def test_times_of_operations_are_shown_in_the_form_of_published_times() -> None:
    rows = time_rows(mixed())
    assert [row[:2] for row in rows[:2]] == [("workload=w2 load=c4", arm) for arm in ("15.10", "16.6")]
    assert [row[2:] for row in rows[:2]] == [
        ("6", "1.9 s", "1.9 s", "", ""),
        ("6", "750 ms", "748 ms", "-1.15 s", "0.395"),
    ]
    assert [row[1] for row in rows[2:]] == [
        *("15.10", "16.6"),
        *("15.10, VACUUM pgbench_accounts", "16.6, VACUUM pgbench_accounts"),
        *("15.10, pg_dump", "16.6, pg_dump"),
    ]
    assert rows[-2][2:5] == ("6", "400 ms", "399 ms")
    assert [row[0] for row in arm_value_rows(mixed())] == ["workload=w1 load=c4"] * 2
    assert tps_table(mixed()) is None
    for form in ("terminal", "markdown"):
        assert "-1.15 s" in FORMS[form](mixed())
        assert "transactions" in FORMS[form](mixed())
        assert "transactions" not in FORMS[form](study_answer([CASES["operation"]()], unanswered=whole().unanswered))


def decided_early() -> StudyAnswer:
    """Return a study in which a faster arm (by a fifth) got no more blocks, and later the host took half the time."""
    operation = vacuum()
    blocks = [operation_block(number, operation, (2.0,), (1.6,), (2.0,)) for number in range(1, 5)]
    later = [operation_block(number, operation, (1.0,), (1.0,), (1.0,)) for number in range(5, 13)]
    kept = [block._replace(trials={arm: block.trials[arm] for arm in (0, 2)}) for block in later]
    requested = comparison(("15.10", "17", "16.6"), judged_by(Metric.TIME), operation)
    return study_answer([answer_of([*blocks, *kept], requested)])


def test_values_next_to_a_change_use_the_blocks_of_that_change() -> None:
    found = decided_early()
    row = verdict_rows(found)[0]
    assert (row.baseline_text, row.contender_text, row.change) == ("2 s", "1.6 s", "-20.0 %")
    values = rows_of(verdict_table(found))[0]
    assert (values["baseline_value"], values["contender_value"]) == (pytest.approx(2.0), pytest.approx(1.6))
    early = time_rows(found)[1]
    assert early[2:] == ("4", "1.6 s", "1.6 s", "-400 ms", "0.8")


def test_only_values_of_arms_with_fewer_blocks_are_explained() -> None:
    words = "means use all blocks of an arm; differences and ratios use only the blocks that include both"
    for form in ("terminal", "markdown"):
        # Regardless of line breaks.
        assert (words in " ".join(FORMS[form](decided_early()).split()), words in FORMS[form](mixed())) == (True, False)
    (alone,) = decided_early().answers
    file = io.StringIO()
    print_answer(alone, Console(file=file, width=WIDEST))
    assert "values use all blocks of an arm; changes use only the blocks that include both" in file.getvalue()


def test_steps_have_their_own_columns_after_the_metrics() -> None:
    table = trial_table(mixed())
    at = table.columns.index("time_s") + 1
    assert table.columns[at : at + 3] == ("step: VACUUM pgbench_accounts", "step: pg_dump", "failed_phase")
    found = rows_of(table)
    assert [found[0][name] for name in table.columns[at - 1 : at + 2]] == [None, None, None]
    assert found[-1]["step: pg_dump"] == pytest.approx(0.4, rel=0.01)
    assert found[-1]["time_s"] == pytest.approx(1.15, rel=0.01)
    assert found[-1]["tps"] is None
    assert not any(name.startswith("step") for name in trial_table(whole()).columns)


def test_a_study_of_operations_only_names_no_client() -> None:
    one = CASES["operation"]()
    lines = study_lines(study_answer([one]))
    assert not any("pgbench" in line for line in lines)
    assert any(line.startswith("blocks of one operation on a fresh copy per arm") for line in lines)
    again = replace(one, blocks=tuple(block._replace(repeated_rounds=1) for block in one.blocks))
    assert "6 rounds measured again after a disturbance" in study_lines(study_answer([again]))
