"""Dumps in every format are restored; objects that a server rejects are reported, and the rest is restored."""

import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psycopg
import pytest

from pgversus.data.dumps import dump_at
from pgversus.data.restoring import restore
from pgversus.errors import DatasetError
from pgversus.host.files import manifest
from pgversus.host.identity import server_user
from pgversus.postgres.client import Client, fixed_client
from pgversus.postgres.server import Server
from pgversus.records.preparation import RestoreProblem
from pgversus.study.dataset import DumpFormat
from tests.live.conftest import QUICK, CommandLine, own_server

SCHEMA = """
CREATE ROLE app;
CREATE TABLE t (id int PRIMARY KEY, name text);
INSERT INTO t SELECT n, 'name ' || n FROM generate_series(1, 1000) AS n;
ALTER TABLE t OWNER TO app;
CREATE FUNCTION f() RETURNS int LANGUAGE sql AS 'SELECT 1';
CREATE VIEW v AS SELECT f(), count(*) FROM t;
-- They concern neither pg_prewarm nor the statistics.
CREATE FUNCTION forbid() RETURNS event_trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''forbidden''; END';
CREATE EVENT TRIGGER forbid ON ddl_command_start WHEN TAG IN ('CREATE EXTENSION') EXECUTE FUNCTION forbid();
CREATE FOREIGN DATA WRAPPER elsewhere;
CREATE SERVER remote FOREIGN DATA WRAPPER elsewhere;
CREATE TABLE whole (day int) PARTITION BY RANGE (day);
CREATE FOREIGN TABLE old_days PARTITION OF whole FOR VALUES FROM (0) TO (10) SERVER remote;
"""
# Two objects fail, and one of them has rows that are no SQL.
PARTLY_REJECTED = r"""--
-- PostgreSQL database dump
--
SET transaction_timeout = 0;
SELECT pg_catalog.set_config('search_path', '', false);
CREATE TABLE public.places (id integer, at nowhere);
CREATE TABLE public.t (id integer NOT NULL);
ALTER TABLE public.t OWNER TO app;
COPY public.places (id, at) FROM stdin;
1\tit's; a quote
\.
COPY public.t (id) FROM stdin;
1
2
\.
CREATE VIEW public.v AS SELECT count(*) FROM public.t;
ALTER TABLE ONLY public.t
    ADD CONSTRAINT t_pkey PRIMARY KEY (id);
CREATE INDEX t_id ON public.t USING nowhere (id);
"""


@pytest.fixture(scope="module")
def client() -> Client:
    return fixed_client(server_user())


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    """A server of 16 with a database `app`; pg_dump is newer and writes a setting that 16 does not know."""
    with own_server("16.12") as server:
        server.start()
        with psycopg.connect(server.target.conninfo, autocommit=True) as connection:
            locale = "TEMPLATE template0 LC_COLLATE 'C.utf8' LC_CTYPE 'C.utf8'"
            connection.execute(f"CREATE DATABASE app {locale}")
        with psycopg.connect(server.target.conninfo, dbname="app", autocommit=True) as connection:
            connection.execute(SCHEMA)
            connection.execute("ALTER DATABASE app SET work_mem TO '7MB'")
            connection.execute('ALTER DATABASE app SET search_path TO public, "My Schema"')
        yield server


def dumped(form: DumpFormat, server: Server, client: Client, folder: Path) -> Path:
    path = folder / form.value
    letter = {"custom": "c", "directory": "d", "tar": "t", "plain": "p"}[form.value]
    command = [str(client.psql.with_name("pg_dump")), f"-F{letter}", "-f", str(path)]
    conninfo = psycopg.conninfo.make_conninfo(server.target.conninfo, dbname="app")
    subprocess.run([*command, "-d", conninfo], check=True)
    return path


def restored_with(
    path: Path, server: Server, client: Client, database: str
) -> tuple[tuple[RestoreProblem, ...], list[tuple[object, ...]]]:
    """Restore into a new database; return what was not accepted, and the row of the view."""
    with psycopg.connect(server.target.conninfo, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {database} TEMPLATE template0")
    conninfo = psycopg.conninfo.make_conninfo(server.target.conninfo, dbname=database)
    problems = restore(dump_at(str(path), "--restore"), replace(server.target, conninfo=conninfo), client, "16.12")
    with psycopg.connect(conninfo) as connection:
        rows = connection.execute("SELECT * FROM v").fetchall()
    return problems, list(rows)


def restored(path: Path, server: Server, client: Client, database: str) -> tuple[list[str], list[tuple[object, ...]]]:
    """Return the items that were not accepted, apart from settings, and the row of the view."""
    problems, rows = restored_with(path, server, client, database)
    assert all("transaction_timeout" in one.message for one in problems if one.is_setting)
    return [one.item for one in problems if not one.is_setting], rows


@pytest.mark.parametrize("form", [form for form in DumpFormat if form is not DumpFormat.DATA_DIRECTORY])
def test_a_dump_of_every_format_is_restored(form: DumpFormat, server: Server, client: Client) -> None:
    with tempfile.TemporaryDirectory(prefix="pgversus-dump-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        path = dumped(form, server, client, Path(folder))
        path.chmod(0o755)
        found = restored(path, server, client, f"from_{form.value}")
    assert found == ([], [(1, 1000)])


OF_THE_DATABASE = """
SELECT 1 / (datcollate = 'C.utf8' AND datctype = 'C.utf8')::int FROM pg_database WHERE datname = current_database();
SELECT 1 / (current_setting('work_mem') = '{}' AND current_setting('search_path') = 'public, "My Schema"')::int;
"""


@pytest.mark.parametrize(
    ("mode", "own", "work_mem"),
    [(0o644, (), "7MB"), (0o600, (), "7MB"), (0o644, ("--set", "work_mem=9MB"), "9MB")],
)
def test_settings_and_locale_of_the_dumped_database_are_those_of_the_arms(
    command_line: CommandLine,
    mode: int,
    own: tuple[str, ...],
    work_mem: str,
    server: Server,
    client: Client,
    tmp_path: Path,
) -> None:
    path = dumped(DumpFormat.CUSTOM, server, client, tmp_path)
    path.chmod(mode)
    # Each statement fails if its condition is not true.
    script = command_line.write("of_the_database.sql", OF_THE_DATABASE.format(work_mem))
    ended = command_line.run("plans", "12.22", "17.8", "--restore", str(path), *own, "-f", script, "--json")
    assert ended.code == 0, ended.stderr
    assert len(ended.document["comparisons"]) == 2


@pytest.mark.parametrize("form", [DumpFormat.CUSTOM, DumpFormat.PLAIN])
def test_a_dump_that_only_its_owner_can_read_is_restored(
    form: DumpFormat, server: Server, client: Client, tmp_path: Path
) -> None:
    path = dumped(form, server, client, tmp_path)
    path.chmod(0o600)
    assert restored(path, server, client, f"private_{form.value}") == ([], [(1, 1000)])


def test_the_rest_of_a_plain_dump_is_restored(server: Server, client: Client, tmp_path: Path) -> None:
    path = tmp_path / "partly.sql"
    path.write_text(PARTLY_REJECTED)
    problems, rows = restored_with(path, server, client, "partly")
    assert rows == [(2,)]
    assert [(one.item, one.is_setting, one.table) for one in problems] == [
        ("line 4", True, ""),
        ("line 6", False, ""),
        ("line 9", False, "places"),
        ("line 19", False, "t"),
    ]


def test_a_truncated_dump_is_an_error(server: Server, client: Client, tmp_path: Path) -> None:
    path = dumped(DumpFormat.CUSTOM, server, client, tmp_path)
    path.write_bytes(path.read_bytes()[:500])
    with pytest.raises(DatasetError) as caught:
        restored(path, server, client, "truncated")
    assert caught.value.slug == "dataset-load-failed"


def test_objects_that_a_server_rejects_are_caveats_of_the_comparison(
    command_line: CommandLine, server: Server, client: Client, tmp_path: Path
) -> None:
    path = dumped(DumpFormat.PLAIN, server, client, tmp_path)
    path.write_text(path.read_text().replace("CREATE VIEW", "CREATE EXTENSION nowhere;\nCREATE VIEW"))
    script = command_line.write("lookup.sql", "SELECT name FROM t WHERE id = 7;\n")
    ended = command_line.compare(
        "16.12", "17.8", "--restore", str(path), "-f", script, "--blocks", "2", "--window", "50ms"
    )
    assert ended.code == 0, ended.stderr
    slugs = [caveat["slug"] for caveat in ended.comparison["caveats"]]
    assert slugs.count("not-restored") == 2
    # Only 16 does not know the setting that pg_dump 18 wrote.
    assert slugs.count("settings-not-restored") == 1
    assert ended.comparison["dataset"]["restore"]["format"] == "plain"


def base_backup(server: Server, place: Path) -> None:
    """Back up a running server with its WAL, as pg_basebackup does, with a configuration that admits nobody."""
    data = server.cluster.data_directory
    with psycopg.connect(server.target.conninfo, autocommit=True) as connection:
        connection.execute("SELECT pg_backup_start('test', true)")
        shutil.copytree(data, place, ignore=shutil.ignore_patterns("postmaster.*", "pg_wal"))
        (label,) = connection.execute("SELECT labelfile FROM pg_backup_stop(false)").fetchone() or ("",)
    shutil.copytree(data / "pg_wal", place / "pg_wal")
    (place / "backup_label").write_text(label)
    (place / "postgresql.auto.conf").write_text("shared_preload_libraries = 'nowhere'\n")
    (place / "pg_hba.conf").write_text("local all all reject\n")


def test_a_database_of_a_base_backup_is_compared(command_line: CommandLine, server: Server, tmp_path: Path) -> None:
    base_backup(server, tmp_path / "backup")
    script = command_line.write("lookup.sql", "SELECT name FROM t WHERE id = 7;\n")
    # The original must not be changed through a link to it.
    (tmp_path / "link").symlink_to(tmp_path / "backup")
    before = manifest(tmp_path / "backup")
    asked = ("--restore", str(tmp_path / "link"), "-f", script)
    other = command_line.run("plans", "17.8", "17.8", *asked, "--database", "app")
    assert (other.code, "error[dataset-other-major]" in other.stderr) == (2, True), other.stderr
    missing = command_line.run("plans", "16.12", "16.12", *asked, "--database", "nowhere")
    assert (missing.code, "error[dataset-which-database]" in missing.stderr) == (2, True), missing.stderr
    ended = command_line.compare("16.12", "17.8", *asked, "--database", "app", *QUICK)
    assert ended.code == 0, ended.stderr
    assert ended.comparison["dataset"]["restore"]["format"] == "data directory"
    tables = [arm["relation_bytes"] for arm in ended.comparison["arms"]]
    assert all("public.t" in sizes for sizes in tables)
    assert manifest(tmp_path / "backup") == before
