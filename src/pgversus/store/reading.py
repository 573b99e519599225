"""Reading results back: the same objects that were written, without the raw output and the histograms."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

from pydantic import ValidationError

from pgversus.stats.counter_table import Columns
from pgversus.stats.histogram import LatencyHistogram
from pgversus.stats.on_demand import Once
from pgversus.stats.trials import Block, FailedTrial, Phase, Trial
from pgversus.store.codec import CONTEXT, PREPARATION, STUDY, fact_without_secrets
from pgversus.store.columns import selected
from pgversus.store.counters import counter_names, counter_rows
from pgversus.store.files import FILE_NAME, SCHEMA_VERSION, holds_results, unreadable
from pgversus.store.latencies import read_latencies
from pgversus.store.plans import checked_contexts, read_plans
from pgversus.study.captured import CapturedPlans
from pgversus.study.hidden import message_without_secrets
from pgversus.study.hidden_documents import document_without_secrets
from pgversus.study.metrics import QUANTILES
from pgversus.study.preparation import Preparation
from pgversus.study.study import Context, StudyFact

_P50, _P95, _P99 = QUANTILES.values()
_FINISHED = """
SELECT context, block, arm, transactions, seconds, failed, unclocked, latency_sum_s, latency_max_s, counters,
       latency_min_s, latency_p50_s, latency_p95_s, latency_p99_s, trend, steps, {ratio_error},
       {windows}
FROM trial WHERE status = 'finished' ORDER BY context, block, arm
"""
_Row = tuple[Any, ...]
_COUNTERS, _NEEDED = 9, 7
# Where the counters stand in such a row; how many values every finished trial has, from its transactions on.
_FAILED = """
SELECT context, block, arm, failed_phase, failed_words
FROM trial WHERE status = 'failed' ORDER BY context, block, arm
"""
_LAST_STUDY = "SELECT value FROM fact WHERE name = 'study' ORDER BY rowid DESC"
_BLOCKS = "SELECT context, block, wall_s, repeated_rounds FROM block ORDER BY context, block"
_DAYS = "SELECT context, substr(min(finished_at), 1, 10), substr(max(finished_at), 1, 10) FROM block GROUP BY context"
Read = TypeVar("Read")
_NO_STEPS: Mapping[str, float] = MappingProxyType({})
_ROWS_AT_ONCE = 2000
# Their counters are decoded together, and twice as many are not faster.


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """A context and what is known of it."""

    context: Context
    preparation: Preparation | None
    failure: str | None
    """Why it could not be prepared."""
    blocks: tuple[Block, ...]
    plans: Callable[[], CapturedPlans | None]
    """Read when they are asked for, since of thousands of contexts they are most of the file; None where none were
    captured. StoreError when they cannot be read any more."""
    latencies: Callable[[], Mapping[int, LatencyHistogram]]
    """By arm, over all blocks; read when they are asked for, for the same reason."""
    is_checked: bool
    """Whether rows were compared, or plans sampled under load."""
    days: tuple[str, str] | None = None
    """Of its first and its last block, UTC, ISO 8601; None without a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStudy:
    """A results folder, read."""

    study: StudyFact
    facts: Mapping[str, Any]
    """The last value recorded under each name."""
    contexts: tuple[StoredContext, ...]


def read_results(folder: Path) -> StoredStudy:
    """Everything in a results folder; StoreError when it holds none, or they are damaged or of another form."""
    try:
        if not holds_results(folder):
            raise unreadable(folder, f"no {FILE_NAME}")
        with closing(sqlite3.connect(_uri(folder), uri=True, isolation_level=None)) as database:
            # One moment of it all: a run may be adding blocks meanwhile.
            database.execute("BEGIN")
            return _read(folder, database)
    except OSError as error:
        raise unreadable(folder, error.strerror or error) from error
    except (sqlite3.Error, ValidationError, ValueError, KeyError, TypeError) as error:
        raise unreadable(folder, error) from error


def read_seed(folder: Path) -> int:
    """The seed of the study whose results these are; StoreError when they cannot be read."""
    try:
        with closing(sqlite3.connect(_uri(folder), uri=True)) as database:
            (text,) = database.execute(_LAST_STUDY).fetchone() or (None,)
        return STUDY.validate_python(json.loads(text or "null")).seed
    except (sqlite3.Error, ValidationError, ValueError) as error:
        raise unreadable(folder, error) from error


def _uri(folder: Path) -> str:
    """Read only: looking at results of another user, or on a full disk, must work and leave nothing behind."""
    file = (folder / FILE_NAME).absolute()
    # Without a log beside it nobody is writing; SQLite would make files of its own even to read.
    is_closed = not file.with_name(f"{FILE_NAME}-wal").exists()
    return f"{file.as_uri()}?{'immutable=1' if is_closed else 'mode=ro'}"


def _read(folder: Path, database: sqlite3.Connection) -> StoredStudy:
    (version,) = database.execute("SELECT version FROM schema").fetchone() or (None,)
    if version != SCHEMA_VERSION:
        raise unreadable(folder, f"schema version {version}")
    facts = {
        name: json.loads(fact_without_secrets(name, value))
        for name, value in database.execute("SELECT name, value FROM fact ORDER BY rowid")
    }
    # Contexts on the same servers were mostly found alike: a study of thousands has a few texts.
    preparation_of = cache(_preparation)
    prepared = {
        context: (None if found is None else preparation_of(found), words and message_without_secrets(words))
        for context, found, words in database.execute("SELECT context, found, failed_words FROM preparation")
    }
    study = STUDY.validate_python(facts["study"])
    blocks = _blocks(database, folder)
    checked = checked_contexts(database)
    days = {context: (first, last) for context, first, last in database.execute(_DAYS)}
    contexts = []
    for number, text in database.execute("SELECT context, comparison FROM context ORDER BY context"):
        fact = CONTEXT.validate_json(document_without_secrets(text))
        preparation, failure = prepared.get(number, (None, None))
        contexts.append(
            StoredContext(
                context=Context(number=number, levels=fact.levels, comparison=fact.comparison),
                preparation=preparation,
                failure=failure,
                blocks=tuple(blocks.get(number, ())),
                plans=Once(partial(_later, read_plans, folder, number)),
                latencies=Once(partial(_later, read_latencies, folder, number)),
                is_checked=number in checked,
                days=days.get(number),
            )
        )
    if len(contexts) != study.contexts:
        raise unreadable(folder, f"{len(contexts)} contexts of {study.contexts}")
    return StoredStudy(study=study, facts=facts, contexts=tuple(contexts))


def _preparation(text: str) -> Preparation:
    return PREPARATION.validate_json(document_without_secrets(text))


def _later(read: Callable[[sqlite3.Connection, int], Read], folder: Path, context: int) -> Read:
    try:
        with closing(sqlite3.connect(_uri(folder), uri=True)) as database:
            return read(database, context)
    except (sqlite3.Error, ValidationError, ValueError) as error:
        raise unreadable(folder, error) from error


def _blocks(database: sqlite3.Connection, folder: Path) -> Mapping[int, list[Block]]:
    trials: dict[tuple[int, int], dict[int, Trial]] = defaultdict(dict)
    failures: dict[tuple[int, int], list[FailedTrial]] = defaultdict(list)
    columns = Columns(counter_names(database))
    for context, block, arm, phase, words in database.execute(_FAILED):
        failures[context, block].append(FailedTrial(arm=arm, phase=Phase(phase), words=message_without_secrets(words)))
    later = {name: selected(database, name) for name in ("ratio_error", "windows")}
    cursor = database.execute(_FINISHED.format(**later))
    while rows := cursor.fetchmany(_ROWS_AT_ONCE):
        blobs = [row[_COUNTERS] for row in _whole(rows, folder)]
        for row, counters in zip(rows, counter_rows(columns, blobs), strict=True):
            trials[row[:2]][row[2]] = _trial(row, counters)
    result: dict[int, list[Block]] = defaultdict(list)
    for context, number, wall_s, repeated in database.execute(_BLOCKS):
        key = (context, number)
        block = Block(
            number=number,
            trials=trials.get(key, {}),
            failures=tuple(failures.get(key, ())),
            wall_s=wall_s,
            repeated_rounds=repeated,
        )
        result[context].append(block)
    return result


def _whole(rows: Sequence[_Row], folder: Path) -> Sequence[_Row]:
    """The same rows; StoreError for one without a number that every finished trial has."""
    for context, block, arm, *values in rows:
        if None in values[:_NEEDED]:
            raise unreadable(
                folder, f"arm {arm} in block {block} of context {context} has a trial without all its numbers"
            )
    return rows


def _trial(row: _Row, counters: Mapping[str, float]) -> Trial:
    _, _, arm, transactions, seconds, failed, unclocked, total, most, _, least, p50, p95, p99, *later = row
    trend, steps, error, windows = later
    return Trial(
        arm=arm,
        transactions=transactions,
        seconds=seconds,
        latency_sum_s=total,
        latency_max_s=most,
        quantiles={} if p50 is None else {_P50: p50, _P95: p95, _P99: p99},
        latency_min_s=least,
        failed=failed,
        unclocked=unclocked,
        trend=trend,
        counters=counters,
        ratio_error=error,
        window_count=windows,
        steps=_NO_STEPS if steps is None else json.loads(steps),
    )
