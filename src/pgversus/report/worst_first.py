"""All verdicts of a study in the order in which they matter: what is wrong first, then what is slower, and how much."""

import math
from dataclasses import dataclass

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.overview import WORST_FIRST
from pgversus.stats.analysis import ContenderResult

_PAIR = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Placed:
    """A verdict and where it belongs."""

    answer: Answer
    result: ContenderResult
    label: str
    """What tells it from the others: its context, its contender, or both; of no other verdict of the study."""

    @property
    def speed(self) -> float:
        """ln of how many times as fast the contender is; 0 where nothing is known of it."""
        ratio = self.result.log_ratio
        if ratio is None or not math.isfinite(ratio.point):
            return 0.0
        return ratio.point if self.answer.analysis.metric.more_is_better else -ratio.point


def worst_first(answer: StudyAnswer) -> list[Placed]:
    """Every verdict once."""
    is_single = len(answer.answers) == 1
    has_several = any(len(one.comparison.arms) > _PAIR for one in answer.answers)
    found = [
        Placed(answer=one, result=result, label=_label(one, result, is_single=is_single, has_several=has_several))
        for one in answer.answers
        for result in one.analysis.results
    ]
    return sorted(found, key=lambda one: (WORST_FIRST.index(one.result.verdict), one.speed))


def _label(one: Answer, result: ContenderResult, *, is_single: bool, has_several: bool) -> str:
    arms = one.comparison.arms
    contender = arms[result.contender].label
    if is_single:
        return f"{one.context.label}  {contender} / {arms[0].label}".strip()
    return f"{one.context.label}  {contender}" if has_several else one.context.label
