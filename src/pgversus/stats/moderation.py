"""Standard errors of many ratios, estimated together, and the selection of ratios to measure again.

A few blocks say little about the noise of a statement, but all statements together show how noise is distributed over
statements. The variance of each is moved towards that distribution, which adds degrees of freedom to its interval.
Source: Smyth, "Linear models and empirical Bayes methods for assessing differential expression in microarray
experiments", 2004, doi 10.2202/1544-6115.1027.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from pgversus.stats.confidence import CONFIDENCE, Interval
from pgversus.stats.effects import LogEstimate

_FEWEST = 3
"""Ratios from which a distribution of variances can be estimated."""
_LEAST_VARIANCE = 1e-12
_MOST_DEGREES = 1e6
"""Stands for infinity, at which all ratios have the same variance."""
DISCOVERY_RATE = 0.1
"""Share of the selected ratios that may be selected by chance. All selected ratios are measured again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VariancePrior:
    """The distribution of variances: a scaled inverse chi-squared distribution."""

    degrees: float
    """Its weight, in blocks; 0 for too few ratios."""
    variance: float
    """Its scale: the typical variance of the log ratio of one block."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeratedEstimate:
    """A log ratio with a standard error to which all ratios contributed."""

    point: float
    standard_error: float
    degrees: float

    def interval(self, ratios: int) -> Interval:
        """Return the interval that holds jointly for this number of ratios (Bonferroni)."""
        from scipy.special import stdtrit  # noqa: PLC0415 - the import takes 0.3 s, which `--help` does not need

        half = float(stdtrit(self.degrees, 1 - (1 - CONFIDENCE) / ratios / 2)) * self.standard_error
        return Interval(low=self.point - half, high=self.point + half)

    @property
    def p_value(self) -> float:
        """The two-sided probability of a ratio this far from 1 without a difference."""
        from scipy.special import stdtr  # noqa: PLC0415 - the same

        if self.standard_error == 0:
            return 1.0 if self.point == 0 else 0.0
        return float(2 * stdtr(self.degrees, -abs(self.point) / self.standard_error))


def moderated(estimates: Sequence[LogEstimate]) -> list[ModeratedEstimate]:
    """Return the estimates with moderated standard errors; each has at least two blocks and finite values."""
    prior = variance_prior(estimates)
    return [_moderated(one, prior) for one in estimates]


def variance_prior(estimates: Sequence[LogEstimate]) -> VariancePrior:
    """Return the distribution of the variances of these estimates, by the method of moments on their logarithms."""
    if len(estimates) < _FEWEST:
        return VariancePrior(degrees=0.0, variance=0.0)
    from scipy.special import digamma, polygamma  # noqa: PLC0415 - the same

    halves = [(one.n - 1) / 2 for one in estimates]
    logs = [
        math.log(_variance(one)) - float(digamma(half)) + math.log(half)
        for one, half in zip(estimates, halves, strict=True)
    ]
    # The part of the variance that chi-squared distributions of these degrees of freedom do not explain.
    excess = variance(logs) - fmean(float(polygamma(1, half)) for half in halves)
    degrees = 2 * _inverse_trigamma(excess) if excess > 0 else _MOST_DEGREES
    if degrees >= _MOST_DEGREES:
        return VariancePrior(degrees=_MOST_DEGREES, variance=math.exp(fmean(logs)))
    scale = math.exp(fmean(logs) + float(digamma(degrees / 2)) - math.log(degrees / 2))
    return VariancePrior(degrees=degrees, variance=scale)


def selected(estimates: Sequence[ModeratedEstimate]) -> list[bool]:
    """Return which ratios to measure again: those that differ from 1 at a false discovery rate of DISCOVERY_RATE.

    Source: Benjamini and Hochberg, 1995, doi 10.1111/j.2517-6161.1995.tb02031.x.
    """
    if not estimates:
        return []
    from scipy.stats import false_discovery_control  # noqa: PLC0415 - the same

    return [bool(p <= DISCOVERY_RATE) for p in false_discovery_control([one.p_value for one in estimates])]


def _moderated(estimate: LogEstimate, prior: VariancePrior) -> ModeratedEstimate:
    own = estimate.n - 1
    degrees = own + prior.degrees
    pooled = (own * _variance(estimate) + prior.degrees * prior.variance) / degrees
    return ModeratedEstimate(point=estimate.point, standard_error=math.sqrt(pooled / estimate.n), degrees=degrees)


def _variance(estimate: LogEstimate) -> float:
    """Return the variance of the log ratio of one block."""
    return max(_LEAST_VARIANCE, estimate.standard_error**2 * estimate.n)


def _inverse_trigamma(value: float) -> float:
    """Return the x whose trigamma is this positive value, by Newton's method on 1 / trigamma, which is convex."""
    from scipy.special import polygamma  # noqa: PLC0415 - the same

    found = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, found))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, found))
        found += step
        if abs(step) < 1e-9 * found:
            break
    return found
