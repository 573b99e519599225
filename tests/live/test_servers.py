"""External servers by URI, bin directories, and arms that were built differently."""

import re

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from pgversus.lab.studies import library
from pgversus.postgres.catalog import server_properties, table_digests
from pgversus.postgres.session import connect, uri_target
from tests.live.conftest import QUICK, CommandLine, provided, somebodys_server

FILLED = "CREATE TABLE t AS SELECT g AS id FROM generate_series(1, 1000) AS g"


def test_external_servers_are_compared_and_left_unchanged(command_line: CommandLine) -> None:
    script = command_line.write("count.sql", "SELECT count(*) FROM t;\n")
    with somebodys_server("16.12", FILLED) as one, somebodys_server("17.8", FILLED) as other:
        ended = command_line.compare(one, other, "--set", "work_mem=8MB", "-f", script, *QUICK)
        assert ended.code == 0, ended.stderr
        for uri in (one, other):
            with psycopg.connect(uri) as connection:
                extensions = connection.execute("SELECT count(*) FROM pg_extension").fetchone()
                work_mem = connection.execute("SHOW work_mem").fetchone()
                assert (extensions, work_mem) == ((1,), ("4MB",))
    document = ended.comparison
    assert ended.caveats == ["not-restarted"]
    # Once per server, with the size of the database.
    assert len(re.findall(r"reading and hashing every row on .*, a database of [\d.]+ MB", ended.stderr)) == 2
    assert [arm["version"] for arm in document["arms"]] == ["16.12", "17.8"]


@pytest.mark.long
def test_the_effect_of_plans_is_measured_on_external_servers(command_line: CommandLine) -> None:
    """Existing data is not loaded again, and the old plan is restored only in the connection."""
    case = library() / "planner-16-vs-17"
    data = (case / "group_by.sql").read_text()
    settings = ("--set", "enable_hashagg=off", "--set", "max_parallel_workers_per_gather=0")
    few = ("--blocks", "3", "--window", "50ms", "--windows", "4")
    # Loaded like a managed server: an index scan of pages that are not all-visible gains little over the sort.
    prepared = (data, "VACUUM (ANALYZE)")
    with somebodys_server("16.12", *prepared) as one, somebodys_server("17.8", *prepared) as other:
        ended = command_line.compare(one, other, *settings, "-f", str(case / "group_by_order.sql"), *few)
        with psycopg.connect(other) as connection:
            assert connection.execute("SHOW enable_group_by_reordering").fetchone() == ("on",)
    assert ended.code == 0, ended.stderr
    (verdict,) = ended.comparison["verdicts"]
    assert verdict["verdict"] == "faster"
    found = verdict["attribution"]
    assert (found["plans_recalled_by"], found["not_measured"]) == ("enable_group_by_reordering = off", None)
    assert found["plans"]["value"] > found["rest"]["value"]
    assert len(re.findall("reading and hashing every row on", ended.stderr)) == 2


def test_settings_of_arms_override_those_in_a_uri(command_line: CommandLine) -> None:
    # The script fails unless its session has the setting of its arm.
    one_row = "SELECT 1 / count(*) FROM pg_settings WHERE name = 'work_mem' AND setting IN ('4096', '65536');\n"
    script = command_line.write("settings.sql", one_row)
    with somebodys_server("17.8") as uri:
        separator = "&" if "?" in uri else "?"
        with_options = f"{uri}{separator}options=-c%20work_mem%3D8MB%20-c%20jit%3Doff"
        ended = command_line.compare(with_options, "--set", "work_mem=4MB,64MB", "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    assert [arm["settings"]["work_mem"] for arm in ended.comparison["arms"]] == ["4MB", "64MB"]


def test_levels_rejected_by_an_external_server_are_reported_before_loading(command_line: CommandLine) -> None:
    script = command_line.write("count.sql", "SELECT count(*) FROM t;\n")
    setup = command_line.write("fill.sql", f"{FILLED};\n")
    with somebodys_server("17.8") as uri:
        refused = command_line.compare(
            uri, "--setup", setup, "--set", "work_mem=4MB,1kB", "--set", "shared_buffers=1GB", "-f", script, *QUICK
        )
        same = command_line.compare(uri, "--set", "work_mem=4MB,4096kB", "-f", script, *QUICK)
        with psycopg.connect(uri) as connection:
            assert connection.execute("SELECT to_regclass('t')").fetchone() == (None,)
    assert refused.code == 2
    assert "1 kB is outside the valid range" in refused.stderr
    assert 'parameter "shared_buffers" cannot be changed without restarting the server' in refused.stderr
    assert same.code == 2
    assert "study-same-levels" in same.stderr


def test_external_servers_with_different_data_are_rejected(command_line: CommandLine) -> None:
    script = command_line.write("count.sql", "SELECT count(*) FROM t;\n")
    with (
        somebodys_server("17.8", FILLED) as one,
        somebodys_server("17.8", FILLED, "INSERT INTO t SELECT * FROM t") as other,
    ):
        ended = command_line.compare(one, other, "-f", script, *QUICK)
    assert ended.code == 2
    assert "public.t: 1000 rows on" in ended.stderr
    assert "2000 rows on" in ended.stderr


def test_pgbench_tables_of_an_external_server_are_never_dropped(command_line: CommandLine) -> None:
    # Two of the four tables that -i drops, one of them reachable only through the role's search path.
    tables = (
        "CREATE SCHEMA bench",
        "ALTER ROLE postgres SET search_path = public, bench",
        "CREATE TABLE pgbench_history (mine int)",
        "CREATE TABLE bench.pgbench_tellers (mine int)",
    )
    with somebodys_server("17.8", *tables) as one:
        ended = command_line.compare(one, one, "-i", "-S", *QUICK)
        assert ended.code == 2
        assert "error[dataset-would-drop]" in ended.stderr
        assert "pgbench_history, pgbench_tellers" in ended.stderr
        with psycopg.connect(one) as connection:
            assert connection.execute("SELECT count(*) FROM pgbench_history, pgbench_tellers").fetchone() == (0,)


@pytest.mark.long
def test_a_password_in_a_uri_appears_in_no_output_and_no_results(command_line: CommandLine) -> None:
    script = command_line.write("one.sql", "SELECT 1;\n")
    with somebodys_server("17.8", "CREATE ROLE u LOGIN SUPERUSER PASSWORD 'Geheim99'") as uri:
        secret = uri.replace("postgres@", "u:Geheim99@")
        ended = command_line.compare(secret, secret, "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    assert "Geheim99" not in ended.stdout + ended.stderr
    kept = [path for path in (command_line.directory / "results").rglob("*") if path.is_file()]
    assert kept
    assert not any(b"Geheim99" in path.read_bytes() for path in kept)


def test_names_in_a_database_without_an_encoding_are_read() -> None:
    create = "CREATE DATABASE old ENCODING 'SQL_ASCII' LC_COLLATE 'C' LC_CTYPE 'C' TEMPLATE template0"
    with (
        somebodys_server("17.8", create) as uri,
        connect(uri_target(make_conninfo(uri, dbname="old"), ())) as connection,
    ):
        connection.execute('CREATE TABLE "größe" AS SELECT 1 AS id')
        assert list(table_digests(connection)) == ["public.größe"]


def test_an_unreachable_uri_is_an_error(command_line: CommandLine) -> None:
    ended = command_line.compare("postgresql:///x?host=/nowhere", "postgresql:///y?host=/nowhere", "-S")
    assert ended.code == 3
    assert "error[server-connection]" in ended.stderr


def test_a_uri_that_requires_tls_is_rejected_before_connecting(command_line: CommandLine) -> None:
    uri = "postgresql:///x?host=/nowhere&sslmode=require"
    ended = command_line.compare(uri, uri, "-S")
    assert ended.code == 3
    assert "error[build-client-unencrypted]" in ended.stderr
    assert "--pgbench" in ended.stderr


def test_a_bin_directory_is_used_as_it_is(command_line: CommandLine) -> None:
    directory = str(provided("17.8").bin_directory)
    ended = command_line.compare(directory, directory, "-i", "-S", *QUICK)
    assert ended.code == 0, ended.stderr
    assert [arm["origin"] for arm in ended.comparison["arms"]] == ["bin directory"] * 2


@pytest.mark.parametrize(
    ("version", "options", "collation"),
    [
        ("zonky:12.22", "LC_COLLATE 'C'", "C"),
        ("16.12", "LOCALE_PROVIDER icu ICU_LOCALE 'en-US'", "icu en-US"),
        ("17.8", "LOCALE_PROVIDER builtin BUILTIN_LOCALE 'C.UTF-8'", "builtin C.UTF-8"),
    ],
)
def test_the_collation_of_a_database_is_reported_with_its_provider(version: str, options: str, collation: str) -> None:
    with (
        somebodys_server(version, f"CREATE DATABASE other TEMPLATE template0 {options}") as uri,
        connect(uri_target(uri.replace("/postgres?", "/other?"), [])) as connection,
    ):
        properties = server_properties(connection)
    assert (properties.collation, properties.encoding, properties.has_jit) == (collation, "UTF8", False)


def test_setup_files_have_the_settings_they_need_whatever_the_wal_segment_size(
    command_line: CommandLine,
) -> None:
    programs = provided("17.8").bin_directory
    # A directory that the servers' user can enter.
    other = command_line.cache / "bin"
    other.mkdir()
    for program in programs.iterdir():
        (other / program.name).symlink_to(program)
    (other / "initdb").unlink()
    # As if configured --with-wal-segsize=64.
    (other / "initdb").write_text(f'#!/bin/sh\nexec {programs}/initdb --wal-segsize=64 "$@"\n')
    (other / "initdb").chmod(0o755)
    kept = command_line.cache / "kept"
    kept.write_text("a file")
    kept.chmod(0o666)
    setup = command_line.write(
        "setup.sql",
        # At the next start, the server would write to the file, and remove it when it stops.
        f"ALTER SYSTEM SET external_pid_file = '{kept}';\n"  # noqa: S608 - a path of this test
        "CREATE TABLE t (id int); BEGIN; INSERT INTO t VALUES (1);\n"
        "PREPARE TRANSACTION 'x'; COMMIT PREPARED 'x';\n"
        "SELECT 1 / (current_setting('shared_preload_libraries') = 'auto_explain')::int;\n",
    )
    script = command_line.write("one.sql", "SELECT count(*) FROM t;\n")
    settings = ("--set", "max_prepared_transactions=2", "--set", "shared_preload_libraries=auto_explain")
    ended = command_line.compare(str(other), str(other), *settings, "--setup", setup, "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    assert kept.read_text() == "a file"


def test_differently_built_arms_have_a_caveat_before_the_verdict(command_line: CommandLine) -> None:
    ended = command_line.compare("zonky:17.11", "wheel:17.11", "-i", "-S", *QUICK)
    assert ended.code == 0, ended.stderr
    document = ended.comparison
    assert ended.caveats == ["mixed-builds"]
    assert "mixed-builds" in document["verdicts"][0]["caveats"]
    assert document["answer"][0].startswith("CHECK")


@pytest.mark.long
@pytest.mark.parametrize("name", ["wheel:16.15", "zonky:12.22"])
def test_servers_of_both_families_run(command_line: CommandLine, name: str) -> None:
    ended = command_line.compare(name, name, "-i", "-S", *QUICK)
    assert ended.code == 0, ended.stderr
    assert ended.comparison["arms"][0]["version"] == name.partition(":")[2]
