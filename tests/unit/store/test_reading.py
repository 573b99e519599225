"""An untrusted results file is read or rejected: nothing in it is executed, and reading it terminates."""

import json
import os
import resource
import sqlite3
import subprocess
import sys
import tracemalloc
from contextlib import closing
from pathlib import Path

import pytest

from pgversus.errors import ExitCode, StoreError
from pgversus.store import results_file
from pgversus.store.folder import FILE_NAME, check_folder
from pgversus.store.reading import read_results, read_seed
from pgversus.store.rows import values_in
from pgversus.store.writing import Results
from tests.bounded import processor_time
from tests.unit.store.whole import changed, write_whole

ENDLESS = "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n)"


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The content of a results file."""
    folder = tmp_path_factory.mktemp("whole")
    write_whole(folder)
    return (folder / FILE_NAME).read_bytes()


@pytest.fixture
def folder(tmp_path: Path, whole: bytes) -> Path:
    """A folder with a copy of the results file."""
    (tmp_path / FILE_NAME).write_bytes(whole)
    return tmp_path


def refused(folder: Path) -> str:
    """Assert that these results can be neither read nor written, and return the reason."""
    for act in (read_seed, Results):
        with pytest.raises(StoreError):
            act(folder)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert (caught.value.slug, caught.value.exit_code) == ("store-unreadable", ExitCode.RESULTS)
    return caught.value.found


def with_schema(folder: Path, *statements: str) -> None:
    """Change the schema in a way that SQLite normally rejects."""
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
def test_a_view_in_place_of_a_table_is_not_read(folder: Path, table: str, view: str) -> None:
    changed(folder, f"ALTER TABLE {table} RENAME TO old", f"CREATE VIEW {table} AS {view}")
    with processor_time():
        assert refused(folder) == f"{table} is not a table"


def test_a_virtual_table_is_not_read(folder: Path) -> None:
    changed(folder, "DROP TABLE trial", "CREATE VIRTUAL TABLE trial USING fts5(context, block, arm)")
    assert refused(folder) == "trial is not a table"


@pytest.mark.parametrize("on", ["trial", "fact", "window", "arm"])
def test_a_trigger_is_rejected(folder: Path, on: str) -> None:
    changed(folder, f"CREATE TRIGGER t AFTER INSERT ON {on} BEGIN DELETE FROM fact; END")  # noqa: S608 - its own file
    assert refused(folder) == "there is a trigger, which pgversus does not create"


def test_a_generated_column_is_rejected(folder: Path) -> None:
    changed(folder, "ALTER TABLE fact ADD COLUMN more TEXT GENERATED ALWAYS AS (hex(zeroblob(100000000)))")
    assert refused(folder) == "fact is not a table of pgversus"


def test_a_table_without_its_primary_key_is_rejected(folder: Path) -> None:
    changed(
        folder,
        "CREATE TABLE copied AS SELECT * FROM trial",
        "DROP VIEW counter",
        "DROP TABLE trial",
        "ALTER TABLE copied RENAME TO trial",
    )
    assert refused(folder) == "trial is not a table of pgversus"


def test_an_inconsistent_schema_is_rejected(folder: Path) -> None:
    view = "CREATE VIEW trial AS SELECT 1"
    with_schema(folder, f"UPDATE sqlite_master SET sql = '{view}' WHERE name = 'trial'")  # noqa: S608 - its own file
    assert refused(folder)


def test_too_many_tables_are_rejected(folder: Path) -> None:
    changed(folder, "BEGIN", *(f"CREATE TABLE t{number} (a)" for number in range(1001)), "COMMIT")
    assert "more than 1000" in refused(folder)


def test_additional_views_and_indexes_are_accepted(folder: Path) -> None:
    before = read_results(folder).study
    changed(folder, f"CREATE VIEW mine AS {ENDLESS} SELECT x FROM n", "CREATE INDEX i ON trial (seconds)")  # noqa: S608 - its own file
    assert read_results(folder).study == before
    Results(folder).close()


def test_the_view_of_the_schema_may_be_replaced(folder: Path) -> None:
    changed(folder, "DROP VIEW counter", f"CREATE VIEW counter AS {ENDLESS} SELECT x FROM n")  # noqa: S608 - its own file
    with processor_time():
        assert read_results(folder).contexts


@pytest.mark.parametrize("ends", ["", "-wal", "-shm", "-journal"])
@pytest.mark.parametrize("kind", ["pipe", "directory", "link to a pipe"])
def test_only_regular_files_are_opened(folder: Path, kind: str, ends: str) -> None:
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


@pytest.mark.parametrize("index_bytes", [0, 3])
def test_results_opened_on_a_full_disk_are_read_without_more_space(folder: Path, index_bytes: int) -> None:
    """SQLite opened the WAL and had no space for its index."""
    (folder / f"{FILE_NAME}-wal").touch()
    (folder / f"{FILE_NAME}-shm").write_bytes(bytes(index_bytes))
    before = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert read_results(folder).contexts
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == before


def test_a_journal_is_not_played_back_when_a_run_is_resumed(folder: Path, tmp_path: Path) -> None:
    """A journal may name another file, which SQLite then removes."""
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
def test_nothing_is_written_through_a_symbolic_link(folder: Path, tmp_path: Path, name: str) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes((folder / FILE_NAME).read_bytes())
    before = victim.read_bytes()
    (folder / name).unlink(missing_ok=True)
    (folder / name).symlink_to(victim)
    with pytest.raises(StoreError) as caught:
        check_folder(folder, may_hold_results=True)
    assert (caught.value.slug, name in caught.value.found) == ("store-unwritable", True)
    assert victim.read_bytes() == before


def test_a_results_file_that_is_a_link_is_read_but_not_written(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "linked").mkdir()
    (tmp_path / "linked" / FILE_NAME).symlink_to(folder / FILE_NAME)
    assert read_results(tmp_path / "linked").contexts
    with pytest.raises(StoreError, match="symbolic link"):
        Results(tmp_path / "linked")


def pages(file: Path) -> tuple[int, bytearray]:
    data = bytearray(file.read_bytes())
    return int.from_bytes(data[16:18]), data


def test_pages_that_lead_to_the_same_rows_repeatedly_are_rejected(folder: Path) -> None:
    """A page tree whose branches share their children: a few kilobytes would yield more rows than can ever be read."""
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


def test_reading_has_a_time_limit(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(results_file, "_LEAST_S", -1e6)
    monkeypatch.setattr(results_file, "_STEPS", 1)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert caught.value.found == "reading takes too long for results of this size"


def test_values_take_no_more_memory_than_the_file(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All rows of a damaged file may point to the same megabytes."""
    monkeypatch.setattr(results_file, "_SOME_BYTES", -2 * (folder / FILE_NAME).stat().st_size + 2000)
    monkeypatch.setattr(results_file, "_checked_size", lambda _: (folder / FILE_NAME).stat().st_size)
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert caught.value.found in ("more text than the file can hold", "string or blob too big")


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


def test_a_large_value_in_place_of_a_text_is_reported(folder: Path) -> None:
    changed(folder, "UPDATE fact SET value = zeroblob(50000000) WHERE name = 'study'")
    tracemalloc.start()
    try:
        with pytest.raises(StoreError, match="value in the row of rowid"):
            read_results(folder)
        assert tracemalloc.get_traced_memory()[1] < 100e6, "converted to text it is four times as long"
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    ("update", "begin", "end"),
    [
        ("UPDATE context SET comparison = ?", '{"comparison":{"arms":[', "]}}"),
        ("UPDATE preparation SET status = 'ready', failed_words = NULL, found = ?", '{"arms":[', "]}"),
        ("UPDATE fact SET value = ?", '{"loaded":[', "]}"),
    ],
)
def test_a_document_of_very_many_values_is_rejected_before_it_is_parsed(
    folder: Path, update: str, begin: str, end: str
) -> None:
    """Each invalid value takes several kB in an error of its own."""
    with closing(sqlite3.connect(folder / FILE_NAME)) as database, database:
        database.execute(update, (f"{begin}{','.join(['{}'] * 1_000_000)}{end}",))
    with pytest.raises(StoreError) as caught:
        read_results(folder)
    assert caught.value.found == "a document of more than 50000 values"


@pytest.mark.parametrize(
    ("document", "values"), [("{}", 1), ('{"a": [1, 2], "b": {}}', 5), ('{"a": "1,2,[{", "b": "\\\\", "c": "\\","}', 3)]
)
def test_values_are_counted_outside_of_strings(document: str, values: int) -> None:
    json.loads(document)
    assert values_in(document) == values
