"""Counters parsed from the VACUUM output of each major, captured from real servers (tests/data/vacuum)."""

import math
import re
from pathlib import Path

import pytest

from pgversus.postgres import operation_reports
from pgversus.postgres.operation_reports import _sentence, vacuum_counters
from pgversus.study.counters import REPORTED_BY_VACUUM
from tests.builders import DATA

FOLDER = DATA / "vacuum"
MAJORS = range(12, 19)
CASES = sorted(FOLDER.glob("*/*.txt"))

EVERYWHERE = {
    "vacuum_index_scans",
    "vacuum_pages_scanned",
    "vacuum_pages_removed",
    "vacuum_tuples_removed",
    "vacuum_tuples_not_yet_removable",
    "vacuum_dead_items_removed",
    "vacuum_cpu_user_s",
    "vacuum_cpu_system_s",
    "vacuum_elapsed_s",
}
SINCE_15 = EVERYWHERE | {
    "vacuum_tuples_remain",
    "vacuum_buffers_hit",
    "vacuum_buffers_read",
    "vacuum_buffers_dirtied",
    "vacuum_wal_records",
    "vacuum_wal_full_page_images",
    "vacuum_wal_bytes",
}
SINCE_16 = SINCE_15 | {"vacuum_pages_frozen", "vacuum_tuples_frozen"}
NAMES = {12: EVERYWHERE, 13: EVERYWHERE, 14: EVERYWHERE, 15: SINCE_15, 16: SINCE_16, 17: SINCE_16, 18: SINCE_16}


PARTS = re.compile("found .* out of|truncated .* to")
ELAPSED = re.compile(r"elapsed: ([\d.]+) s")

# One VACUUM of 5000 rows in 87 pages, half of them dead; its two indexes are scanned once.
DEAD_ROWS = {
    "index_scans": 1,
    "pages_scanned": 87,
    "pages_removed": 0,
    "tuples_removed": 2500,
    "tuples_remain": 2500,
    "tuples_not_yet_removable": 0,
    "dead_items_removed": 2500,
}


def notices(path: Path) -> list[str]:
    return path.read_text().rstrip("\n").split("\n\n")


def counters(major: int, case: str) -> dict[str, float]:
    return vacuum_counters(notices(FOLDER / str(major) / f"{case}.txt"))


@pytest.mark.parametrize("major", MAJORS)
def test_each_major_has_exactly_the_counters_that_it_prints(major: int) -> None:
    assert set(counters(major, "dead_rows")) == NAMES[major]


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("dead_rows", DEAD_ROWS),
        ("with_analyze", DEAD_ROWS),
        ("two_tables", {"index_scans": 1, "tuples_removed": 2500 + 999, "tuples_remain": 2500 + 4001}),
        ("nothing_to_do", {"index_scans": 0, "pages_removed": 0, "tuples_removed": 0, "dead_items_removed": 0}),
        ("few_dead_rows", {"pages_scanned": 173, "tuples_removed": 10, "tuples_remain": 9990}),
        # Majors count differently in a table without indexes, so that counter is 0.
        ("no_index", {"index_scans": 0, "tuples_removed": 2500, "dead_items_removed": 0}),
        ("truncated", {"pages_removed": 52, "pages_scanned": 87, "tuples_removed": 3000, "tuples_remain": 2000}),
        ("freeze", {"tuples_removed": 0, "tuples_frozen": 5000, "pages_frozen": 87}),
        # The TOAST table also has an index; 7000 bytes are stored in four chunks.
        (
            "toast",
            {"index_scans": 2, "tuples_removed": 150 + 600, "dead_items_removed": 150 + 600, "tuples_remain": 750},
        ),
        ("not_yet_removable", {"tuples_removed": 0, "tuples_not_yet_removable": 1000, "tuples_remain": 5000}),
        ("many_index_scans", {"tuples_removed": 450_000, "dead_items_removed": 450_000, "pages_removed": 2055}),
    ],
)
def test_the_counters_match_the_rows_that_were_made_dead(major: int, case: str, expected: dict[str, float]) -> None:
    found = counters(major, case)
    of_major = {f"vacuum_{name}": value for name, value in expected.items() if f"vacuum_{name}" in NAMES[major]}
    assert of_major
    assert {name: found[name] for name in of_major} == of_major


@pytest.mark.parametrize("major", range(13, 19))
def test_parallel_workers_change_nothing(major: int) -> None:
    expected = {f"vacuum_{name}": value for name, value in DEAD_ROWS.items()}
    found = counters(major, "parallel")
    assert {name: found[name] for name in expected if name in NAMES[major]} == {
        name: value for name, value in expected.items() if name in NAMES[major]
    }


@pytest.mark.parametrize(("major", "scans"), [(12, 1), (13, 1), (14, 0), (15, 0), (16, 0), (17, 0), (18, 0)])
def test_dead_item_identifiers_left_behind_do_not_count_as_removed(major: int, scans: int) -> None:
    found = counters(major, "few_dead_rows")
    assert (found["vacuum_index_scans"], found["vacuum_dead_items_removed"]) == (scans, 10 * scans)


@pytest.mark.parametrize(("major", "scans"), [(12, 3), (13, 3), (14, 3), (15, 3), (16, 3), (17, 1), (18, 1)])
def test_a_pass_over_all_indexes_counts_as_one_index_scan(major: int, scans: int) -> None:
    assert counters(major, "many_index_scans")["vacuum_index_scans"] == scans


@pytest.mark.parametrize("major", range(15, 19))
def test_io_times_are_in_seconds_if_they_are_measured(major: int) -> None:
    found = counters(major, "io_timing")
    assert set(found) == NAMES[major] | {"vacuum_read_io_s", "vacuum_write_io_s"}
    assert 0 < found["vacuum_read_io_s"] < 0.01


@pytest.mark.parametrize("major", MAJORS)
@pytest.mark.parametrize("case", ["full", "cluster", "analyze", "reindex"])
def test_commands_other_than_vacuum_have_no_counters(major: int, case: str) -> None:
    assert notices(FOLDER / str(major) / f"{case}.txt")
    assert counters(major, case) == {}


def test_until_14_the_time_of_truncation_is_added() -> None:
    parts = [notice for notice in notices(FOLDER / "13" / "many_index_scans.txt") if PARTS.search(notice)]
    found, cut, toast = (float(seconds) for notice in parts for seconds in ELAPSED.findall(notice))
    assert cut > 0
    assert counters(13, "many_index_scans")["vacuum_elapsed_s"] == pytest.approx(found + cut + toast)


def test_every_counter_is_described() -> None:
    assert {name for path in CASES for name in vacuum_counters(notices(path))} == REPORTED_BY_VACUUM


def test_unknown_lines_and_a_different_order_have_no_effect() -> None:
    head, *lines = notices(FOLDER / "18" / "dead_rows.txt")[1].split("\n")
    mixed = "\n".join([head, "delay time: 1.500 ms", *reversed(lines), "something new: 5 removed, 6 remain"])
    assert vacuum_counters([mixed]) == vacuum_counters(["\n".join([head, *lines])])


def test_a_canceled_vacuum_has_no_counters() -> None:
    assert vacuum_counters(notices(FOLDER / "12" / "dead_rows.txt")[:3]) == {}
    assert vacuum_counters(notices(FOLDER / "17" / "dead_rows.txt")[:1]) == {}
    assert vacuum_counters([]) == {}


@pytest.mark.parametrize(
    "notice",
    [
        'finished vacuuming "db.public.t": index scans: ' + "9" * 400,
        'finished vacuuming "db.public.t": index scans: 1\nCPU: user: 0.0.0 s, system: 0.00 s, elapsed: 0.00 s',
        'finished vacuuming "db.public.t": index scans: 1\nCPU: user: . s, system: 0.00 s, elapsed: 0.00 s',
        'finished vacuuming "db.public.t": index scans: 1\nWAL usage: 1 records, 1 full page images, '
        + "9" * 400
        + " bytes",
    ],
)
def test_invalid_numbers_are_ignored(notice: str) -> None:
    found = vacuum_counters([notice])
    assert set(found) <= {"vacuum_index_scans"}
    assert all(value == 1 for value in found.values())


FILES = Path(operation_reports.__file__).parent / "sql" / "progress"
VERSIONS = re.compile(r"PostgreSQL (?P<first>\d+)(?:(?P<open>\+)| to (?P<last>\d+)), ")
VIEW = re.compile(r"pg_stat_progress_\w+")


@pytest.mark.parametrize(
    ("row", "line"),
    [
        (("vacuuming heap", 7377, 16394, "pages vacuumed"), "vacuuming heap, 45 % of 16394 pages vacuumed"),
        (("vacuuming indexes", 1, 3, "indexes"), "vacuuming indexes, 1 of 3 indexes"),
        (("index scanning heap", 1200, None, "tuples"), "index scanning heap, 1200 tuples"),
        (("scanning heap", 0, 16394, "pages scanned"), "scanning heap, 0 % of 16394 pages scanned"),
        (("sorting tuples", None, None, "tuples"), "sorting tuples"),
        (("initializing", 0, 0, "pages"), "initializing"),
    ],
)
def test_a_phase_is_shown_with_its_progress(row: tuple[str, int | None, int | None, str], line: str) -> None:
    assert _sentence(*row) == line


def test_every_query_has_a_file_and_every_file_a_query() -> None:
    assert sorted(operation_reports._QUESTIONS) == sorted(path.stem for path in FILES.glob("*.sql"))


@pytest.mark.parametrize("name", operation_reports._QUESTIONS)
def test_a_file_states_the_versions_of_its_query(name: str) -> None:
    said = VERSIONS.search((FILES / f"{name}.sql").read_text())
    assert said is not None
    last = math.inf if said["open"] else int(said["last"])
    assert (int(said["first"]), last) == operation_reports._QUESTIONS[name]


@pytest.mark.parametrize(
    ("major", "missing"),
    [(12, {"analyze", "basebackup", "copy"}), (13, {"copy"}), (14, set()), (16, set()), (17, set()), (19, set())],
)
def test_each_major_is_queried_once_for_each_view_that_it_has(major: int, missing: set[str]) -> None:
    requested = [view.removeprefix("pg_stat_progress_") for view in VIEW.findall(operation_reports._query(major))]
    everything = {"vacuum", "analyze", "create_index", "cluster", "copy", "basebackup"}
    assert sorted(requested) == sorted(everything - missing)
