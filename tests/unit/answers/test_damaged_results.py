"""Results with anything in any column, or with any byte changed, are shown or refused with a StoreError."""

import io
import json
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.read import read_answer
from pgversus.errors import StoreError
from pgversus.report.article.page import article
from pgversus.report.console import WIDEST, SafeConsole
from pgversus.report.json_document import json_pieces, study_document
from pgversus.report.markdown import markdown
from pgversus.report.page.page import page_html
from pgversus.report.side_by_side.document import side_by_side
from pgversus.report.side_by_side.text import side_by_side_markdown
from pgversus.report.terminal import print_study_answer
from pgversus.report.tidy_tables import csv_lines, trial_table, verdict_table
from pgversus.store.folder import FILE_NAME, FollowUp, follow_up_folder
from tests.bounded import processor_time
from tests.fuzz.mutations import changed_bytes
from tests.fuzz.results import PLACES, VALUES, put, put_into_document, whole_file
from tests.unit.store.whole import changed

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def whole() -> bytes:
    """A results file."""
    return whole_file()


@pytest.fixture
def folder(tmp_path: Path, whole: bytes) -> Path:
    """A folder with a copy of it."""
    (tmp_path / FILE_NAME).write_bytes(whole)
    return tmp_path


FORMS: tuple[Callable[[StudyAnswer], object], ...] = (
    lambda answer: print_study_answer(answer, SafeConsole(file=io.StringIO(), width=WIDEST), with_published=True),
    lambda answer: markdown(answer, with_published=True),
    lambda answer: article(answer, lambda _: None),
    lambda answer: json.loads("".join(json_pieces(study_document(answer)))),
    lambda answer: "".join(csv_lines(verdict_table(answer))).encode(),
    lambda answer: "".join(csv_lines(trial_table(answer))).encode(),
    lambda answer: side_by_side_markdown(side_by_side(answer, answer)),
)
"""Every form except pictures; any error other than StoreError is a bug."""


def is_shown(folder: Path, forms: Sequence[Callable[[StudyAnswer], object]] = FORMS) -> bool:
    """Return whether results were shown, not refused."""
    try:
        with processor_time(20):
            answer = read_answer(folder)
            for form in forms:
                form(answer)
    except StoreError as error:
        return not error.found
    return True


def test_undamaged_results_are_shown(folder: Path) -> None:
    assert is_shown(folder)
    assert page_html(read_answer(folder))


def test_arms_whose_names_differ_only_in_passwords_are_shown(folder: Path) -> None:
    names = [f"'$.comparison.arms[{arm}].label', 'primary_conninfo=password={arm}'" for arm in range(2)]
    changed(folder, f"UPDATE context SET comparison = json_set(comparison, {', '.join(names)})")  # noqa: S608 - its own file
    assert is_shown(folder)
    answer = read_answer(folder)
    assert {arm.label for one in answer.answers for arm in one.comparison.arms} == {"primary_conninfo=password=..."}
    assert page_html(answer)


@pytest.mark.parametrize("column", [f"{table}.{column}" for table, column in PLACES])
def test_any_value_in_any_column_is_shown_or_refused(folder: Path, whole: bytes, column: str) -> None:
    table, name = column.split(".")
    first = PLACES.index((table, name))
    for number, value in enumerate(VALUES, start=first):
        (folder / FILE_NAME).write_bytes(whole)
        put(folder, table, name, value)
        # Every value is shown in every form, but not in every column.
        is_shown(folder, [FORMS[number % len(FORMS)], FORMS[(number + 3) % len(FORMS)]])


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
    """Plans and distributions are read only when they are shown."""
    for one in read_answer(folder).answers:
        one.latencies()
        one.plans()


@pytest.mark.parametrize("bad", BAD, ids=[f"{table} {value}"[:60] for table, value in BAD])
def test_values_that_pgversus_never_writes_are_refused(folder: Path, bad: tuple[str, str]) -> None:
    table, value = bad
    changed(folder, "PRAGMA foreign_keys = OFF", "PRAGMA ignore_check_constraints = ON", f"UPDATE {table} SET {value}")  # noqa: S608 - its own file
    with pytest.raises(StoreError) as caught:
        read_all(folder)
    assert caught.value.slug == "store-unreadable"
    assert caught.value.found


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_a_file_with_any_changed_bytes_is_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("flipped")
    (folder / FILE_NAME).write_bytes(changed_bytes(whole, whole, Random(seed)))  # noqa: S311 - a test, no secret
    is_shown(folder)
    shutil.rmtree(folder)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(seed=st.integers(0, 2**64))
def test_any_document_with_changed_values_is_shown_or_refused(
    tmp_path_factory: pytest.TempPathFactory, whole: bytes, seed: int
) -> None:
    folder = tmp_path_factory.mktemp("values")
    (folder / FILE_NAME).write_bytes(whole)
    put_into_document(folder, Random(seed))  # noqa: S311 - a test, no secret
    is_shown(folder)
    shutil.rmtree(folder)


def test_an_attribution_that_contains_its_study_does_not_recurse(folder: Path) -> None:
    place = follow_up_folder(folder, FollowUp.ATTRIBUTIONS, 1, 1)
    place.parent.mkdir()
    place.symlink_to(folder, target_is_directory=True)
    assert is_shown(folder)
    assert "no time" in {one.failure for one in read_answer(folder).answers[0].attributions.values()}
    place.unlink()
    # The same as a folder of its own, endlessly nested.
    inner = folder
    for _ in range(30):
        inner = follow_up_folder(inner, FollowUp.ATTRIBUTIONS, 1, 1)
        inner.mkdir(parents=True)
        shutil.copyfile(folder / FILE_NAME, inner / FILE_NAME)
    with processor_time(10):
        assert is_shown(folder)


@pytest.mark.parametrize(
    "name", ["context-9-arm-1", "context-1-arm-9", "context-" + "9" * 200 + "-arm-1", "context-0-arm-0"]
)
def test_an_attribution_that_is_not_in_the_study_is_not_read(folder: Path, name: str) -> None:
    place = folder / "attributions" / name
    place.mkdir(parents=True)
    (place / FILE_NAME).write_text("no database")
    answer = read_answer(folder)
    assert [sorted(one.attributions) for one in answer.answers] == [[1], []]
