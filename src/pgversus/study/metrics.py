"""The quantities measured in a trial, each with its unit, better direction and labels.

A metric is one entry of `Metric`. Whether it can decide a verdict follows from its default margin.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from pgversus.text.translation import N_


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    label: str
    short: str = ""
    unit: str = "s"
    more_is_better: bool = False
    margin: float | None = None
    quantile: float | None = None


_LOOKED_UP = _Entry(label="")
"""Placeholder for `Metric(name)`, which looks up a member instead of creating one."""


class Metric(StrEnum):
    """A named quantity; its name includes the unit (`_s` is seconds, tps is transactions per second)."""

    label: str
    """The untranslated name in sentences: `p95 latency`."""
    short: str
    """The untranslated name in a table of latencies: `p95`; empty for other metrics."""
    unit: str
    """The base unit in which values are stored."""
    more_is_better: bool
    """Whether a larger value is better."""
    margin: float | None
    """The default margin of a verdict about the metric; None if it cannot decide one."""
    quantile: float | None
    """The quantile of the latency distribution that the metric stands for; None for other metrics."""

    def __new__(cls, name: str, _entry: _Entry = _LOOKED_UP) -> Self:
        """Make the member whose value is its name."""
        member = str.__new__(cls, name)
        member._value_ = name
        return member

    def __init__(self, _name: str, entry: _Entry = _LOOKED_UP) -> None:
        self.label, self.short, self.unit = entry.label, entry.short, entry.unit
        self.more_is_better, self.margin, self.quantile = entry.more_is_better, entry.margin, entry.quantile

    TPS = "tps", _Entry(label=N_("tps"), unit="1/s", more_is_better=True, margin=0.02)
    LATENCY_MEAN = "latency_mean_s", _Entry(label=N_("mean latency"), short=N_("mean"), margin=0.02)
    LATENCY_P50 = "latency_p50_s", _Entry(label=N_("p50 latency"), short=N_("p50"), margin=0.02, quantile=0.50)
    LATENCY_P95 = "latency_p95_s", _Entry(label=N_("p95 latency"), short=N_("p95"), margin=0.05, quantile=0.95)
    # p99 and the maximum are only reported: their estimates are too wide for a verdict in reasonable time
    # (docs/statistics.md, "Tail latency").
    LATENCY_P99 = "latency_p99_s", _Entry(label=N_("p99 latency"), short=N_("p99"), quantile=0.99)
    LATENCY_MAX = "latency_max_s", _Entry(label=N_("maximum latency"), short=N_("max"))
    TIME = "time_s", _Entry(label=N_("time"), margin=0.05)
    """Total time of all steps of an operation, its only metric. A load has all the others."""


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step of an operation, a quantity like a metric."""

    step: str

    @property
    def quantile(self) -> None:
        """Always None: a time is not a quantile."""


Quantity = Metric | StepTime
"""A quantity that is estimated for every arm, with an interval."""

LATENCIES = tuple(metric for metric in Metric if metric.short)
QUANTILES = {metric: metric.quantile for metric in Metric if metric.quantile is not None}
_TAIL_FROM = 0.95
TAILS = tuple(metric for metric, q in QUANTILES.items() if q >= _TAIL_FROM)
"""The percentiles shown in tables with little space."""
MARGINS = {metric: metric.margin for metric in Metric if metric.margin is not None}
JUDGED = tuple(MARGINS)
"""The metrics that can decide a verdict."""

BY_NAME = {metric.value.removesuffix("_s"): metric for metric in Metric}
"""All metrics by the name used in options and study files: without the unit."""
JUDGED_BY_NAME = {name: metric for name, metric in BY_NAME.items() if metric in JUDGED}

_TRANSACTIONS_BEYOND_QUANTILE = 5
# With fewer transactions beyond the percentile, one or two of them decide its value in a block.


def percentile_name(q: float) -> str:
    """Return `p95` for 0.95, `p99.9` for 0.999."""
    return f"p{100 * q:.6g}"


def transactions_for_quantile(q: float) -> int:
    """Return the transactions per arm and block that the quantile q needs: 100 for p95, 500 for p99."""
    return round(_TRANSACTIONS_BEYOND_QUANTILE / (1 - q))
