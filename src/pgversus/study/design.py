"""How the answer is sought: blocks, windows, margin and budget.

Defaults and their reasons: docs/statistics.md. A design is fixed before the first block and never changed inside a run.
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from pgversus.errors import StudyError
from pgversus.study.metrics import Metric, transactions_for_quantile

FIRST_LOOK = 4
# With three blocks the interval would be wider than 15 standard errors: no decision could come of it.
MOST_BLOCKS = 100
# The error over all looks is calibrated for 4..100 (stats/confidence.py); beyond that nothing is promised.
MOST_CONTENDERS = 50
# The same: so many can share the error.
DEFAULT_BUDGET_S = 15 * 60.0
MARGINS = {
    Metric.TPS: 0.02,
    Metric.LATENCY_MEAN: 0.02,
    Metric.LATENCY_P50: 0.02,
    Metric.LATENCY_P95: 0.05,
    Metric.TIME: 0.05,
}
FEW_CLIENTS = 8
WARM_UP_S = 2.0
_ROUNDS = 8
_ROUNDS_OF_WRITES = 4
# Windows that write are longer; sqrt(10 * overhead / pair) says how many pay (docs/statistics.md, "Pairs per block").
_TRANSACTIONS_UNDER_RATE = 10
_SPARE = 1.5
# Times the transactions that a percentile needs, since blocks differ.
_TRANSACTIONS_PER_CLIENT = 3
# A window ends when the last transaction begun in it ends; with fewer than this many transactions
# for each client that rest would be the larger part of the window.


class StopReason(StrEnum):
    """Why no further block was run."""

    DECIDED = "decided"
    BLOCKS = "blocks"
    """The design's number of blocks is reached."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """An arm's trials failed again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The plan of measurement of one comparison."""

    window_s: float = 1.0
    """Seconds of load in one window."""
    rounds: int = _ROUNDS
    """Windows of each arm in one block (for two arms: pairs)."""
    window_is_given: bool = False
    """True when the user chose the length of a window, so that it is not fitted to the load."""
    rounds_are_given: bool = False
    """The same for their number."""
    metric: Metric = Metric.TPS
    """The metric that carries the verdict."""
    margin: float = 0.02
    """The smallest ratio minus one that matters to the user."""
    budget_s: float = DEFAULT_BUDGET_S
    """Wall-clock seconds for blocks."""
    max_blocks: int = MOST_BLOCKS
    fixed_blocks: int | None = None
    """Exactly so many blocks and one look at the end; None looks after every block and stops at the answer."""
    seed: int = 0
    """Of everything random: order of arms, pgbench's keys."""
    warm_up_s: float = WARM_UP_S
    """Seconds of load thrown away after each start."""

    @property
    def log_margin(self) -> float:
        """The margin on the log scale, where differences are judged."""
        return math.log1p(self.margin)

    @property
    def most_repeats(self) -> int:
        """How many rounds of a block may be measured again because something else had the host.

        A block of an operation has one round, which may be; the only window of a load was asked to be as long as it is.
        """
        return 1 if self.metric is Metric.TIME else self.rounds // 2

    @property
    def measured_s_per_block(self) -> float:
        """Seconds of counted load of one arm in one block."""
        return self.window_s * self.rounds


def least_window_s(rate: float | None) -> float:
    """Seconds in which a load with a rate finishes something all but surely: 0 transactions of 10 come once in 22,000.

    0 without a rate: a client of a closed loop finishes what it begins.
    """
    return 0.0 if rate is None else float(math.ceil(_TRANSACTIONS_UNDER_RATE / rate))


def fit_windows(
    design: Design,
    *,
    arms: int,
    contexts: int,
    clients: int,
    writes: bool,
    slowest_latency_s: float,
    rate: float | None = None,
    is_cold: bool = False,
) -> Design:
    """The same design with windows that suit the load, where the user has not chosen them.

    slowest_latency_s: mean latency of the slowest arm, from the discarded first load. Short windows are the biggest
    lever on the time to a verdict. Loads that write get longer ones, because one arm's dirty pages are flushed during
    the other's window; slow transactions get windows that hold a few of them, and at least one where the budget has no
    room for more. What grows in length becomes fewer, so that a block's load stays about as long; never less than two
    windows of each arm. Where a percentile is judged, they are as long as its interval needs transactions in a block.
    contexts: of the study, which share the budget.
    rate: transactions per second over all clients, in an open loop.
    is_cold: every window begins on a restarted server with an empty cache. It is as short as can be, since only its
    beginning is cold, and there are few of them, since each costs a restart. One more, in which nothing is measured,
    stands in the place of the warm-up.
    """
    least_s = least_window_s(rate)
    if is_cold:
        window_s = design.window_s if design.window_is_given else float(max(1, least_s, math.ceil(slowest_latency_s)))
        rounds = design.rounds if design.rounds_are_given else _ROUNDS_OF_WRITES
        return replace(design, window_s=window_s, rounds=rounds, warm_up_s=window_s)
    usual_rounds = _ROUNDS_OF_WRITES if writes else _ROUNDS
    usual_s = 5.0 if writes else 1.0 if clients <= FEW_CLIENTS else 2.0
    slow_s = min(slowest_latency_s * _TRANSACTIONS_PER_CLIENT, _affordable_window_s(design, arms, contexts))
    needed_s = max(usual_s, least_s, float(math.ceil(slowest_latency_s)), float(math.ceil(slow_s)))
    window_s = design.window_s if design.window_is_given else needed_s
    fitting = max(2, 2 * round(usual_s * usual_rounds / window_s / 2))
    rounds = design.rounds if design.rounds_are_given else min(fitting, usual_rounds)
    if design.metric.quantile is not None and not design.window_is_given:
        tps = clients / max(slowest_latency_s, 1e-6) if rate is None else rate
        needed = _SPARE * transactions_for_quantile(design.metric.quantile)
        window_s = max(window_s, float(math.ceil(needed / tps / rounds)))
    return replace(design, window_s=window_s, rounds=rounds, warm_up_s=max(design.warm_up_s, least_s))


def _affordable_window_s(design: Design, arms: int, contexts: int) -> float:
    """The longest window of which two of each arm in every block up to the first look take half of a context's part."""
    if design.fixed_blocks is not None:
        return math.inf
    return float(design.budget_s / contexts // (arms * 2 * 2 * FIRST_LOOK))


def fit_operation(design: Design, *, slowest_s: float) -> Design:
    """The same design for an operation: its one window in a block is the operation, as long as that takes.

    slowest_s: of the slowest arm when it was tried; what is planned by is the length of a window.
    """
    return replace(design, window_s=slowest_s, rounds=1, warm_up_s=0.0)


def refuse_short_windows(design: Design, rate: float | None) -> None:
    """StudyError when the user's windows are so short that under his rate many of them hold no transaction."""
    least_s = least_window_s(rate)
    if design.window_is_given and design.window_s < least_s:
        raise StudyError(
            "the windows are too short for the rate",
            slug="study-short-window",
            where=f"windows of {design.window_s:g} s",
            found=f"{rate:g} transactions per second: some windows would hold none",
            expected=f"room for {_TRANSACTIONS_UNDER_RATE} transactions",
            to_do=f"windows of {least_s:g} s, or say nothing of their length to have it fitted",
        )


def refuse_hopeless_budget(design: Design, arms: int) -> None:
    """StudyError when not even the load of one block fits into the budget."""
    least_s = arms * design.measured_s_per_block
    if design.fixed_blocks is None and least_s > design.budget_s:
        raise StudyError(
            "the budget ends before the first block would",
            slug="study-hopeless-budget",
            where=f"a budget of {design.budget_s:g} s",
            found=f"{arms} arms with {design.rounds} windows of {design.window_s:g} s each: {least_s:g} s of load",
            expected=f"room for {FIRST_LOOK} blocks, after which the first look is taken",
            to_do=f"--budget {math.ceil(2 * FIRST_LOOK * least_s / 60)}m, or shorter or fewer windows",
        )
