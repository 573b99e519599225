"""Results with anything in any column, or with any byte changed, are shown or refused with a StoreError."""

import io
import json
import re
import shutil
import sqlite3
from contextlib import closing, suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgversus.errors import StoreError
from pgversus.lab.answers import read_answer
from pgversus.report.answer import StudyAnswer
from pgversus.report.article.page import article
from pgversus.report.console import SafeConsole
from pgversus.report.csv_tables import csv_lines
from pgversus.report.json_pieces import json_pieces
from pgversus.report.markdown import markdown
from pgversus.report.page.page import page_html
from pgversus.report.side_by_side.making import side_by_side
from pgversus.report.side_by_side.markdown import side_by_side_markdown
from pgversus.report.study_document import study_document
from pgversus.report.study_terminal import print_study_answer
from pgversus.report.terminal import WIDEST
from pgversus.report.tidy import trial_table, verdict_table
from pgversus.store import opening
from pgversus.store.attributions import attribution_folder
from pgversus.store.files import FILE_NAME
from tests.bounded import processor_time
from tests.unit.store.whole import changed, write_whole

VALUES = {
    "null": "NULL",
    "text": "'x'",
    "empty": "''",
    "blob": "x'00ff'",
    "large blob": "zeroblob(2000000)",
    "negative": "-1",
    "zero": "0",
    "one": "1",
    "huge": "9223372036854775807",
    "float": "1.5",
    "infinite": "9e999",
    "minus infinite": "-9e999",
    "tiny": "5e-324",
    "large": "1e300",
    "no UTF-8": "CAST(x'ff' AS TEXT)",
    "deep": "'" + "[" * 5000 + "'",
    "list": "'[]'",
    "object": "'{}'",
    "null of JSON": "'null'",
    "half a character": "'\"\\ud800\"'",
    "no number": "'[NaN, 1e999]'",
}
_SCHEMA = "\n".join((Path(opening.__file__).parent / name).read_text() for name in ("schema.sql", "plans.sql"))


def columns_of(table: str) -> list[str]:
    body = re.split(rf"CREATE TABLE (?:IF NOT EXISTS )?{table} \(", _SCHEMA)[1].partition("\n);")[0]
    return re.findall(r"^    ([a-z]\w+) (?:TEXT|INTEGER|REAL|BLOB)", body, re.MULTILINE)


READ = ("schema", "fact", "context", "preparation", "block", "trial", "latency_histogram", "counter_name")
PLACES = [(table, column) for table in (*READ, "plan", "explained_arm") for column in columns_of(table)]


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


def show(answer: StudyAnswer) -> None:
    """Every form in which results are shown but pictures; whatever they raise but a StoreError is a bug."""
    print_study_answer(answer, SafeConsole(file=io.StringIO(), width=WIDEST), with_published=True)
    assert markdown(answer, with_published=True)
    assert article(answer, lambda _: None)
    json.loads("".join(json_pieces(study_document(answer))))
    assert "".join(csv_lines(verdict_table(answer))).encode()
    assert "".join(csv_lines(trial_table(answer))).encode()
    assert side_by_side_markdown(side_by_side(answer, answer))


def is_shown(folder: Path) -> bool:
    """Whether it was, and not refused."""
    try:
        with processor_time(20):
            show(read_answer(folder))
    except StoreError as error:
        return not error.found
    return True


def test_results_as_they_were_written_are_shown(folder: Path) -> None:
    assert is_shown(folder)
    assert page_html(read_answer(folder))


def test_arms_whose_names_are_alike_without_their_passwords_are_shown(folder: Path) -> None:
    names = [f"'$.comparison.arms[{arm}].label', 'primary_conninfo=password={arm}'" for arm in range(2)]
    changed(folder, f"UPDATE context SET comparison = json_set(comparison, {', '.join(names)})")  # noqa: S608 - its own file
    assert is_shown(folder)
    answer = read_answer(folder)
    assert {arm.label for one in answer.answers for arm in one.comparison.arms} == {"primary_conninfo=password=..."}
    assert page_html(answer)


# What must not be missing may be so in a file that somebody else has made.
WITHOUT_RULES = (
    "PRAGMA foreign_keys = OFF",
    "PRAGMA ignore_check_constraints = ON",
    "PRAGMA writable_schema = ON",
    *(
        f"UPDATE sqlite_master SET sql = replace(sql, '{kind} NOT NULL', '{kind}') WHERE type = 'table'"  # noqa: S608 - its own file
        for kind in ("TEXT", "INTEGER", "REAL")
    ),
    "PRAGMA writable_schema = RESET",
)


@pytest.mark.parametrize("column", [f"{table}.{column}" for table, column in PLACES])
def test_whatever_stands_in_a_column_is_shown_or_refused(folder: Path, whole: bytes, column: str) -> None:
    table, name = column.split(".")
    for value in VALUES.values():
        (folder / FILE_NAME).write_bytes(whole)
        last = f"rowid = (SELECT max(rowid) FROM {table})"  # noqa: S608 - its own file
        # A key that is the row itself takes numbers alone.
        with suppress(sqlite3.IntegrityError):
            changed(folder, *WITHOUT_RULES, f"UPDATE OR REPLACE {table} SET {name} = {value} WHERE {last}")  # noqa: S608 - its own file
        is_shown(folder)


DEEP = '{"a": "password=x", "b": ' + '[{"c": ' * 20_000
BAD = [
    ("trial", "transactions = 0"),
    ("trial", "transactions = -5"),
    ("trial", "seconds = 0"),
    ("trial", "seconds = -1.0"),
    ("trial", "seconds = 9e999"),
    ("trial", "latency_p50_s = -1.0"),
    ("trial", "latency_sum_s = -9e999"),
    ("trial", "failed = -1"),
    ("trial", "trend = 9e999"),
    ("trial", "counters = zeroblob(80000)"),
    ("trial", "counters = x'7ff0000000000000'"),
    ("trial", "steps = '{\"a\": -1}'"),
    ("trial", "arm = arm + 70"),
    ("block", "wall_s = -1.0"),
    ("block", "wall_s = 'long'"),
    ("block", "repeated_rounds = -1"),
    ("context", "context = context + 1000000"),
    ("counter_name", "position = position + 100"),
    ("fact", "value = '{\"cpus\": true}' WHERE name = 'host'"),
    ("fact", 'value = \'{"cpus": 2, "memory_bytes": "x"}\' WHERE name = \'host\''),
    ("fact", "value = '{\"x\": \"y\"}' WHERE name = 'not_attributed'"),
    ("fact", "value = '[1]' WHERE name = 'builds'"),
    ("fact", f"value = '{DEEP}'"),
    ("context", f"comparison = '{DEEP}'"),
    ("preparation", f"found = '{DEEP}' WHERE found IS NOT NULL"),
    ("explained_arm", f"settings = '{DEEP}'"),
    ("plan", f"run = '{DEEP}' WHERE run IS NOT NULL"),
    ("fact", "value = '-1.0' WHERE name = 'budget_s'"),
    ("fact", "value = json_set(value, '$.verdicts', 0) WHERE name = 'study'"),
    ("fact", "value = json_set(value, '$.verdicts', 1e15) WHERE name = 'study'"),
    ("fact", "value = json_set(value, '$.contexts', 1000000000) WHERE name = 'study'"),
    ("fact", "value = json_set(value, '$.published', 'level') WHERE name = 'study'"),
    ("context", "comparison = json_set(comparison, '$.comparison.arms[0].index', 7)"),
    ("context", "comparison = json_set(comparison, '$.comparison.arms', json('[]'))"),
    ("context", "comparison = json_set(comparison, '$.comparison.design.margin', -1)"),
    ("context", "comparison = json_set(comparison, '$.comparison.design.max_blocks', 1000)"),
    ("context", "comparison = json_set(comparison, '$.comparison.design.fixed_blocks', 0)"),
    ("preparation", "found = json_set(found, '$.arms', json('[]')) WHERE found IS NOT NULL"),
    ("preparation", "found = json_set(found, '$.differences[0].values', json('[]')) WHERE context = 1"),
    ("preparation", "found = json_set(found, '$.design.rounds', 0) WHERE found IS NOT NULL"),
    ("preparation", "found = json_set(found, '$.design.window_s', -1) WHERE found IS NOT NULL"),
    ("latency_histogram", "first_bin = -9000000000000000"),
    ("latency_histogram", "first_bin = 9000000000000000"),
    ("latency_histogram", "counts = '[-1]'"),
    ("latency_histogram", "counts = '[1e30]'"),
    ("plan", "run = '[{\"Plan\": 1}]' WHERE run IS NOT NULL"),
    ("plan", "number = number + 1 WHERE arm = 1"),
    ("explained_arm", "arm = 7 WHERE arm = 1"),
    ("explained_arm", "settings = '{\"a\": 1}'"),
]


def read_all(folder: Path) -> None:
    """Plans and distributions are read when they are shown."""
    for one in read_answer(folder).answers:
        one.latencies()
        one.plans()


@pytest.mark.parametrize("bad", BAD, ids=[f"{table} {value}"[:60] for table, value in BAD])
def test_what_pgversus_would_not_write_is_refused(folder: Path, bad: tuple[str, str]) -> None:
    table, value = bad
    changed(folder, "PRAGMA foreign_keys = OFF", "PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {value}")  # noqa: S608 - its own file
    with pytest.raises(StoreError) as caught:
        read_all(folder)
    assert caught.value.slug == "store-unreadable"
    assert caught.value.found


def flipped(content: bytes, rng: Random) -> bytes:
    """With some bytes changed, lost or doubled."""
    data = bytearray(content)
    for _ in range(rng.randint(1, 4)):
        at = rng.randrange(len(data))
        match rng.randrange(6):
            case 0:
                del data[at:]
            case 1:
                page = at // 4096 * 4096
                data[page : page + 4096] = rng.choice([bytes(4096), bytes(data[:4096]), rng.randbytes(4096)])
            case 2 | 3:
                data[at] = rng.randrange(256)
            case _:
                # In what is text, another digit or letter.
                data[at : at + 1] = rng.choice([b"0", b"9", b"-", b"e", b"x", b'"', b"[", b"\xff"])
        if not data:
            break
    return bytes(data)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_any_bytes_changed_are_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    (folder / FILE_NAME).write_bytes(flipped(whole, Random(seed)))  # noqa: S311 - a test, no secret
    is_shown(folder)
    shutil.rmtree(folder)


OTHERS = ["-1", "0", "null", "true", "[]", "{}", '""', '"\\ud800"', "1e999", "1e300", "-7", "9" * 400, "NaN"]


DOCUMENTS = [
    *(("fact", "value", number) for number in range(1, 11)),
    *(("context", "comparison", number) for number in (1, 2, 3)),
    *(("preparation", "found", number) for number in (1, 2)),
    *(("explained_arm", name, number) for name in ("settings", "statistics", "sampled") for number in (1, 2)),
    *(("plan", name, number) for name in ("planned", "run", "undone_by") for number in (1, 3)),
]


def with_others(folder: Path, rng: Random) -> None:
    """Put other values into one of the documents."""
    table, column, row = rng.choice(DOCUMENTS)
    ((text,),) = rows_of(folder, f"SELECT {column} FROM {table} WHERE rowid = {row}")  # noqa: S608 - its own file
    document = None if text is None else json.loads(text)
    for _ in range(rng.randint(1, 3)):
        document = changed_inside(document, rng)
    text = json.dumps(document).replace('"PLACE"', rng.choice(OTHERS))
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as database:
        database.execute("PRAGMA ignore_check_constraints = ON")
        database.execute(f"UPDATE {table} SET {column} = ? WHERE rowid = ?", (text, row))  # noqa: S608 - its own file


def changed_inside(value: Any, rng: Random) -> Any:
    """The same with one of its values in the place of another, gone, or to be replaced."""
    if isinstance(value, dict | list) and value and rng.random() < 0.9:
        key = rng.choice(list(value)) if isinstance(value, dict) else rng.randrange(len(value))
        if rng.random() < 0.1:
            del value[key]
        else:
            value[key] = changed_inside(value[key], rng)
        return value
    return rng.choice(["PLACE", "PLACE", value, [value, value], {"a": value}, -1, 0, 10**9, "x"])


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_any_document_with_other_values_is_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("values")
    (folder / FILE_NAME).write_bytes(whole)
    with_others(folder, Random(seed))  # noqa: S311 - a test, no secret
    is_shown(folder)
    shutil.rmtree(folder)


def rows_of(folder: Path, sql: str) -> list[tuple[str | None]]:
    with closing(sqlite3.connect(folder / FILE_NAME)) as database:
        return database.execute(sql).fetchall()


def test_an_attribution_that_leads_back_to_its_study_ends(folder: Path) -> None:
    place = attribution_folder(folder, 1, 1)
    place.parent.mkdir()
    place.symlink_to(folder, target_is_directory=True)
    assert is_shown(folder)
    assert "no time" in {one.failure for one in read_answer(folder).answers[0].attributed.values()}
    place.unlink()
    # The same as a folder of its own, over and over.
    inner = folder
    for _ in range(30):
        inner = attribution_folder(inner, 1, 1)
        inner.mkdir(parents=True)
        shutil.copyfile(folder / FILE_NAME, inner / FILE_NAME)
    with processor_time(10):
        assert is_shown(folder)


@pytest.mark.parametrize(
    "name", ["context-9-arm-1", "context-1-arm-9", "context-" + "9" * 200 + "-arm-1", "context-0-arm-0"]
)
def test_an_attribution_of_nothing_in_the_study_is_not_read(folder: Path, name: str) -> None:
    place = folder / "attributions" / name
    place.mkdir(parents=True)
    (place / FILE_NAME).write_text("no database")
    answer = read_answer(folder)
    assert [sorted(one.attributed) for one in answer.answers] == [[1], []]
