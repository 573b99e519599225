"""The effect of plan changes, measured after the verdicts for each contender that is faster or slower.

Each attribution is a study of its own (study/counterfactual.py), measured by the same engine on the same servers and
data. Its folder lies beneath the results, so that it is stored, resumed and reported like any other study.
"""

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import fmean

from pgversus.answers.answer import Answer
from pgversus.answers.plans import restoration_of
from pgversus.answers.read import read_answer
from pgversus.engine.progress import Progress
from pgversus.errors import PgversusError, StoreError
from pgversus.lab.resume import EarlierResults, is_same_question, results_folder
from pgversus.stats.confidence import DIFFERENT
from pgversus.store.folder import FollowUp, follow_up_folder, holds_results
from pgversus.store.reading import read_results
from pgversus.study.comparison import BASELINE
from pgversus.study.counterfactual import (
    ARMS,
    MOST_BLOCKS,
    PlanRestoration,
    counterfactual_study,
    rounds_of_three,
)
from pgversus.study.design import FIRST_LOOK, Design, StopReason
from pgversus.study.study import Context, Study
from pgversus.text.translation import N_
from pgversus.text.units import count

_TIMES_FIXED = 3.0
"""Multiple of the time of a comparison's blocks: attributions may need as many again, with slower old plans."""

Measure = Callable[[Study, Path], StopReason]
"""Measures a study and stores it in a folder, resuming existing results of the same question."""


_RESERVED = 0.15


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wanted:
    """One contender whose plan changes are to be attributed."""

    of: Study
    context: Context
    """The context of the study itself; stored contexts have users and passwords removed."""
    answer: Answer
    contender: int
    restoration: PlanRestoration
    folder: Path
    """For the results of this attribution."""

    @property
    def key(self) -> str:
        """Number of the context and of the arm, for example `3-1`."""
        return f"{self.context.number}-{self.contender}"

    @property
    def label(self) -> str:
        """Name of the contender, with its context."""
        return self.context.located(self.context.comparison.arms[self.contender].label)

    @property
    def seconds_per_block(self) -> float:
        """Estimated running time of a block, scaled from the trials of its comparison by the number of windows."""
        trials = sum(len(block.trials) for block in self.answer.blocks)
        (context,) = self.study(FIRST_LOOK).contexts
        shorter = context.comparison.design.rounds / self.design.rounds
        return self.answer.wall_s / max(1, trials) * len(context.comparison.arms) * shorter

    @property
    def design(self) -> Design:
        """The design of its comparison, with the mean number of rounds that its blocks had."""
        design = self.answer.comparison.design
        counts = [trial.window_count for block in self.answer.blocks for trial in block.trials.values()]
        known = [count for count in counts if count]
        return replace(design, rounds=round(fmean(known))) if known else design

    def study(self, blocks: int, rounds: int | None = None) -> Study:
        """Return the study that measures it in `blocks` blocks. rounds: of each block; None for as many as possible."""
        return counterfactual_study(
            self.of,
            self.context,
            self.design,
            self.contender,
            self.restoration,
            blocks=blocks,
            rounds=self._rounds if rounds is None else rounds,
        )

    @property
    def _rounds(self) -> int:
        """The number of rounds with which a block should take no longer than a block of the comparison.

        There is one more start, and the old plan is assumed to be as slow as the baseline. The time of a block outside
        its windows is assumed to be the same for each arm. A part of the time is reserved, because the speed of a host
        changes.
        """
        blocks = [block for block in self.answer.blocks if block.has(BASELINE, self.contender)]
        trials = [(block, trial) for block in blocks for trial in block.trials.values() if trial.window_count]
        if not trials:
            return rounds_of_three(self.design.rounds)
        of_a_round = {
            arm: fmean(trial.seconds / (trial.window_count or 1) for _, trial in trials if trial.arm == arm)
            for arm in (BASELINE, self.contender)
        }
        whole_s = fmean(block.wall_s for block in blocks)
        windows_s = fmean(math.fsum(trial.seconds for trial in block.trials.values()) for block in blocks)
        beside_s = (whole_s - windows_s) / fmean(len(block.trials) for block in blocks)
        fitting = ((1 - _RESERVED) * whole_s - ARMS * beside_s) / (
            2 * of_a_round[BASELINE] + of_a_round[self.contender]
        )
        return rounds_of_three(self.design.rounds, most=fitting)

    def matching_study(self, stored: Design) -> Study | None:
        """Return the study with the blocks and rounds of stored results; None if those are not fixed."""
        rule = stored.stopping_rule
        return self.study(rule.last_look, stored.rounds) if rule.looks_once else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Earlier:
    """An attribution that has been measured completely or in part."""

    study: Study
    has_ended: bool
    spent_s: float
    """Wall time of its blocks."""


def attribute(
    study: Study,
    results: Path,
    measure: Measure,
    progress: Progress,
    *,
    note_interrupt: Callable[[], None] = lambda: None,
) -> dict[str, str]:
    """Measure the effect of plan changes wherever that is possible; leave finished attributions as they are.

    Returns the reasons for missing attributions, by context and arm (`3-1`). All attributions together take no longer
    than the budget of the study, in addition to it; with a fixed number of blocks, no longer than three times its
    blocks. An error or Ctrl-C leaves the verdicts untouched.

    note_interrupt: called after Ctrl-C, so that the caller measures nothing else.
    """
    not_attributed: dict[str, str] = {}
    try:
        wanted = list(_wanted(study, results))
        known = [(one, _so_far(one)) for one in wanted]
        left_s = _allowed_s(study, wanted) - sum(earlier.spent_s for _one, earlier in known if earlier is not None)
        waiting = [(one, earlier) for one, earlier in known if earlier is None or not earlier.has_ended]
        for number, (one, earlier) in enumerate(waiting):
            progress.attributing(one.label, number + 1, len(waiting))
            stopped, reason = None, N_("the remaining budget is too short to measure it")
            try:
                stopped = _measured(one, earlier, left_s / (len(waiting) - number), measure, progress)
            except PgversusError as error:
                reason = error.summary
                progress.say(f"{one.label}: {reason}")
            now = _so_far(one)
            if stopped is None:
                not_attributed[one.key] = reason
                if now is None:
                    _move_other_away(one, earlier)
            left_s -= (0.0 if now is None else now.spent_s) - (0.0 if earlier is None else earlier.spent_s)
            if stopped is StopReason.INTERRUPTED:
                note_interrupt()
                break
    except KeyboardInterrupt:
        note_interrupt()
        progress.say("interrupted: the verdicts are complete, but the effect of the plans was not measured")
    except PgversusError as error:
        progress.say(f"the effect of the plans was not measured: {error.summary}")
    return not_attributed


def _measured(
    one: _Wanted, earlier: _Earlier | None, room_s: float, measure: Measure, progress: Progress
) -> StopReason | None:
    """Return how the measurement ended; None if the budget has no room for it."""
    if earlier is not None:
        study = earlier.study
    elif (possible := _blocks(one, room_s)) is not None:
        study = one.study(possible)
    else:
        return None
    blocks = study.contexts[0].comparison.design.stopping_rule.last_look
    progress.say(
        f"measuring the effect of the plans of {one.label} in {count(blocks, 'block')}, with {one.restoration.text}"
    )
    return measure(study, one.folder)


def _move_other_away(one: _Wanted, earlier: _Earlier | None) -> None:
    """Rename results of a different question, so that reports do not show the effect of an earlier rewrite."""
    if earlier is None and holds_results(one.folder):
        # Unreadable results stay, and reports show their error.
        with suppress(StoreError):
            read_results(one.folder)
            with results_folder(one.folder, EarlierResults.MOVE_AWAY) as folder:
                folder.begin()


def _wanted(study: Study, results: Path) -> Iterator[_Wanted]:
    contexts = {context.number: context for context in study.contexts}
    for answer in read_answer(results).answers:
        context = contexts[answer.context.number]
        for result in answer.analysis.results:
            # Plans are read only if there is a difference: there may be thousands.
            plans = answer.plans() if result.verdict in DIFFERENT else None
            arm = context.comparison.arms[result.contender]
            if plans is None or not arm.workload.has_plans:
                continue
            restoration = restoration_of(plans.of(arm.label), arm.workload)
            if restoration is not None:
                folder = follow_up_folder(results, FollowUp.ATTRIBUTIONS, context.number, arm.index)
                yield _Wanted(
                    of=study,
                    context=context,
                    answer=answer,
                    contender=arm.index,
                    restoration=restoration,
                    folder=folder,
                )


def _so_far(one: _Wanted) -> _Earlier | None:
    """Return readable earlier results of the same question, or None. A changed rewrite is a different question."""
    if not holds_results(one.folder):
        return None
    try:
        stored = read_results(one.folder)
    except StoreError:
        # Measuring it then fails for the same reason, which is reported for this attribution alone.
        return None
    if len(stored.contexts) != 1:
        return None
    study = one.matching_study(stored.contexts[0].context.comparison.design)
    if study is None or not is_same_question(stored, study):
        return None
    return _Earlier(
        study=study,
        has_ended=stored.facts.get("ended") != StopReason.INTERRUPTED.value,
        spent_s=sum(block.wall_s for context in stored.contexts for block in context.blocks),
    )


def _allowed_s(study: Study, wanted: Sequence[_Wanted]) -> float:
    """Return the seconds allowed for all attributions together."""
    if not all(one.answer.comparison.design.stopping_rule.looks_once for one in wanted):
        return study.budget_s
    return _TIMES_FIXED * max((one.answer.study_wall_s for one in wanted), default=0.0)


def _blocks(one: _Wanted, room_s: float) -> int | None:
    """Return the number of blocks: as many as decided the verdict, within useful limits and the time left.

    None if that is too few for a result.
    """
    rule = one.answer.comparison.design.stopping_rule
    blocks = sum(block.has(BASELINE, one.contender) for block in one.answer.blocks)
    most = min(MOST_BLOCKS, rule.last_look if rule.looks_once else max(FIRST_LOOK, blocks))
    least = most if rule.looks_once else FIRST_LOOK
    fitting = math.floor(room_s / one.seconds_per_block)
    return min(most, fitting) if fitting >= least else None
