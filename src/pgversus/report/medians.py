"""Medians of what was measured, as absolute numbers to stand beside a ratio."""

from statistics import median

from pgversus.report.answer import Answer
from pgversus.stats.analysis import ContenderResult
from pgversus.study.comparison import BASELINE


def medians(answer: Answer, result: ContenderResult) -> tuple[float, float] | None:
    """Of baseline and contender over the blocks that hold both, of the metric that carries the verdict, in its unit.

    None where no block tells it of both.
    """
    metric, arms = answer.analysis.metric, (BASELINE, result.contender)
    blocks = [block for block in answer.blocks if block.has(*arms)]
    values = [tuple(block.trials[arm].value(metric) for arm in arms) for block in blocks]
    told = [(ours, theirs) for ours, theirs in values if ours is not None and theirs is not None]
    return (median(ours for ours, _ in told), median(theirs for _, theirs in told)) if told else None


def dropped_trials(answer: Answer, result: ContenderResult) -> int:
    """Trials of both arms that failed, and so count for nothing."""
    return sum(failure.arm in (BASELINE, result.contender) for block in answer.blocks for failure in block.failures)
