"""Successful comparisons: their results, and proof that the request was measured."""

import json
import sqlite3
from itertools import product
from pathlib import Path

import pytest

from tests.live.conftest import EXAMPLES, QUICK, WHOLE_SECONDS, CommandLine, with_fewer_rows


def test_two_majors_come_from_one_family_and_have_the_same_data(command_line: CommandLine) -> None:
    command_line.write("setup.sql", with_fewer_rows(EXAMPLES / "correlated.sql"))
    correlated = ("--setup", "setup.sql", "-f", str(EXAMPLES / "correlated_in.sql"), "-c", "4")
    ended = command_line.compare("16.12", "17.8", *correlated, *QUICK, "--seed", "7")
    assert ended.code == 0, ended.stderr
    document = ended.comparison
    baseline, contender = document["arms"]
    assert (baseline["version"], contender["version"]) == ("16.12", "17.8")
    assert baseline["origin"] == contender["origin"]
    assert baseline["compiler"] == contender["compiler"]
    assert ended.caveats == []
    (verdict,) = document["verdicts"]
    assert verdict["blocks"] == 2
    assert verdict["low"] < verdict["ratio"] < verdict["high"]
    assert verdict["ratio"] > 2, "17 runs this statement many times as fast"
    assert verdict["seconds_measured"] >= 2 * 4 * 0.05
    assert document["design"]["seed"] == 7
    assert document["host"]["cpus"] >= 1


@pytest.mark.long
def test_every_ratio_can_be_recomputed_from_the_results_folder(command_line: CommandLine) -> None:
    document = command_line.compare("17.8", "17.8", "-i", "-S", *WHOLE_SECONDS).comparison
    database = sqlite3.connect(Path(document["results"]) / "results.sqlite")
    tps = {
        (block, arm): transactions / seconds
        for block, arm, transactions, seconds in database.execute(
            "SELECT block, arm, transactions, seconds FROM trial WHERE status = 'finished'"
        )
    }
    windows = database.execute(
        "SELECT block, arm, sum(transactions), count(*) FROM window GROUP BY block, arm"
    ).fetchall()
    trials = {(b, a): n for b, a, n in database.execute("SELECT block, arm, transactions FROM trial")}
    histograms = database.execute("SELECT block, arm, counts FROM latency_histogram").fetchall()
    outputs = [text for (text,) in database.execute("SELECT raw_output FROM window")]
    integrity = database.execute("PRAGMA integrity_check").fetchone()
    database.close()
    ratio = (tps[1, 1] / tps[1, 0] * tps[2, 1] / tps[2, 0]) ** 0.5
    assert document["verdicts"][0]["ratio"] == pytest.approx(ratio)
    assert {(b, a): n for b, a, n, count in windows if count == 2} == trials
    assert {(b, a): sum(json.loads(text)) for b, a, text in histograms} == trials
    assert all("number of transactions actually processed" in text for text in outputs)
    assert integrity == ("ok",)


def test_a_second_comparison_does_not_write_to_the_results_of_the_first(command_line: CommandLine) -> None:
    first = command_line.compare("17.8", "17.8", "-i", "-S", *QUICK)
    assert first.code == 0, first.stderr
    second = command_line.compare("17.8", "17.8", "-i", "-S", *QUICK)
    assert second.code == 5
    assert "error[store-not-empty]" in second.stderr


def test_every_block_of_a_writing_load_starts_with_the_loaded_rows(command_line: CommandLine) -> None:
    setup = command_line.write("setup.sql", "CREATE TABLE seen (started timestamptz);")
    # Fails on a row written before this start of the server, which the second block on used data would find.
    script = command_line.write(
        "write.sql",
        "INSERT INTO seen VALUES (pg_postmaster_start_time());\n"
        "SELECT 1 / (min(started) = max(started))::int, pg_sleep(0.01) FROM seen;\n",
    )
    ended = command_line.compare("17.8", "17.8", "--setup", setup, "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    assert ended.comparison["failed_trials"] == 0


def test_levels_of_a_setting_apply_to_every_session_of_the_load(command_line: CommandLine) -> None:
    # The script divides by zero unless work_mem is one of the two levels; nothing else differs between the arms.
    script = command_line.write(
        "check.sql",
        "SELECT 1 / (current_setting('work_mem') IN ('1MB', '2MB'))::int, pg_sleep(0.01);\n"
        "SELECT 1 / (current_setting('bench.mark') = 'a b,c')::int;\n",
    )
    ended = command_line.compare(
        "17.8", "--set", "work_mem=1MB,2MB", "--set", "bench.mark='a b,c'", "-f", script, "-c", "2", *QUICK
    )
    assert ended.code == 0, ended.stderr
    document = ended.comparison
    assert [arm["label"] for arm in document["arms"]] == ["work_mem=1MB", "work_mem=2MB"]
    assert document["factors"] == ["work_mem"]
    assert document["differences"] == []


@pytest.mark.long
def test_with_a_rate_the_verdict_is_on_latency_from_the_scheduled_start(command_line: CommandLine) -> None:
    ended = command_line.compare("17.8", "17.8", "-i", "-S", "-R", "200", *WHOLE_SECONDS)
    assert ended.code == 0, ended.stderr
    (verdict,) = ended.comparison["verdicts"]
    assert verdict["metric"] == "latency_p95_s"
    assert verdict["low"] < verdict["ratio"] < verdict["high"]
    tps = ended.comparison["arms"][0]["metrics"]["tps"]["value"]
    assert 100 < tps < 300


def test_every_arm_is_compared_with_the_first(command_line: CommandLine) -> None:
    ended = command_line.compare("16.12", "17.8", "18.0", "-i", "-S", *QUICK)
    assert ended.code == 0, ended.stderr
    assert [(v["baseline"], v["contender"]) for v in ended.comparison["verdicts"]] == [
        ("16.12", "17.8"),
        ("16.12", "18.0"),
    ]
    settings = {d["name"] for d in ended.comparison["differences"] if not d["is_default"]}
    assert settings == set(), "checksums, locale and the like are equal on every major"


def test_scripts_can_be_mixed_with_weights_modes_and_variables(command_line: CommandLine) -> None:
    script = command_line.write("by_scale.sql", "SELECT 1 / (:scale = 2 AND :rows = 5)::int;\n")
    ended = command_line.compare(
        "17.8", "17.8", "-i", "-s", "2", "-b", "select@3", "-f", f"{script}@1", "-D", "rows=5", "-M", "prepared",
        "-c", "3", "-j", "2", *QUICK,
    )  # fmt: skip
    assert ended.code == 0, ended.stderr
    assert ended.comparison["workload"]["name"] == "select-only@3, by_scale.sql@1"


def test_tables_in_a_pipe_have_no_colors_and_brackets_in_names_are_not_markup(command_line: CommandLine) -> None:
    script = command_line.write("one.sql", "SELECT 1;\n")
    ended = command_line.run("compare", "17.8", "--set", "cluster_name=[/x],[red]b", "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    assert "\x1b" not in ended.stdout + ended.stderr
    assert "vs cluster_name=[/x]" in ended.stdout
    assert "cluster_name=[red]b" in ended.stdout
    assert "results: pgversus-results/" in ended.stdout


def test_libpq_variables_and_a_restrictive_umask_do_not_affect_managed_servers(command_line: CommandLine) -> None:
    variables = {"PGOPTIONS": "-c statement_timeout=1 -c work_mem=1GB", "PGSERVICE": "nosuch", "PGSSLMODE": "bogus"}
    results = str(command_line.directory / "results")
    arguments = ("compare", "17.8", "--set", "work_mem=1MB,2MB", "-i", "-S", *QUICK, "--json", "--results", results)
    # Under root, the servers and the program that checks settings run as another user.
    command_line.umask = 0o077
    ended = command_line.run(*arguments, **variables)
    assert ended.code == 0, ended.stderr
    assert ended.comparison["differences"] == []


# With such short limits, the load of parallel tests would now and then cancel a statement.
@pytest.mark.measures
def test_limits_set_for_the_load_do_not_stop_pgversus(command_line: CommandLine) -> None:
    settings = ("--set", "statement_timeout=100ms", "--set", "default_transaction_read_only=on")
    # Shorter than a window, during which the session that reads counters is idle.
    limits = ("--set", "idle_session_timeout=700ms", "--set", "transaction_timeout=700ms")
    setup = command_line.write("setup.sql", "SET default_transaction_read_only = off; CREATE TABLE t (id int);")
    script = command_line.write("one.sql", "SELECT count(*) FROM t;\n")
    ended = command_line.compare("17.8", "17.8", *settings, *limits, "--setup", setup, "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr


def test_closed_output_pipes_do_not_change_the_exit_code(command_line: CommandLine) -> None:
    process = command_line.start("compare", "17.8", "17.8", "-i", "-S", *QUICK)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    process.stderr.close()
    assert process.wait(timeout=200) == 0


@pytest.mark.long
def test_transaction_logs_are_kept_only_if_requested(command_line: CommandLine) -> None:
    ended = command_line.compare("17.8", "17.8", "-i", "-S", *WHOLE_SECONDS, "--keep-logs")
    assert ended.code == 0, ended.stderr
    kept = {path.name for path in (Path(ended.comparison["results"]) / "transaction-logs").iterdir()}
    windows = product((1, 2), (0, 1), (1, 2))
    expected = {f"context-1-block-{b:03d}-arm-{a}-round-{r:02d}-thread-0.log" for b, a, r in windows}
    assert {name for name in kept if "-repeated-" not in name} == expected
    assert len(kept) == len(expected) + 2 * ended.comparison["repeated_rounds"]
