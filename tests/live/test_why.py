"""Attribution: plans of measured statements are captured and stored, and the effect of changed plans is measured."""

import json
import signal
import sqlite3
from typing import Any

import pytest

from pgversus.lab.studies import library
from tests.live.conftest import QUICK, WEATHER, CommandLine, with_fewer_rows

OLD, NEW = "16.12", "17.8"
PLANNER = library() / "planner-16-vs-17"
FEW = ("--blocks", "3", "--window", "50ms", "--windows", "4")
"""Few blocks that still detect a factor of four on a host that runs other tests."""
REORDERING = "enable_group_by_reordering = off"


def plans_in(line: CommandLine, results: str) -> list[tuple[int, str, str | None]]:
    """Return arm, statement and EXPLAIN JSON of every stored plan."""
    with sqlite3.connect(line.directory / results / "results.sqlite") as database:
        found = database.execute("SELECT arm, text, run FROM plan ORDER BY context, arm, statement").fetchall()
    database.close()
    return [(arm, text, run) for arm, text, run in found]


def verdict(document: dict[str, Any]) -> dict[str, Any]:
    (one,) = document["verdicts"]
    found: dict[str, Any] = one
    return found


def caveats(document: dict[str, Any]) -> set[str]:
    return {caveat["slug"] for caveat in document["caveats"]} - WEATHER


def test_the_effect_of_a_changed_plan_is_measured_with_the_setting_that_undoes_it(
    command_line: CommandLine,
) -> None:
    """17 reads an index instead of sorting, unless reordering is disabled."""
    case = ("--setup", str(PLANNER / "group_by.sql"), "-f", str(PLANNER / "group_by_order.sql"))
    settings = ("--set", "enable_hashagg=off", "--set", "max_parallel_workers_per_gather=0")
    ended = command_line.run("compare", OLD, NEW, *case, *settings, *FEW, "--results", "r", "--json")
    assert ended.code == 0, ended.stderr
    assert command_line.leftovers() == []
    one = verdict(ended.comparison)
    assert one["verdict"] == "faster"
    (compared,) = ended.comparison["plans"]["comparisons"]
    assert compared["undone_by"]["settings"] == {"enable_group_by_reordering": "off"}
    found = one["attribution"]
    assert (found["plans_recalled_by"], found["blocks"], found["not_measured"]) == (REORDERING, 3, None)
    assert found["plans_s"]["value"] > abs(found["rest_s"]["value"])
    assert found["share_of_plans"] is None or found["share_of_plans"]["value"] > 0.5
    # A later report equals the one at the end of the run, and the measurement itself can be reported.
    again = command_line.run("report", "r", "--format", "json")
    assert again.document["contexts"][0]["verdicts"][0]["attribution"] == found
    beneath = command_line.run("report", "r/attributions/context-1-arm-1")
    assert beneath.code == 0
    assert f"{NEW} with the plans of {OLD}" in beneath.stdout
    reported = command_line.run("report", "r", "--verbose")
    assert f"With {REORDERING}, {NEW} uses the plans of {OLD}" in " ".join(reported.stdout.split())
    # Verbatim as the server wrote it, under the settings of the load.
    (_, _, run), *_ = plans_in(command_line, "r")
    assert run is not None
    assert json.loads(run)[0]["Settings"]["enable_hashagg"] == "off"


STUDY = """
title = "One query"
[factors]
server = ["{old}", "{new}"]
[dataset]
setup = ["data.sql"]
[workload]
script = "{query}"
rewrite = "rewrite.sql"
[design]
blocks = 3
window = "50ms"
windows = 4
"""


def write_study(line: CommandLine) -> None:
    line.write("data.sql", with_fewer_rows(PLANNER / "correlated.sql"))
    line.write("study.toml", STUDY.format(old=OLD, new=NEW, query=PLANNER / "correlated_in.sql"))


@pytest.mark.long
def test_a_rewrite_restores_a_plan_that_no_setting_restores(command_line: CommandLine) -> None:
    command_line.write("rewrite.sql", (PLANNER / "correlated_in_or_false.sql").read_text())
    write_study(command_line)
    ended = command_line.run("run", "study.toml", "--trust", "--results", "r", "--json")
    assert ended.code == 0, ended.stderr
    assert command_line.leftovers() == []
    (one,) = ended.document["verdicts"]
    assert one["verdict"] == "faster"
    found = one["attribution"]
    assert (found["plans_recalled_by"], found["not_measured"]) == ("rewrite.sql", None)
    assert found["plans_s"]["value"] > abs(found["rest_s"]["value"])
    # Nothing is left to do: the same command only reports.
    again = command_line.run("run", "study.toml", "--trust", "--results", "r", "--json")
    assert again.document["verdicts"] == ended.document["verdicts"]


SKEWED = """
CREATE TABLE skewed AS SELECT CASE WHEN n <= 20 THEN n ELSE 1000 END AS k, n FROM generate_series(1, 20000) n;
CREATE INDEX ON skewed (k);
"""


@pytest.mark.long
def test_a_prepared_load_is_explained_as_prepared(command_line: CommandLine) -> None:
    quick = ("-S", "-i", "-s", "1", *QUICK, "--json")
    prepared = command_line.run("compare", NEW, NEW, *quick, "-M", "prepared", "--results", "p")
    simple = command_line.run("compare", NEW, NEW, *quick, "--results", "s")
    assert (prepared.code, simple.code) == (0, 0), prepared.stderr
    for name, is_generic in (("p", True), ("s", False)):
        for _, text, run in plans_in(command_line, name):
            assert "$1" not in text
            assert run is not None
            assert ("aid = $1)" in run) is is_generic
    assert prepared.comparison["plans"]["comparisons"][0]["same_plan"] is True


@pytest.mark.parametrize(("keys", "is_other"), [("random(1, 20)", False), ("random(0, 1) * 999 + 1", True)])
def test_plans_under_load_are_compared_with_the_captured_ones(
    command_line: CommandLine, keys: str, *, is_other: bool
) -> None:
    """A rare key has a different plan from a key that nearly every row has."""
    command_line.write("skewed.sql", SKEWED)
    command_line.write("q.sql", f"\\set k {keys}\nSELECT count(n) FROM skewed WHERE k = :k;\n")
    arguments = ("--setup", "skewed.sql", "-f", "q.sql", *QUICK, "--sample-plans", "--json", "--results", "r")
    ended = command_line.run("compare", NEW, NEW, *arguments)
    assert ended.code == 0, ended.stderr
    assert ("other-plans-under-load" in caveats(ended.comparison)) is is_other
    with sqlite3.connect(command_line.directory / "r" / "results.sqlite") as database:
        reported = [json.loads(text) for (text,) in database.execute("SELECT sampled FROM explained_arm")]
    database.close()
    assert len(reported) == 2
    for one in reported:
        assert one["told"] > 10
        assert (one["others"] > 0) is is_other
        assert one["failure"] == ""


@pytest.mark.long
def test_queries_of_pgbench_itself_are_not_plans_of_the_load(command_line: CommandLine) -> None:
    arguments = ("-i", "-s", "1", "-b", "tpcb-like", *QUICK, "--sample-plans", "--json", "--results", "r")
    ended = command_line.run("compare", NEW, NEW, *arguments)
    assert ended.code == 0, ended.stderr
    assert not {"other-plans-under-load", "plans-not-sampled"} & caveats(ended.comparison)


def test_different_rows_are_reported_before_any_speed(command_line: CommandLine) -> None:
    command_line.write("q.sql", "SELECT current_setting('work_mem');")
    ended = command_line.run("compare", NEW, "--set", "work_mem=4MB,8MB", "-f", "q.sql", *QUICK, "--check-rows")
    assert ended.code == 0, ended.stderr
    assert ended.stdout.startswith("the rows of work_mem=8MB differ from those of work_mem=4MB")
    assert "CHECK the caveats below." in ended.stdout


def test_a_script_that_cannot_be_rolled_back_is_measured_without_plans(command_line: CommandLine) -> None:
    command_line.write("q.sql", "VACUUM pgbench_branches;")
    ended = command_line.run("compare", NEW, NEW, "-i", "-s", "1", "-f", "q.sql", *QUICK, "--json", "--results", "r")
    assert ended.code == 0, ended.stderr
    assert "plans-not-captured" in caveats(ended.comparison)
    assert ended.comparison["plans"] is None
    assert plans_in(command_line, "r") == []


def test_plans_under_settings_other_than_those_of_the_load_are_not_shown(command_line: CommandLine) -> None:
    command_line.write("q.sql", "ALTER ROLE postgres SET enable_seqscan = off;\nSELECT count(*) FROM pgbench_branches;")
    ended = command_line.run("compare", NEW, NEW, "-i", "-s", "1", "-f", "q.sql", *QUICK, "--json", "--results", "r")
    assert ended.code == 0, ended.stderr
    (words,) = [one["text"] for one in ended.comparison["caveats"] if one["slug"] == "plans-not-captured"]
    assert "settings of new sessions: enable_seqscan" in words
    assert ended.comparison["plans"] is None


def test_without_plans_nothing_is_captured(command_line: CommandLine) -> None:
    arguments = ("-i", "-s", "1", "-S", *QUICK, "--no-plans", "--json", "--results", "r")
    ended = command_line.run("compare", NEW, NEW, *arguments)
    assert ended.code == 0, ended.stderr
    assert (ended.comparison["plans"], verdict(ended.comparison)["attribution"]) == (None, None)
    assert plans_in(command_line, "r") == []


@pytest.mark.long
def test_an_interrupted_attribution_is_resumed(command_line: CommandLine) -> None:
    """The verdict does not depend on the attribution, and the same command resumes it."""
    write_study(command_line)
    command_line.write("rewrite.sql", (PLANNER / "correlated_in_or_false.sql").read_text())
    process = command_line.start("run", "study.toml", "--trust", "--results", "r", "--json")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("measuring the effect of the plans"):
            break
    for line in process.stderr:
        if line.startswith("block 1"):
            break
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 0, stderr
    (one,) = json.loads(stdout)["verdicts"]
    assert one["verdict"] == "faster"
    assert "interrupted" in one["attribution"]["not_measured"]
    assert command_line.leftovers() == []
    again = command_line.run("run", "study.toml", "--trust", "--results", "r", "--json")
    (one,) = again.document["verdicts"]
    assert (one["attribution"]["blocks"], one["attribution"]["not_measured"]) == (3, None)
    with sqlite3.connect(command_line.directory / "r/attributions/context-1-arm-1/results.sqlite") as database:
        blocks = [number for (number,) in database.execute("SELECT block FROM block ORDER BY block")]
    database.close()
    assert blocks == [1, 2, 3]
