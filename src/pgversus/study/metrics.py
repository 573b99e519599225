"""The quantities that a trial yields, each with its unit and the direction that is better."""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """A named quantity; the name carries the unit (`_s` is seconds, tps is transactions per second)."""

    TPS = "tps"
    LATENCY_MEAN = "latency_mean_s"
    LATENCY_P50 = "latency_p50_s"
    LATENCY_P95 = "latency_p95_s"
    LATENCY_P99 = "latency_p99_s"
    LATENCY_MAX = "latency_max_s"
    TIME = "time_s"
    """Of an operation: all its steps together. A load has all the others, an operation has this one."""

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is the faster server."""
        return self is Metric.TPS

    @property
    def unit(self) -> str:
        """The base unit in which values of this metric are stored."""
        return "1/s" if self is Metric.TPS else "s"

    @property
    def quantile(self) -> float | None:
        """The quantile of the latency distribution that this metric is; None for the others."""
        return QUANTILES.get(self)


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step of an operation, a quantity as a metric is one."""

    step: str

    @property
    def quantile(self) -> None:
        """It is none."""


Quantity = Metric | StepTime
"""What is estimated of every arm, with an interval."""

QUANTILES = {Metric.LATENCY_P50: 0.50, Metric.LATENCY_P95: 0.95, Metric.LATENCY_P99: 0.99}

# What a verdict may be asked of a load. p99 and the maximum are described, not judged: their estimates
# are too wide for a verdict in a sane time (docs/statistics.md, "Tail latency").
JUDGED_OF_LOAD = (Metric.TPS, Metric.LATENCY_MEAN, Metric.LATENCY_P50, Metric.LATENCY_P95)
JUDGED = (*JUDGED_OF_LOAD, Metric.TIME)

BY_NAME = {metric.value.removesuffix("_s"): metric for metric in Metric}
"""All by the word that flags and study files use: without the unit."""
JUDGED_BY_NAME = {name: metric for name, metric in BY_NAME.items() if metric in JUDGED}

_TRANSACTIONS_BEYOND_QUANTILE = 5
# With fewer transactions beyond it, the percentile of a block is decided by one or two of them.


def transactions_for_quantile(q: float) -> int:
    """How many transactions of an arm each block must hold for an interval of its quantile q: p95 100, p99 500."""
    return round(_TRANSACTIONS_BEYOND_QUANTILE / (1 - q))
