"""Slices of a real pgbench against real servers: when they end, and what happens if one does not."""

import os
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import psycopg
import pytest

from pgversus.engine.testbed import TrialFailedError
from pgversus.host.identity import server_user
from pgversus.host.lost_time import LATE_S
from pgversus.host.pausable import PausableProgram
from pgversus.lab.arm_servers import ExternalServer, ServerSet
from pgversus.lab.slice_session import replies_wait
from pgversus.lab.slices import SliceRunner
from pgversus.postgres.catalog import SessionOfLoad
from pgversus.postgres.client import fixed_client
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.postgres.server import Server
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.study.design import Design, WindowKind
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.workload.pgbench_run import PgbenchLoad, write_scripts
from tests.builders import comparison
from tests.live.conftest import own_server

pytestmark = pytest.mark.live


# The oldest and the newest version; the views are the same in between. One process runs all tests of a version.
@pytest.fixture(
    scope="module",
    params=[pytest.param(version, marks=pytest.mark.xdist_group(f"slices-{version}")) for version in ("12.22", "18.0")],
)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with own_server(f"zonky:{request.param}") as started:
        started.start()
        yield started


def session(server: Server) -> psycopg.Connection[tuple[object, ...]]:
    return psycopg.connect(server.target.conninfo, autocommit=True, application_name="load")


@pytest.fixture
def watch(server: Server) -> Iterator[LoadSessions]:
    sessions = LoadSessions(server.target)
    yield sessions
    sessions.close()


def in_background(work: Callable[[], object]) -> threading.Thread:
    thread = threading.Thread(target=work)
    thread.start()
    return thread


def finished(watch: LoadSessions, processes: list[int], stopped: float) -> list[float]:
    """Return the finish time of each session, earliest first."""
    found = watch.finished(processes, stopped, timeout_s=60)
    assert found is not None
    return sorted(one.finished for one in found)


def test_a_running_statement_is_waited_for_and_the_server_reports_its_end(server: Server, watch: LoadSessions) -> None:
    since = time.time()
    with session(server) as load:
        processes = [load.info.backend_pid]
        assert watch.processes(since) == processes
        began = time.time()
        thread = in_background(lambda: load.execute("SELECT pg_sleep(0.5)"))
        time.sleep(0.1)
        assert watch.finished(processes, time.time(), timeout_s=0.05) is None
        found = watch.finished(processes, time.time(), timeout_s=60)
        thread.join()
        assert found is not None
        (one,) = found
        assert began <= one.began < began + 0.1
        assert began + 0.5 <= one.finished <= time.time()
        # Nothing has happened since, however late the query.
        time.sleep(0.1)
        assert finished(watch, processes, began) == [one.finished]
        # A session that was idle when it was stopped finished at that time.
        stopped = time.time()
        assert finished(watch, processes, stopped) == [stopped]
        with session(server) as other:
            processes.append(other.info.backend_pid)
            assert watch.processes(since) == processes
            assert len(finished(watch, processes, began)) == 2
        # A session that has ended is not included, as soon as its process is gone.
        until = time.monotonic() + 10
        while len(finished(watch, processes, began)) > 1 and time.monotonic() < until:
            time.sleep(0.01)
        assert len(finished(watch, processes, began)) == 1
    assert watch.processes(time.time()) == []


def test_a_session_waiting_for_a_lock_of_a_stopped_client_is_not_waited_for(
    server: Server, watch: LoadSessions
) -> None:
    since = time.time()
    with session(server) as first, session(server) as second:
        first.execute("CREATE TABLE locked (id int)")
        first.execute("BEGIN")
        first.execute("LOCK TABLE locked")
        thread = in_background(lambda: second.execute("SELECT count(*) FROM locked"))
        time.sleep(0.2)
        # One is idle in its transaction, the other has been waiting for its lock since before the stop.
        stopped = time.time()
        assert finished(watch, watch.processes(since), stopped) == [stopped, stopped]
        first.execute("DROP TABLE locked")
        first.execute("CREATE TABLE locked (id int)")
        first.execute("COMMIT")
        thread.join()
        first.execute("DROP TABLE locked")


def test_work_until_a_stopped_client_accepts_no_more_rows_belongs_to_the_slice(
    server: Server, watch: LoadSessions
) -> None:
    since = time.time()
    # Half a second of work, then more rows than the buffers between server and client hold.
    script = "SELECT repeat('x', 1000), pg_sleep(CASE n WHEN 1 THEN 0.5 ELSE 0 END) FROM generate_series(1, 100000) n"
    reader = subprocess.Popen(
        [str(fixed_client(server_user()).psql), "-X", "-q", "-A", "-c", script, server.target.conninfo],
        stdout=subprocess.PIPE,
    )
    try:
        while not watch.processes(since):
            time.sleep(0.01)
        began = time.time()
        time.sleep(0.1)
        reader.send_signal(signal.SIGSTOP)
        (end,) = finished(watch, watch.processes(since), time.time())
        assert began + 0.4 < end <= time.time()
    finally:
        reader.kill()
        reader.communicate()


def load(script: str, folder: Path, *, clients: int = 1, is_builtin: bool = False) -> PgbenchLoad:
    user = server_user()
    scripts = (Script(name=script, text=None) if is_builtin else Script(name="script", text=script),)
    workload = PgbenchWorkload(scripts=scripts, clients=clients)
    return PgbenchLoad(
        workload=workload,
        client=fixed_client(user),
        script_files=write_scripts(workload, folder, user),
        scratch=folder / "logs",
        kept_logs=None,
        connect_allowance_s=0,
        longest_s=60.0,
    )


def trial_runner(
    server: Server, script: str, folder: Path, *, clients: int = 1, is_builtin: bool = False
) -> SliceRunner:
    put = load(script, folder, clients=clients, is_builtin=is_builtin)
    preparation = Preparation(
        design=Design(window_kind=WindowKind.SLICE, window_s=0.1, slice_s=0.005, warm_up_s=0.1),
        arms=(),
        differences=(),
        writes=False,
        connect_allowance_s=0,
    )
    arm = comparison().baseline
    return SliceRunner(ServerSet([ExternalServer(arm, server.target.conninfo)]), [put], preparation)


def windows(runner: SliceRunner, number: int) -> list[Window]:
    runner.start(0)
    runner.warm_up(0, seed=1)
    for _ in range(number):
        runner.measure(0, seed=2, name="")
    return list(runner.collect(0))


def check_undisturbed(runner: SliceRunner) -> None:
    """Check that windows are usually not disturbed; on a busy host, some may be."""
    assert any(not any(window.was_disturbed for window in windows(runner, 4)) for _ in range(5))


def _has_one_execution_each(found: Sequence[Window]) -> bool:
    """Return whether each window has one execution, or is empty because pgbench was stopped before it got a CPU."""
    return all(window.transactions == (window.seconds >= 0.1) for window in found)


def test_a_slice_of_one_client_is_one_execution(server: Server, open_directory: Path) -> None:
    runner = trial_runner(server, "SELECT pg_sleep(0.1);\n", open_directory)
    # The number and age of other sessions must not matter.
    with session(server):
        try:
            # On a busy host a window may end before pgbench gets a CPU, or be cut a little short.
            series = (windows(runner, 6) for _ in range(3))
            found = next((one for one in series if _has_one_execution_each(one)), [])
            counted = runner.counted(0, sum(window.transactions for window in found))
        finally:
            runner.abandon()
            runner.stop_all()
    executed = [window for window in found if window.transactions]
    assert len(executed) >= 3
    latencies = [window.latency_max_s for window in executed]
    assert [window.latency_sum_s for window in executed] == latencies
    assert min(latencies) >= 0.1
    # One client is always busy. Its first transaction started before the windows: long before them on a busy host.
    assert latencies[0] > executed[0].seconds - 0.05
    since_first = sum(window.seconds for window in found[found.index(executed[0]) + 1 :])
    assert sum(latencies[1:]) == pytest.approx(since_first, abs=0.05), (latencies, found)
    # Some commits come from connecting and, before 15, from our own readings. The more than 20 queries about the ends
    # of slices run elsewhere.
    assert len(executed) <= counted["transactions_committed"] < 16
    assert list((open_directory / "logs").iterdir()) == []


def backend_of_load(server: Server) -> int:
    with session(server) as other:
        # On a busy host, the backend of a pgbench that has just ended may still be there.
        query = "SELECT pid FROM pg_stat_activity WHERE application_name = 'pgbench' ORDER BY backend_start DESC"
        row = other.execute(query).fetchone()
    assert row is not None
    return int(str(row[0]))


@pytest.mark.parametrize("seconds", [0.05, 1.0])
def test_windows_in_which_the_server_was_stopped_are_disturbed(
    server: Server, open_directory: Path, seconds: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    runner = trial_runner(server, "SELECT count(*) FROM generate_series(1, 1000);\n", open_directory)
    try:
        check_undisturbed(runner)
        runner.measure(0, seed=2, name="")
        backend = backend_of_load(server)
        timer = threading.Timer(seconds, lambda: os.kill(backend, signal.SIGCONT))
        ask = LoadSessions._ask

        def continue_and_ask(sessions: LoadSessions, processes: Sequence[int]) -> list[SessionOfLoad]:
            # The time runs from the end of the window: on a busy host that may come late.
            if not timer.ident:
                timer.start()
            return ask(sessions, processes)

        with monkeypatch.context() as stopped:
            stopped.setattr(LoadSessions, "_ask", continue_and_ask)
            os.kill(backend, signal.SIGSTOP)
            # It stops when it gets a processor; if it were continued before that, it would never stop.
            while psutil.Process(backend).status() != psutil.STATUS_STOPPED:
                time.sleep(0.001)
            runner.measure(0, seed=2, name="")
        timer.join()
        assert all(window.was_disturbed for window in runner.collect(0))
        check_undisturbed(runner)
    finally:
        runner.abandon()
        runner.stop_all()


def test_windows_that_pgversus_ended_late_are_disturbed(
    server: Server, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As if pgversus itself had been stopped just before it stops the clients."""
    runner = trial_runner(server, "SELECT 1;\n", open_directory)
    stop = PausableProgram.stop

    def stop_late(program: PausableProgram) -> None:
        time.sleep(2 * LATE_S)
        stop(program)

    try:
        check_undisturbed(runner)
        runner.measure(0, seed=2, name="")
        with monkeypatch.context() as late:
            late.setattr(PausableProgram, "stop", stop_late)
            runner.measure(0, seed=2, name="")
        assert all(window.was_disturbed for window in runner.collect(0))
    finally:
        runner.abandon()
        runner.stop_all()


def test_each_block_watches_the_server_that_was_started_for_it(server: Server, open_directory: Path) -> None:
    runner = trial_runner(server, "SELECT 1;\n", open_directory, clients=2)
    try:
        for _ in range(2):
            # As in a block: watching the load ends before the counters are read, and the server stops after that.
            found = windows(runner, 4)
            runner.abandon()
            counted = runner.counted(0, sum(window.transactions for window in found))
            assert 0 < sum(window.transactions for window in found) < 2 * counted["transactions_committed"]
            runner.stop_all()
            server.stop()
            server.start()
    finally:
        runner.abandon()
        runner.stop_all()


def test_a_client_that_dies_between_two_windows_fails_the_trial_and_leaves_nothing(
    server: Server, open_directory: Path
) -> None:
    runner = trial_runner(server, "SELECT 1;\n", open_directory, clients=3)
    try:
        runner.start(0)
        runner.warm_up(0, seed=1)
        runner.measure(0, seed=2, name="")
        (client,) = (one for one in psutil.Process().children() if one.name() == "pgbench")
        os.kill(client.pid, signal.SIGKILL)
        with pytest.raises(TrialFailedError, match="signal 9"):
            runner.measure(0, seed=2, name="")
    finally:
        runner.abandon()
        runner.stop_all()
    with suppress(psutil.NoSuchProcess):
        assert client.status() == psutil.STATUS_ZOMBIE
    assert list((open_directory / "logs").iterdir()) == []


def test_a_failing_script_is_reported_with_pgbenchs_message(server: Server, open_directory: Path) -> None:
    runner = trial_runner(server, "SELECT 1 / 0;\n", open_directory)
    try:
        runner.start(0)
        with pytest.raises(TrialFailedError, match="division by zero"):
            runner.warm_up(0, seed=1)
    finally:
        runner.abandon()
        runner.stop_all()


def test_a_failing_client_among_others_fails_the_trial_at_once(server: Server, open_directory: Path) -> None:
    script = "\\if :client_id\nSELECT 1;\n\\else\nSELECT 1 / 0;\n\\endif\n"
    runner = trial_runner(server, script, open_directory, clients=3)
    try:
        runner.start(0)
        began = time.monotonic()
        with pytest.raises(TrialFailedError, match="division by zero"):
            runner.warm_up(0, seed=1)
        assert time.monotonic() - began < 30
        assert not [one for one in psutil.Process().children() if one.name() == "pgbench"]
    finally:
        runner.abandon()
        runner.stop_all()


def test_a_statement_that_does_not_end_fails_the_trial(server: Server, open_directory: Path) -> None:
    runner = trial_runner(server, "SELECT pg_sleep(30);\n", open_directory)
    runner._loads = [replace(runner._loads[0], longest_s=0.5)]
    try:
        runner.start(0)
        with pytest.raises(TrialFailedError, match="still running"):
            runner.warm_up(0, seed=1)
    finally:
        runner.abandon()
        runner.stop_all()


def test_a_server_that_stops_under_load_fails_the_trial(server: Server, open_directory: Path) -> None:
    runner = trial_runner(server, "SELECT 1;\n", open_directory)
    try:
        runner.start(0)
        runner.warm_up(0, seed=1)
        runner.measure(0, seed=2, name="")
        server.stop()
        with pytest.raises(TrialFailedError):
            runner.measure(0, seed=2, name="")
    finally:
        runner.abandon()
        server.start()
        runner.stop_all()


SLOW = "SELECT repeat('x', 100) FROM generate_series(1, 100000) AS g ORDER BY md5(g::text) LIMIT {rows};"


@pytest.mark.parametrize(("rows", "waits"), [(10, False), (1000, False), (4000, True), (100_000, True)])
def test_a_reply_that_fills_all_buffers_is_detected_before_the_first_block(
    server: Server, open_directory: Path, rows: int, *, waits: bool
) -> None:
    # A reply of 400 kB is sent within a millisecond at the end of the execution, so looking now and then misses it.
    assert replies_wait(load(SLOW.format(rows=rows), open_directory), server.target, Design()) is waits


@pytest.mark.long
def test_only_connections_of_clients_are_watched(server: Server, open_directory: Path) -> None:
    # With -S, pgbench inspects its tables in a separate connection before its clients connect.
    with session(server) as connection:
        connection.execute("CREATE TABLE pgbench_branches (bid int)")
        connection.execute("INSERT INTO pgbench_branches VALUES (1)")
        connection.execute(
            "CREATE TABLE pgbench_accounts AS SELECT n AS aid, 0 AS abalance FROM generate_series(1, 100000) n"
        )
        connection.execute("CREATE INDEX ON pgbench_accounts (aid)")
    try:
        runner = trial_runner(server, "select-only", open_directory, is_builtin=True)
        runner.start(0)
        for seed in range(1, 20):
            runner.warm_up(0, seed=seed)
            runner.measure(0, seed=seed, name="")
            opened = runner._sessions[0]
            active = {process for process in opened._watch.processes(opened._began) if psutil.pid_exists(process)}
            assert set(opened._processes) == active
            runner.collect(0)
    finally:
        runner.abandon()
        with session(server) as connection:
            connection.execute("DROP TABLE pgbench_branches, pgbench_accounts")
