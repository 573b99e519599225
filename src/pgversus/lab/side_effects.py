"""Measured effects of settings that undo a slower statement on other statements whose plans they change."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.answers.plans import also_changed, restoration_of
from pgversus.answers.read import read_answer
from pgversus.engine.progress import Progress
from pgversus.errors import PgversusError
from pgversus.lab.attribution import Measure
from pgversus.records.plans import CapturedStatement
from pgversus.stats.confidence import Verdict
from pgversus.store.folder import FollowUp, confirmation_folder, follow_up_folder
from pgversus.store.reading import read_results
from pgversus.study.application import side_effects_study
from pgversus.study.counterfactual import PlanRestoration
from pgversus.study.design import StopReason
from pgversus.study.study import Study
from pgversus.text.units import count


@dataclass(frozen=True, slots=True, kw_only=True)
class _Undo:
    """Settings that undo a slower statement and change the plans of others."""

    context: int
    """Context of the slower statement in the confirmation."""
    contender: int
    restoration: PlanRestoration
    scripts: tuple[str, ...]
    """Scripts of the other statements."""


def executed_on(results: Path, arm: int) -> Sequence[CapturedStatement]:
    """Return the statements that a screening has executed, with their plans on the arm with this index."""
    plans = (one.plans() for one in read_results(results).contexts)
    captured = [statement for found in plans if found is not None for statement in found.arms[arm].statements]
    return [one for one in captured if not one.statement.is_generic]


def measure_side_effects(study: Study, results: Path, measure: Measure, progress: Progress) -> StopReason | None:
    """Measure the side effects of every undo; return why the last measurement ended, None without any.

    study: the screening, with its results and those of the confirmation in the folder. An error or Ctrl-C leaves the
    confirmation untouched.
    """
    stopped = None
    for one in _undone(results):
        text, others = one.restoration.text, count(len(one.scripts), "other statement")
        progress.say(f"measuring the effect of {text} on {others} with changed plans")
        own = side_effects_study(study, one.contender, one.restoration.settings, one.scripts)
        folder = follow_up_folder(confirmation_folder(results), FollowUp.SIDE_EFFECTS, one.context, one.contender)
        try:
            stopped = measure(own, folder)
        except PgversusError as error:
            progress.say(f"{text}: {error.summary}")
        if stopped is StopReason.INTERRUPTED:
            break
    return stopped


def _undone(results: Path) -> Iterator[_Undo]:
    confirmed = read_answer(results).confirmation
    for answer in () if confirmed is None else confirmed.answers:
        plans = answer.plans()
        if plans is None:
            continue
        for result in answer.analysis.results:
            arm = answer.comparison.arms[result.contender]
            attributed = answer.attributions.get(result.contender)
            if result.verdict is not Verdict.SLOWER or attributed is None or attributed.found is None:
                continue
            compared = plans.of(arm.label)
            restoration, scripts = restoration_of(compared, arm.workload), also_changed(compared)
            if restoration is not None and scripts:
                yield _Undo(
                    context=answer.context.number, contender=arm.index, restoration=restoration, scripts=scripts
                )
