"""Counters that differ between two arms beyond chance, as rows; every renderer shows these."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from pgversus.report.answer import Answer
from pgversus.report.units import change, change_interval, latency, significant, size
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.counter_estimates import sure_ratios
from pgversus.stats.counters import COUNTERS, CounterUnit

_MOST_SHOWN = 8
# What the host did as a whole is a condition of the measurement and no property of an arm.
_OF_HOST = frozenset(
    {"host_cpu_s", "host_steal_s", "host_iowait_s", "pressure_cpu_s", "pressure_io_s", "pressure_memory_s"}
)
# Its own transactions and what the load does by definition: they differ as the throughput does.
_OF_LOAD = frozenset({"transactions_committed", "tuples_inserted", "tuples_updated", "tuples_deleted"})
_NAMED_ALIKE = frozenset({"server_io_hits", "client_io_hits", "server_io_read_bytes", "server_io_write_bytes"})
"""The same work under another name than a counter that is shown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CounterRow:
    """One counter on the baseline and on a contender; every number is text already."""

    name: str
    meaning: str
    baseline: str
    contender: str
    change: str
    """Empty where one side is nothing, as is its interval."""
    interval: str


def counter_rows(answer: Answer, result: ContenderResult) -> list[CounterRow]:
    """The counters whose interval excludes that both arms are the same, the largest difference first; at most 8."""
    return list(_rows(answer, result))[:_MOST_SHOWN]


def counter_text(name: str, value: float) -> str:
    """A counter's value in the unit people read it in."""
    match COUNTERS[name].unit:
        case CounterUnit.BYTES:
            return size(value)
        case CounterUnit.SECONDS:
            return latency(value)
        case CounterUnit.COUNT:
            return significant(value)


def _rows(answer: Answer, result: ContenderResult) -> Iterator[CounterRow]:
    """Those that happened on one side only come first: no ratio is larger."""
    for name, found in result.one_sided.items():
        if found.is_sure and _is_shown(name):
            yield _row(name, found.baseline, found.contender)
    levels = answer.analysis.counters
    for name, ratio in sure_ratios(result.counters).items():
        if _is_shown(name):
            row = _row(name, levels[0].get(name), levels[result.contender].get(name))
            yield replace(row, change=change(ratio.value), interval=change_interval(ratio.low, ratio.high))


def _is_shown(name: str) -> bool:
    return name not in _OF_HOST and name not in _OF_LOAD and name not in _NAMED_ALIKE


def _row(name: str, baseline: float | None, contender: float | None) -> CounterRow:
    counter = COUNTERS[name]
    return CounterRow(
        name=f"{name} per transaction" if counter.per_transaction else name,
        meaning=counter.description,
        baseline="" if baseline is None else counter_text(name, baseline),
        contender="" if contender is None else counter_text(name, contender),
        change="",
        interval="",
    )
