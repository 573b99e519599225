"""Counters of real servers: the counters of each version, and their growth by known work."""

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import psutil
import psycopg
import pytest

from pgversus.host.counters import read_host
from pgversus.host.directories import open_cache
from pgversus.host.identity import server_user
from pgversus.host.page_cache import evict
from pgversus.host.processes import PeakMemory, cpu_time, memory_bytes, read_calls
from pgversus.lab.arm_servers import ExternalServer, ServerSet
from pgversus.lab.load_windows import ColdTrialRunner, WarmTrialRunner
from pgversus.lab.readings import Reading, grown
from pgversus.postgres.catalog import checkpoint
from pgversus.postgres.client import fixed_client
from pgversus.postgres.counters import CounterSession, read_counters, read_settled_counters
from pgversus.postgres.server import Server
from pgversus.postgres.session import connect
from pgversus.records.preparation import Preparation
from pgversus.stats.counters import difference
from pgversus.study.counters import COUNTERS
from pgversus.study.design import Design
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.workload.pgbench_run import PgbenchLoad, write_scripts
from tests.builders import comparison
from tests.live.conftest import own_server

VERSIONS = ("12.22", "15.14", "16.12", "17.8", "18.0")
MEGABYTE = 1_000_000
BLOCK_BYTES = 8192

# Only the test works on these servers, and the table below does not fit into their buffers.
SETTINGS = {"autovacuum": "off", "shared_buffers": "16MB", "fsync": "off", "max_parallel_workers_per_gather": "0"}
BUFFER_BYTES = 16 * 1024 * 1024

IO = {name for name in COUNTERS if name.startswith(("client_io_", "server_io_"))}
READS = {"client_io_reads", "server_io_reads"}
EXTENDS = {"client_io_extends", "server_io_extends"}
WAL = {"wal_bytes", "wal_records", "wal_full_page_images"}
EVERYWHERE = {
    "transactions_committed",
    "transactions_rolled_back",
    "buffers_hit",
    "buffers_read",
    "temp_files",
    "temp_bytes",
    "deadlocks",
    "tuples_returned",
    "tuples_fetched",
    "tuples_inserted",
    "tuples_updated",
    "tuples_deleted",
    "checkpoints_timed",
    "checkpoints_requested",
    "checkpoint_buffers_written",
    "checkpoint_write_s",
    "checkpoint_sync_s",
    "background_buffers_written",
    "buffers_allocated",
    "autovacuum_runs",
    "autoanalyze_runs",
}
NAMES = {
    "12.22": EVERYWHERE,
    "15.14": EVERYWHERE | WAL,
    "16.12": EVERYWHERE | WAL | IO - EXTENDS,
    "17.8": EVERYWHERE | WAL | IO - EXTENDS - READS,
    "18.0": EVERYWHERE | WAL | IO,
}

# A view that a role may not read, and the counters that are then missing.
OF_BACKGROUND_WRITER = {name for name in EVERYWHERE if name.startswith(("checkpoint", "background"))}
HIDDEN = {
    "12.22": ("pg_stat_bgwriter", OF_BACKGROUND_WRITER | {"buffers_allocated"}),
    "18.0": ("pg_stat_io", IO),
}

Servers = Callable[[str], Server]


def on(*versions: str) -> pytest.MarkDecorator:
    """Run a test on a server of each version; one process runs all tests of a version and starts its server once."""
    params = [pytest.param(one, marks=pytest.mark.xdist_group(f"counters-{one}")) for one in versions]
    return pytest.mark.parametrize("version", params)


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """A running server of each version, started on first use."""
    running: dict[str, Server] = {}
    with ExitStack() as stack:

        def server(version: str) -> Server:
            if version not in running:
                started = stack.enter_context(own_server(f"zonky:{version}", SETTINGS))
                started.start()
                _work(started, "CREATE TABLE t (id int, filler text)", FILL)
                running[version] = started
            return running[version]

        yield server


FILL = "INSERT INTO t SELECT g, repeat('x', 1000) FROM generate_series(1, 30000) AS g"
SORT = "SELECT count(*) FROM (SELECT id, filler FROM t ORDER BY filler, id DESC OFFSET 0) AS sorted"


def _work(server: Server, *statements: str) -> None:
    """Run the statements in a session of their own."""
    with psycopg.connect(server.target.conninfo, autocommit=True) as session:
        for statement in statements:
            session.execute(statement)


def _growth(server: Server, *statements: str) -> dict[str, float]:
    """Return the growth of the counters caused by one finished session."""
    with connect(server.target) as connection:
        before = read_settled_counters(connection)
        _work(server, *statements)
        return difference(before, read_settled_counters(connection))


def _pid(server: Server) -> int:
    assert server.postmaster_pid is not None
    return server.postmaster_pid


@on(*VERSIONS)
def test_each_version_has_exactly_its_own_counters(servers: Servers, version: str) -> None:
    with connect(servers(version).target) as connection:
        found = read_counters(connection)
    assert set(found) == NAMES[version]
    assert all(value >= 0 for value in found.values())


@on(*VERSIONS)
def test_written_rows_and_their_wal_are_counted_exactly(servers: Servers, version: str) -> None:
    _work(servers(version), "DROP TABLE IF EXISTS written", "CREATE TABLE written (id int, v int)")
    grown = _growth(
        servers(version),
        "INSERT INTO written SELECT g, 0 FROM generate_series(1, 1000) AS g",
        "UPDATE written SET v = 1 WHERE id <= 100",
        "DELETE FROM written WHERE id <= 10",
    )
    assert [grown[f"tuples_{done}"] for done in ("inserted", "updated", "deleted")] == [1000, 100, 10]
    assert grown["deadlocks"] == 0
    if "wal_bytes" in NAMES[version]:
        # One record per row, none smaller than its header.
        assert 1110 <= grown["wal_records"] <= 1500
        assert grown["wal_bytes"] >= 1110 * 24


@on(*VERSIONS)
def test_rollbacks_and_commits_are_counted_separately(servers: Servers, version: str) -> None:
    grown = _growth(servers(version), "SELECT 1", "BEGIN", "SELECT 2", "ROLLBACK")
    assert grown["transactions_rolled_back"] == 1
    # The rest comes from the two readings and the start of a session.
    assert 1 <= grown["transactions_committed"] <= 20


@on(*VERSIONS)
def test_a_sort_that_spills_is_counted(servers: Servers, version: str) -> None:
    grown = _growth(servers(version), "SET work_mem = '64kB'", SORT)
    assert grown["temp_files"] >= 1
    # 30,000 rows of one kilobyte each.
    assert 30 * MEGABYTE <= grown["temp_bytes"] <= 100 * MEGABYTE


@on(*VERSIONS)
def test_a_sort_in_memory_writes_no_temporary_files(servers: Servers, version: str) -> None:
    grown = _growth(servers(version), "SET work_mem = '64MB'", SORT)
    assert (grown["temp_files"], grown["temp_bytes"]) == (0, 0)


@on(*VERSIONS)
def test_a_scan_of_a_table_larger_than_shared_buffers_counts_as_reads(servers: Servers, version: str) -> None:
    with connect(servers(version).target) as connection:
        size = connection.execute("SELECT pg_relation_size('t')").fetchone()
    assert size is not None
    grown = _growth(servers(version), "SELECT count(*) FROM t")
    assert grown["tuples_returned"] >= 30_000
    blocks = size[0] // BLOCK_BYTES
    kept = BUFFER_BYTES // BLOCK_BYTES
    # A few more for pages of system catalogs.
    assert blocks - kept <= grown["buffers_read"] <= blocks + 300
    if IO & NAMES[version]:
        read_bytes = grown["client_io_read_bytes"]
        assert size[0] - BUFFER_BYTES <= read_bytes <= size[0] + 300 * BLOCK_BYTES
        assert grown["server_io_read_bytes"] >= read_bytes


@on("16.12", "18.0")
def test_a_read_is_one_block_in_16_and_many_blocks_in_18(servers: Servers, version: str) -> None:
    grown = _growth(servers(version), "SELECT count(*) FROM t")
    blocks = grown["client_io_read_bytes"] / BLOCK_BYTES
    if version == "16.12":
        assert grown["client_io_reads"] == blocks
    else:
        assert 0 < grown["client_io_reads"] < blocks / 2


@on("16.12", "17.8", "18.0")
def test_extending_a_table_is_counted(servers: Servers, version: str) -> None:
    grown = _growth(servers(version), "CREATE TABLE grown AS SELECT * FROM t LIMIT 10000", "DROP TABLE grown")
    assert grown["client_io_extend_bytes"] >= 10 * MEGABYTE
    if "client_io_extends" in grown:
        assert 0 < grown["client_io_extends"] <= grown["client_io_extend_bytes"] / BLOCK_BYTES


@on("16.12", "17.8", "18.0")
def test_wal_writes_are_not_counted_as_io(servers: Servers, version: str) -> None:
    _work(servers(version), "DROP TABLE IF EXISTS logged", "CREATE TABLE logged (id int)", "CHECKPOINT")
    grown = _growth(servers(version), *["INSERT INTO logged VALUES (1)"] * 200)
    assert grown["wal_records"] >= 200
    assert grown["server_io_writes"] < 100


@on(*VERSIONS)
def test_a_checkpoint_is_counted_as_requested(servers: Servers, version: str) -> None:
    with connect(servers(version).target) as connection:
        before = read_settled_counters(connection)
        connection.execute("INSERT INTO t VALUES (0, '')")
        checkpoint(connection)
        deadline = time.monotonic() + 5
        # The checkpointer reports its statistics shortly after it has answered.
        while difference(before, grown := read_settled_counters(connection))["checkpoints_requested"] == 0:
            assert time.monotonic() < deadline
    assert grown["checkpoints_requested"] == before["checkpoints_requested"] + 1
    assert grown["checkpoint_buffers_written"] > before["checkpoint_buffers_written"]


@on("12.22", "18.0")
def test_repeated_readings_from_one_session_add_little(servers: Servers, version: str) -> None:
    with connect(servers(version).target) as connection:
        # A session reports at most once a second: the first reading fills its caches, the second waits for its turn.
        read_settled_counters(connection)
        time.sleep(1.1)
        before = read_settled_counters(connection)
        time.sleep(1.1)
        grown = difference(before, read_settled_counters(connection))
    assert grown["transactions_committed"] <= 5
    assert grown["buffers_hit"] + grown["buffers_read"] < 200
    assert grown["tuples_inserted"] + grown["tuples_updated"] + grown["tuples_deleted"] == 0


@on("12.22", "15.14", "18.0")
def test_a_reading_is_not_counted_in_the_next_window(servers: Servers, version: str) -> None:
    readings_left = int(version == "12.22")
    with closing(CounterSession(servers(version).target)) as session:
        own = session.own_growth()
        assert own["tuples_returned"] > 100
        for _ in range(3):
            before = Reading(server=session.read(), host={})
            # As long as a window: sessions report at most once a second.
            time.sleep(1.1)
            found = grown(before, Reading(server=session.read(settled=True), host={}), own)
            assert found["tuples_returned"] <= readings_left * own["tuples_returned"] + 30
            assert found["buffers_hit"] <= readings_left * own["buffers_hit"] + 30
            assert found["transactions_committed"] <= 2 * readings_left + 3


@on("12.22", "18.0")
def test_counters_that_a_role_may_not_read_are_absent(servers: Servers, version: str) -> None:
    server = servers(version)
    view, hidden = HIDDEN[version]
    for statement in ("REVOKE SELECT ON {} FROM PUBLIC", "DROP ROLE IF EXISTS guest", "CREATE ROLE guest LOGIN"):
        _work(server, statement.format(view))
    try:
        with psycopg.connect(server.target.conninfo, user="guest", autocommit=True) as connection:
            assert set(read_counters(connection)) == NAMES[version] - hidden
    finally:
        for statement in ("GRANT SELECT ON {} TO PUBLIC", "DROP ROLE guest"):
            _work(server, statement.format(view))


@on(*VERSIONS)
def test_a_counter_that_was_reset_is_omitted(servers: Servers, version: str) -> None:
    _work(servers(version), *["SELECT 1"] * 200)
    grown = _growth(servers(version), "SELECT pg_stat_reset()")
    assert "transactions_committed" not in grown


@on("12.22", "18.0")
def test_cpu_time_of_a_finished_session_is_counted_once(servers: Servers, version: str) -> None:
    server = servers(version)
    before = cpu_time(_pid(server))
    with psycopg.connect(server.target.conninfo) as session:
        session.execute("SELECT count(*) FROM generate_series(1, 2000000)")
        backend = psutil.Process(session.info.backend_pid)
        own = backend.cpu_times()
    psutil.wait_procs([backend], timeout=5)
    after = cpu_time(_pid(server))
    assert before is not None
    assert after is not None
    used = after.user_s + after.system_s - before.user_s - before.system_s
    spent = own.user + own.system
    assert spent > 0.05
    # A clock tick per process, the end of the session, and background work of the server.
    assert spent - 0.02 <= used <= 1.2 * spent + 0.2


@on("12.22", "18.0")
def test_peak_memory_includes_a_short_allocation_of_a_session(servers: Servers, version: str) -> None:
    server = servers(version)
    idle = memory_bytes(_pid(server))
    assert idle is not None
    with PeakMemory(_pid(server)) as memory:
        _work(server, "SELECT length(x) FROM (SELECT repeat('x', 50000000) AS x, pg_sleep(0.3) OFFSET 0) AS held")
    assert memory.peak_bytes is not None
    assert idle + 48 * MEGABYTE <= memory.peak_bytes <= idle + 150 * MEGABYTE


@pytest.mark.xdist_group("counters-18.0")
def test_every_counter_is_described(servers: Servers) -> None:
    server = servers("18.0")
    with connect(server.target) as connection:
        found = set(read_counters(connection)) | set(read_host(server.cluster.data_directory))
    assert found <= set(COUNTERS)


def test_files_of_a_stopped_server_are_evicted_from_the_page_cache() -> None:
    with own_server("zonky:18.0", SETTINGS, open_cache().runs) as server:
        server.start()
        _work(server, "CREATE TABLE t (id int, filler text)", FILL)
        server.stop()
        share = evict(server.cluster.data_directory)
    # A few pages are in use by others.
    assert share is not None
    assert share < 0.05


@on("12.22", "17.8")
def test_the_first_window_excludes_the_warm_up(servers: Servers, version: str, open_directory: Path) -> None:
    # Before 15, statistics requested a moment ago are returned again for half a second, so this load requests them.
    script = Script(name="asking", text="SELECT pg_stat_get_db_xact_commit(0);\n")
    workload = PgbenchWorkload(scripts=(script,))
    user = server_user()
    load = PgbenchLoad(
        workload=workload,
        client=fixed_client(user),
        script_files=write_scripts(workload, open_directory, user),
        scratch=open_directory / "logs",
        kept_logs=None,
        connect_allowance_s=0,
        longest_s=60.0,
    )
    running = ServerSet([ExternalServer(comparison().baseline, servers(version).target.conninfo)])
    preparation = Preparation(
        design=Design(warm_up_s=1.0), arms=(), differences=(), writes=False, connect_allowance_s=0
    )
    trial_runner = WarmTrialRunner(running, [load], preparation)
    try:
        trial_runner.start(0)
        trial_runner.warm_up(0, seed=1)
        trial_runner.measure(0, seed=2, name="")
        (first,) = trial_runner.collect(0)
    finally:
        trial_runner.stop_all()
    # In addition to the load: pgbench's own sessions and our reading.
    assert first.counters["transactions_committed"] <= first.transactions + 20


class Copied(ExternalServer):
    """A server that only pretends to have a copy of its own."""

    was_forgotten = False

    def forget_copy(self) -> None:
        self.was_forgotten = True


@pytest.mark.parametrize("writes", [False, True])
@on("17.8")
def test_a_copy_that_a_cold_load_has_changed_is_replaced(servers: Servers, version: str, *, writes: bool) -> None:
    target = servers(version).target
    server = Copied(comparison().baseline, target.conninfo)
    preparation = Preparation(design=Design(), arms=(), differences=(), writes=False, connect_allowance_s=0)
    trial_runner = ColdTrialRunner(ServerSet([server]), [], preparation)
    trial_runner.start(0)
    with connect(target) as connection:
        connection.execute("CREATE TABLE changed AS SELECT 1; DROP TABLE changed" if writes else "SELECT 1")
    trial_runner.stop_all()
    assert server.was_forgotten is writes


def test_read_calls_show_how_many_blocks_each_reads() -> None:
    """A table larger than shared_buffers is read from files by each scan."""
    settings = {"shared_buffers": "32MB", "autovacuum": "off", "max_parallel_workers_per_gather": "0"}
    with own_server("17.8", settings) as server:
        server.start()
        calls = []
        with psycopg.connect(server.target.conninfo, autocommit=True) as session:
            session.execute("CREATE TABLE large AS SELECT i, repeat('x', 1000) FROM generate_series(1, 60000) AS i")
            session.execute("VACUUM large")
            for limit in (1, 16):
                session.execute(f"SET io_combine_limit = {limit}")
                before = read_calls(_pid(server)) or 0
                for _ in range(5):
                    session.execute("SELECT count(*) FROM large")
                calls.append((read_calls(_pid(server)) or 0) - before)
    # Each scan reads more than 8,000 blocks.
    assert calls[0] > 30_000
    assert calls[0] > 5 * calls[1] > 0
