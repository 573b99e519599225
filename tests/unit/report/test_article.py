"""The article about a study: its tables, commands and settings, with user text escaped."""

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.preparation import RUNNING_SERVER, Difference
from pgversus.report.article.figures import Form, cases
from pgversus.report.article.page import article
from pgversus.report.markdown import fenced, folded
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from pgversus.study.settings import Setting
from pgversus.study.study import Invocation, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.text.translation import Language, use_language
from tests.builders import answer, comparison, judged_by, latency_block, rate_block, study_answer
from tests.unit.report.cases import CASES, noisy, steady
from tests.unit.report.richest import whole_studies
from tests.unit.report.test_languages import MARK_UP, NAMES, UNITS, Bracketed, slugs, untranslated

LOAD = PgbenchWorkload(scripts=(Script(name="/x/q.sql", text="SELECT 1;\n"),), clients=4)
FENCE = re.compile(r"^(`{3,})\w*\n.*?^\1$", re.MULTILINE | re.DOTALL)
FIGURES = "workload,clients,scale,level,tps\nq,4,1,16.12,100\nq,4,1,17.8,110\n"
TIMES = "dead,scale,level,time_s\n70,10,15.10,2\n70,10,16.6,1\n"


def written(study: StudyAnswer, text: str | None = "CREATE TABLE t ();") -> str:
    return article(study, lambda _file: text)


def single(one: Answer, **changed: Any) -> StudyAnswer:
    """Return a study of one context without a name."""
    study = study_answer([one])
    return replace(study, answers=(one,), study=replace(study.study, **changed))


def placed(*rows: tuple[Answer, Sequence[tuple[str, str]]]) -> StudyAnswer:
    """Return a study whose contexts have these levels."""
    answers = [
        replace(one, context=replace(one.context, number=number, levels=tuple(levels)))
        for number, (one, levels) in enumerate(rows, 1)
    ]
    return replace(study_answer(answers), answers=tuple(answers))


def cells(text: str, first: str) -> list[list[str]]:
    """Return the rows of all tables that start with this cell."""
    rows = [line.strip("|").split("|") for line in text.splitlines() if line.startswith("| ")]
    return [[cell.strip() for cell in row] for row in rows if row[0].strip() == first]


def heads(text: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", FENCE.sub("", text), re.MULTILINE)


def amounts(*levels: str) -> Answer:
    """Return a comparison of a setting whose levels are amounts."""
    blocks = [rate_block(n, *(1000.0 + 10 * k + n for k in range(len(levels)))) for n in range(1, 7)]
    one = answer(blocks, comparison([f"shared_buffers={level}" for level in levels], workload=LOAD))
    arms = tuple(
        replace(arm, settings=(Setting(name="shared_buffers", value=level),), server=one.comparison.baseline.server)
        for arm, level in zip(one.comparison.arms, levels, strict=True)
    )
    requested = replace(one.comparison, arms=arms, factors=("shared_buffers",))
    return replace(one, comparison=requested, context=replace(one.context, comparison=requested))


def test_two_arms_under_one_load_show_tps_latency_ratio_interval_verdict_and_published_values() -> None:
    text = written(single(answer(steady(1.1), comparison(workload=LOAD)), published=FIGURES))
    assert "| server | tps | mean latency | ratio of tps | 95 % CI | verdict | published | published ratio |" in text
    (baseline, _), (contender, distribution) = cells(text, "16.12")[1:3], cells(text, "17.8")[1:3]
    assert baseline[1:] == ["1 000", "1 ms", "", "", "baseline", "100", "", ""]
    assert contender[1:] == ["1 100", "909 µs", "1.1", "\\[1.09, 1.11\\]", "faster", "110", "1.1", "agrees"]
    assert len(distribution) == 6


def test_several_arms_or_loads_show_counts_and_latencies_of_each() -> None:
    one = answer(
        [rate_block(n, 100.0 + n, 110.0 - n, 120.0, transactions=500) for n in range(1, 7)],
        comparison(("15", "16", "17"), workload=LOAD),
    )
    study = placed((one, [("load", "c1")]), (one, [("load", "c24")]))
    (case,) = cases(study)
    assert (case.form, case.factors) == (Form.LOADS, ("load",))
    text = written(study)
    assert "| load | server | transactions | tps | min | max | p95 | p99 |" in text
    assert "| load | server | tps | ratio of tps | 95 % CI | verdict |" in text
    assert [row[1] for row in cells(text, "c24")][:3] == ["15", "16", "17"]


def test_levels_that_are_amounts_are_rows_and_other_factors_are_columns() -> None:
    one = amounts("1GB", "128MB", "4GB")
    study = placed(
        (one, [("workload", "w"), ("load", "c1")]),
        (one, [("workload", "w"), ("load", "c4")]),
    )
    (case,) = cases(study)
    assert case.form is Form.AMOUNTS
    text = written(study)
    assert "| shared\\_buffers | tps, load=c1 | tps, load=c4 |" in text
    table = [row[0] for line in ("128MB", "1GB", "4GB") for row in cells(text, line)]
    assert table == ["128MB", "1GB", "4GB"]
    assert "| load | level | tps | ratio of tps | 95 % CI | verdict |" in text
    assert "## Summary" not in text


def test_operations_show_mean_minimum_difference_and_ratio_in_percent() -> None:
    text = written(single(CASES["operation"](), published=TIMES))
    assert "Mean, 16.6 vs 15.10:" in text
    (head,) = re.findall(r"^\| trials \| 15.10, ms .*agreement \|$", text, re.MULTILINE)
    assert head.count("|") == 10
    mean, minimum = cells(text, "6")
    assert mean[1:4] == ["1900.3", "750.1", "-1 150"] or float(mean[1]) > float(mean[2])
    assert mean[4].endswith(" %")
    assert mean[6:] == ["faster", "50 % (2 s / 1 s)", "disagrees"]
    assert minimum[4].endswith(" %")
    assert "VACUUM pgbench_accounts;" in text
    assert "psql -v dead=70 -f dirty.sql" in text


def test_ratios_of_different_metrics_are_in_different_tables() -> None:
    load, operation = answer(steady(1.1), comparison(workload=LOAD)), CASES["operation"]()
    text = written(placed((load, [("workload", "q")]), (operation, [("workload", "vacuum")])))
    summary = text.partition("## Summary")[2].partition("\n## ")[0]
    tables = re.findall(r"^\| case .*\| ratio of (\S+) \|.*\n.*\n((?:\|.*\n)*)", summary, re.MULTILINE)
    assert [(metric, rows.count("\n")) for metric, rows in tables] == [("tps", 1), ("time", 1)]
    assert ["vacuum" in rows for _, rows in tables] == [False, True]
    judged = comparison(design=judged_by(Metric.LATENCY_P95), workload=LOAD)
    latencies = answer([latency_block(n, [900 + n] * 200, [990 + n] * 200) for n in range(1, 7)], judged)
    text = written(placed((load, [("load", "c1")]), (latencies, [("load", "c4")])))
    found = re.findall(r"^\| load \| server \| tps \| ratio of ([^|]+) \|.*\n.*\n((?:\|.*\n)*)", text, re.MULTILINE)
    assert [(metric, "c4" in rows, "c1" in rows) for metric, rows in found] == [
        ("tps", False, True),
        ("p95 latency", True, False),
    ]


def test_external_servers_are_not_described_as_restarted() -> None:
    one = answer(steady(1.1), comparison(workload=LOAD))
    text = written(single(one))
    assert "every server is restarted" in text
    assert "after a server restart" in text
    arms = (one.arms[0], replace(one.arms[1], origin=RUNNING_SERVER))
    text = written(single(replace(one, arms=arms)))
    assert "never restarted" in text
    assert "after a warm-up of" in text
    assert not re.search("is restarted|server restart|restarted for each", text)


def test_a_short_warm_up_is_not_rounded_to_nothing() -> None:
    short, usual = (
        answer(steady(1.1), comparison(design=Design(seed=7, warm_up_s=warm_up_s), workload=LOAD))
        for warm_up_s in (0.1, 2.0)
    )
    assert "a warm-up of 100 ms." in written(single(short))
    assert "a warm-up of 100 ms to 2 s." in written(placed((usual, [("load", "c1")]), (short, [("load", "c4")])))


def test_differences_are_listed_under_their_arms() -> None:
    differences = (Difference(kind="setting", name="jit", values=("on", "off"), is_default=True),)
    one = replace(answer(steady(1.1), comparison(("15", "16"), workload=LOAD)), differences=differences)
    other = replace(answer(steady(1.1), comparison(("17", "18"), workload=LOAD)), differences=differences)
    text = written(placed((one, [("load", "c1")]), (other, [("load", "c4")])))
    assert "| setting | 15 | 16 |" in text
    assert "| setting | 17 | 18 |" in text


def test_steps_have_their_own_rows() -> None:
    text = written(single(CASES["steps"]()))
    assert [row[0] for row in cells(text, "pg\\_dump")] == ["pg\\_dump"] * 2
    assert cells(text, "all steps")


def test_an_undecided_result_is_stated() -> None:
    text = written(single(answer(noisy(0.05, 8), comparison(workload=LOAD))))
    assert cells(text, "17.8")[1][5] == "undecided"


def test_a_doubtful_number_is_marked_check() -> None:
    assert "faster, CHECK" in written(single(CASES["mixed_builds"]()))


def test_scripts_commands_settings_and_data_are_included_verbatim() -> None:
    inline = SetupFile(path="inline", sha256="2", text="CREATE TABLE here ();")
    data = Dataset(pgbench_scale=5, setup_files=(SetupFile(path="/x/a.sql", sha256="1"), inline), full_statistics=True)
    one = answer(
        steady(1.1),
        comparison(workload=replace(LOAD, rate=50.0), dataset=data),
        differences=[
            Difference(kind="setting", name="jit", values=("off", "on"), is_default=True),
            Difference(kind="index", name="t_idx", values=("", "there"), is_default=False),
        ],
    )
    arms = tuple(
        replace(arm, settings=(Setting(name="search_path", value="it's"), Setting(name="x.y", value=str(arm.index))))
        for arm in one.comparison.arms
    )
    text = written(single(replace(one, comparison=replace(one.comparison, arms=arms))))
    for expected in (
        "```sql\nSELECT 1;\n```",
        "pgbench -n -T 1 -c 4 -j 1 -M simple -f /x/q.sql -R 50",
        "search_path = 'it''s'",
        "| 16.12 | x.y=0 |",
        "| 17.8 | x.y=1 |",
        "pgbench -i -s 5\npsql -f a.sql\npsql -f inline\npsql -c 'VACUUM ANALYZE'",
        "```sql\nCREATE TABLE t ();\n```",
        "```sql\nCREATE TABLE here ();\n```",
        "ANALYZE reads every row",
        "| jit | off | on |",
        "| t\\_idx | - | there |",
    ):
        assert expected in text, expected
    assert "Insert its text here" in written(single(one), text=None)


def test_command_and_study_file_show_how_to_reproduce_a_study() -> None:
    invocation = Invocation(
        program="pgversus 0.1.0", command="pgversus run s.toml", file_name="s.toml", file_text='title = "t"\n'
    )
    text = written(replace(single(CASES["faster"]()), invocation=invocation))
    assert "```sh\npgversus run s.toml\n```" in text
    assert '```toml\ntitle = "t"\n```' in text
    assert "Seed 7; pgversus 0.1.0." in text
    assert "do not include the command" in written(single(CASES["faster"]()))


def test_the_title_of_a_comparison_names_its_arms_and_its_workload() -> None:
    found = single(CASES["faster"](), title="", question="", kind=StudyKind.COMPARISON)
    assert written(found).startswith("# 17.8 vs 16.12: select-only\n")


@pytest.mark.parametrize("ticks", ["`", "```", "````` x"])
def test_a_fence_is_not_ended_by_its_content(ticks: str) -> None:
    text = f"SELECT 1;\n{ticks}\nDROP"
    block = fenced(text, "sql")
    fence = block.partition("sql")[0]
    assert set(fence) == {"`"}
    assert fence not in text
    assert block == f"{fence}sql\n{text}\n{fence}"


def test_user_text_does_not_become_markup() -> None:
    evil = "<script>x</script> | ``` \x1b[31m"
    load = replace(LOAD, scripts=(Script(name=evil, text=f"SELECT 1;\n```\n{evil}"),))
    study = single(answer(steady(1.1), comparison(("16.12", evil), workload=load)), title=evil, question=evil)
    text = written(study, text=f"```\n{evil}")
    assert "\x1b" not in text
    assert not re.search(r"(?<!\\)<script", FENCE.sub("", text))
    assert folded("<b>a</b>\nb", "c").startswith("<details><summary>&lt;b&gt;a&lt;/b&gt; b</summary>\n\n")


def test_a_summary_line_mentions_nobody_on_github() -> None:
    line = folded("SELECT '@octocat', '#12', GH-3, ':tada:', a & b", "")
    for name in ("@octocat", "#12", "GH-3", ":tada:"):
        assert name not in line
    assert line.replace("&#8203;", "").startswith(
        "<details><summary>SELECT '@octocat', '#12', GH-3, ':tada:', a &amp; b</summary>"
    )


@pytest.mark.slow
def test_sections_are_in_reading_order_for_every_kind_of_study() -> None:
    order = ["Environment", "Settings", "Data", "Cases", "Summary", "Plans", "Caveats"]
    order += ["How it was measured", "How to reproduce it"]
    for study in whole_studies():
        found = [head for head in heads(written(study)) if head in order]
        assert found == [head for head in order if head in found]
        assert "How to reproduce it" in found


@pytest.mark.slow
def test_plans_are_described_and_each_can_be_unfolded_once() -> None:
    study = next(study for study in whole_studies() if any(one.plans() for one in study.answers))
    text = written(study)
    assert "## Plans" in text
    assert "<details><summary>EXPLAIN ANALYZE on 16.12</summary>\n\n```\n" in text


def test_commands_can_be_copied_if_the_folder_has_a_space() -> None:
    text = written(replace(single(answer(steady(1.1))), results="my results"))
    assert "pgversus report 'my results' --format csv\npgversus report 'my results' --json" in text


@pytest.mark.slow
def test_everything_but_code_is_translated() -> None:
    allowed = NAMES | UNITS | MARK_UP | slugs() | {"server", "work_mem", "cpu", "x", "VERBOSE", "sha256"}
    with use_language(Language.JAPANESE, Bracketed()):
        for study in whole_studies():
            text = FENCE.sub("", written(study))
            assert untranslated(text, allowed) == set()
