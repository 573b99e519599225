"""A results file of anybody is read or refused: nothing in it is run, and reading it ends."""

import os
import resource
import sqlite3
import subprocess
import sys
import tracemalloc
from pathlib import Path

import pytest

from pgversus.errors import ExitCode, StoreError
from pgversus.store import reading
from pgversus.store.folder import FILE_NAME, check_folder
from pgversus.store.reading import read_results, read_seed
from pgversus.store.writing import Results
from tests.bounded import processor_time
from tests.unit.store.whole import changed, write_whole

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """A results file."""
    folder = tmp_path_factory.mktemp("whole")
    write_whole(folder)
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, whole: bytes) -> Path:
    """With a copy of it."""
    (tmp_path / FILE_NAME).write_bytes(whole)
    return tmp_path


def refused(folder: Path) -> str:
    """Why these results are neither read nor written to."""
    for act in (read_seed, Results):
        with pytest.raises(StoreError):
            act(folder)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert (caught.value.slug, caught.value.exit_code) == ("store-unreadable", ExitCode.RESULTS)
    return caught.value.found


def with_schema(folder: Path, *statements: str) -> None:
    """Change the schema as SQLite itself would not."""
    changed(folder, "PRAGMA writable_schema = ON", *statements)


@pytest.mark.parametrize("table", ["trial", "fact", "counter_name", "window", "plan"])
@pytest.mark.parametrize(
    "view",
    [
        "SELECT * FROM old",
        f"{ENDLESS} SELECT x FROM n",  # noqa: S608 - its own file
        "SELECT zeroblob(1000000000) AS counters",
        "SELECT load_extension('x')",
    ],
)
def test_a_view_in_the_place_of_a_table_is_not_read(folder: Path, table: str, view: str) -> None:
    changed(folder, f"ALTER TABLE {table} RENAME TO old", f"CREATE VIEW {table} AS {view}")
    with processor_time():
        assert refused(folder) == f"{table} is not a table"


def test_a_table_of_a_module_is_not_read(folder: Path) -> None:
    changed(folder, "DROP TABLE trial", "CREATE VIRTUAL TABLE trial USING fts5(context, block, arm)")
    assert refused(folder) == "trial is not a table"


@pytest.mark.parametrize("on", ["trial", "fact", "window", "arm"])
def test_a_trigger_is_not_run(folder: Path, on: str) -> None:
    changed(folder, f"CREATE TRIGGER t AFTER INSERT ON {on} BEGIN DELETE FROM fact; END")  # noqa: S608 - its own file
    assert refused(folder) == "a trigger, which pgversus does not make"


def test_a_column_that_is_computed_is_not_read(folder: Path) -> None:
    changed(folder, "ALTER TABLE fact ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(100000000)))")
    assert refused(folder) == "fact is not a table of pgversus"


def test_a_table_without_its_key_is_not_sorted(folder: Path) -> None:
    changed(
        folder,
        "CREATE TABLE copied AS SELECT * FROM trial",
        "DROP VIEW counter",
        "DROP TABLE trial",
        "ALTER TABLE copied RENAME TO trial",
    )
    assert refused(folder) == "trial is not a table of pgversus"


def test_a_schema_that_lies_is_refused(folder: Path) -> None:
    view = "CREATE VIEW trial AS SELECT 1"
    with_schema(folder, f"UPDATE sqlite_master SET sql = '{view}' WHERE name = 'trial'")  # noqa: S608 - its own file
    assert refused(folder)


def test_very_many_tables_are_refused(folder: Path) -> None:
    changed(folder, "BEGIN", *(f"CREATE TABLE t{number} (a)" for number in range(1001)), "COMMIT")
    assert "more than 1000" in refused(folder)


def test_views_and_indexes_of_people_who_ask_in_sql_are_let_be(folder: Path) -> None:
    before = read_results(folder).study
    changed(folder, f"CREATE VIEW mine AS {ENDLESS} SELECT x FROM n", "CREATE INDEX i ON trial (seconds)")  # noqa: S608 - its own file
    assert read_results(folder).study == before
    Results(folder).close()


def test_the_view_of_the_schema_may_be_anything(folder: Path) -> None:
    changed(folder, "DROP VIEW counter", f"CREATE VIEW counter AS {ENDLESS} SELECT x FROM n")  # noqa: S608 - its own file
    with processor_time():
        assert read_results(folder).contexts


@pytest.mark.parametrize("ends", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "link to a pipe"])
def test_what_is_not_a_file_is_not_opened(folder: Path, kind: str, ends: str) -> None:
    place = folder / f"{FILE_NAME}{ends}"
    place.unlink(missing_ok=True)
    if kind == "directory":
        place.mkdir()
    elif kind == "pipe":
        os.mkfifo(place)
    else:
        os.mkfifo(folder / "pipe")
        place.symlink_to(folder / "pipe")
    with processor_time():
        assert refused(folder) == f"{place.name} is not a regular file"


def test_a_journal_is_not_played_back_when_a_run_goes_on(folder: Path, tmp_path: Path) -> None:
    """It may name another file, which SQLite removes at its end."""
    victim = tmp_path / "victim"
    victim.write_text("mine")
    name = str(victim).encode()
    header = bytes.fromhex("d9d505f920a163d7") + (0).to_bytes(4) + bytes(4) + (1).to_bytes(4)
    header += (512).to_bytes(4) + (4096).to_bytes(4)
    checksum = sum(name) & 0xFFFFFFFF
    super_journal = (
        (0x40000000 // 4096 + 1).to_bytes(4) + name + len(name).to_bytes(4) + checksum.to_bytes(4) + header[:8]
    )
    (folder / f"{FILE_NAME}-journal").write_bytes(header.ljust(512, b"\0") + super_journal)
    changed_before = (folder / FILE_NAME).read_bytes()
    with pytest.raises(StoreError, match="journal"):
        Results(folder)
    assert victim.read_text() == "mine"
    assert (folder / FILE_NAME).read_bytes() == changed_before


@pytest.mark.parametrize(
    "name", [FILE_NAME, f"{FILE_NAME}-wal", "lock", "attributions", "transaction-logs", "arm-0.log"]
)
def test_nothing_is_written_through_a_link(folder: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes((folder / FILE_NAME).read_bytes())
    before = victim.read_bytes()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    with pytest.raises(StoreError) as caught:
        check_folder(folder, may_hold_results=True)
    assert (caught.value.slug, name in caught.value.found) == ("store-unwritable", True)
    assert victim.read_bytes() == before


def test_results_that_are_a_link_are_read_and_not_written_to(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / FILE_NAME).symlink_to(folder / FILE_NAME)
    assert read_results(tmp_path / "linked").contexts
    with pytest.raises(StoreError, match="symbolic link"):
        Results(tmp_path / "linked")


def pages(file: Path) -> tuple[int, bytearray]:
    data = bytearray(file.read_bytes())
    return int.from_bytes(data[16:18]), data


def test_pages_that_lead_to_the_same_rows_again_and_again_end(folder: Path) -> None:
    """A tree of pages whose branches all meet: a few kilobytes that would give more rows than there is time for."""
    file = folder / FILE_NAME
    changed(folder, "DELETE FROM fact WHERE name <> 'study'")
    (root,) = (row[0] for row in rows_of(folder, "SELECT rootpage FROM sqlite_master WHERE name = 'fact'"))
    size, data = pages(file)
    leaf = bytes(data[(root - 1) * size : root * size])
    below = len(data) // size + 1
    data += leaf
    for _ in range(12):
        cells = (size - 100) // 10
        page = bytearray(size)
        start = size - 5 * cells
        page[0:12] = bytes([5]) + bytes(2) + cells.to_bytes(2) + start.to_bytes(2) + bytes(1) + below.to_bytes(4)
        for cell in range(cells):
            place = start + 5 * cell
            page[12 + 2 * cell : 14 + 2 * cell] = place.to_bytes(2)
            page[place : place + 5] = below.to_bytes(4) + bytes([0x7F])
        data += page
        below = len(data) // size
    data[(root - 1) * size : root * size] = data[(below - 1) * size : below * size]
    data[28:32] = (len(data) // size).to_bytes(4)
    file.write_bytes(data)
    with processor_time(10), pytest.raises(StoreError) as caught:
        read_results(folder)
    assert "out of order" in caught.value.found


def rows_of(folder: Path, sql: str) -> list[tuple[int, ...]]:
    database = sqlite3.connect(folder / FILE_NAME)
    try:
        return database.execute(sql).fetchall()
    finally:
        database.close()


def test_reading_is_given_up_after_a_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "_LEAST_S", -1e6)
    monkeypatch.setattr(reading, "_STEPS", 1)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert caught.value.found == "reading it takes longer than results of its size do"


def test_values_take_no_more_room_than_the_file_has(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of a damaged file may all point to the same megabytes."""
    monkeypatch.setattr(reading, "_SOME_BYTES", -2 * (folder / FILE_NAME).stat().st_size + 2000)
    monkeypatch.setattr(reading, "_checked_size", lambda _: (folder / FILE_NAME).stat().st_size)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert caught.value.found in ("more text than the file has room for", "string or blob too big")


def test_a_large_value_is_not_read_into_memory(folder: Path) -> None:
    changed(
        folder,
        "UPDATE trial SET counters = zeroblob(200000000) WHERE rowid = 1",
        "UPDATE window SET raw_output = zeroblob(200000000) WHERE rowid = 1",
    )
    read = "from pathlib import Path; from pgversus.store.reading import read_results; "
    code = f"{read}read_results(Path({str(folder)!r}))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_AS, (2**30, 2**30)),
    )
    assert "StoreError" in done.stderr
    assert "counters" in done.stderr


def test_a_large_value_in_the_place_of_a_text_is_named(folder: Path) -> None:
    changed(folder, "UPDATE fact SET value = zeroblob(50000000) WHERE name = 'study'")
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="value in the row of rowid"):
            read_results(folder)
        assert tracemalloc.get_traced_memory()[1] < 100e6, "shown as a text it has four times its length"
    finally:
        tracemalloc.stop()
