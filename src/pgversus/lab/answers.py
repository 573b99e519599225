"""From a results folder to what is said of it: the same for a run that has just ended and for one of years ago."""

from pathlib import Path

from pgversus.lab.gates import caveats
from pgversus.lab.resuming import course_so_far
from pgversus.report.answer import Answer, StudyAnswer, Unanswered
from pgversus.stats.analysis import analyse
from pgversus.store.reading import StoredContext, StoredStudy, read_results
from pgversus.study.design import StopReason
from pgversus.study.preparation import Preparation


def read_answer(folder: Path) -> StudyAnswer:
    """Everything that can be said of the results in a folder; StoreError when they cannot be read."""
    stored = read_results(folder)
    ended = StopReason(stored.facts.get("ended", StopReason.INTERRUPTED))
    not_prepared = stored.facts.get("not_prepared", {})
    answers, unanswered = [], []
    for one in stored.contexts:
        failure = one.failure or not_prepared.get(str(one.context.number))
        if one.preparation is None:
            words = failure or _NOT_BEGUN[ended]
            unanswered.append(Unanswered(context=one.context, failed=failure is not None, words=words))
        else:
            answers.append(_answer(one, one.preparation, stored, ended, failure, str(folder)))
    return StudyAnswer(
        study=stored.study,
        answers=tuple(answers),
        unanswered=tuple(unanswered),
        stopped=ended,
        results=str(folder),
    )


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
    stored: StoredStudy,
    ended: StopReason,
    failure: str | None,
    folder: str,
) -> Answer:
    budget_s = stored.facts.get("budget_s", preparation.design.budget_s)
    course = course_so_far(one.context, one, stored.study.verdicts, budget_s)
    stopped = course.stopped or ended
    client = stored.facts["client"]
    return Answer(
        context=one.context,
        comparison=course.comparison,
        arms=preparation.arms,
        analysis=analyse(course.samples, course.comparison, course.rule, frozenset(course.invalid)),
        rule=course.rule,
        caveats=caveats(
            course.comparison,
            preparation,
            course.blocks,
            stopped,
            cpus=stored.facts["host"]["cpus"],
            failure=failure,
        ),
        differences=preparation.differences,
        stopped=stopped,
        failure=failure,
        failed_trials=sum(len(block.failures) for block in course.blocks),
        blocks=tuple(course.blocks),
        blocks_run=len(course.blocks),
        wall_s=course.wall_s,
        client=f"pgbench {client['version']} ({client['origin']})",
        host=stored.facts["host"],
        results=folder,
    )
