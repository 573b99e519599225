"""Cached snapshots are keyed by all of their inputs and nothing else."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.builds.model import Build
from pgversus.data.snapshot_key import SnapshotKey, has_external_inputs, snapshot_key
from pgversus.host.files import file_sha256
from pgversus.postgres.client import Client
from pgversus.study.dataset import Dataset, Dump, DumpFormat, SetupFile
from tests.bounded import processor_time
from tests.builders import MYSELF

BUILD = Build(version="17.8", bin_directory=Path("/nowhere/bin"), origin="zonky", sha256="a" * 64)
CLIENT = Client(pgbench=Path("/pgbench"), psql=Path("/psql"), version="18.6", origin="here", user=MYSELF)
SETUP = SetupFile(path="a.sql", sha256="1", text="CREATE TABLE t AS SELECT 1 AS x;")
PREPARE = SetupFile(path="b.sql", sha256="2", text="UPDATE t SET x = x WHERE x % 100 < :share;")
DATASET = Dataset(pgbench_scale=10, setup_files=(SETUP,), prepare=(PREPARE,), variables=(("share", "70"),))
SETTINGS = {"fsync": "off"}


def recipe(
    dataset: Dataset = DATASET,
    build: Build = BUILD,
    client: Client = CLIENT,
    settings: dict[str, str] | None = None,
) -> SnapshotKey:
    found = snapshot_key(dataset, build, client, SETTINGS if settings is None else settings)
    assert found is not None
    return found


DUMP = Dump(path="/s/backup", format=DumpFormat.DATA_DIRECTORY, sha256="4")
OTHERS = {
    "build": recipe(build=replace(BUILD, sha256="b" * 64)),
    "family": recipe(build=replace(BUILD, origin="wheel")),
    "pgbench": recipe(client=replace(CLIENT, version="17.0")),
    "settings": recipe(settings={"fsync": "off", "default_statistics_target": "1000"}),
    "scale": recipe(replace(DATASET, pgbench_scale=11)),
    "setup": recipe(replace(DATASET, setup_files=(replace(SETUP, sha256="3"),))),
    "prepare": recipe(replace(DATASET, prepare=(replace(PREPARE, sha256="3"),))),
    "variables": recipe(replace(DATASET, variables=(("share", "20"),))),
    "loaded": recipe(DATASET.loaded),
    "dump": recipe(replace(DATASET, restore=DUMP)),
    "database": recipe(replace(DATASET, restore=replace(DUMP, database="app"))),
    "form": replace(recipe(), form=0),
    "initdb": replace(recipe(), initdb_options=()),
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=list(OTHERS))
def test_the_key_depends_on_every_input(other: SnapshotKey) -> None:
    assert other.key != recipe().key
    assert OTHERS["dump"].key != OTHERS["database"].key


def test_the_key_does_not_depend_on_paths_and_names() -> None:
    elsewhere = replace(DATASET, setup_files=(replace(SETUP, path="/else/where.sql"),))
    build = replace(BUILD, bin_directory=Path("/other"))
    client = replace(CLIENT, pgbench=Path("/other"), origin="there")
    assert recipe(elsewhere, build, client).key == recipe().key


def test_without_pgbench_tables_the_key_does_not_depend_on_its_version() -> None:
    files = replace(DATASET, pgbench_scale=None)
    assert recipe(files, client=replace(CLIENT, version="17.0")).key == recipe(files).key


def test_a_build_of_the_user_is_identified_by_its_program(tmp_path: Path) -> None:
    own = Build(version="18devel", bin_directory=tmp_path, origin="bin directory")
    assert snapshot_key(DATASET, own, CLIENT, {}) is None
    (tmp_path / "postgres").write_text("one")
    assert recipe(build=own).build_sha256 == file_sha256(tmp_path / "postgres")


@pytest.mark.parametrize(
    "text",
    [
        r"\i tables.sql",
        r"\ir tables.sql",
        r"\copy t from rows.csv",
        "COPY t (a,\n b) FROM '/data/rows.csv';",
        "copy t from program 'zcat rows.gz';",
        r"\set room `test -e x && echo 1`",
        r"\! make",
        r"\getenv home HOME",
        "SELECT pg_read_file('x');",
        "CREATE EXTENSION postgres_fdw;",
        "INSERT INTO t SELECT now();",
        "INSERT INTO t VALUES (CURRENT_DATE), ('today');",
        "CREATE TABLE t AS SELECT random() FROM generate_series(1, 9);",
        "INSERT INTO t SELECT gen_random_uuid();",
        "COPY t FROM E'/data/rows.csv';",
        "COPY t FROM U&'/data/rows.csv';",
        "COPY t FROM $$/data/rows.csv$$;",
        "COPY t FROM /* all */ '/data/rows.csv';",
        "COPY t FROM'/data/rows.csv';",
        "INSERT INTO t SELECT uuidv4();",
        "INSERT INTO t SELECT uuidv7();",
        "INSERT INTO t SELECT uuid_generate_v1mc();",
        "INSERT INTO t SELECT gen_random_bytes(3);",
        "CREATE TABLE t AS SELECT * FROM u TABLESAMPLE SYSTEM (1);",
    ],
)
def test_sql_that_depends_on_more_than_its_text_is_not_cached(text: str) -> None:
    assert has_external_inputs(text)
    assert snapshot_key(Dataset(setup_files=(replace(SETUP, text=text),)), BUILD, CLIENT, {}) is None


@pytest.mark.parametrize(
    "text",
    [
        SETUP.text,
        PREPARE.text,
        "COPY t FROM stdin;\n1\n2\n\\.\n",
        "SELECT setseed(0.5); CREATE TABLE t AS SELECT random();",
        "COPY t (a) FROM stdin;\n1\n\\.\n",
        "COPY (SELECT * FROM e) TO '/dev/null';",
        "COPY t TO '/dev/null';",
        r"\set ON_ERROR_STOP on",
        "CREATE TABLE knows (now_known int, random int);",
    ],
)
def test_sql_that_depends_only_on_its_text_is_cached(text: str) -> None:
    assert not has_external_inputs(text)


def test_files_on_disk_are_inspected(tmp_path: Path) -> None:
    file = tmp_path / "s.sql"
    file.write_text("SELECT 1;")
    dataset = Dataset(setup_files=(SetupFile(path=str(file), sha256="x"),))
    assert snapshot_key(dataset, BUILD, CLIENT, {}) is not None
    file.write_text("\\i other.sql")
    assert snapshot_key(dataset, BUILD, CLIENT, {}) is None
    file.unlink()
    assert snapshot_key(dataset, BUILD, CLIENT, {}) is None


@pytest.mark.parametrize(
    "piece", ["copy ", "copy t from ", "copy from\n", "from ", "\\", "now ", "random ", "'", ";copy"]
)
def test_a_long_file_is_inspected_quickly(piece: str) -> None:
    with processor_time():
        assert has_external_inputs(piece * (100_000 // len(piece))) in (True, False)


def test_a_file_is_the_source_of_copy_only_in_the_same_statement() -> None:
    assert not has_external_inputs("COPY t FROM stdin; SELECT x FROM 'y'")
    assert has_external_inputs("COPY t -- all\n FROM\n 'y'")
