"""What changed plans account for: measured after the verdicts, for each contender that is decided.

Each is a study of its own (study/counterfactual.py), measured by the same engine on the same servers and data, in a
folder of its own beneath the results, so that it is kept, gone on with and reported as any other.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import PgversusError
from pgversus.lab.answers import read_answer
from pgversus.lab.progress import Progress
from pgversus.plans.levels import Level
from pgversus.report.answer import Answer
from pgversus.report.compared_plans import ComparedPlans
from pgversus.stats.verdict import Verdict
from pgversus.store.attributions import attribution_folder
from pgversus.store.files import holds_results
from pgversus.store.reading import read_results
from pgversus.study.counterfactual import BLOCKS, Recall, counterfactual_study, settings_together
from pgversus.study.design import FIRST_LOOK, StopReason
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload

_ARMS = 3
_TIMES_FIXED = 3.0
# Of as many blocks again, with three arms in the place of two, if every verdict is faster or slower; and some room.
_DECIDED = (Verdict.FASTER, Verdict.SLOWER)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One contender whose plans are to be accounted for."""

    answer: Answer
    contender: int
    recall: Recall
    folder: Path
    """Of its own results."""

    @property
    def key(self) -> str:
        """Of the context and the arm."""
        return f"{self.answer.context.number}-{self.contender}"

    @property
    def words(self) -> str:
        """Which contender it is."""
        return self.answer.context.located(self.answer.comparison.arms[self.contender].label)

    @property
    def seconds_per_block(self) -> float:
        """As its comparison took for each arm in a block, of three."""
        trials = sum(len(block.trials) for block in self.answer.blocks)
        return self.answer.wall_s / max(1, trials) * _ARMS

    def asked(self, study: Study, blocks: int) -> Study:
        """What is to be measured, in so many blocks."""
        context, design = self.answer.context, self.answer.comparison.design
        return counterfactual_study(study, context, design, self.contender, self.recall, blocks=blocks)


def attribute(
    study: Study, results: Path, measure: Callable[[Study, Path], StopReason], progress: Progress
) -> dict[str, str]:
    """Measure what plans account for wherever that can be told; what has been measured before is left as it is.

    By context and arm (`3-1`) why it was not measured, where it was not.
    measure: measures a study and keeps it in a folder, going on with what is there. All together take no longer than
    the budget of the study, on top of it; where the number of blocks was given, no longer than three times its blocks.
    An error or Ctrl-C takes nothing from the verdicts.
    """
    wanted = list(_wanted(results))
    left_s = _allowed_s(study, wanted) - sum(_spent_s(one.folder) for one in wanted)
    not_attributed: dict[str, str] = {}
    try:
        for number, one in enumerate(wanted):
            if _has_ended(one.folder):
                continue
            blocks = _blocks(one, left_s / (len(wanted) - number))
            if blocks is None:
                not_attributed[one.key] = "the budget has no room for enough blocks of it"
                continue
            spent_s = _spent_s(one.folder)
            progress.say(f"measuring what the plans of {one.words} account for, in {blocks} blocks: {one.recall.words}")
            try:
                stopped = measure(one.asked(study, blocks), one.folder)
            except PgversusError as error:
                not_attributed[one.key] = f"{error.what} ({error.where}): {error.found}"
                progress.say(f"{one.words}: {not_attributed[one.key]}")
                continue
            left_s -= _spent_s(one.folder) - spent_s
            if stopped is StopReason.INTERRUPTED:
                break
    except KeyboardInterrupt:
        progress.say("interrupted: the verdicts are known, and what plans account for is not")
    return not_attributed


def recall_of(compared: tuple[ComparedPlans, ...], workload: PgbenchWorkload) -> Recall | None:
    """What brings all changed plans of a contender back; None where nothing has changed, or no way back is known."""
    changed = [one for one in compared if not one.difference.is_same_plan]
    # Where the planner chose the same everywhere, how it went may still be brought back.
    changed = changed or [one for one in compared if one.difference.level is Level.BEHAVIOUR]
    if not changed:
        return None
    if workload.rewrite is not None:
        return Recall(rewrite=workload.rewrite)
    found: Mapping[int, tuple[tuple[str, str], ...]] = {
        number: one.undone_by.candidate.settings for number, one in enumerate(changed) if one.undone_by is not None
    }
    settings = settings_together(found) if len(found) == len(changed) else None
    return None if settings is None else Recall(settings=settings)


def _wanted(results: Path) -> Iterator[_Wanted]:
    for answer in read_answer(results).answers:
        for result in answer.analysis.results:
            # Plans are read of those alone that are decided: there may be thousands.
            plans = answer.plans() if result.verdict in _DECIDED else None
            workload = answer.comparison.arms[result.contender].workload
            if plans is None or not isinstance(workload, PgbenchWorkload):
                continue
            recall = recall_of(plans.of(answer.comparison.arms[result.contender].label), workload)
            if recall is not None:
                folder = attribution_folder(results, answer.context.number, result.contender)
                yield _Wanted(answer=answer, contender=result.contender, recall=recall, folder=folder)


def _allowed_s(study: Study, wanted: Sequence[_Wanted]) -> float:
    """Seconds for all of them."""
    if any(one.answer.comparison.design.fixed_blocks is None for one in wanted):
        return study.budget_s
    return _TIMES_FIXED * max((one.answer.study_wall_s for one in wanted), default=0.0)


def _blocks(one: _Wanted, room_s: float) -> int | None:
    """As many as tell the parts well, or as there is room for; None where that is too few to tell anything.

    What has been begun is gone on with as it was asked.
    """
    if holds_results(one.folder):
        return read_results(one.folder).contexts[0].context.comparison.design.fixed_blocks
    fixed = one.answer.comparison.design.fixed_blocks
    most, least = (BLOCKS, FIRST_LOOK) if fixed is None else (min(BLOCKS, fixed), min(BLOCKS, fixed))
    fitting = math.floor(room_s / one.seconds_per_block)
    return min(most, fitting) if fitting >= least else None


def _spent_s(folder: Path) -> float:
    if not holds_results(folder):
        return 0.0
    return sum(block.wall_s for context in read_results(folder).contexts for block in context.blocks)


def _has_ended(folder: Path) -> bool:
    if not holds_results(folder):
        return False
    return read_results(folder).facts.get("ended") != StopReason.INTERRUPTED.value
