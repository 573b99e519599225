"""Expected cost and precision of the next block of a comparison, by its number of rounds.

A block has two kinds of noise: that of its windows, which more windows average out, and that of its starts, which only
more blocks average out. It also has two kinds of cost: its windows, and its start. All four are estimated from earlier
blocks, to choose the number of rounds that leads to an answer soonest.

The choice uses only spreads and times, never which arm is ahead, so it does not favor any verdict (docs/statistics.md,
"Rounds per block").

Inside a block every quad (two mirrored rounds) has its own log ratio. Their standard error is the error of the block's
ratio if the same servers were measured again without a restart. Additional variation between blocks is start-to-start
variation: memory layout, and placement of processes on CPUs.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, variance

from pgversus.records.trials import Block, Trial, Window, throughput
from pgversus.stats.confidence import LookRule
from pgversus.stats.effects import LogEstimate, mean_of_logs
from pgversus.study.comparison import BASELINE
from pgversus.study.design import FIRST_LOOK, Design, WindowKind
from pgversus.study.metrics import Metric
from pgversus.study.windows import between_s

_FEWEST_QUADS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class NoiseParts:
    """Standard deviations of the log ratio of one block."""

    windows: float
    starts: float
    """0 if the windows alone explain the spread."""


def ratio_error(baseline: Trial, contender: Trial) -> float | None:
    """Return the standard error of ln(contender / baseline) in throughput from the windows of one block.

    None with fewer than two whole quads, and for trials read from storage, which have no windows.
    """
    logs = [
        math.log(there / here)
        for here, there in zip(_quads(baseline.windows), _quads(contender.windows), strict=False)
        if here > 0 and there > 0
    ]
    return mean_of_logs(logs).standard_error if len(logs) >= _FEWEST_QUADS else None


def noise_parts(estimate: LogEstimate, blocks: Sequence[Block], contender: int) -> NoiseParts | None:
    """Split the spread of a contender's blocks; None with a single block, or if a block has no error of its windows."""
    errors = [block.trials[contender].ratio_error for block in blocks if block.has(BASELINE, contender)]
    known = [error for error in errors if error is not None]
    if not known or len(known) < len(errors) or math.isnan(estimate.standard_error):
        return None
    within = [error**2 for error in known]
    starts = _starts_variance(estimate.standard_error**2 * estimate.n, within)
    return NoiseParts(windows=math.sqrt(fmean(within)), starts=math.sqrt(starts))


def _starts_variance(between: float, within: Sequence[float]) -> float:
    """Return the variance between blocks minus the mean variance within blocks; 0 if the windows alone explain it.

    Kalibera and Jones, "Rigorous benchmarking in reasonable time", ISMM 2013.
    """
    return max(0.0, between - fmean(within))


def _quads(windows: Sequence[Window]) -> list[float]:
    """Return the throughput of pairs of rounds; a last round without its mirror is ignored."""
    return [throughput(pair) for pair in zip(windows[::2], windows[1::2], strict=False)]


_FEWEST_BLOCKS = FIRST_LOOK - 1
# The spread of two blocks is a single difference.
_FACTORS = (0.5, 1.0, 1.5, 2.0, 3.0, 4.0)
_MOST_SMALL_BLOCKS = 16
# The number of blocks is limited: if an answer needs many, blocks must not be smaller than designed.
_LOOSER = (1.0, 1.4, 2.0, 2.8, 4.0)
_FEWEST_ROUNDS = 4
# Two quads, so that a block has an error of its windows.


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockModel:
    """The noise and cost of the blocks of one contender."""

    window_variance: float
    """Variance of a block's log ratio due to its windows, times its rounds."""
    start_variance: float
    """Variance of a block's log ratio due to server starts."""
    start_s: float
    """Wall time of a block without its rounds."""
    round_s: float
    """Wall time of a round."""
    blocks: int
    """Number of blocks so far."""
    inverse_rounds: float
    """Sum of 1 / rounds over these blocks."""

    def block_s(self, rounds: int) -> float:
        """Return the wall time of a block, in seconds."""
        return self.start_s + rounds * self.round_s

    def half_width(self, more: int, rounds: int, rule: LookRule) -> float:
        """Return the expected half width of the interval on the log scale. more: further blocks with these rounds."""
        n = self.blocks + more
        if not rule.may_look(n):
            # Infinite even without any noise.
            return math.inf
        inverse_rounds = self.inverse_rounds + more / rounds
        total = self.window_variance * inverse_rounds + self.start_variance * n
        return rule.critical_value(n) * math.sqrt(total) / n

    def blocks_until(self, half_width: float, rounds: int, rule: LookRule) -> int | None:
        """Return the number of further blocks until the half width is reached; None if beyond the last look."""
        for more in range(rule.last_look - self.blocks + 1):
            if self.half_width(more, rounds, rule) < half_width:
                return more
        return None

    def last_half_width(self, left_s: float, rounds: int, rule: LookRule) -> float:
        """Return the half width after the remaining time, or at the last look if that is earlier."""
        return self.half_width(min(rule.last_look - self.blocks, int(left_s / self.block_s(rounds))), rounds, rule)


def block_model(blocks: Sequence[Block], contender: int, design: Design) -> BlockModel | None:
    """Return the model of these blocks; None with too few blocks, or without errors of their windows."""
    logs, errors, rounds, starts_s, windows_s = [], [], [], [], []
    arms = 0
    for block in blocks:
        if not block.has(BASELINE, contender):
            continue
        trial = block.trials[contender]
        if trial.ratio_error is None or not trial.window_count or not trial.transactions:
            return None
        logs.append(math.log(trial.tps / block.trials[BASELINE].tps))
        errors.append(trial.ratio_error**2)
        rounds.append(trial.window_count)
        rounds_s = sum(one.seconds + trial.window_count * between_s(design) for one in block.trials.values())
        starts_s.append(block.wall_s - rounds_s)
        windows_s.append(rounds_s / trial.window_count / len(block.trials))
        arms = len(block.trials)
    if len(logs) < _FEWEST_BLOCKS:
        return None
    return BlockModel(
        window_variance=fmean(error * count for error, count in zip(errors, rounds, strict=True)),
        start_variance=_starts_variance(variance(logs), errors),
        start_s=max(0.0, fmean(starts_s)),
        round_s=arms * fmean(windows_s),
        blocks=len(rounds),
        inverse_rounds=math.fsum(1 / one for one in rounds),
    )


def may_choose_rounds(design: Design) -> bool:
    """Return whether blocks may have different numbers of rounds.

    False for long windows, of which a block has few, for percentiles, which need many transactions in each block, and
    if the user chose the number of windows or of blocks.
    """
    return (
        design.window_kind is not WindowKind.RUN
        and design.metric in {Metric.TPS, Metric.LATENCY_MEAN}
        and not design.rounds_are_given
        and not design.stopping_rule.looks_once
    )


def soonest_rounds(model: BlockModel, design: Design, rule: LookRule, left_s: float) -> int:
    """Return the rounds of the next block with which the interval reaches the next target width soonest.

    The target is the precision of the design or, without one, the margin, or half the present width if that is already
    narrower than the margin. If it cannot be reached in time, the narrowest reachable of several wider targets is used.
    If none is reachable, this returns the rounds that give the narrowest interval at the end of the budget. left_s:
    remaining budget. A block that exceeds it is chosen only if all do.
    """
    now = model.half_width(0, design.rounds, rule)
    wanted = design.log_precision or (design.log_margin if now > design.log_margin else now / 2)
    factors = _FACTORS if model.blocks < _MOST_SMALL_BLOCKS else _FACTORS[1:]
    possible = sorted({max(_FEWEST_ROUNDS, 2 * round(factor * design.rounds / 2)) for factor in factors})
    choices = [rounds for rounds in possible if model.block_s(rounds) <= left_s] or possible[:1]
    for looser in _LOOSER:
        times = _times(model, choices, looser * wanted, rule, left_s)
        if times and looser * wanted < now:
            return min(times, key=times.__getitem__)
    return min(choices, key=lambda rounds: model.last_half_width(left_s, rounds, rule))


def _times(
    model: BlockModel, choices: Sequence[int], half_width: float, rule: LookRule, left_s: float
) -> dict[int, float]:
    """Return the seconds until the half width is reached, for numbers of rounds that reach it in time."""
    needed = {rounds: model.blocks_until(half_width, rounds, rule) for rounds in choices}
    times = {rounds: more * model.block_s(rounds) for rounds, more in needed.items() if more is not None}
    return {rounds: seconds for rounds, seconds in times.items() if seconds <= left_s}
