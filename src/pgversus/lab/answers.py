"""From a results folder to what is said of it: the same for a run that has just ended and for one of years ago."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from pgversus.lab.gates.caveats import caveats
from pgversus.lab.resuming import course_so_far
from pgversus.report.answer import Answer, StudyAnswer, Unanswered
from pgversus.stats.analysis import analyse
from pgversus.store.files import unreadable
from pgversus.store.reading import StoredContext, StoredStudy, read_results
from pgversus.study.design import StopReason
from pgversus.study.preparation import Preparation
from pgversus.study.study import StudyFact


@dataclass(frozen=True, slots=True, kw_only=True)
class _Client:
    version: str
    origin: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """What a report needs of the facts around the trials."""

    host: dict[str, Any]
    client: _Client
    ended: StopReason = StopReason.INTERRUPTED
    budget_s: float | None = None
    not_prepared: dict[int, str] = field(default_factory=dict)


_FACTS = TypeAdapter(_Facts)


def read_answer(folder: Path) -> StudyAnswer:
    """Everything that can be said of the results in a folder; StoreError when they cannot be read."""
    stored = read_results(folder)
    facts = _facts(stored, folder)
    wall_s = sum(block.wall_s for one in stored.contexts for block in one.blocks)
    answers, unanswered = [], []
    for one in stored.contexts:
        failure = one.failure or facts.not_prepared.get(one.context.number)
        if one.preparation is None:
            words = failure or _NOT_BEGUN[facts.ended]
            unanswered.append(Unanswered(context=one.context, failed=failure is not None, words=words))
        else:
            answers.append(_answer(one, one.preparation, stored.study, wall_s, facts, failure, str(folder)))
    return StudyAnswer(
        study=stored.study,
        answers=tuple(answers),
        unanswered=tuple(unanswered),
        stopped=facts.ended,
        results=str(folder),
    )


def _facts(stored: StoredStudy, folder: Path) -> _Facts:
    try:
        facts = _FACTS.validate_python(dict(stored.facts))
    except ValidationError as error:
        raise unreadable(folder, error) from error
    if not isinstance(facts.host.get("cpus"), int):
        raise unreadable(folder, "the fact host does not tell its processors")
    return facts


_NOT_BEGUN = {
    StopReason.INTERRUPTED: "not begun: interrupted",
    StopReason.BUDGET: "not begun: the budget ended",
    StopReason.BLOCKS: "not begun",
    StopReason.DECIDED: "not begun",
    StopReason.FAILED: "not begun",
}


def _answer(
    one: StoredContext,
    preparation: Preparation,
    study: StudyFact,
    study_wall_s: float,
    facts: _Facts,
    failure: str | None,
    folder: str,
) -> Answer:
    budget_s = preparation.design.budget_s if facts.budget_s is None else facts.budget_s
    course = course_so_far(one.context, one, study.verdicts, budget_s)
    stopped = course.stopped or facts.ended
    return Answer(
        context=one.context,
        comparison=course.comparison,
        arms=preparation.arms,
        analysis=analyse(course.samples, course.comparison, course.rule, frozenset(course.invalid), course.standings),
        rule=course.rule,
        caveats=caveats(
            course.comparison,
            preparation,
            course.samples,
            stopped,
            cpus=facts.host["cpus"],
            failure=failure,
        ),
        differences=preparation.differences,
        stopped=stopped,
        failure=failure,
        failed_trials=sum(len(block.failures) for block in course.blocks),
        blocks=tuple(course.blocks),
        wall_s=course.wall_s,
        study_wall_s=study_wall_s,
        # A study file has a title; a comparison of the command line has none.
        is_from_file=bool(study.title),
        client=f"pgbench {facts.client.version} ({facts.client.origin})",
        host=facts.host,
        results=folder,
    )
