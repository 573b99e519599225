"""The quantities measured in a trial, each with its unit and better direction."""

from dataclasses import dataclass
from enum import StrEnum


class Metric(StrEnum):
    """A named quantity; its name includes the unit (`_s` is seconds, tps is transactions per second)."""

    TPS = "tps"
    LATENCY_MEAN = "latency_mean_s"
    LATENCY_P50 = "latency_p50_s"
    LATENCY_P95 = "latency_p95_s"
    LATENCY_P99 = "latency_p99_s"
    LATENCY_MAX = "latency_max_s"
    TIME = "time_s"
    """Total time of all steps of an operation, its only metric. A load has all the others."""

    @property
    def more_is_better(self) -> bool:
        """Whether a larger value is better."""
        return self is Metric.TPS

    @property
    def unit(self) -> str:
        """The base unit in which values are stored."""
        return "1/s" if self is Metric.TPS else "s"

    @property
    def quantile(self) -> float | None:
        """The quantile of the latency distribution that the metric stands for; None for other metrics."""
        return QUANTILES.get(self)


@dataclass(frozen=True, slots=True)
class StepTime:
    """The time of one step of an operation, a quantity like a metric."""

    step: str

    @property
    def quantile(self) -> None:
        """Always None: a time is not a quantile."""


Quantity = Metric | StepTime
"""A quantity that is estimated for every arm, with an interval."""

QUANTILES = {Metric.LATENCY_P50: 0.50, Metric.LATENCY_P95: 0.95, Metric.LATENCY_P99: 0.99}

# Metrics that can decide the verdict of a load. p99 and the maximum are only reported: their estimates are too wide
# for a verdict in reasonable time (docs/statistics.md, "Tail latency").
JUDGED_OF_LOAD = (Metric.TPS, Metric.LATENCY_MEAN, Metric.LATENCY_P50, Metric.LATENCY_P95)
JUDGED = (*JUDGED_OF_LOAD, Metric.TIME)

BY_NAME = {metric.value.removesuffix("_s"): metric for metric in Metric}
"""All metrics by the name used in options and study files: without the unit."""
JUDGED_BY_NAME = {name: metric for name, metric in BY_NAME.items() if metric in JUDGED}

_TRANSACTIONS_BEYOND_QUANTILE = 5
# With fewer transactions beyond the percentile, one or two of them decide its value in a block.


def transactions_for_quantile(q: float) -> int:
    """Return the transactions per arm and block that an interval of the quantile q needs: 100 for p95, 500 for p99."""
    return round(_TRANSACTIONS_BEYOND_QUANTILE / (1 - q))
