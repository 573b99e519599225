"""Studies on real servers: many contexts, failures that do not stop other contexts, and resuming after any end."""

import signal
import sqlite3
import tomllib
from pathlib import Path
from typing import Any

import pytest

import pgversus
from tests.live.conftest import CommandLine, results_database, somebodys_server

LIBRARY = Path(pgversus.__file__).parent / "library"
STUDY = """
title = "Two statements"

[factors]
server = ["17.8", "17.8"]

[workloads.one]
builtin = "select-only"

[workloads.other]
sql = "SELECT count(*) FROM pgbench_branches;"

[dataset]
scale = 1

[design]
blocks = 3
windows = 4
window = "50ms"
"""
BROKEN = """
[workloads.broken]
sql = "SELECT * FROM nowhere;"
"""


def trials(results: Path) -> list[tuple[Any, ...]]:
    database = sqlite3.connect(results / "results.sqlite")
    try:
        return database.execute("SELECT context, block, arm, status FROM trial ORDER BY 1, 2, 3").fetchall()
    finally:
        database.close()


@pytest.mark.long
def test_every_context_has_a_verdict_and_a_broken_one_does_not_stop_the_others(command_line: CommandLine) -> None:
    command_line.write("s.toml", STUDY + BROKEN)
    ended = command_line.run("run", "s.toml", "--json")
    assert ended.code == 4, ended.stderr
    found = ended.document
    assert found["schema"] == "pgversus.study/1"
    assert [verdict["context"] for verdict in found["verdicts"]] == ["workload=one", "workload=other"]
    assert found["verdicts_sharing_the_error"] == 3
    (lost,) = found["not_measured"]
    assert (lost["context"], lost["failed"]) == ("workload=broken", True)
    assert 'relation "nowhere" does not exist' in lost["words"]
    assert "removed" not in ended.stderr
    # The contexts share servers, and each has the plans of its own statements.
    read = [
        {one["statement"].split(" FROM ")[1].split()[0] for one in context["plans"]["comparisons"]}
        for context in found["contexts"]
    ]
    assert read == [{"pgbench_accounts"}, {"pgbench_branches"}]


@pytest.mark.long
def test_a_hanging_pilot_does_not_stop_other_contexts_and_is_retried(command_line: CommandLine) -> None:
    hanging = '[workloads.hanging]\nsql = "SELECT pg_sleep(600);"\n\n[workloads.one]'
    study = STUDY.replace("blocks = 3", 'budget = "8s"').replace("[workloads.one]", hanging)
    command_line.write("s.toml", study)
    ended = command_line.run("run", "s.toml", "--json")
    assert ended.code == 4, ended.stderr
    (lost,) = (one for one in ended.document["not_measured"] if one["failed"])
    assert lost["context"] == "workload=hanging"
    assert "did not finish within" in lost["words"]
    assert ended.document["verdicts"] != []
    database = sqlite3.connect(command_line.directory / "pgversus-results" / "s" / "results.sqlite")
    assert database.execute("SELECT count(*) FROM preparation WHERE status = 'failed'").fetchone() == (0,)
    database.close()


@pytest.mark.own_snapshots
def test_data_that_cannot_be_loaded_is_tried_once_and_does_not_stop_other_contexts(command_line: CommandLine) -> None:
    study = STUDY.replace("blocks = 3", "blocks = 2").replace(
        "[dataset]\nscale = 1", '[datasets.bad]\nsql = "SELECT 1 / 0;"\n\n[datasets.good]\nscale = 1'
    )
    study = study.replace('builtin = "select-only"', 'builtin = "select-only"\ndataset = "good"')
    study = study.replace("[workloads.other]", '[workloads.other]\ndataset = "bad"')
    more = '\n[workloads.third]\nsql = "SELECT 1;"\ndataset = "bad"\n'
    command_line.write("s.toml", study + more)
    ended = command_line.run("run", "s.toml", "--json")
    assert ended.code == 4, ended.stderr
    assert [verdict["context"] for verdict in ended.document["verdicts"]] == ["workload=one"]
    assert [one["words"].count("division by zero") for one in ended.document["not_measured"]] == [1, 1]
    assert ended.stderr.count("loading the data of 17.8") == 2


@pytest.mark.long
def test_a_killed_study_ends_like_an_undisturbed_one_and_then_measures_nothing_again(
    command_line: CommandLine,
) -> None:
    command_line.write("s.toml", STUDY)
    results = command_line.directory / "pgversus-results" / "s"
    process = command_line.start("run", "s.toml", "--seed", "5")
    command_line.wait_for(lambda: (results / "results.sqlite").exists() and trials(results))
    process.send_signal(signal.SIGKILL)
    process.communicate()
    command_line.wait_for(lambda: not command_line.leftovers())
    assert 0 < len(trials(results)) < 12
    ended = command_line.run("run", "s.toml", "--seed", "5", "--json")
    assert ended.code == 0, ended.stderr
    expected = [(context, block, arm, "finished") for context in (1, 2) for block in range(1, 4) for arm in (0, 1)]
    assert trials(results) == expected
    again = command_line.run("run", "s.toml", "--seed", "5", "--json")
    assert again.code == 0, again.stderr
    assert again.document["verdicts"] == ended.document["verdicts"]
    for form in ("terminal", "markdown", "csv", "trials-csv", "json"):
        shown = command_line.run("report", str(results), "--format", form)
        assert (shown.code, shown.stderr) == (0, "")
        assert "one" in shown.stdout
    command_line.write("s.toml", STUDY.replace("blocks = 3", "blocks = 4"))
    refused = command_line.run("run", "s.toml", "--seed", "5")
    assert refused.code == 5
    assert "blocks: 3, now 4" in refused.stderr
    assert trials(results) == expected


@pytest.mark.long
@pytest.mark.own_snapshots
def test_levels_of_a_setting_share_their_data_and_contexts_share_server_starts(command_line: CommandLine) -> None:
    command_line.write(
        "s.toml",
        'compare = "work_mem"\n'
        + STUDY.replace('server = ["17.8", "17.8"]', 'server = ["17.8"]\nwork_mem = ["4MB", "64MB"]'),
    )
    ended = command_line.run("run", "s.toml", "--json")
    assert ended.code == 0, ended.stderr
    assert ended.stderr.count("loading ") == 1
    assert {verdict["contender"] for verdict in ended.document["verdicts"]} == {"work_mem=64MB"}
    log = command_line.directory / "pgversus-results" / "s" / "arm-1.log"
    # One start for the first loads of both contexts, and one for each of their three blocks.
    assert log.read_text().count("ready to accept connections") == 4


@pytest.mark.long
@pytest.mark.parametrize("cache", ["warm", "cold"])
def test_buffers_read_in_a_window_depend_on_the_cache(command_line: CommandLine, cache: str) -> None:
    study = STUDY.replace("pgbench_branches", "pgbench_accounts").replace("blocks = 3", "blocks = 2")
    if cache == "cold":
        study = study.replace('"50ms"', '"1s"').replace("windows = 4", "windows = 2")
    command_line.write("s.toml", f'cache = "{cache}"\n' + study)
    ended = command_line.run("run", "s.toml", "--json")
    assert ended.code == 0, ended.stderr
    database = results_database(command_line.directory / "pgversus-results" / "s")
    read = database.execute("SELECT min(value) FROM counter WHERE name = 'buffers_read' AND context = 2").fetchone()[0]
    levels = dict(
        database.execute(
            "SELECT name, count(*) FROM counter WHERE value > 1e6 "
            "AND name IN ('server_memory_peak_bytes', 'data_bytes') GROUP BY name"
        )
    )
    database.close()
    # Two contexts, two blocks, two arms.
    assert levels == {"server_memory_peak_bytes": 8, "data_bytes": 8}
    # The scanned index has 276 pages at scale 1; two windows start without any of them.
    assert (read > 2 * 276) == (cache == "cold")


def test_a_dry_run_creates_no_files(command_line: CommandLine) -> None:
    ended = command_line.run("run", "planner-16-vs-17", "--dry-run")
    assert ended.code == 0, ended.stderr
    assert "4 comparisons, 12 treatments, 8 verdicts" in ended.stdout
    assert list(command_line.directory.iterdir()) == []


def test_a_copy_of_a_bundled_study_runs_from_its_own_folder(command_line: CommandLine) -> None:
    assert command_line.run("studies", "copy", "planner-16-vs-17", "mine").code == 0
    assert command_line.run("run", "mine", "--dry-run").code == 0
    refused = command_line.run("studies", "copy", "planner-16-vs-17", "mine")
    assert refused.code == 3
    assert "already exists" in refused.stderr


PLAIN_OPERATIONS = ("analyze", "cluster", "create_index_btree", "reindex_concurrently")
"""Operations of the bundled study on maintenance that are one statement on tables of pgbench, without other files."""


@pytest.mark.parametrize("version", ["15.14", "18.0"])
def test_plain_operations_of_the_bundled_study_are_valid_statements(version: str) -> None:
    workloads = tomllib.loads((LIBRARY / "maintenance-15-to-18" / "study.toml").read_text())["workloads"]
    table = "CREATE TABLE pgbench_accounts (aid int PRIMARY KEY, bid int, abalance int, filler char(84))"
    with somebodys_server(version, table, *(workloads[name]["operation"] for name in PLAIN_OPERATIONS)):
        pass


@pytest.mark.long
def test_operations_with_files_of_the_bundled_study_work_on_both_servers(command_line: CommandLine) -> None:
    assert command_line.run("studies", "copy", "maintenance-15-to-18", "mine").code == 0
    study = command_line.directory / "mine" / "study.toml"
    text = study.read_text()
    # The same on one hundredth of the rows, and without the indexes built by a single process.
    for quick, smaller in (("scale = 10\n", "scale = 1\n"), ("1000000 }", "10000 }"), ('budget = "30m"', "blocks = 2")):
        assert text.count(quick) == 1
        text = text.replace(quick, smaller)
    excluded = ("max_parallel_maintenance_workers = 0", *(f'workload = "{name}"' for name in PLAIN_OPERATIONS))
    study.write_text(text + "".join(f"\n[[exclude]]\n{one}\n" for one in excluded))
    ended = command_line.run("run", "mine", "--json", "--trust")
    assert ended.code == 0, ended.stderr
    document = ended.document
    assert document["not_measured"] == []
    assert [verdict["context"] for verdict in document["verdicts"]] == [
        f"workload={name} max_parallel_maintenance_workers=2"
        for name in ("create_index_gin", "copy_from", "pg_dump", "pg_restore")
    ]
