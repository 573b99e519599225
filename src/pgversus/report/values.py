"""Metrics and counters as rows, which every renderer shows.

The metrics and counters that the study names, or the default ones, come first. Counters with significant differences
follow: they explain a difference or accompany it.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice, zip_longest
from typing import NamedTuple

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.counters import CounterRatio, sure_ratios
from pgversus.study.comparison import BASELINE
from pgversus.study.counters import (
    COUNTERS,
    DISTURBED_WINDOWS,
    IN_BYTES,
    REPORTED_BY_HOST,
    REPORTED_BY_VACUUM,
    CounterUnit,
    recorded_name,
    unit_of,
)
from pgversus.study.metrics import BY_NAME, Metric, Quantity
from pgversus.text.translation import N_, _, listed
from pgversus.text.units import RatioTexts, latency, ratio_texts, shows_factors, significant, size

COUNTERS_NOTE = N_("counters: values are means over all blocks; the change is the mean of the per-block ratios")
"""Explains why a change can deviate from the values: a single block can dominate a mean of values."""
_MOST_SURE = 8
_MOST_SURE_OF_STUDY = 3
_USUAL = ("server_memory_peak_bytes",)
_USUAL_OF_OPERATION = ("session_memory_peak_bytes", "vacuum_tuples_removed", "vacuum_index_scans", "wal_bytes")
# Activity of the whole host is a condition of the measurement, not a property of an arm.
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
# Transactions and the rows they modify: they differ exactly as the throughput does.
_OF_LOAD = frozenset({"transactions_committed", "tuples_inserted", "tuples_updated", "tuples_deleted"})
_NAMED_ALIKE = frozenset(
    {"server_io_hits", "client_io_hits", "server_io_read_bytes", "server_io_write_bytes", "client_cpu_user_s"}
)
"""Duplicates of counters that are shown."""
# Counters of VACUUM that duplicate the server's, the host's, the verdict, or other counters of VACUUM.
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


class QuantityRow(NamedTuple):
    """One metric or counter on the baseline and a contender; every number is already text."""

    label: str
    baseline: str
    contender: str
    change: str
    """Empty if there is no ratio because one side is zero."""
    interval: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedQuantityRow:
    """A quantity row with the verdict of the study to which it belongs."""

    context: str
    contender: str
    quantity: QuantityRow


def quantity_rows(
    answer: Answer,
    result: ContenderResult,
    named: Sequence[str] = (),
    most_sure: int = _MOST_SURE,
    *,
    as_factors: bool,
) -> list[QuantityRow]:
    """Return the named or default quantities that both arms report, then the counters that differ most.

    named: as `metrics` in a study file. most_sure: maximum number of counters with significant differences, the largest
    difference first.
    """
    usual = _USUAL_OF_OPERATION if answer.comparison.workload.runs_once else _USUAL
    wanted = [name for name in named or usual if name != answer.analysis.metric.value.removesuffix("_s")]
    return [
        *(row for name in wanted if (row := _row(answer, result, name, as_factors=as_factors))),
        *(
            row
            for name in islice(_sure_named(answer, result, wanted), most_sure)
            if (row := _counter(answer, result, name))
        ),
    ]


def sure_counters(answer: Answer, result: ContenderResult, most: int) -> list[QuantityRow]:
    """Return the counters with significant differences, the largest difference first."""
    names = islice(_sure_named(answer, result, ()), most)
    return [row for name in names if (row := _counter(answer, result, name))]


def sure_counter_names(answer: Answer, most: int) -> list[str]:
    """Return the names of counters with significant differences, the largest first, from each contender in turn."""
    found = [list(_sure_named(answer, result, ())) for result in answer.analysis.results]
    in_turn = (name for names in zip_longest(*found) for name in names if name is not None)
    return list(islice(dict.fromkeys(in_turn), most))


def study_quantity_rows(answer: StudyAnswer) -> list[PlacedQuantityRow]:
    """Return the quantities of every verdict of a study, in order, with fewer of the counters that differ."""
    as_factors = uses_factors(answer.answers)
    return [
        PlacedQuantityRow(
            context=one.context.label, contender=one.comparison.arms[result.contender].label, quantity=row
        )
        for one in answer.answers
        for result in one.analysis.results
        for row in quantity_rows(one, result, answer.study.metrics, _MOST_SURE_OF_STUDY, as_factors=as_factors)
    ]


def unreported_metrics(answer: StudyAnswer) -> list[str]:
    """Return the `metrics` of the study that some server did not report, or that have no values.

    Each is listed once for the whole study, with the reason: `wal_bytes: not reported by 13.21`.
    """
    reasons = ((name, _missing(answer, name)) for name in answer.study.metrics)
    return [f"{name}: {reason}" for name, reason in reasons if reason]


_OF_OPERATIONS = REPORTED_BY_VACUUM | {"session_memory_peak_bytes"}
"""Counters that loads never have, and that some operations do not have."""


def _missing(answer: StudyAnswer, name: str) -> str:
    """Return why a quantity is missing on some arm, as far as is known; empty if it is not missing."""
    measured = [one for one in answer.answers if one.blocks]
    if name in BY_NAME:
        return "" if any(_has_metric(one, name) for one in measured) else _("no values were recorded")
    # Windows are only counted as disturbed if there are any.
    if measured and name == DISTURBED_WINDOWS:
        return ""
    if name in _OF_OPERATIONS:
        measured = [one for one in measured if any(has for _unused, has in _reported(one, name))] or measured
    reported = [arm for one in measured for arm in _reported(one, name)]
    lacking = [version for version, has in reported if not has]
    if not reported:
        return _("no values were recorded")
    if name in REPORTED_BY_HOST and len(lacking) == len(reported):
        return _("not reported by this host")
    return _("not reported by {versions}", versions=listed(dict.fromkeys(lacking))) if lacking else ""


def _has_metric(one: Answer, name: str) -> bool:
    is_judged = name == one.analysis.metric.value.removesuffix("_s")
    return is_judged or any(BY_NAME[name] in result.paired_values for result in one.analysis.results)


def _reported(one: Answer, name: str) -> Iterator[tuple[str, bool]]:
    """Yield the version of each measured arm, and whether it reported a counter."""
    for arm, counters in enumerate(one.analysis.counters):
        if any(block.has(arm) for block in one.blocks):
            yield one.arms[arm].version, name in counters or IN_BYTES.get(name) in counters


def value_text(quantity: Quantity, value: float) -> str:
    """Return the value of a metric or of the time of a step in a readable unit."""
    return significant(value, 4) if quantity is Metric.TPS else latency(value)


def mean_text(one: Answer, arm: int, quantity: Quantity) -> str:
    """Return an arm's mean of a metric or of the time of a step; empty if it was not measured."""
    found = one.analysis.arm_values[arm].get(quantity)
    return "" if found is None else value_text(quantity, found.value)


def uses_factors(answers: Iterable[Answer]) -> bool:
    """Return whether a report on these answers shows all ratios as factors, which it does if a verdict needs one."""
    answers = list(answers)
    ratios = (result.ratios.get(one.analysis.metric) for one in answers for result in one.analysis.results)
    effects = (part.found.whole for one in answers for part in one.attributions.values() if part.found is not None)
    return any(shows_factors(ratio.value, ratio.high) for ratio in chain(ratios, effects) if ratio is not None)


def change_texts(ratio: Estimate | CounterRatio | None, *, as_factors: bool | None) -> RatioTexts:
    """Return a ratio and its bounds as text, as ratio_texts() does; all are empty without a ratio.

    as_factors: None to choose by this ratio alone.
    """
    if ratio is None:
        return RatioTexts("", "", "")
    return ratio_texts(ratio.value, ratio.low, ratio.high, as_factors=as_factors)


def counter_label(answer: Answer, name: str) -> str:
    """Return a counter's name for people: `shared buffer hits per transaction`."""
    counter = COUNTERS[recorded_name(name)]
    label = _(counter.label) if name in COUNTERS else _("{counter} in bytes", counter=_(counter.label))
    # An operation is not divided into transactions.
    if counter.per_transaction and not answer.comparison.workload.runs_once:
        return _("{counter} per transaction", counter=label)
    return label


def counter_text(name: str, value: float) -> str:
    """Return a counter's value in a readable unit."""
    match unit_of(name):
        case CounterUnit.BYTES:
            return size(value)
        case CounterUnit.SECONDS:
            return latency(value)
        case CounterUnit.COUNT:
            return significant(value)


def _sure_named(answer: Answer, result: ContenderResult, shown: Sequence[str]) -> Iterator[str]:
    """Yield counters with significant differences; those that occur on one side only come first."""
    one_sided = (name for name, found in result.one_sided.items() if found.is_sure)
    for name in chain(one_sided, sure_ratios(result.counters)):
        if recorded_name(name) not in {*_NEVER_BY_ITSELF, *shown} and _counter_values(answer, result, name):
            yield name


def _row(answer: Answer, result: ContenderResult, name: str, *, as_factors: bool) -> QuantityRow | None:
    metric = BY_NAME.get(name)
    if metric is None:
        return _counter(answer, result, name)
    return _metric(result, metric, as_factors=as_factors)


def _metric(result: ContenderResult, metric: Metric, *, as_factors: bool) -> QuantityRow | None:
    values = result.paired_values.get(metric)
    if values is None:
        return None
    shown = change_texts(result.ratios.get(metric), as_factors=as_factors)
    return QuantityRow(
        label=_(metric.label),
        baseline=value_text(metric, values[0]),
        contender=value_text(metric, values[1]),
        change=shown.value,
        interval=shown.interval,
    )


def _counter(answer: Answer, result: ContenderResult, name: str) -> QuantityRow | None:
    # Each counter has its own form: one may double while the verdict is a few percent.
    found = _counter_values(answer, result, name)
    if found is None:
        return None
    name, baseline, contender = found
    shown = change_texts(result.counters.get(name), as_factors=None)
    return QuantityRow(
        label=counter_label(answer, name),
        baseline=counter_text(name, baseline),
        contender=counter_text(name, contender),
        change=shown.value,
        interval=shown.interval,
    )


def _counter_values(answer: Answer, result: ContenderResult, name: str) -> tuple[str, float, float] | None:
    """Return the name under which a counter was compared, and its values on both arms; None if one is missing."""
    counters = [answer.analysis.counters[arm] for arm in (BASELINE, result.contender)]
    if name not in counters[BASELINE]:
        # It may have been compared in bytes.
        name = IN_BYTES.get(name, name)
    baseline, contender = (found.get(name) for found in counters)
    return None if baseline is None or contender is None else (name, baseline, contender)


def dropped_trials(answer: Answer, result: ContenderResult) -> int:
    """Return the number of failed trials of both arms, which are not used."""
    return sum(failure.arm in (BASELINE, result.contender) for block in answer.blocks for failure in block.failures)
