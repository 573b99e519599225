"""The table of counter queries matches its files; their results are tested on real servers."""

import math
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
import pytest

from pgversus.errors import ServerError
from pgversus.postgres import counters
from pgversus.postgres.session import Target

FILES = Path(counters.__file__).parent / "sql" / "counters"
MAJORS = range(12, 20)
VERSIONS = re.compile(r"PostgreSQL (?P<first>\d+)(?:(?P<open>\+)| to (?P<last>\d+)| alone), any role\.")


def test_every_query_has_a_file_and_every_file_a_query() -> None:
    assert sorted(counters._QUESTIONS) == sorted(path.stem for path in FILES.glob("*.sql"))


@pytest.mark.parametrize("name", counters._QUESTIONS)
def test_a_file_states_the_versions_of_its_query(name: str) -> None:
    said = VERSIONS.search((FILES / f"{name}.sql").read_text())
    assert said is not None
    last = math.inf if said["open"] else int(said["last"] or said["first"])
    assert (int(said["first"]), last) == counters._QUESTIONS[name]


def test_a_session_whose_first_reading_fails_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    closed = []

    @contextmanager
    def connected(_target: Target) -> Iterator[object]:
        try:
            yield object()
        finally:
            closed.append(True)

    def lost(_connection: object) -> dict[str, float]:
        raise psycopg.OperationalError

    monkeypatch.setattr(counters, "connect", connected)
    monkeypatch.setattr(counters, "read_counters", lost)
    with pytest.raises(ServerError) as kept:
        counters.CounterSession(Target(conninfo=""))
    # The error holds the frames, and with them what only the garbage collector would close.
    assert closed, kept


@pytest.mark.parametrize("major", MAJORS)
def test_no_version_runs_the_same_query_twice(major: int) -> None:
    versions = counters._QUESTIONS.items()
    requested = [name.partition(".")[0] for name, (first, last) in versions if first <= major <= last]
    assert len(set(requested)) == len(requested)
    assert {"database", "background_writer", "checkpoints", "maintenance"} <= set(requested)
