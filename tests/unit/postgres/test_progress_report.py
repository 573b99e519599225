"""What a session is at, in words; what the views answer is tested on real servers."""

import re
from pathlib import Path

import pytest

from pgversus.postgres import progress_report
from pgversus.postgres.progress_report import _sentence

FILES = Path(progress_report.__file__).parent / "sql" / "progress"
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
def test_a_phase_is_told_with_how_far_it_is(row: tuple[str, int | None, int | None, str], line: str) -> None:
    assert _sentence(*row) == line


def test_every_file_is_asked_and_every_question_has_its_file() -> None:
    assert sorted(progress_report._QUESTIONS) == sorted(path.stem for path in FILES.glob("*.sql"))


@pytest.mark.parametrize("name", progress_report._QUESTIONS)
def test_a_file_says_the_versions_for_which_it_is_asked(name: str) -> None:
    said = VERSIONS.search((FILES / f"{name}.sql").read_text())
    assert said is not None
    last = None if said["open"] else int(said["last"])
    assert (int(said["first"]), last) == progress_report._QUESTIONS[name]


@pytest.mark.parametrize(
    ("major", "missing"),
    [(12, {"analyze", "basebackup", "copy"}), (13, {"copy"}), (14, set()), (16, set()), (17, set()), (19, set())],
)
def test_each_major_is_asked_once_for_each_view_that_it_has(major: int, missing: set[str]) -> None:
    asked = [view.removeprefix("pg_stat_progress_") for view in VIEW.findall(progress_report._query(major))]
    everything = {"vacuum", "analyze", "create_index", "cluster", "copy", "basebackup"}
    assert sorted(asked) == sorted(everything - missing)
