"""The answer of an upgrade check: findings from its screening and its confirmation."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from pgversus.answers.answer import OTHER_ORDER, OTHER_ROWS, Answer, StudyAnswer, Unanswered
from pgversus.answers.findings import Finding, LoadChange, LogRatio, SideEffect, StatementFinding, UpgradeAnswer
from pgversus.answers.plans import ComparedPlans, PlansAnswer, UnlikeStatistics, also_changed, changed_plans
from pgversus.plans.plan import Plan
from pgversus.records.trials import NOTHING_FINISHED
from pgversus.stats.confidence import UNBOUNDED, Verdict
from pgversus.stats.moderation import ModeratedEstimate, moderated, selected
from pgversus.study.application import script_in
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.statement_scripts import SCRIPT
from pgversus.study.study import ApplicationStatement

_OF_VERDICT = {
    Verdict.SLOWER: Finding.SLOWER,
    Verdict.FASTER: Finding.FASTER,
    Verdict.EQUIVALENT: Finding.EQUIVALENT,
}
_WITHOUT_RATIO = frozenset({Finding.FAILS, Finding.NOT_MEASURED})
_WITHOUT_DIFFERENCE = frozenset({Finding.NO_DIFFERENCE, Finding.EQUIVALENT})
_WRITING = ("Insert", "Update", "Delete", "Merge")
"""Operators of statements that write: without RETURNING, they return no rows."""
_SOURCES = ("Outer", "Member")
"""Relationships of the nodes that find the rows to write."""
_WIDEST = 5.0
"""Half width of a log ratio from which an interval says nothing about the load: a factor of 150 to each side."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Screened:
    """A statement in the screening, on one target."""

    answer: Answer
    target: int
    estimate: ModeratedEstimate | None
    """None with fewer than two blocks."""
    is_selected: bool
    """Whether it is to be confirmed."""


def contexts_to_confirm(answer: StudyAnswer) -> list[int]:
    """Return the contexts of a screening that differ on any target, in order."""
    screened = _screened(answer.answers)
    return sorted({number for (number, _), one in screened.items() if one.is_selected})


# A report asks several times, and reading the plans of thousands of statements takes seconds.
@lru_cache(maxsize=1)
def upgrade_answers(answer: StudyAnswer) -> tuple[UpgradeAnswer, ...]:
    """Return an answer for each target; empty if nothing was measured."""
    if not answer.answers:
        return ()
    screened = _screened(answer.answers)
    confirmed = {one.context.label: one for one in answer.confirmation.answers} if answer.confirmation else {}
    missing = {one.context.number: one for one in answer.unanswered}
    total_s = math.fsum(one.seconds for one in answer.study.statements)
    first = answer.answers[0].comparison
    found = []
    for target in first.contenders:
        findings = []
        for statement in answer.study.statements:
            share = statement.seconds / total_s if total_s and not statement.is_planning else None
            number = statement.context
            if number in missing:
                labels = [first.baseline.label, *(arm.label for arm in first.contenders if arm is not target)]
                findings.append(_not_measured(statement, share, missing[number], labels))
            elif number is not None:
                one = screened[number, target.index]
                again = confirmed.get(one.answer.context.label)
                effects = None if again is None else _side_effects(answer, again, target)
                findings.append(_measured(statement, share, one, again, effects, ratios=len(screened)))
        order = list(Finding)
        findings.sort(key=lambda one: (order.index(one.finding), -(one.share or 0.0)))
        found.append(
            UpgradeAnswer(
                source=first.baseline.label,
                target=target.label,
                findings=tuple(findings),
                load=_load_change(findings),
                generic_plans=_generic_plans(answer, target.label),
            )
        )
    return tuple(found)


def _generic_plans(answer: StudyAnswer, target: str) -> dict[str, ComparedPlans]:
    """Return the generic plans that were captured with the planning of all statements, by name of the statement."""
    number = next((one.context for one in answer.study.statements if one.is_planning), None)
    plans = next((one.plans() for one in answer.answers if one.context.number == number), None)
    compared = () if plans is None else plans.generic_of(target)
    return {one.statement.script.removesuffix(SCRIPT): one for one in compared}


def _side_effects(answer: StudyAnswer, confirmed: Answer, target: Arm) -> tuple[SideEffect, ...] | None:
    """Return the side effects of the settings that undo a statement on a target; None if unknown."""
    plans = confirmed.plans()
    scripts = None if plans is None else also_changed(plans.of(target.label))
    if scripts is None or answer.confirmation is None:
        return None
    measured = answer.confirmation.side_effects.get((confirmed.context.number, target.index))
    known = {} if measured is None else _screened(measured.answers)
    by_script = {script_in(one.answer.context).name: one for one in known.values()}
    effects = []
    for script in scripts:
        found = by_script.get(script)
        log_ratio = None if found is None else _log_ratio(found, None, len(known))
        differs = found is not None and found.is_selected
        effects.append(SideEffect(statement=script.removesuffix(SCRIPT), log_ratio=log_ratio, differs=differs))
    return tuple(effects)


def _screened(answers: Sequence[Answer]) -> Mapping[tuple[int, int], _Screened]:
    """Return every statement on every target, by number of its context and index of its arm."""
    all_results = [(answer, result) for answer in answers for result in answer.analysis.results]
    known = [
        (answer.context.number, result.contender, result.log_ratio)
        for answer, result in all_results
        if result.verdict is not Verdict.INVALID
        and result.log_ratio is not None
        and math.isfinite(result.log_ratio.standard_error)
    ]
    estimates = moderated([estimate for _, _, estimate in known])
    places = [(number, contender) for number, contender, _ in known]
    by_place = dict(zip(places, zip(estimates, selected(estimates), strict=True), strict=True))
    found = {}
    for answer, result in all_results:
        place = answer.context.number, result.contender
        estimate, is_selected = by_place.get(place, (None, False))
        found[place] = _Screened(answer=answer, target=result.contender, estimate=estimate, is_selected=is_selected)
    return found


def _measured(
    statement: ApplicationStatement,
    share: float | None,
    screened: _Screened,
    confirmed: Answer | None,
    side_effects: tuple[SideEffect, ...] | None,
    *,
    ratios: int,
) -> StatementFinding:
    """Return the finding on a statement.

    confirmed: its confirmation, if any. side_effects: of settings that restore its plans. ratios: number of all ratios.
    """
    answer, target = screened.answer, screened.target
    plans = answer.plans()
    changed = () if plans is None else tuple(changed_plans(plans.of(answer.comparison.arms[target].label)))
    finding = _finding(screened, confirmed)
    attribution = None if confirmed is None else confirmed.attributions.get(target)
    found = StatementFinding(
        statement=statement,
        finding=finding,
        share=share,
        log_ratio=None if finding in _WITHOUT_RATIO else _log_ratio(screened, confirmed, ratios),
        changed=changed,
        confirmation=confirmed,
        attribution=attribution,
        side_effects=side_effects if finding is Finding.SLOWER and attribution and attribution.restoration else None,
        failure=next(_failures(target, answer, confirmed), "") if finding in _WITHOUT_RATIO else "",
        unlike_statistics=() if plans is None or not changed else _unlike(plans, answer.comparison.arms[target]),
        not_restored=_not_restored(answer, target),
        finds_nothing=_finds_nothing(statement, answer),
    )
    has_other_plan = found.has_changed_plan and finding in _WITHOUT_DIFFERENCE
    return replace(found, finding=Finding.CHANGED_PLAN) if has_other_plan else found


def _unlike(plans: PlansAnswer, target: Arm) -> tuple[UnlikeStatistics, ...]:
    """Return how the statistics of a target differ from those of the source."""
    return tuple(one for one in plans.unlike if one.labels[1] == target.label)


def _not_restored(answer: Answer, target: int) -> tuple[str, ...] | None:
    """Return the rejected parts of the tables in the plans of a statement, on the source or on a target.

    None if it is unknown whether there are any: the plans, or the tables of other rejected parts, are not known.
    """
    problems = [one for arm in (BASELINE, target) for one in answer.arms[arm].not_restored if one.table != ""]
    if not problems:
        return ()
    plans = answer.plans()
    if plans is None:
        return None
    executed = (plan for one in plans.compared if one.is_executed for plan in one.plans)
    tables = {node.relation for plan in executed for node in plan.nodes} - {None}
    found = tuple(dict.fromkeys(one.item for one in problems if one.table in tables))
    return found or (None if any(one.table is None for one in problems) else ())


def _finds_nothing(statement: ApplicationStatement, answer: Answer) -> bool:
    """Return whether a query returns no rows on the source, although it returns at least one in the application.

    The same for the rows that a statement writes: without counters, each is expected to write one.
    """
    plans = answer.plans()
    if plans is None or not plans.compared:
        return False
    executed = [one.plans[BASELINE] for one in plans.compared]
    expected = statement.rows_per_call
    if expected is None and any(plan.root.op in _WRITING for plan in executed):
        expected = 1.0
    return expected is not None and expected >= 1 and all(map(_has_no_rows, executed))


def _has_no_rows(plan: Plan) -> bool:
    """Return whether a statement returns no rows or, if it writes, finds none to write."""
    below = (plan.nodes[place] for place in plan.root.children)
    sources = [one for one in below if one.role in _SOURCES] if plan.root.op in _WRITING else [plan.root]
    return bool(sources) and all(one.measured.rows == 0 for one in sources)


def _finding(screened: _Screened, confirmed: Answer | None) -> Finding:
    """Return the finding on a statement, apart from its plans."""
    answer, target = screened.answer, screened.target
    if any(one.slug in (OTHER_ROWS, OTHER_ORDER) for one in answer.caveats_of(target)):
        return Finding.OTHER_ROWS
    if answer.analysis.result_of(target).verdict is Verdict.INVALID:
        if any(one.arm == BASELINE for block in answer.blocks for one in block.failures):
            # It fails on the source, so the target cannot be worse.
            return Finding.NOT_MEASURED
        return Finding.FAILS if _has_error(answer, target) else Finding.NOT_MEASURED
    verdict = Verdict.UNDECIDED if confirmed is None else confirmed.analysis.result_of(target).verdict
    if verdict is Verdict.INVALID and confirmed is not None and _has_error(confirmed, target):
        return Finding.FAILS
    if verdict is Verdict.UNDECIDED and confirmed is not None and _is_contradicted(screened, confirmed):
        return Finding.NO_DIFFERENCE
    return _OF_VERDICT.get(verdict) or _of_screening(screened)


def _is_contradicted(screened: _Screened, confirmed: Answer) -> bool:
    """Return whether the confirmation found a difference of the other sign than the screening."""
    again = confirmed.analysis.result_of(screened.target)
    if again.log_ratio is None or again.interval == UNBOUNDED or screened.estimate is None:
        return False
    return (again.log_ratio.point > 0) is not (screened.estimate.point > 0)


def _has_error(invalid: Answer, target: int) -> bool:
    """Return whether a statement fails; otherwise its windows were too short for an execution."""
    failures = list(_failures(target, invalid))
    return not failures or any(message != NOTHING_FINISHED for message in failures)


def _of_screening(screened: _Screened) -> Finding:
    if screened.estimate is None:
        return Finding.NOT_MEASURED
    if screened.is_selected:
        return Finding.LIKELY_SLOWER if screened.estimate.point < 0 else Finding.LIKELY_FASTER
    return Finding.NO_DIFFERENCE


def _log_ratio(screened: _Screened, confirmed: Answer | None, ratios: int) -> LogRatio | None:
    """Return the ratio of the confirmation if that has an interval, otherwise the ratio of the screening."""
    if confirmed is not None:
        result = confirmed.analysis.result_of(screened.target)
        if result.log_ratio is not None and result.interval != UNBOUNDED:
            return LogRatio(point=result.log_ratio.point, interval=result.interval)
    if screened.estimate is None:
        return None
    return LogRatio(point=screened.estimate.point, interval=screened.estimate.interval(ratios))


def _failures(target: int, *answers: Answer | None) -> Iterator[str]:
    """Yield the messages of failed trials of the source and of this target."""
    blocks = (block for answer in answers if answer is not None for block in answer.blocks)
    yield from (one.message for block in blocks for one in block.failures if one.arm in (BASELINE, target))


_FAILED = r"the (?:load fails|first run of the load did not finish in time) on {} \("
_HUNG = r"the first run of the load did not finish in time on {} \("
"""The beginning of the message of a failed first run, with the label of its arm (lab/failures.py)."""


def _not_measured(
    statement: ApplicationStatement, share: float | None, missing: Unanswered, others: Sequence[str]
) -> StatementFinding:
    """Return the finding on a statement without results. others: labels of the source and of the other targets.

    A first run that hangs on one target says nothing about the others; one that fails has failed on all.
    """
    source, *targets = map(re.escape, others)
    patterns = [_FAILED.format(source), *map(_HUNG.format, targets)]
    failed_elsewhere = any(re.match(pattern, missing.failure or "") for pattern in patterns)
    return StatementFinding(
        statement=statement,
        finding=Finding.FAILS if missing.failed and not failed_elsewhere else Finding.NOT_MEASURED,
        share=share,
        failure=missing.failure or "",
    )


def _load_change(findings: Sequence[StatementFinding]) -> LoadChange | None:
    """Return the change of the total time. The time of a statement is the inverse of its throughput."""
    measured = list(_weighted_ratios(findings))
    share = math.fsum(weight for weight, _ in measured)
    if not share:
        return None

    def mean(log_times: Iterator[tuple[float, float]]) -> float:
        return math.fsum(weight * math.exp(log_time) for weight, log_time in log_times) / share

    return LoadChange(
        ratio=mean((weight, -one.point) for weight, one in measured),
        low=mean((weight, -one.interval.high) for weight, one in measured),
        high=mean((weight, -one.interval.low) for weight, one in measured),
        share=share,
    )


def _weighted_ratios(findings: Sequence[StatementFinding]) -> Iterator[tuple[float, LogRatio]]:
    """Yield the share and the ratio of each statement whose interval is not too wide, and that does its usual work."""
    for one in findings:
        is_known = one.log_ratio is not None and one.log_ratio.interval.half_width < _WIDEST
        if one.share and one.log_ratio is not None and is_known and not one.finds_nothing:
            yield one.share, one.log_ratio
