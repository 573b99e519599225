"""An application is recorded on one server: its dump, its counters and its logs are all that an upgrade check needs."""

import json
import re
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import psycopg
import pytest
from psycopg.conninfo import conninfo_to_dict

from pgversus.host.identity import server_user
from pgversus.postgres.client import fixed_client
from pgversus.postgres.parameters import suggestion
from pgversus.postgres.server import Server
from pgversus.postgres.session import connect, uri_target
from pgversus.statements.literals import with_casts, with_lists
from pgversus.statements.statement import NO_VALUES, ValueClass
from pgversus.store.folder import confirmation_folder, holds_results
from pgversus.study.targets import CHANGED_DEFAULTS, default_in
from tests.live.conftest import CommandLine, own_server, results_database
from tests.recorded_shop import SHOP, shop_statements

SETTINGS = {
    "logging_collector": "on",
    "log_destination": "stderr,csvlog,jsonlog",
    "log_filename": "server.log",
    "shared_preload_libraries": "pg_stat_statements",
    "pg_stat_statements.track": "top",
}
EXPORT = "COPY (SELECT * FROM pg_stat_statements) TO STDOUT CSV HEADER"
LOAD = """\\set aid random(1, 100000)
SELECT abalance FROM pgbench_accounts WHERE aid = :aid;
UPDATE pgbench_accounts SET abalance = abalance + 1 WHERE aid = :aid;
"""
LAST_ENTRY = "the last entry of each log"
LOGS = ("server.log", "server.csv", "server.json")
SPEED = "Resource Usage|Query Tuning|Write-Ahead Log|Vacuum"
"""Categories of settings, as the servers name them."""


@dataclass
class Recorded:
    """The files of an application that ran two prepared statements and a report."""

    dump: Path
    counters: Path
    logs: list[Path]
    uri: str
    """URI of its database, on a running server."""


@pytest.fixture(scope="module")
def application(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Recorded]:
    folder = tmp_path_factory.mktemp("application")
    client = fixed_client(server_user())
    with own_server("16.12", SETTINGS) as server:
        server.start()
        conninfo = server.target.conninfo
        subprocess.run([client.pgbench, "-i", "-q", "-s", "1", conninfo], check=True, capture_output=True)
        dump = folder / "app.dump"
        subprocess.run([client.psql.with_name("pg_dump"), "-Fc", "-f", dump, conninfo], check=True)
        with psycopg.connect(conninfo, autocommit=True) as connection:
            connection.execute("CREATE EXTENSION pg_stat_statements")
            # Log only new sessions: the statements of pg_dump are not part of the application.
            connection.execute("ALTER ROLE postgres SET log_min_duration_statement = 0")
            connection.execute("SET pg_stat_statements.track = none")
            connection.execute("SELECT pg_stat_statements_reset()")
        (folder / "load.sql").write_text(LOAD)
        load = [str(client.pgbench), "-n", "-M", "prepared", "-f", str(folder / "load.sql"), "-t", "30", conninfo]
        subprocess.run(load, check=True, capture_output=True)
        with psycopg.connect(conninfo, autocommit=True) as connection:
            for branch in (1, 2):
                connection.execute("SELECT count(*) FROM pgbench_accounts WHERE bid = %s", (branch,)).fetchall()
            with connection.cursor().copy(EXPORT) as copied:
                content = b"".join(bytes(chunk) for chunk in copied)
            connection.execute(f"SELECT '{LAST_ENTRY}'")
        (folder / "statements.csv").write_bytes(content)
        logs = []
        for name in LOGS:
            (folder / name).write_bytes(complete_log(server.cluster.data_directory / "log" / name))
            logs.append(folder / name)
        yield Recorded(dump=dump, counters=folder / "statements.csv", logs=logs, uri=uri_of(server))


def complete_log(path: Path) -> bytes:
    """Return a log that contains its last entry: the server's logging collector writes some time after the backends."""
    deadline = time.monotonic() + 60
    while LAST_ENTRY.encode() not in (content := path.read_bytes()) or not content.endswith(b"\n"):
        assert time.monotonic() < deadline, f"{path.name} does not contain the last statement"
        time.sleep(0.05)
    return content


def uri_of(server: Server) -> str:
    parameters = conninfo_to_dict(server.target.conninfo)
    place = f"host={parameters['host']}&port={parameters['port']}"
    return f"postgresql://{parameters['user']}@/{parameters['dbname']}?{place}"


def listed(command_line: CommandLine, *sources: Path | str) -> dict[str, dict[str, object]]:
    """Return the statements on pgbench's tables in these sources, by fingerprint."""
    ended = command_line.run("statements", *map(str, sources), "--json")
    assert ended.code == 0, ended.stderr
    statements = ended.document["statements"]
    wanted = ("SELECT", "UPDATE", "INSERT")
    return {
        one["fingerprint"]: one
        for one in statements
        if "pgbench_" in one["text"] and one["text"].startswith(wanted) and one["calls"] < 1000
    }


def test_counters_and_all_forms_of_logs_name_the_same_statements(
    command_line: CommandLine, application: Recorded
) -> None:
    counters = listed(command_line, application.counters)
    assert {one["calls"] for one in counters.values()} == {30, 2}
    assert {one["obstacle"] for one in counters.values()} == {"no values for its parameters"}
    for log in application.logs:
        found = listed(command_line, log)
        assert counters.keys() <= found.keys()
        for fingerprint, one in counters.items():
            assert found[fingerprint]["calls"] == one["calls"], log.name
            assert found[fingerprint]["obstacle"] == ""
    both = listed(command_line, application.counters, application.logs[1])
    assert {both[fingerprint]["obstacle"] for fingerprint in counters} == {""}


def test_counters_are_read_from_a_running_server(command_line: CommandLine, application: Recorded) -> None:
    now, exported = (listed(command_line, source) for source in (application.uri, application.counters))
    for one in (*now.values(), *exported.values()):
        # The server has executed the export since.
        del one["share"]
    assert now == exported
    ended = command_line.run("statements", application.uri.replace("/postgres?", "/template1?"))
    assert "the database does not have pg_stat_statements" in ended.stderr


@pytest.mark.long
def test_pgbenchs_own_load_is_checked_from_its_dump_and_records(
    command_line: CommandLine, application: Recorded, tmp_path: Path
) -> None:
    arguments = ["upgrade-check", "16.12", "17.8", "--restore", str(application.dump), "--budget", "5s"]
    # All of them: on a busy machine the fast UPDATE can have less than 1% of the time.
    arguments += ["--coverage", "100%"]
    sources = ["--statements", str(application.counters), "--statements", str(application.logs[1])]
    results = str(tmp_path / "results")
    ended = command_line.run(*arguments, *sources, "--results", results, "--json")
    assert ended.code == 0, ended.stderr
    assert re.search(
        r"^\d+ statements: about [\d.]+ GB of disk space or more, \d+ s to load and to try them, ",
        ended.stderr,
        re.MULTILINE,
    )
    (upgrade,) = ended.document["upgrades"]
    found = {one["statement"]["text"].split()[0]: one for one in upgrade["statements"]}
    assert {"SELECT", "UPDATE"} <= found.keys(), upgrade["left_out"]
    assert found["EXPLAIN"]["statement"]["is_planning"]
    assert {one["finding"] for one in upgrade["statements"]}.isdisjoint({"fails", "different rows", "not measured"})
    assert all(one["low"] < one["ratio"] < one["high"] for one in upgrade["statements"])
    # The export of the counters.
    assert any(one["obstacle"].startswith("not a SELECT") for one in upgrade["left_out"])
    report = command_line.run("report", results)
    assert "from 16.12 to 17.8" in report.stdout
    again = command_line.run(*arguments, *sources, "--results", results, "--json")
    assert again.document["upgrades"] == ended.document["upgrades"]


LIST = "SELECT abalance FROM pgbench_accounts WHERE aid IN ($1 /*, ... */)"
MANY_COLUMNS = """
CREATE TABLE many AS SELECT 0 AS a, 0 AS b, 0 AS c, 0 AS d, 0 AS e, 0 AS f, CASE WHEN i % 9 = 0 THEN i ELSE 0 END AS g
FROM generate_series(1, 9000) AS i;
ANALYZE many;
"""
PARTITIONS = """
CREATE TABLE whole (day int, kind int) PARTITION BY RANGE (day);
CREATE TABLE part_1 PARTITION OF whole FOR VALUES FROM (0) TO (10);
CREATE TABLE part_2 PARTITION OF whole FOR VALUES FROM (10) TO (200);
INSERT INTO whole SELECT i, CASE WHEN i < 10 THEN 1 ELSE 2 END FROM generate_series(1, 110) AS i;
ANALYZE whole;
"""


def test_statistics_suggest_values_for_parameters(application: Recorded) -> None:
    with connect(uri_target(application.uri, ())) as connection:
        # The counters remain those of the application.
        connection.execute("SET pg_stat_statements.track = none")
        (one,) = suggestion(connection, "SELECT abalance FROM pgbench_accounts WHERE aid = $1 LIMIT $2").samples
        assert 1 <= int(one.values[0] or 0) <= 100_000
        assert (one.values[1], one.value_class) == ("10", ValueClass.COMMON)
        update = "UPDATE pgbench_accounts SET bid = $1 WHERE aid BETWEEN $2 AND $3"
        common, rare = (found.values for found in suggestion(connection, update).samples)
        assert common[0] == rare[0] == "1"
        widths = [int(values[2] or 0) - int(values[1] or 0) for values in (common, rare)]
        assert widths[0] > 10 * widths[1] > 0
        rejected = suggestion(connection, "SELECT 1 FROM nowhere WHERE a = $1")
        assert rejected.samples == ()
        assert rejected.obstacle == 'rejected by the server: relation "nowhere" does not exist'
        unknown = suggestion(connection, "SELECT aid FROM pgbench_accounts WHERE aid % 7 = $1")
        assert (unknown.samples, unknown.obstacle) == ((), NO_VALUES)
        # As pg_stat_statements has it, and as applications ask whether there is a row.
        text = "SELECT $1 AS one FROM pgbench_accounts WHERE aid = $2 AND now() > now() - interval $3 LIMIT $4"
        (one,) = suggestion(connection, with_casts(text)).samples
        assert (one.values[0], *one.values[2:]) == ("x", "1 day", "10")
        # 18 does not report the length of a list.
        (one,) = suggestion(connection, with_lists(LIST)).samples
        assert len(set(one.values)) == 10
        # One query for each column: psycopg must prepare none of them itself.
        connection.execute(MANY_COLUMNS)
        conditions = " AND ".join(f"{column} = ${number}" for number, column in enumerate("abcdefg", start=1))
        of_columns = suggestion(connection, f"SELECT FROM many WHERE {conditions}").samples
        assert [len(one.values) for one in of_columns] == [7, 7]
        connection.execute("DROP TABLE many")
        connection.execute(PARTITIONS)
        # The value of the whole table, not that of its first partition.
        assert suggestion(connection, "SELECT * FROM whole WHERE kind = $1").samples[0].values == ("2",)
        connection.execute("DROP TABLE whole")
        # Each of them was planned, none executed.
        assert connection.execute("SELECT count(*) FROM pgbench_accounts WHERE bid = 1").fetchone() == (100_000,)


TABLE = """
CREATE TABLE w AS SELECT i::bigint * 7919 % 100003 AS v, repeat('x', 800) AS filler FROM generate_series(1, 30000) AS i;
CREATE INDEX ON w (v);
"""
STATEMENTS = """
-- name: distinct sum
SELECT sum(DISTINCT v) FROM w;
-- name: longest
SELECT max(length(filler)) FROM w WHERE v >= 0;
"""


@pytest.mark.long
def test_side_effects_of_settings_that_undo_a_slower_statement_are_measured(
    command_line: CommandLine, tmp_path: Path
) -> None:
    """16 reads an index in order for a distinct sum; 15 sorts the table unless sequential scans are disabled."""
    (tmp_path / "setup.sql").write_text(TABLE)
    (tmp_path / "statements.sql").write_text(STATEMENTS)
    data = ["--setup", str(tmp_path / "setup.sql"), "--statements", str(tmp_path / "statements.sql")]
    costs = ["--set", "random_page_cost=0", "--set", "seq_page_cost=0", "--set", "max_parallel_workers_per_gather=0"]
    results = str(tmp_path / "results")
    arguments = [*data, *costs, "--budget", "2m", "--results", results]
    ended = command_line.run("upgrade-check", "16.12", "15.14", *arguments, "--json")
    # On a busy host, the first windows may end before an execution does.
    assert ended.code in (0, 4), ended.stderr
    (upgrade,) = ended.document["upgrades"]
    found = {one["statement"]["name"]: one for one in upgrade["statements"]}["distinct sum"]
    assert found["finding"] == "slower"
    assert found["undone_by"]["settings"] == "enable_seqscan = off"
    (effect,) = found["undone_by"]["side_effects"]
    assert effect["statement"] == "longest"
    assert effect["low"] < effect["ratio"] < effect["high"]
    report = command_line.run("report", results)
    assert "enable_seqscan = off also changes the plan of 1 other statement: longest (" in report.stdout


@pytest.mark.long
def test_a_check_that_is_killed_in_its_confirmation_is_resumed(command_line: CommandLine) -> None:
    # On a busy host, executions must be much shorter than windows.
    command_line.write("setup.sql", TABLE.replace("30000", "3000"))
    command_line.write("statements.sql", STATEMENTS.partition("-- name: longest")[0])
    data = ("--setup", "setup.sql", "--statements", "statements.sql", "--no-plans", "--results", "results")
    costs = ("--set", "random_page_cost=0", "--set", "seq_page_cost=0", "--set", "max_parallel_workers_per_gather=0")
    arguments = ("upgrade-check", "16.12", "15.14", *data, *costs)
    process = command_line.start(*arguments, "--json")
    confirmation = confirmation_folder(command_line.directory / "results")
    command_line.wait_for(lambda: holds_results(confirmation) and blocks_in(confirmation), seconds=180)
    process.kill()
    process.communicate(timeout=60)
    before = {folder: blocks_in(folder) for folder in (confirmation.parent, confirmation)}
    assert len(before[confirmation.parent]) == 12
    ended = command_line.run(*arguments, "--json")
    assert ended.code == 0, ended.stderr
    (upgrade,) = ended.document["upgrades"]
    findings = {one["statement"]["name"]: one["finding"] for one in upgrade["statements"]}
    assert findings["distinct sum"] == "slower"
    for folder, blocks in before.items():
        assert blocks_in(folder)[: len(blocks)] == blocks


def blocks_in(results: Path) -> list[tuple[object, ...]]:
    """Return all stored blocks with the time at which they ended, in order."""
    with results_database(results) as database:
        found = database.execute("SELECT context, block, finished_at FROM block ORDER BY rowid").fetchall()
    database.close()
    return found


UNKNOWN_VALUES = """
-- name: by kind
SELECT count(*) FROM things WHERE kind = $1 AND id > $2;
-- name: function
SELECT * FROM things WHERE kind = abs($1) ORDER BY id LIMIT 5;
-- name: missing
SELECT * FROM nowhere WHERE a = $1;
-- name: nested
SELECT count(*) FROM things a WHERE kind IN (SELECT kind FROM things b WHERE b.other = a.other);
"""
OWN_TABLE = "CREATE TABLE things (id int PRIMARY KEY, kind int, other int);"


@pytest.mark.long
def test_plans_are_compared_even_if_only_the_schema_is_known(command_line: CommandLine) -> None:
    command_line.write("schema.sql", OWN_TABLE)
    command_line.write("statements.sql", UNKNOWN_VALUES)
    # The second one was removed in 17, and the third one never concerns a copy.
    command_line.write("postgresql.conf", "enable_nestloop = off\nold_snapshot_threshold = 1h\nport = 6543\n")
    settings = ("--conf", "postgresql.conf")
    ended = command_line.run(
        "plans", "16.12", "17.8", "--setup", "schema.sql", "--statements", "statements.sql", *settings, "--json"
    )
    assert ended.code == 0, ended.stderr
    assert "skipped: old_snapshot_threshold" in ended.stderr
    assert "skipped: port of postgresql.conf (settings of file locations" in ended.stderr
    found = {one["statement"].partition(".sql")[0]: one for one in ended.document["comparisons"]}
    assert {name: one["same_plan"] for name, one in found.items()} == {
        "by kind": True,
        "function": True,
        # From 17 on, a correlated IN becomes a join.
        "nested": False,
    }
    assert "kind = $1" in found["by kind"]["statement"]
    (missing,) = ended.document["not_compared"]
    assert missing["statement"] == "missing"
    assert 'relation "nowhere" does not exist' in missing["reason"]
    sources = ("--setup", "schema.sql", "--statements", "statements.sql")
    refused = command_line.run("upgrade-check", "16.12", "17.8", *sources)
    assert (refused.code, "error[dataset-empty]" in refused.stderr) == (2, True), refused.stderr


HOSTILE = """
-- name: file
SELECT lo_export(lo_from_bytea(0, 'written by a statement'), '{file}');

-- name: first the rights
SELECT set_config('session_authorization', 'postgres', false), lo_export(lo_from_bytea(0, 'written'), '{file}');

-- name: reading
SELECT pg_read_file('/etc/passwd');

-- name: several
SELECT 1; DROP TABLE things; COPY things TO PROGRAM 'touch {file}';

-- name: not restored
SELECT count(*) FROM places;

-- name: prepared
PREPARE evil AS DELETE FROM things;

-- name: unknown
SELEC * FROM things WHERE (;

-- name: function of the application
SELECT cleaned(7), "My Schema"."of My Type"(ROW(1)), lo_get(photo) FROM photos;

-- name: security definer
SELECT run_sql($sql$COPY (SELECT 1) TO PROGRAM 'touch {file}'$sql$);

-- name: new table
SELECT make_table();

-- name: other server
SELECT count(*) FROM elsewhere;

-- name: view of another server
SELECT count(*) FROM seen_elsewhere;

-- name: dblink
SELECT * FROM dblink('host=' || current_setting('unix_socket_directories'), 'SELECT 1') AS found (a int);

-- name: without values
SELECT count(*) FROM kinds.kind AS one
WHERE kind IN (SELECT two.kind FROM kinds.kind AS two WHERE two.kind = one.kind AND abs(two.kind) = $1);

-- name: harmless
SELECT count(*) FROM things JOIN kinds.kind USING (kind) WHERE id = 7;

-- name: writing
INSERT INTO things (kind) VALUES (1) RETURNING id;
"""
OWN_SCHEMA = """
CREATE SCHEMA kinds;
CREATE TABLE kinds.kind (kind int PRIMARY KEY);
CREATE TABLE things (id int GENERATED ALWAYS AS IDENTITY, kind int);
INSERT INTO kinds.kind VALUES (1);
INSERT INTO things (kind) SELECT 1 FROM generate_series(1, 100);
ALTER TABLE things ENABLE ROW LEVEL SECURITY;
CREATE FUNCTION cleaned(int) RETURNS int LANGUAGE sql AS 'SELECT $1';
REVOKE ALL ON FUNCTION cleaned(int) FROM PUBLIC;
CREATE SCHEMA "My Schema";
CREATE TYPE "My Schema"."My Type" AS (a int);
CREATE FUNCTION "My Schema"."of My Type"("My Schema"."My Type") RETURNS int LANGUAGE sql AS 'SELECT 1';
REVOKE ALL ON FUNCTION "My Schema"."of My Type"("My Schema"."My Type") FROM PUBLIC;
CREATE TABLE photos AS SELECT lo_from_bytea(0, 'a') AS photo;
CREATE FUNCTION run_sql(text) RETURNS void LANGUAGE plpgsql SECURITY DEFINER AS 'BEGIN EXECUTE $1; END';
CREATE FUNCTION make_table() RETURNS void LANGUAGE sql AS 'CREATE TABLE public.made (a int)';
CREATE FUNCTION refuse() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION $a$refused$a$; END';
CREATE EVENT TRIGGER no_grants ON ddl_command_end WHEN TAG IN ('GRANT') EXECUTE FUNCTION refuse();
CREATE ROLE pgversus_application NOLOGIN;
CREATE EXTENSION dblink;
CREATE EXTENSION postgres_fdw;
CREATE SERVER other FOREIGN DATA WRAPPER postgres_fdw OPTIONS (dbname 'postgres');
CREATE USER MAPPING FOR PUBLIC SERVER other;
CREATE FOREIGN TABLE elsewhere (kind int) SERVER other OPTIONS (table_name 'things');
CREATE VIEW seen_elsewhere AS SELECT * FROM elsewhere;
"""
# As pg_dump writes it.
BROKEN_DUMP = """-- PostgreSQL database dump
SET nothing_that_exists = on;
CREATE EXTENSION IF NOT EXISTS postgis;
CREATE TABLE places (id int, place geometry);
CREATE TABLE restored AS SELECT 1 AS id;
"""


@pytest.mark.long
def test_hostile_statements_change_nothing_outside_the_servers(command_line: CommandLine, tmp_path: Path) -> None:
    # The servers' user may write here.
    tmp_path.chmod(0o777)
    file = tmp_path / "written"
    command_line.write("schema.sql", OWN_SCHEMA)
    command_line.write("hostile.sql", HOSTILE.format(file=file))
    command_line.write("broken.sql", BROKEN_DUMP)
    data = ("--restore", "broken.sql", "--setup", "schema.sql", "--statements", "hostile.sql", "--budget", "5s")
    ended = command_line.run("upgrade-check", "12.22", "17.8", *data, "--json", "--results", "results")
    assert not file.exists()
    (upgrade,) = ended.document["upgrades"]
    findings = {one["statement"]["name"]: one for one in upgrade["statements"]}
    for name in ("file", "first the rights", "reading"):
        assert "permission denied" in str(findings[name]), findings[name]
    assert "must be superuser" in str(findings["security definer"]), findings["security definer"]
    for name in ("other server", "view of another server"):
        assert 'foreign-data wrapper "postgres_fdw" has no handler' in str(findings[name]), findings[name]
    assert "permission denied for function dblink" in str(findings["dblink"]), findings["dblink"]
    assert 'relation "places" does not exist' in str(findings["not restored"])
    for name in ("function of the application", "new table", "harmless", "writing"):
        assert findings[name]["ratio"] is not None, findings[name]
    # From 17 on, a correlated IN becomes a join.
    assert {one["name"]: one["has_changed_plan"] for one in upgrade["left_out"]} == {
        "several 2": None,
        "several 3": None,
        "prepared": None,
        "unknown": None,
        "without values": True,
    }
    left_out = {one["name"]: one["obstacle"] for one in upgrade["left_out"]}
    utility = "not a SELECT, INSERT, UPDATE, DELETE or MERGE"
    assert left_out == {
        "several 2": utility,
        "several 3": utility,
        "prepared": utility,
        "unknown": "not a single SQL statement that the parser recognizes",
        "without values": "no values for its parameters",
    }
    report = command_line.run("report", "results").stdout
    assert "left out" in report
    assert "prepared: PREPARE evil AS DELETE FROM things" in report


@pytest.mark.long
def test_targets_can_be_checked_with_the_statistics_of_upgrade_day(command_line: CommandLine) -> None:
    columns = "CREATE TABLE t AS SELECT i % 100 AS a, i % 100 AS b FROM generate_series(1, 10000) AS i;"
    command_line.write("setup.sql", f"{columns}\nCREATE STATISTICS s ON a, b FROM t;\n")
    both, one = "SELECT count(*) FROM t WHERE a = 5 AND b = 5", "SELECT count(*) FROM t WHERE a = 5"
    command_line.write("statements.sql", f"{both} UNION ALL {one};")
    arguments = ["--setup", "setup.sql", "--statements", "statements.sql", "--results", "r", "--json"]
    kinds = ["--statistics", "none", "--statistics", "kept", "--budget", "5s"]
    ended = command_line.run("upgrade-check", "12.22", "17.8", *kinds, *arguments)
    assert ended.code == 0, ended.stderr
    targets = [one["target"] for one in ended.document["upgrades"]]
    assert targets == ["17.8", "17.8 without statistics", "17.8 with kept statistics"]
    # The data are loaded once on each version.
    assert "loading the data of 17.8 with" not in ended.stderr
    with results_database(command_line.directory / "r") as database:
        plans = database.execute("SELECT planned FROM plan WHERE context = 1 ORDER BY arm").fetchall()
    database.close()
    # A hundred rows have both values. Without extended statistics, the combination seems rare.
    old, usual, none, kept = (
        [counted["Plans"][0]["Plan Rows"] for counted in json.loads(text)[0]["Plan"]["Plans"]] for (text,) in plans
    )
    hundred = pytest.approx(100, abs=10)
    assert old == usual == [hundred, hundred]
    assert kept == [1, hundred]
    assert none[1] != hundred


@pytest.mark.long
def test_a_prepared_statement_is_executed_and_explained_as_prepared(command_line: CommandLine) -> None:
    rows = "CREATE TABLE t AS SELECT i AS a FROM generate_series(1, 10000) AS i;"
    put = "CREATE FUNCTION put() RETURNS int LANGUAGE sql AS 'INSERT INTO puts VALUES (1) RETURNING a';"
    command_line.write("setup.sql", f"{rows}\nCREATE UNIQUE INDEX ON t (a);\nCREATE TABLE puts (a int);\n{put}\n")
    lookup = "-- name: lookup\n-- values: $1 = '7', $2 = NULL\nSELECT a, coalesce($2, 'none') FROM t WHERE a = $1;\n"
    command_line.write(
        "some.sql", f"{lookup}-- name: untyped\n-- values: $1 = 'x'\nSELECT $1 IS NULL;\n-- name: put\nSELECT put();\n"
    )
    arguments = ["-M", "prepared", "--setup", "setup.sql", "--statements", "some.sql", "--budget", "5s"]
    ended = command_line.run("upgrade-check", "12.22", "17.8", *arguments, "--results", "r", "--json")
    assert ended.code == 0, ended.stderr
    (upgrade,) = ended.document["upgrades"]
    assert {one["finding"] for one in upgrade["statements"]} & {"fails", "different rows", "not measured"} == set()
    writing = {one["statement"]["name"]: one["statement"]["volatile_functions"] for one in upgrade["statements"]}
    assert {name: functions for name, functions in writing.items() if functions} == {"put": ["put()"]}
    with results_database(command_line.directory / "r") as database:
        plans = database.execute(
            "SELECT script, parameters, planned, row_count FROM plan WHERE number = 1 AND template IS NOT NULL"
        ).fetchall()
    database.close()
    assert [(script, parameters, count) for script, parameters, _, count in plans] == [
        ("lookup.sql", '["7", null]', 1)
    ] * 2
    # Generic, from the sixth execution on.
    assert all("$1" in planned for _, _, planned, _ in plans)


def defaults(version: str) -> dict[str, str]:
    """Return the default of each setting that may affect speed."""
    with own_server(version) as server:
        server.start()
        with psycopg.connect(server.target.conninfo) as connection:
            # initdb sets shared_buffers whatever its default is.
            query = "SELECT name, boot_val FROM pg_settings WHERE category ~ %s AND name <> 'shared_buffers'"
            return dict(connection.execute(query, (SPEED,)))


@pytest.mark.long
def test_the_known_changes_of_defaults_match_the_servers() -> None:
    found = {
        int(version.partition(".")[0]): defaults(version) for version in ("12.22", "15.14", "16.12", "17.8", "18.0")
    }
    for (old, before), (new, after) in pairwise(found.items()):
        changed = {name for name in before.keys() & after.keys() if before[name] != after[name]}
        known = {name: (default_in(name, old), default_in(name, new)) for name in CHANGED_DEFAULTS}
        assert changed == {name for name, (was, now) in known.items() if was not in (None, now)}, (old, new)


def test_every_statement_of_the_bundled_shop_finds_rows() -> None:
    client = fixed_client(server_user())
    with own_server("18.0", {"fsync": "off"}) as server:
        server.start()
        conninfo = server.target.conninfo
        load = [str(client.psql), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-f", str(SHOP / "shop.sql"), conninfo]
        subprocess.run(load, check=True, capture_output=True)
        with psycopg.connect(conninfo, cursor_factory=psycopg.RawCursor) as connection:
            connection.execute("ANALYZE")
            for one in shop_statements():
                for sample in one.samples:
                    found = connection.execute(sample.text, sample.values)
                    assert found.rowcount > 0, one.name
            connection.rollback()
