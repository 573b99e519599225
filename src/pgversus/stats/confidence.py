"""Intervals that keep 95 % confidence although they are checked after every block.

A plain 95 % interval that is checked repeatedly, with a stop at the first good result, is wrong one time in five. Here
the level of each look is so strict that over ALL looks of a study, and over all its verdicts, the interval misses
the truth at most 5 % of the time. Checking early is then harmless.

One interval supports all claims of a verdict: a wrong sign, a false difference and a false equivalence all mean that
the interval missed the truth, so together they occur at most 5 % of the time.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from pgversus.errors import StudyError
from pgversus.records.trials import BIN_WIDTH
from pgversus.stats.effects import LogEstimate
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from pgversus.text.units import percent, percent_above

CONFIDENCE = 0.95

# p*: the nominal two-sided level of one look, by the maximum number of blocks (columns) and the number of verdicts
# that share the 5 % (rows). Source: our own Monte Carlo with 4,000,000 sequences, benchmarks/calibrate_looks.py, which
# prints this table.
_CAPS = (10, 20, 30, 50, 100)
_ALPHAS: dict[int, tuple[float, ...]] = {
    1: (0.0146, 0.00877, 0.00699, 0.00548, 0.00418),
    2: (0.00665, 0.00393, 0.00312, 0.00243, 0.00184),
    3: (0.00423, 0.00247, 0.00195, 0.00152, 0.00115),
    4: (0.00308, 0.00179, 0.00141, 0.00109, 0.000824),
    5: (0.0024, 0.00139, 0.0011, 0.000845, 0.00064),
    6: (0.00197, 0.00113, 0.000892, 0.000689, 0.00052),
    8: (0.00143, 0.000821, 0.000648, 0.000499, 0.000376),
    10: (0.00113, 0.000644, 0.000505, 0.000391, 0.000292),
    15: (0.000725, 0.000412, 0.000323, 0.000249, 0.000187),
    20: (0.000533, 0.000302, 0.000236, 0.000182, 0.000134),
    30: (0.000347, 0.000195, 0.00015, 0.000115, 8.51e-05),
    50: (0.000204, 0.000111, 8.56e-05, 6.55e-05, 4.79e-05),
}
_MOST_SIMULATED = max(_ALPHAS)


# Beyond the table the level falls as a power of the number of verdicts. From one to fifty the exponent falls from
# 1.2 to 1.12, towards the 1 of a single look, so 1.2 is conservative.
_STEEPEST = 1.2


@dataclass(frozen=True, slots=True, kw_only=True)
class LookRule:
    """The allowed looks, and the half width of the interval in standard errors."""

    alpha: float
    """Nominal two-sided error of one look."""
    first_look: int
    last_look: int
    verdicts: int
    """Number of verdicts that share the error of 5 %."""

    def may_look(self, n: int) -> bool:
        """Return whether an interval is valid after n blocks."""
        return n >= self.first_look

    def shared_by(self, quantities: int) -> "LookRule":
        """Return the rule for several quantities that are checked along with every verdict and share one error.

        All claims about them, over all verdicts, are then wrong at most 5 % of the time.
        """
        verdicts = self.verdicts * quantities
        if self.first_look == self.last_look:
            alpha = self.alpha / quantities
        else:
            alpha = sequential_alpha(self.last_look, verdicts)
        return replace(self, alpha=alpha, verdicts=verdicts)

    def critical_value(self, n: int) -> float:
        """Return the half width after n blocks in standard errors; infinite before the first look."""
        return critical_value(n, self.alpha) if self.may_look(n) else math.inf


def look_rule(design: Design, verdicts: int) -> LookRule:
    """Return the rule for a design, in a study whose verdicts share an error of 5 %.

    A fixed number of blocks has one look, with Student's t at 5 % / verdicts (Bonferroni).
    verdicts: number of contenders in all contexts, 1 or more, else ValueError.
    """
    if verdicts < 1:
        raise ValueError(f"{verdicts} verdicts: expected 1 or more")
    rule = design.stopping_rule
    alpha = (1 - CONFIDENCE) / verdicts if rule.looks_once else sequential_alpha(rule.last_look, verdicts)
    return LookRule(alpha=alpha, first_look=rule.first_look, last_look=rule.last_look, verdicts=verdicts)


def check_precision(design: Design, verdicts: int) -> None:
    """Raise StudyError if no number of blocks can reach the precision, given the resolution of a percentile.

    verdicts: as for look_rule().
    """
    if design.precision is None or design.metric.quantile is None:
        return
    rule = look_rule(design, verdicts)
    least = rule.critical_value(rule.last_look) * BIN_WIDTH / 2
    if math.log1p(design.precision) < least:
        raise StudyError(
            "a percentile cannot be measured with this precision, regardless of the number of blocks",
            slug="study-precision-of-percentile",
            where=f"a precision of ±{percent(design.precision)}",
            found=f"a resolution of {percent(math.expm1(BIN_WIDTH))} for percentiles",
            expected=f"at least ±{percent_above(math.expm1(least))}, with a limit of {rule.last_look} blocks and "
            f"{verdicts} verdicts that share an error of 5 %",
            to_do="use a larger value of --precision, or judge the mean latency",
        )


def sequential_alpha(max_blocks: int, verdicts: int) -> float:
    """Return p* for the next larger limit and number of verdicts in the table, which is never less strict.

    ValueError for more blocks than the table covers.
    """
    if max_blocks > _CAPS[-1]:
        raise ValueError(f"{max_blocks} blocks: expected at most {_CAPS[-1]}")
    column = next(i for i, cap in enumerate(_CAPS) if cap >= max_blocks)
    if verdicts > _MOST_SIMULATED:
        return float(_ALPHAS[_MOST_SIMULATED][column] * (_MOST_SIMULATED / verdicts) ** _STEEPEST)
    row = min(k for k in _ALPHAS if k >= verdicts)
    return _ALPHAS[row][column]


@lru_cache(maxsize=4096)
def critical_value(n: int, alpha: float) -> float:
    """Return Student's t with n - 1 degrees of freedom at a two-sided level; n is 2 or more."""
    from scipy.special import stdtrit  # noqa: PLC0415 - the import takes 0.3 s, which `--help` does not need

    return float(stdtrit(n - 1, 1 - alpha / 2))


class Verdict(StrEnum):
    """The possible conclusions about a contender compared with the baseline."""

    FASTER = "faster"
    SLOWER = "slower"
    EQUIVALENT = "equivalent"
    UNDECIDED = "undecided"
    INVALID = "invalid"


DIFFERENT = frozenset({Verdict.FASTER, Verdict.SLOWER})
"""Verdicts that claim a difference."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Interval:
    """Bounds on the log scale; infinite if not valid yet."""

    low: float
    high: float

    @property
    def half_width(self) -> float:
        """Half the length of the interval."""
        return (self.high - self.low) / 2


FARTHEST = 700.0
# exp() overflows a double beyond this.

UNBOUNDED = Interval(low=-math.inf, high=math.inf)


def interval(estimate: LogEstimate, rule: LookRule) -> Interval:
    """Return the interval of an estimate; unbounded if the rule allows no look or there is only one block."""
    if not rule.may_look(estimate.n) or math.isnan(estimate.standard_error):
        return UNBOUNDED
    half = rule.critical_value(estimate.n) * estimate.standard_error
    return Interval(low=estimate.point - half, high=estimate.point + half)


def ratio_bounds(bounds: Interval) -> tuple[float | None, float | None]:
    """Return the bounds as plain ratios; None for a bound that is not valid, or too large or small for a float."""
    low, high = (math.exp(bound) if abs(bound) < FARTHEST else None for bound in (bounds.low, bounds.high))
    return low, high


def judge(bounds: Interval, metric: Metric, log_margin: float) -> Verdict:
    """Return faster, slower, equivalent or (still) undecided, depending on the position of the interval.

    An interval inside the margin is equivalent, even if it excludes zero; otherwise its side of zero decides.
    bounds: interval of ln(contender / baseline) of the metric itself; for latencies, negative values are faster.
    """
    if -log_margin < bounds.low and bounds.high < log_margin:
        return Verdict.EQUIVALENT
    if bounds.low > 0:
        return Verdict.FASTER if metric.more_is_better else Verdict.SLOWER
    if bounds.high < 0:
        return Verdict.SLOWER if metric.more_is_better else Verdict.FASTER
    return Verdict.UNDECIDED


def ends_measuring(bounds: Interval, verdict: Verdict, design: Design) -> bool:
    """Return whether a contender with this interval needs no more blocks of a design with several looks.

    With a precision, only the width of the interval counts, never its position: the estimate is then unbiased.
    """
    wanted = design.log_precision
    return verdict is not Verdict.UNDECIDED if wanted is None else bounds.half_width <= wanted


def blocks_to_end(estimate: LogEstimate, rule: LookRule, design: Design) -> int | None:
    """Return the smallest number of blocks at which the interval, with the present noise, would end measuring.

    None if the last look of the rule is earlier.
    """
    return blocks_to_resolve(estimate, rule, final_half_width(estimate.point, design))


def final_half_width(point: float, design: Design) -> float:
    """Return the half width below which the interval around this point ends measuring.

    It has reached the precision of the design or, without one, excludes zero or lies inside the margin.
    """
    wanted = design.log_precision
    return max(abs(point), design.log_margin - abs(point)) if wanted is None else wanted


def blocks_to_resolve(estimate: LogEstimate, rule: LookRule, half_width: float) -> int | None:
    """Return the smallest number of blocks with at most this half width; None beyond the last look of the rule."""
    if math.isnan(estimate.standard_error):
        return None
    spread = estimate.standard_error * math.sqrt(estimate.n)
    for n in range(max(estimate.n, rule.first_look), rule.last_look + 1):
        error = max(spread / math.sqrt(n), estimate.least_error)
        if critical_value(n, rule.alpha) * error < half_width:
            return n
    return None
