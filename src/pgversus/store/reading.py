"""Reading results: the same objects that were written, without raw output and histograms."""

from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from itertools import chain
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter

from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, FailedTrial, LatencyHistogram, Phase, Trial
from pgversus.stats.counters import Columns
from pgversus.store.codec import CONTEXT, PREPARATION, STEPS, STUDY, ContextFact, added_columns, fact_of
from pgversus.store.counters import array_size, counter_names, counter_rows
from pgversus.store.invariants import check_context, check_preparation, check_study
from pgversus.store.latencies import QUANTILE_COLUMNS, read_latencies, read_other_quantiles
from pgversus.store.leases import read_attempts
from pgversus.store.plans import checked_contexts, read_plans
from pgversus.store.results_file import ResultsFile, opened
from pgversus.store.rows import Count, Number, Place, Seconds, read_chunks, read_rows
from pgversus.study.study import Context, StudyMetadata
from pgversus.text.documents import document_without_secrets
from pgversus.text.redaction import message_without_secrets

_QUANTILES = tuple(QUANTILE_COLUMNS.values())
_NO_QUANTILES: Mapping[float, float] = {}
Read = TypeVar("Read")
_KEPT = 16
_Log = Annotated[float, Field(ge=-50, le=50, allow_inf_nan=False)]
"""Logarithm of a ratio; actual values are far within these limits."""
_LONGEST_STEPS = 1_000_000
# Characters: names and seconds of an operation's steps.
_Trial = tuple[
    Number,
    Number,
    Place,
    Annotated[int, Field(ge=1, le=2**53)],
    Annotated[float, Field(gt=0, le=1e18, allow_inf_nan=False)],
    Count,
    Count,
    Seconds,
    Seconds,
    bytes,
    Seconds | None,
    Seconds | None,
    Seconds | None,
    Seconds | None,
    _Log | None,
    Annotated[str, Field(max_length=_LONGEST_STEPS)] | None,
    _Log | None,
    Number | None,
]
_TRIALS = TypeAdapter(list[_Trial])
_FINISHED = """
SELECT context, block, arm, transactions, seconds, failed, unclocked, latency_sum_s, latency_max_s,
       CASE WHEN length(counters) <= ? THEN counters END AS counters,
       latency_min_s, latency_p50_s, latency_p95_s, latency_p99_s, trend, steps, {ratio_error}, {windows}
FROM trial WHERE status = 'finished' ORDER BY context, block, arm
"""
_COUNTERS = 9
# Index of the counters in a row of _FINISHED.
_FAILURES = TypeAdapter(list[tuple[Number, Number, Place, Literal["start", "warm-up", "measure"], str]])
_FAILED = """
SELECT context, block, arm, failed_phase, failed_words
FROM trial WHERE status = 'failed' ORDER BY context, block, arm
"""
_FACTS = TypeAdapter(list[tuple[int, str, str]])
_ALL_FACTS = "SELECT rowid, name, value FROM fact ORDER BY rowid"
_LAST_STUDY = "SELECT rowid, name, value FROM fact WHERE name = 'study' ORDER BY rowid DESC LIMIT 1"
_PREPARATIONS = TypeAdapter(list[tuple[Number, str | None, str | None]])
_PREPARED = "SELECT context, found, failed_words FROM preparation ORDER BY context"
_CONTEXTS = TypeAdapter(list[tuple[Number, str]])
_ALL_CONTEXTS = "SELECT context, comparison FROM context ORDER BY context"
_HostName = Annotated[str, Field(max_length=253)]
"""At most as long as a host name in DNS."""
_BLOCKS = TypeAdapter(list[tuple[Number, Number, Seconds, Count, _HostName | None]])
_ALL_BLOCKS = "SELECT context, block, wall_s, repeated_rounds, {host} FROM block ORDER BY context, block"
_Day = Annotated[str, Field(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}$")]
_DAYS = TypeAdapter(list[tuple[Number, _Day, _Day]])
_ALL_DAYS = """
SELECT context, substr(min(finished_at), 1, 10) AS first, substr(max(finished_at), 1, 10) AS last
FROM block GROUP BY context ORDER BY context
"""
_NO_STEPS: Mapping[str, float] = MappingProxyType({})
_ROWS_AT_ONCE = 2000
# Number of rows whose counters are decoded together; twice as many are not faster.
_ROOM_FOR_SHORT, _SOME_ROOM = 4, 2**26
"""Limit on padding arrays written before all names were known: a multiple of the file size, plus some bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredContext:
    """A context with its stored results."""

    context: Context
    preparation: Preparation | None
    failure: str | None
    """Why it could not be prepared."""
    blocks: tuple[Block, ...]
    plans: Callable[[], CapturedPlans | None]
    """Read on demand, since the plans of thousands of contexts take up most of the file; None if none were captured.
    StoreError if they can no longer be read."""
    latencies: Callable[[], Mapping[int, Sequence[LatencyHistogram]]]
    """Latencies of each block, by arm; read on demand for the same reason."""
    is_checked: bool
    """Whether rows were compared or plans sampled under load."""
    days: tuple[str, str] | None = None
    """Dates of the first and the last block, UTC, ISO 8601; None without a block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredStudy:
    """The contents of a results folder."""

    study: StudyMetadata
    facts: Mapping[str, Any]
    """The last value recorded under each name."""
    contexts: tuple[StoredContext, ...]
    attempts: Mapping[tuple[int, int], int]
    """The number of leases of each block that a fleet measured, by context and block."""


def read_results(folder: Path) -> StoredStudy:
    """Read a results folder; StoreError if the results are missing, damaged or of an unknown format."""
    with opened(folder) as database:
        facts = {name: fact_of(name, value) for _, name, value in read_rows(database, _ALL_FACTS, _FACTS, key=1)}
        if "study" not in facts:
            raise ValueError("it contains no study")
        study = STUDY.validate_python(facts["study"])
        return StoredStudy(
            study=study,
            facts=facts,
            contexts=_contexts(database, folder, study),
            attempts=read_attempts(database),
        )


def read_seed(folder: Path) -> int:
    """Return the seed of the study in a results folder; StoreError if it cannot be read."""
    with opened(folder) as database:
        for _, _, value in read_rows(database, _LAST_STUDY, _FACTS, key=1):
            return STUDY.validate_json(value).seed
        raise ValueError("it contains no study")


def _later(read: Callable[..., Read], folder: Path, context: int, arms: int) -> Read:
    with opened(folder) as database:
        return read(database, context, arms=arms)


def _contexts(database: ResultsFile, folder: Path, study: StudyMetadata) -> tuple[StoredContext, ...]:
    context_facts = {
        number: CONTEXT.validate_json(document_without_secrets(text))
        for number, text in read_rows(database, _ALL_CONTEXTS, _CONTEXTS, key=1)
    }
    for number, fact in context_facts.items():
        check_context(number, fact.comparison)
    check_study(study, {number: fact.comparison for number, fact in context_facts.items()})
    # Preparations on the same servers are mostly equal: a study of thousands of contexts has only a few texts.
    preparation_of = cache(_preparation)
    prepared = {
        number: (None if found is None else preparation_of(found), words and message_without_secrets(words))
        for number, found, words in read_rows(database, _PREPARED, _PREPARATIONS, key=1)
    }
    for number, (preparation, _) in prepared.items():
        if number in context_facts and preparation is not None:
            check_preparation(number, preparation, context_facts[number].comparison)
    blocks = _blocks(database, context_facts)
    checked = checked_contexts(database)
    days = {number: (first, last) for number, first, last in read_rows(database, _ALL_DAYS, _DAYS, key=1)}
    contexts = []
    # Of thousands of contexts, only the last ones in use stay in memory.
    plans_of = lru_cache(_KEPT)(partial(_later, read_plans, folder))
    latencies_of = lru_cache(_KEPT)(partial(_later, read_latencies, folder))
    for number, fact in context_facts.items():
        preparation, failure = prepared.get(number, (None, None))
        arms = len(fact.comparison.arms)
        contexts.append(
            StoredContext(
                context=Context(number=number, levels=fact.levels, comparison=fact.comparison),
                preparation=preparation,
                failure=failure,
                blocks=tuple(blocks.get(number, ())),
                plans=partial(plans_of, number, arms),
                latencies=partial(latencies_of, number, arms),
                is_checked=number in checked,
                days=days.get(number),
            )
        )
    return tuple(contexts)


def _preparation(text: str) -> Preparation:
    return PREPARATION.validate_json(document_without_secrets(text))


def _blocks(database: ResultsFile, context_facts: Mapping[int, ContextFact]) -> Mapping[int, list[Block]]:
    arms = {number: len(fact.comparison.arms) for number, fact in context_facts.items()}
    trials, failures = _trials(database, arms), _failures(database, arms)
    result: dict[int, list[Block]] = {number: [] for number in context_facts}
    sql = _ALL_BLOCKS.format(**added_columns(database, "block"))
    found = read_chunks(database, sql, _BLOCKS, at_once=_ROWS_AT_ONCE, key=2)
    for context, number, wall_s, repeated, host in chain.from_iterable(found):
        key = (context, number)
        if context not in result:
            raise ValueError(f"block {number} of context {context}, which does not exist")
        block = Block(
            number=number,
            trials=trials.get(key, {}),
            failures=tuple(failures.get(key, ())),
            wall_s=wall_s,
            repeated_rounds=repeated,
            host="" if host is None else host,
        )
        result[context].append(block)
    return result


def _trials(database: ResultsFile, arms: Mapping[int, int]) -> Mapping[tuple[int, int], dict[int, Trial]]:
    """Return trials by context and block, then by arm. arms: number of arms in each context."""
    found: dict[tuple[int, int], dict[int, Trial]] = defaultdict(dict)
    columns = Columns(counter_names(database))
    sql = _FINISHED.format(**added_columns(database, "trial"))
    longest = array_size(columns)
    room = _ROOM_FOR_SHORT * database.size + _SOME_ROOM
    others = read_other_quantiles(database)
    for part in read_chunks(database, sql, _TRIALS, at_once=_ROWS_AT_ONCE, key=3, parameter=longest):
        room -= len(part) * longest
        if room < 0:
            raise ValueError("trials with far fewer counters than names")
        blobs: list[Any] = [row[_COUNTERS] for row in part]
        for row, counters in zip(part, counter_rows(columns, blobs), strict=True):
            if row[2] >= arms.get(row[0], 0):
                raise ValueError(f"a trial of arm {row[2]}, which context {row[0]} does not have")
            found[row[:2]][row[2]] = _trial(row, counters, others.get(row[:3], _NO_QUANTILES))
    return found


def _failures(database: ResultsFile, arms: Mapping[int, int]) -> Mapping[tuple[int, int], list[FailedTrial]]:
    found: dict[tuple[int, int], list[FailedTrial]] = defaultdict(list)
    for context, block, arm, phase, words in read_rows(database, _FAILED, _FAILURES, key=3):
        if arm >= arms.get(context, 0):
            raise ValueError(f"a trial of arm {arm}, which context {context} does not have")
        found[context, block].append(FailedTrial(arm=arm, phase=Phase(phase), message=message_without_secrets(words)))
    return found


def _trial(row: tuple[Any, ...], counters: Mapping[str, float], others: Mapping[float, float]) -> Trial:
    """others: quantiles without a column."""
    _, _, arm, transactions, seconds, failed, unclocked, total, most, _, least, p50, p95, p99, *later = row
    trend, steps, error, windows = later
    quantiles = dict(zip(_QUANTILES, (p50, p95, p99), strict=True))
    # Within its bin, a quantile may be read slightly above the longest latency.
    quantiles |= {q: min(seconds, most) for q, seconds in others.items()}
    return Trial(
        arm=arm,
        transactions=transactions,
        seconds=seconds,
        latency_sum_s=total,
        latency_max_s=most,
        quantiles={} if p50 is None else quantiles,
        latency_min_s=least,
        failed=failed,
        unclocked=unclocked,
        trend=trend,
        counters=counters,
        ratio_error=error,
        window_count=windows,
        steps=_NO_STEPS if steps is None else STEPS.validate_json(steps),
    )
