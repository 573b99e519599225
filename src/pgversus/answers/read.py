"""Answers from results folders: the same for a run that has just ended and for one from years ago."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.answers.answer import Answer, AttributionResult, StudyAnswer, Unanswered
from pgversus.answers.caveats import caveats
from pgversus.answers.plans import PlansAnswer, compared
from pgversus.engine.context_state import ContextState
from pgversus.errors import PlanError, StoreError
from pgversus.records.preparation import Preparation
from pgversus.stats.analysis import analyze
from pgversus.stats.attribution import attribution
from pgversus.store.folder import (
    FollowUp,
    confirmation_folder,
    follow_up_folder,
    followed_up,
    holds_results,
    unreadable,
)
from pgversus.store.reading import StoredContext, StoredStudy, read_results
from pgversus.study.counterfactual import ARMS, BASELINE_AGAIN, CONTENDER_AGAIN, OLD_PLANS, PlanRestoration
from pgversus.study.design import StopReason
from pgversus.study.study import Context, Invocation, StudyKind, StudyMetadata

_KEPT = 16


@dataclass(frozen=True, slots=True, kw_only=True)
class _ClientFacts:
    version: str
    origin: str


_ContextAndArm = Annotated[str, Field(pattern=r"^[0-9]+-[0-9]+$")]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Facts:
    """The facts that a report needs besides the trials."""

    host: dict[str, Any]
    client: _ClientFacts
    ended: StopReason = StopReason.INTERRUPTED
    budget_s: float | None = None
    not_prepared: dict[int, str] = field(default_factory=dict)
    not_attributed: dict[_ContextAndArm, str] = field(default_factory=dict)
    asked: Invocation = field(default_factory=Invocation)
    builds: dict[str, dict[str, Any]] = field(default_factory=dict)


_FACTS = TypeAdapter(_Facts)


def read_answer(folder: Path) -> StudyAnswer:
    """Return the answer that the results in a folder support; StoreError if they cannot be read."""
    stored = read_results(folder)
    facts = _facts(stored, folder)
    answer = _study_answer(stored, facts, folder, _attributed(stored, facts, folder))
    confirmed = confirmation_folder(folder)
    # A link could lead anywhere, even back to this folder.
    if stored.study.kind is StudyKind.UPGRADE_CHECK and holds_results(confirmed) and not confirmed.is_symlink():
        return replace(answer, confirmation=replace(read_answer(confirmed), side_effects=_side_effects(confirmed)))
    return answer


def _side_effects(confirmed: Path) -> dict[tuple[int, int], StudyAnswer]:
    """Return the side effects of settings that undo a statement, by context and contender of a confirmation.

    Results that cannot be read are left out: the verdicts do not depend on them.
    """
    found = {}
    for context, contenders in followed_up(confirmed, FollowUp.SIDE_EFFECTS).items():
        for contender in contenders:
            with suppress(StoreError):
                folder = follow_up_folder(confirmed, FollowUp.SIDE_EFFECTS, context, contender)
                found[context, contender] = read_answer(folder)
    return found


def _study_answer(
    stored: StoredStudy, facts: _Facts, folder: Path, attributed: Mapping[int, Mapping[int, AttributionResult]]
) -> StudyAnswer:
    wall_s = sum(block.wall_s for one in stored.contexts for block in one.blocks)
    answers, unanswered = [], []
    by_number = {one.context.number: one for one in stored.contexts}
    # Of thousands of contexts, only the last ones in use stay in memory.
    plans_of = lru_cache(_KEPT)(lambda number: _compared(by_number[number], folder))
    for one in stored.contexts:
        failure = one.failure or facts.not_prepared.get(one.context.number)
        # Contexts that share a start are prepared before the first block of any.
        if one.preparation is None or not one.blocks:
            unanswered.append(Unanswered(context=one.context, failure=failure, stopped=facts.ended))
        else:
            answers.append(
                _answer(
                    one,
                    one.preparation,
                    stored.study,
                    wall_s,
                    facts,
                    failure,
                    str(folder),
                    attributed.get(one.context.number, {}),
                    partial(plans_of, one.context.number),
                )
            )
    return StudyAnswer(
        study=stored.study,
        answers=tuple(answers),
        unanswered=tuple(unanswered),
        stopped=facts.ended,
        results=str(folder),
        invocation=facts.asked,
        builds=facts.builds,
    )


def _facts(stored: StoredStudy, folder: Path) -> _Facts:
    try:
        facts = _FACTS.validate_python(dict(stored.facts))
    except ValidationError as error:
        raise unreadable(folder, error) from error
    if not isinstance(facts.host.get("cpus"), int):
        raise unreadable(folder, "the fact host does not report the number of processors")
    return facts


def _answer(
    one: StoredContext,
    preparation: Preparation,
    study: StudyMetadata,
    study_wall_s: float,
    facts: _Facts,
    failure: str | None,
    folder: str,
    attributed: Mapping[int, AttributionResult],
    plans: Callable[[], PlansAnswer | None],
) -> Answer:
    budget_s = preparation.design.budget_s if facts.budget_s is None else facts.budget_s
    state = state_so_far(one.context, one, study.verdicts, budget_s)
    stopped = state.stopped or facts.ended
    analysis = analyze(
        state.samples,
        state.comparison,
        state.rule,
        frozenset(state.invalid),
        state.interim_results,
        block_bytes=[facts.block_bytes for facts in preparation.arms],
    )
    return Answer(
        context=one.context,
        comparison=state.comparison,
        arms=preparation.arms,
        analysis=analysis,
        rule=state.rule,
        caveats=caveats(
            state.comparison,
            preparation,
            state.samples,
            stopped,
            cpus=facts.host["cpus"],
            failure=failure,
            plans=one.plans() if one.is_checked else None,
            shows_percentiles=study.kind is not StudyKind.UPGRADE_CHECK,
            results=analysis.results,
        ),
        differences=preparation.differences,
        stopped=stopped,
        failure=failure,
        failed_trials=sum(len(block.failures) for block in state.blocks),
        blocks=tuple(state.blocks),
        wall_s=state.wall_s,
        study_wall_s=study_wall_s,
        is_from_file=study.kind is StudyKind.STUDY,
        client=f"pgbench {facts.client.version} ({facts.client.origin})",
        host=facts.host,
        results=folder,
        plans=plans,
        latencies=one.latencies,
        attributions=attributed,
        days=one.days,
    )


def state_so_far(context: Context, stored: StoredContext, verdicts: int, budget_s: float) -> ContextState:
    """Return the state of a context, with the budget of the last run: the only part of a design that may change."""
    preparation = stored.preparation
    if preparation is not None and preparation.design.budget_s != budget_s:
        preparation = replace(preparation, design=replace(preparation.design, budget_s=budget_s))
    state = ContextState(context, verdicts)
    state.resume_from(preparation, stored.failure, stored.blocks)
    return state


def _compared(one: StoredContext, folder: Path) -> PlansAnswer | None:
    plans = one.plans()
    sizes = None if one.preparation is None else [facts.block_bytes for facts in one.preparation.arms]
    try:
        return None if plans is None else compared(one.context.comparison.arms, plans, sizes)
    except PlanError as error:
        raise unreadable(folder, f"a plan of context {one.context.number}: {error.what}: {error.found}") from error


def _attributed(stored: StoredStudy, facts: _Facts, results: Path) -> dict[int, dict[int, AttributionResult]]:
    """Return attribution results, or why they are missing, by context and contender."""
    found: dict[int, dict[int, AttributionResult]] = {}
    contenders = {one.context.number: len(one.context.comparison.contenders) for one in stored.contexts}
    for context, measured in followed_up(results, FollowUp.ATTRIBUTIONS).items():
        for contender in (one for one in measured if 1 <= one <= contenders.get(context, 0)):
            try:
                read = _read_attributed(follow_up_folder(results, FollowUp.ATTRIBUTIONS, context, contender))
            except StoreError as error:
                read = AttributionResult(failure=error.summary)
            found.setdefault(context, {})[contender] = read
    for key, words in facts.not_attributed.items():
        context, contender = map(int, key.split("-"))
        known = found.setdefault(context, {}).get(contender)
        # A run may have measured it and ended before recording that.
        if known is None or known.found is None:
            found[context][contender] = AttributionResult(failure=words, blocks=0 if known is None else known.blocks)
    return found


def _read_attributed(folder: Path) -> AttributionResult:
    stored = read_results(folder)
    workloads = [arm.workload for one in stored.contexts for arm in one.context.comparison.arms]
    if len(stored.contexts) != 1 or len(workloads) != ARMS or not all(one.has_plans for one in workloads):
        raise unreadable(folder, "not a study of what plans account for")
    # An attribution has no attributions of its own.
    study = _study_answer(stored, _facts(stored, folder), folder, {})
    if not study.answers:
        (lost,) = study.unanswered
        return AttributionResult(failure=lost.failure or "", blocks=0, stopped=lost.stopped)
    (answer,) = study.answers
    arms = answer.comparison.arms
    workload = workloads[OLD_PLANS]
    found = attribution(answer.analysis, workload.clients)
    is_rewritten = workload.name != arms[CONTENDER_AGAIN].workload.name
    restoration = PlanRestoration(
        settings=tuple(one for one in arms[OLD_PLANS].settings if one not in arms[CONTENDER_AGAIN].settings),
        rewrite=workload.scripts[0] if is_rewritten else None,
    )
    return AttributionResult(
        restoration=restoration.text,
        found=found,
        failure="",
        wall_s=answer.wall_s,
        blocks=len(answer.blocks),
        stopped=answer.stopped,
        results=str(folder),
        needs_check=any(answer.needs_check(result) for result in answer.analysis.results),
        is_but_for_sorts=_differs_in_plans(answer, arms[BASELINE_AGAIN].label),
    )


def _differs_in_plans(attribution_answer: Answer, baseline: str) -> bool:
    """Return whether the restored plans are not those of the baseline; only sorts are allowed to differ."""
    plans = attribution_answer.plans()
    return plans is not None and not all(one.difference.is_same_plan for one in plans.of(baseline))
