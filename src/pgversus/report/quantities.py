"""What is shown of a comparison besides its verdict, as rows; every renderer shows these.

First the metrics and counters that the study names, or the usual ones; then the counters that differ beyond chance,
which explain a difference or go with it.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.counters import sure_ratios
from pgversus.study.comparison import BASELINE
from pgversus.study.counters import COUNTERS, TOLD_BY_HOST, CounterUnit
from pgversus.study.metrics import BY_NAME, Metric
from pgversus.study.workload import Operation
from pgversus.text.translation import later, listed, tell
from pgversus.text.units import change, change_interval, latency, significant, size

COUNTERS_NOTE = later("counters: values are means over all blocks, the change is the mean of the blocks' ratios")
"""Why a change may not be that from one value to the other: one block alone can carry a mean of values."""
_MOST_SURE = 8
_MOST_SURE_OF_STUDY = 3
_USUAL = ("server_memory_peak_bytes",)
_USUAL_OF_OPERATION = ("session_memory_peak_bytes", "vacuum_tuples_removed", "vacuum_index_scans", "wal_bytes")
# What the host did as a whole is a condition of the measurement and no property of an arm.
_OF_HOST = frozenset(
    {
        "host_cpu_s",
        "host_cpu_user_s",
        "host_steal_s",
        "host_iowait_s",
        "pressure_cpu_s",
        "pressure_io_s",
        "pressure_memory_s",
    }
)
# Its own transactions and what the load does by definition: they differ as the throughput does.
_OF_LOAD = frozenset({"transactions_committed", "tuples_inserted", "tuples_updated", "tuples_deleted"})
_NAMED_ALIKE = frozenset(
    {"server_io_hits", "client_io_hits", "server_io_read_bytes", "server_io_write_bytes", "client_cpu_user_s"}
)
"""The same work under another name than a counter that is shown."""
# What VACUUM says of itself as the server, the host or the verdict do, or as another of its own counters does.
_OF_VACUUM_ALIKE = frozenset(
    {
        "vacuum_pages_frozen",
        "vacuum_dead_items_removed",
        "vacuum_buffers_hit",
        "vacuum_buffers_read",
        "vacuum_wal_records",
        "vacuum_wal_full_page_images",
        "vacuum_wal_bytes",
        "vacuum_cpu_user_s",
        "vacuum_cpu_system_s",
        "vacuum_elapsed_s",
    }
)
_NEVER_BY_ITSELF = _OF_HOST | _OF_LOAD | _NAMED_ALIKE | _OF_VACUUM_ALIKE


@dataclass(frozen=True, slots=True, kw_only=True)
class QuantityRow:
    """One metric or counter on the baseline and on a contender; every number is text already."""

    name: str
    baseline: str
    contender: str
    change: str
    """Empty where one side has nothing, so that there is no ratio."""
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedQuantityRow:
    """One of them, and which verdict of a study it stands beside."""

    context: str
    contender: str
    quantity: QuantityRow


def quantity_rows(
    answer: Answer, result: ContenderResult, named: Sequence[str] = (), most_sure: int = _MOST_SURE
) -> list[QuantityRow]:
    """The named quantities, or the usual ones, as far as both arms tell them; then the surest counters.

    named: as `metrics` of a study file. most_sure: of the counters that differ beyond chance, the largest difference
    first.
    """
    is_operation = isinstance(answer.comparison.workload, Operation)
    usual = _USUAL_OF_OPERATION if is_operation else _USUAL
    wanted = [name for name in named or usual if name != answer.analysis.metric.value.removesuffix("_s")]
    return [
        *(row for name in wanted if (row := _row(answer, result, name))),
        *islice(_sure(answer, result, wanted), most_sure),
    ]


def sure_counters(answer: Answer, result: ContenderResult, most: int) -> list[QuantityRow]:
    """The counters that differ beyond chance, the largest difference first."""
    return list(islice(_sure(answer, result, ()), most))


def study_quantity_rows(answer: StudyAnswer) -> list[PlacedQuantityRow]:
    """The same of every verdict of a study, in its order, with fewer of the surest counters."""
    return [
        PlacedQuantityRow(
            context=one.context.label, contender=one.comparison.arms[result.contender].label, quantity=row
        )
        for one in answer.answers
        for result in one.analysis.results
        for row in quantity_rows(one, result, answer.study.metrics, _MOST_SURE_OF_STUDY)
    ]


def untold(answer: StudyAnswer) -> list[str]:
    """What the study names in `metrics` and no verdict shows, with who did not tell it: `wal_bytes: not told by 13`."""
    shown = {row for one in answer.answers for result in one.analysis.results for row in _told(one, result, answer)}
    return [f"{name}: {_silent(answer, name)}" for name in answer.study.metrics if name not in shown]


def _told(one: Answer, result: ContenderResult, answer: StudyAnswer) -> Iterator[str]:
    for name in answer.study.metrics:
        is_judged = name == one.analysis.metric.value.removesuffix("_s")
        if is_judged or _row(one, result, name):
            yield name


def _silent(answer: StudyAnswer, name: str) -> str:
    """Who did not tell it, as far as is known."""
    if name in BY_NAME or not any(one.blocks for one in answer.answers):
        return tell("nothing was measured of it")
    if name in TOLD_BY_HOST:
        return tell("not told by this host")
    versions = (
        facts.version
        for one in answer.answers
        for facts, told in zip(one.arms, one.analysis.counters, strict=True)
        if name not in told
    )
    return tell("not told by {versions}", versions=listed(dict.fromkeys(versions)))


def level_text(metric: Metric, value: float) -> str:
    """A metric's value in the unit people read it in."""
    return significant(value, 4) if metric is Metric.TPS else latency(value)


def counter_text(name: str, value: float) -> str:
    """A counter's value in the unit people read it in."""
    match COUNTERS[name].unit:
        case CounterUnit.BYTES:
            return size(value)
        case CounterUnit.SECONDS:
            return latency(value)
        case CounterUnit.COUNT:
            return significant(value)


def _sure(answer: Answer, result: ContenderResult, shown: Sequence[str]) -> Iterator[QuantityRow]:
    """Those that happened on one side only come first: no ratio is larger."""
    one_sided = (name for name, found in result.one_sided.items() if found.is_sure)
    for name in chain(one_sided, sure_ratios(result.counters)):
        if name not in _NEVER_BY_ITSELF and name not in shown and (row := _counter(answer, result, name)):
            yield row


def _row(answer: Answer, result: ContenderResult, name: str) -> QuantityRow | None:
    metric = BY_NAME.get(name)
    return _counter(answer, result, name) if metric is None else _metric(result, metric)


def _metric(result: ContenderResult, metric: Metric) -> QuantityRow | None:
    levels = result.levels.get(metric)
    if levels is None:
        return None
    ratio = result.ratios.get(metric)
    return QuantityRow(
        name=metric.value.removesuffix("_s"),
        baseline=level_text(metric, levels[0]),
        contender=level_text(metric, levels[1]),
        change=change(ratio.value) if ratio else "",
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
    )


def _counter(answer: Answer, result: ContenderResult, name: str) -> QuantityRow | None:
    levels = [answer.analysis.counters[arm].get(name) for arm in (BASELINE, result.contender)]
    if levels[0] is None or levels[1] is None:
        return None
    ratio = result.counters.get(name)
    # An operation is the one thing that it is counted for.
    is_operation = isinstance(answer.comparison.workload, Operation)
    return QuantityRow(
        name=tell("{counter} per transaction", counter=name)
        if COUNTERS[name].per_transaction and not is_operation
        else name,
        baseline=counter_text(name, levels[0]),
        contender=counter_text(name, levels[1]),
        change=change(ratio.value) if ratio else "",
        interval=change_interval(ratio.low, ratio.high) if ratio else "",
    )
