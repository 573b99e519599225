"""Ctrl-C, and kill -9 at chosen moments: no finished trial is lost, and nothing is left over.

For random moments see tests/faults.
"""

import os
import signal
import sqlite3
import subprocess
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import psycopg
import pytest

from pgversus.host.guard import processes_in
from pgversus.postgres.server import Server
from tests.live.conftest import WHOLE_SECONDS, CommandLine, own_server

LOAD = (
    "17.8",
    "17.8",
    "-i",
    "-f",
    "wait.sql",
    "--window",
    "1",
    "--windows",
    "2",
    "--warmup",
    "1",
    "--json",
    "--results",
    "results",
)

AT_ONCE_S = 60
"""Limit on a busy host. Without an interrupt, a server that does not stop may take more than two minutes."""


@pytest.fixture(autouse=True)
def load(command_line: CommandLine) -> None:
    """Write the script of the load: it leaves the processors to other tests."""
    command_line.write("wait.sql", "SELECT pg_sleep(0.01);\n")


def test_an_interrupted_run_reports_the_verdicts_so_far(command_line: CommandLine) -> None:
    process = command_line.start("compare", *LOAD, "--max-blocks", "50")
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("block 1 "):
            break
    command_line.wait_for(lambda: command_line.postmaster(0) and command_line.postmaster(1))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130, stderr
    assert '"stopped": "interrupted"' in stdout
    assert '"interrupted"' in stdout
    database = sqlite3.connect(command_line.directory / "results" / "results.sqlite")
    blocks = database.execute("SELECT count(*) FROM block").fetchone()[0]
    database.close()
    assert blocks >= 1


@pytest.mark.own_snapshots
def test_an_interrupt_before_the_first_block_leaves_nothing(command_line: CommandLine) -> None:
    process = command_line.start("compare", *LOAD)
    command_line.wait_for(lambda: list(command_line.runs.glob("*/snapshot-1/data/postmaster.pid")))
    process.send_signal(signal.SIGINT)
    stdout, stderr = process.communicate(timeout=60)
    assert process.returncode == 130
    assert stdout == ""
    assert stderr.splitlines()[-1].startswith("interrupted")


@pytest.mark.long
def test_a_server_killed_in_a_window_fails_only_its_trial(command_line: CommandLine) -> None:
    process = command_line.start(
        "compare", "17.8", "17.8", "-f", "wait.sql", *WHOLE_SECONDS, "--json", "--results", "results",
    )  # fmt: skip
    assert process.stderr is not None
    for line in process.stderr:
        if "arms, blocks of" in line:
            break
    command_line.wait_for(lambda: command_line.postmaster(0) and command_line.postmaster(1))
    pgbench = command_line.wait_for(lambda: _pgbench(process.pid))
    assert pgbench
    victim = command_line.postmaster(1)
    assert victim is not None
    os.kill(victim, signal.SIGKILL)
    stdout, stderr = process.communicate(timeout=200)
    assert process.returncode == 4, stderr
    assert '"failed-trials"' in stdout
    assert '"blocks": 2' in stdout, "two whole blocks were run all the same"
    database = sqlite3.connect(command_line.directory / "results" / "results.sqlite")
    failed = database.execute("SELECT transactions, failed_words FROM trial WHERE status = 'failed'").fetchall()
    database.close()
    assert len(failed) == 1
    assert failed[0][0] is None
    assert failed[0][1]


@pytest.mark.long
def test_leftovers_of_a_run_that_died_with_its_guard_are_removed_by_the_next_run(command_line: CommandLine) -> None:
    process = command_line.start("compare", *LOAD)
    command_line.wait_for(lambda: command_line.postmaster(0) and command_line.postmaster(1))
    sockets = command_line.socket_directories()
    # As in a reboot: the guard and the watchdogs die first, so that nothing cleans up.
    children = psutil.Process(process.pid).children()
    helpers = [child for child in children if child.name() == "sh" or "pgversus.host.guard" in child.cmdline()]
    assert len(helpers) == 3
    for helper in helpers:
        for child in helper.children():
            if child.name() == "sh":
                child.kill()
        helper.kill()
    process.kill()
    process.communicate(timeout=60)
    assert processes_in(command_line.cache), "two orphaned servers"
    ended = command_line.run("compare", *LOAD[:-1], "again", "--blocks", "2")
    assert ended.code == 0, ended.stderr
    assert "removed the files of the killed run" in ended.stderr
    assert sockets
    assert not any(path.exists() for path in sockets)


@pytest.fixture
def server() -> Iterator[Server]:
    """A server that is not running yet."""
    with own_server("17.8") as server:
        yield server


@pytest.mark.parametrize("recovering_s", [0.02, 0.05, 0.1, 0.3])
def test_a_server_in_crash_recovery_stops_at_once(server: Server, recovering_s: float) -> None:
    server.start()
    with psycopg.connect(server.target.conninfo) as connection:
        # A session that has written, so that there is something to recover.
        connection.execute("CREATE TABLE t AS SELECT g FROM generate_series(1, 1000) AS g")
        connection.commit()
        os.kill(connection.info.backend_pid, signal.SIGKILL)
        time.sleep(recovering_s)
        connection.close()
    began = time.monotonic()
    server.stop()
    assert time.monotonic() < began + AT_ONCE_S
    server.start()
    server.stop()


def _interrupt(_number: int, _frame: object) -> None:
    raise KeyboardInterrupt


# Python reports a program that was interrupted at its start.
@pytest.mark.long
@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_an_interrupt_at_any_moment_of_a_start_stops_the_server_at_once(server: Server) -> None:
    # Some 20 ms pass from the start of the shell until the postmaster handles signals.
    before = signal.signal(signal.SIGALRM, _interrupt)
    try:
        for tenths_of_ms in range(2, 400, 8):
            begin = time.monotonic()
            with suppress(KeyboardInterrupt):
                signal.setitimer(signal.ITIMER_REAL, tenths_of_ms / 10_000)
                server.start()
                signal.setitimer(signal.ITIMER_REAL, 0)
            server.stop()
            while left := _starting_in(server.cluster.data_directory) or processes_in(server.cluster.data_directory):
                # Interrupted before there was a server to stop; its watchdog stops it.
                assert time.monotonic() < begin + AT_ONCE_S, f"interrupted after {tenths_of_ms / 10} ms: {left}"
                time.sleep(0.05)
            assert time.monotonic() < begin + AT_ONCE_S, f"interrupted after {tenths_of_ms / 10} ms"
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_a_server_stops_if_an_interrupt_loses_its_watchdog(server: Server, monkeypatch: pytest.MonkeyPatch) -> None:
    class Interrupted(subprocess.Popen[bytes]):
        def __init__(self, arguments: list[str], **options: Any) -> None:
            super().__init__(arguments, **options)
            raise KeyboardInterrupt

    monkeypatch.setattr("pgversus.postgres.server.subprocess.Popen", Interrupted)
    with pytest.raises(KeyboardInterrupt):
        server.start()
    begin = time.monotonic()
    server.stop()
    while _starting_in(server.cluster.data_directory) or processes_in(server.cluster.data_directory):
        assert time.monotonic() < begin + AT_ONCE_S
        time.sleep(0.05)


def _starting_in(data_directory: Path) -> list[psutil.Process]:
    """Return the shells and postmasters that are about to work in a directory."""
    processes = psutil.process_iter(["cmdline"])
    return [process for process in processes if str(data_directory) in (process.info["cmdline"] or ())]


def _pgbench(parent: int) -> list[int]:
    return [child.pid for child in psutil.Process(parent).children() if child.name() == "pgbench"]
