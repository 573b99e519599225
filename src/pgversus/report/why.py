"""Explain from plans and counters why a contender differs. Every renderer shows these explanations."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, AttributionResult, StudyAnswer
from pgversus.answers.plans import ComparedPlans, changed_plans, restoration_of
from pgversus.plans.changes import ChangeKind
from pgversus.plans.levels import PlanLevel
from pgversus.plans.sentences import headline, sentence, sentences
from pgversus.records.plans import RemainingDifference
from pgversus.report.attribution import confirms, disagreement, effects_text, seconds_text, share_text
from pgversus.report.plans import override_text, statement_text, statistics_note, times
from pgversus.report.sentences import not_begun
from pgversus.report.values import QuantityRow, sure_counters, uses_factors
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.attribution import Attribution
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.study.design import StopReason
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, _, listed, ngettext, together, translate_stored
from pgversus.text.units import duration

_MOST_SENTENCES = 12
"""Per statement; `pgversus plans` shows all."""
_MOST_COUNTERS = 4
_MOST_AMOUNTS = 3
_AMOUNTS = (
    *(ChangeKind.LOOPS, ChangeKind.ROWS, ChangeKind.ROWS_REMOVED, ChangeKind.TEMP_BLOCKS),
    *(ChangeKind.COUNT, ChangeKind.BLOCKS, ChangeKind.BYTES),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPlan:
    """A statement whose plan has changed, executes differently or, if it is the same, does another amount of work."""

    compared: ComparedPlans
    statement: str
    headline: str
    sentences: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The explanation for one contender from plans and counters."""

    context: str
    contender: str
    verdict: Verdict
    brief: list[str]
    """The claim in a sentence, and a second one if the effect was measured."""
    claim: str
    """In sentences: the measured effect of changed plans, that it is unknown, or that the plans are the same."""
    notes: list[str]
    """Notes on the plans: different statistics."""
    changed: list[ChangedPlan]


def why_of(answer: Answer) -> list[Explanation]:
    """Return an explanation for each contender whose plans were captured."""
    plans = answer.plans()
    if plans is None:
        return []
    arms, found = answer.comparison.arms, []
    for result in answer.analysis.results:
        label = arms[result.contender].label
        if compared := plans.of(label):
            changed = [one for one in compared if not one.difference.is_executed_alike]
            worked = [one for one in compared if one.difference.level is PlanLevel.WORK and _amounts(one)]
            shown = changed or (worked if result.verdict in DIFFERENT else [])
            brief = list(_brief(answer, result, changed))
            hidden = _hidden_tests(compared) if all(one.difference.is_same_plan for one in changed) else ""
            found.append(
                Explanation(
                    context=answer.context.label,
                    contender=label,
                    verdict=result.verdict,
                    brief=[together(brief[0], hidden), *brief[1:]],
                    claim=together(_claim(answer, result, changed, worked), hidden),
                    notes=[statistics_note(one) for one in plans.unlike if one.labels[1] == label],
                    changed=[_changed(one) for one in shown],
                )
            )
    return found


def _hidden_tests(compared: Sequence[ComparedPlans]) -> str:
    """Return what is not compared in plans that are called the same; empty for nothing."""
    if not any(one.difference.hides_tests for one in compared):
        return ""
    return _("Tests of subplans are not compared, because only one of the servers prints them.")


def study_why(answer: StudyAnswer) -> Iterator[Explanation]:
    """Yield the explanations of every context, in the order of the study; each reads the plans of its context."""
    for one in answer.answers:
        yield from why_of(one)


def _labels(answer: Answer, result: ContenderResult) -> dict[str, str]:
    comparison = answer.comparison
    return {"baseline": comparison.baseline.label, "contender": comparison.arms[result.contender].label}


def _brief(answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans]) -> Iterator[str]:
    """Yield the claim in a sentence, and a second one if the effect was measured."""
    labels, attributed = _labels(answer, result), answer.attributions.get(result.contender)
    if not changed:
        is_other = _uses_others_under_load(answer, result)
        yield _(_CAPTURED_ONLY if is_other else _SAME_PLANS, **labels)
    elif attributed is None or attributed.found is None:
        yield _(_phrases(changed).unmeasured, **labels)
    else:
        found = attributed.found
        cause = _cause(result.verdict, found, changed, labels) or _(_phrases(changed).differ, **labels)
        yield together(_check(attributed), cause)
        yield disagreement(result.verdict, found, as_factors=uses_factors([answer])) or share_text(found)


_SAME_PLANS = N_("The captured plans of {contender} are the same as those of {baseline}.")
_CAPTURED_ONLY = N_(
    "The captured plans of {contender} are those of {baseline}, but others were used under load (see the caveats)."
)


def _uses_others_under_load(answer: Answer, result: ContenderResult) -> bool:
    """Return whether one of both arms was seen to use other plans than the captured ones."""
    return any(caveat.slug == "other-plans-under-load" for caveat in answer.caveats_of(result.contender))


def _check(attributed: AttributionResult) -> str:
    """Return a reference to the caveats of an attribution that may be misleading; empty for any other."""
    return _("CHECK the caveats in {folder}.", folder=attributed.results) if attributed.needs_check else ""


def _phrases(changed: Sequence[ComparedPlans]) -> "_Phrases":
    # All plans may be the same and only execute differently.
    return _OTHER_EXECUTION if all(one.difference.is_same_plan for one in changed) else _OTHER_PLANS


def _claim(
    answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans], worked: Sequence[ComparedPlans]
) -> str:
    """Return the explanation. worked: plans that are the same, but do different amounts of work."""
    labels = _labels(answer, result)
    if not changed:
        return _same_plans(answer, result, labels, worked)
    attributed = answer.attributions.get(result.contender)
    if attributed is not None and attributed.found is not None:
        restored = {**labels, "restoration": attributed.restoration}
        effect = _measured(answer, result, attributed.found, changed, restored)
        return together(
            _check(attributed), effect, _("The measurement took {duration}.", duration=duration(attributed.wall_s))
        )
    return together(_(_phrases(changed).differ, **labels), _not_measured(answer, result, changed, labels))


def attribution_failure(attributed: AttributionResult) -> str:
    """Return why the effect of changed plans is unknown although it was to be measured; empty if it is known."""
    if attributed.found is not None:
        return ""
    if attributed.stopped is None or attributed.failure:
        return translate_stored(attributed.failure)
    if not attributed.blocks:
        return not_begun(attributed.stopped)
    return ngettext(
        "no interval after {number} block ({stopped})",
        "no interval after {number} blocks ({stopped})",
        attributed.blocks,
        stopped=_(_STOPPED[attributed.stopped]),
    )


_STOPPED = {
    StopReason.INTERRUPTED: N_("interrupted"),
    StopReason.BUDGET: N_("budget"),
    StopReason.BLOCKS: N_("blocks"),
    StopReason.DECIDED: N_("decided"),
    StopReason.PRECISE: N_("decided"),
    StopReason.FAILED: N_("failed"),
}


_WITHOUT_DIFFERENCE = {
    Verdict.EQUIVALENT: N_("The effect of the plans was not measured: the speeds are equivalent."),
    Verdict.UNDECIDED: N_("The effect of the plans was not measured: the comparison is undecided."),
    Verdict.INVALID: N_("The effect of the plans was not measured: the comparison is invalid."),
}


def _not_measured(
    answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans], labels: Mapping[str, str]
) -> str:
    """Return why the effect of changed plans is unknown."""
    attributed = answer.attributions.get(result.contender)
    if attributed is not None:
        return _("The effect of the plans was not measured: {failure}.", failure=attribution_failure(attributed))
    if result.verdict in _WITHOUT_DIFFERENCE:
        return _(_WITHOUT_DIFFERENCE[result.verdict])
    workload = answer.comparison.arms[result.contender].workload
    if restoration_of(changed, workload) is None and all(one.undone_by for one in changed_plans(changed)):
        return _(
            "The effect of the plans cannot be measured: the settings that restore the plans of {baseline} on "
            "{contender} contradict each other.",
            **labels,
        )
    if restoration_of(changed, workload) is None and all(one.is_searched for one in changed):
        return _(
            "The effect of the plans cannot be measured: no settings were found that restore the plans of {baseline} "
            "on {contender}. A rewrite can restore them (--rewrite, or rewrite in a study file).",
            **labels,
        )
    if restoration_of(changed, workload) is None:
        return _(
            "The effect of the plans was not measured: pgversus did not search for settings that restore the old plans."
        )
    return _("The effect of the plans was not measured: the run ended before this step or skipped it.")


def _with_exceptions(restored: str, answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans]) -> str:
    """Return the sentence about restored plans, with the remaining differences: `..., except for sorts`."""
    left: set[RemainingDifference | None] = set()
    if answer.comparison.arms[result.contender].workload.rewrite is None:
        left |= {one.undone_by.but_for for one in changed_plans(changed) if one.undone_by is not None}
    if answer.attributions[result.contender].is_but_for_sorts:
        left.add(RemainingDifference.SORTS)
    exceptions = [_(words) for difference, words in _EXCEPT_FOR.items() if difference in left]
    if not exceptions:
        return restored
    return _("{sentence}, except for {exceptions}", sentence=restored, exceptions=listed(exceptions))


_EXCEPT_FOR = {
    RemainingDifference.SORTS: N_("sorts"),
    RemainingDifference.BATCHES: N_("the number of batches"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Phrases:
    """Sentences about changed plans, or about unchanged plans that execute differently; untranslated."""

    differ: str
    unmeasured: str
    restored: str
    cause: str
    mostly: str
    """If the plans are not the only cause."""


_OTHER_PLANS = _Phrases(
    differ=N_("The plans of {contender} differ from those of {baseline}."),
    unmeasured=N_("The plans of {contender} differ from those of {baseline}; their effect was not measured."),
    restored=N_("With {restoration}, {contender} uses the plans of {baseline}"),
    cause=N_("The plans of {contender} are the cause."),
    mostly=N_("The plans of {contender} are the main cause."),
)
_OTHER_EXECUTION = _Phrases(
    differ=N_("The captured plans of {contender} are the same as those of {baseline}, but executed differently."),
    unmeasured=N_(
        "The captured plans of {contender} are the same as those of {baseline}, but executed differently; the effect "
        "was not measured."
    ),
    restored=N_("With {restoration}, {contender} executes its plans as {baseline} does"),
    cause=N_("The cause is how {contender} executes its plans."),
    mostly=N_("The main cause is how {contender} executes its plans."),
)
_MAIN_CAUSE_FROM, _CAUSE_FROM = 0.5, 0.9
"""Lower bounds of the plans' share from which plans are called the main cause, and the cause."""


def _measured(
    answer: Answer,
    result: ContenderResult,
    found: Attribution,
    changed: Sequence[ComparedPlans],
    labels: Mapping[str, str],
) -> str:
    """Return the measured effect of the plans. labels: of both arms, with the restoration."""
    restored = _with_exceptions(_(_phrases(changed).restored, **labels), answer, result, changed)
    return together(
        _cause(result.verdict, found, changed, labels),
        _("{restored}.", restored=restored),
        effects_text(found, as_factors=uses_factors([answer])),
        share_text(found),
        seconds_text(answer.analysis.metric, found),
        disagreement(result.verdict, found, as_factors=uses_factors([answer])),
    )


def _cause(verdict: Verdict, found: Attribution, changed: Sequence[ComparedPlans], labels: Mapping[str, str]) -> str:
    """Return a sentence if the plans are the cause of a difference, or the main one; empty if that is not certain."""
    # A verdict without a difference has no cause.
    if (
        verdict not in DIFFERENT
        or not confirms(verdict, found)
        or found.share is None
        or found.share.low < _MAIN_CAUSE_FROM
    ):
        return ""
    words = _phrases(changed)
    return _(words.cause if found.share.low >= _CAUSE_FROM else words.mostly, **labels)


def _same_plans(
    answer: Answer, result: ContenderResult, labels: Mapping[str, str], worked: Sequence[ComparedPlans]
) -> str:
    if _uses_others_under_load(answer, result):
        return _(_CAPTURED_ONLY, **labels)
    if result.verdict not in DIFFERENT:
        return _(_SAME_PLANS, **labels)
    if worked:
        first = worked[0]
        plans = _(
            "The captured plans of {contender} are the same as those of {baseline}, but do different amounts of work "
            "({statement}: {changes}).",
            statement=visible(statement_text(first.statement)),
            changes=visible("; ".join(_amounts(first)[:_MOST_AMOUNTS])),
            **labels,
        )
    else:
        plans = _(
            "The captured plans of {contender} are the same as those of {baseline}, and do not explain the difference.",
            **labels,
        )
    rows = sure_counters(answer, result, _MOST_COUNTERS)
    if not rows:
        return together(plans, _("No counter of the servers' work differs significantly."))
    counters = listed(_counter(row, labels) for row in rows)
    return together(plans, _("Counters that differ significantly: {counters}.", counters=counters))


def _amounts(one: ComparedPlans) -> list[str]:
    """Return sentences about the work that a plan did; estimates and memory are none."""
    return [sentence(change) for change in one.difference.changes if change.kind in _AMOUNTS]


def _counter(row: QuantityRow, labels: Mapping[str, str]) -> str:
    """Return how a counter differs; by its values if one side is zero, so that there is no ratio."""
    if row.change:
        return f"{row.label} {row.change} {row.interval}".strip()
    return _(
        "{counter} ({value} on {baseline}, {value_there} on {contender})",
        counter=row.label,
        value=row.baseline,
        value_there=row.contender,
        **labels,
    )


def _changed(one: ComparedPlans) -> ChangedPlan:
    return ChangedPlan(
        compared=one,
        statement=statement_text(one.statement),
        headline=headline(one.difference),
        sentences=list(_sentences(one)),
    )


def _sentences(one: ComparedPlans) -> Iterator[str]:
    found = sentences(one.difference)
    yield from found[:_MOST_SENTENCES]
    if len(found) > _MOST_SENTENCES:
        yield _("{rest} more; see pgversus plans", rest=len(found) - _MOST_SENTENCES)
    if undone := override_text(one):
        yield undone
    if timing := times(one):
        yield timing
