"""Why a contender differs, as far as plans and counters tell; every renderer shows these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.plans.levels import Level
from pgversus.plans.sentences.telling import Language, headline, sentences
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.plans.compared import ComparedPlans
from pgversus.report.plans.recalling import recall_of
from pgversus.report.plans.text import times
from pgversus.report.plans.undoing import undoing
from pgversus.report.quantities import sure_counters
from pgversus.report.sentences import METRIC_WORDS, percent_of_confidence
from pgversus.report.units import count, duration, latency, percent, significant
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.attribution import Attribution, Bounded
from pgversus.stats.verdict import DIFFERENT, Verdict
from pgversus.study.metrics import Metric
from pgversus.study.workload import PgbenchWorkload

_MOST_SENTENCES = 12
"""Of one statement; `pgversus plans` has all."""
_MOST_COUNTERS = 4
_REST = {
    Verdict.EQUIVALENT: "all else makes no difference that matters",
    Verdict.UNDECIDED: "what all else makes is not decided",
    Verdict.FASTER: "all else makes it faster",
    Verdict.SLOWER: "all else makes it slower",
    Verdict.INVALID: "of all else nothing can be said",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangedPlan:
    """A statement whose plan has changed, or goes another way."""

    statement: str
    headline: str
    sentences: list[str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Why:
    """What plans and counters tell of one contender."""

    context: str
    baseline: str
    contender: str
    claim: str
    """What changed plans account for, as it was measured, or that nobody knows; that the plans are the same."""
    notes: list[str]
    """What has to be known of the plans: statistics that are not equal."""
    changed: list[ChangedPlan]


def why_of(answer: Answer) -> list[Why]:
    """One for each contender of a comparison whose plans were captured."""
    plans = answer.plans()
    if plans is None:
        return []
    arms, found = answer.comparison.arms, []
    for result in answer.analysis.results:
        label = arms[result.contender].label
        if compared := plans.of(label):
            changed = [one for one in compared if one.difference.level not in (Level.WORK, Level.IDENTICAL)]
            found.append(
                Why(
                    context=answer.context.label,
                    baseline=arms[0].label,
                    contender=label,
                    claim=_claim(answer, result, changed),
                    notes=[one.words for one in plans.unlike if one.labels[1] == label],
                    changed=[_changed(one) for one in changed],
                )
            )
    return found


def study_why(answer: StudyAnswer) -> list[Why]:
    """The same of every context, in the order of the study."""
    return [why for one in answer.answers for why in why_of(one)]


def _claim(answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans]) -> str:
    labels = answer.comparison.baseline.label, answer.comparison.arms[result.contender].label
    if not changed:
        return _same_plans(answer, result, *labels)
    attributed = answer.attributed.get(result.contender)
    # The planner may have chosen the same everywhere.
    words = _GOES if all(one.difference.is_same_plan for one in changed) else _IS
    if attributed is not None and attributed.found is not None:
        told = _measured(labels, result.verdict, answer.analysis.metric, attributed.found, attributed.recall, words)
        check = f"CHECK the caveats in {attributed.results}. " if attributed.needs_check else ""
        return f"{check}{told} {duration(attributed.wall_s)}."
    differ = words.differ.format(*labels)
    if attributed is not None:
        return f"{differ} What that accounts for was not measured: {attributed.failure}."
    if result.verdict not in DIFFERENT:
        return f"{differ} What that accounts for is not measured before the verdict is known."
    workload = answer.comparison.arms[result.contender].workload
    assert isinstance(workload, PgbenchWorkload)  # noqa: S101 - an operation has no plans
    if recall_of(changed, workload) is None and all(one.is_searched for one in changed):
        return (
            f"{differ} What that accounts for cannot be measured: no settings were found that bring the plans of "
            f"{labels[0]} back on {labels[1]}. A rewrite that does can be named in a study."
        )
    return f"{differ} What that accounts for was not measured."


@dataclass(frozen=True, slots=True)
class _Words:
    """Of plans that are others, or of the same plans that go another way. {0} is the baseline, {1} the contender."""

    differ: str
    recalled: str
    cause: str


_IS = _Words(
    differ="The plans of {1} are not those of {0}.", recalled="{1} has the plans of {0}", cause="because of its plans"
)
_GOES = _Words(
    differ="{1} has the plans of {0}, and they go another way.",
    recalled="the plans of {1} go as on {0}",
    cause="because of the way its plans go",
)
_MOSTLY, _ALL_BUT_ALL = 0.5, 0.9
"""Shares of the plans above which, whatever the interval leaves open, they are said to be most of it, and all of it."""


def _measured(
    labels: tuple[str, str], verdict: Verdict, metric: Metric, found: Attribution, recall: str, words: _Words
) -> str:
    """What the plans account for. labels: of baseline and contender. recall: what brought the baseline's plans back."""
    parts = (
        f"with {recall} {words.recalled.format(*labels)}. Measured so, in {count(found.blocks, 'block')}, of its "
        f"{_times(found.whole.value)} the plans make {_factor(found.plans)} and all else {_factor(found.rest)}"
    )
    of_what = "In each transaction" if metric is Metric.TPS else f"Of the {METRIC_WORDS[metric]}"
    seconds = (
        f"{of_what} the plans {_saved(found.plans_s)}, plans and all else {_saved(found.whole_s)}; "
        f"{_REST[found.rest_verdict]}"
    )
    if found.share is None:
        return f"{_capital(parts)}; what share that is cannot be told. {seconds}."
    share = (
        f"{percent(found.share.value)} are of the plans (between {percent(found.share.low)} and "
        f"{percent(found.share.high)}, on the log scale, {percent_of_confidence()})"
    )
    is_as_judged = (found.whole.value > 1) is (verdict is Verdict.FASTER)
    if found.share.low < _MOSTLY or not is_as_judged:
        return f"{_capital(parts)}: {share}. {seconds}."
    mostly = "" if found.share.low >= _ALL_BUT_ALL else "mostly "
    return f"{labels[1]} is {verdict} {mostly}{words.cause}: {parts}: {share}. {seconds}."


def _same_plans(answer: Answer, result: ContenderResult, old: str, new: str) -> str:
    same = f"{new} has the plans of {old}"
    if result.verdict not in DIFFERENT:
        return f"{same}."
    rows = sure_counters(answer, result, _MOST_COUNTERS)
    if not rows:
        return f"{same}, and no counter differs beyond chance."
    told = ", ".join(f"{row.name} {row.change} {row.interval}".strip() for row in rows)
    return f"{same}: what differs is how they are run. Beyond chance there differ {told}."


def _changed(one: ComparedPlans) -> ChangedPlan:
    return ChangedPlan(
        statement=one.statement,
        headline=headline(one.difference.level),
        sentences=list(_sentences(one)),
    )


def _sentences(one: ComparedPlans) -> Iterator[str]:
    told = sentences(one.difference)
    yield from told[:_MOST_SENTENCES]
    if len(told) > _MOST_SENTENCES:
        yield f"{len(told) - _MOST_SENTENCES} more; pgversus plans shows them"
    if undone := undoing(one, Language.ENGLISH):
        yield undone
    if one.difference.time is not None:
        yield times(one)


def _factor(part: Bounded) -> str:
    """`11x [10x, 12x]`: of speed."""
    return f"{_times(part.value)} [{_times(part.low)}, {_times(part.high)}]"


def _times(factor: float) -> str:
    return f"{significant(factor)}x"


def _saved(gained: Bounded) -> str:
    return f"{'save' if gained.value > 0 else 'cost'} {latency(abs(gained.value))}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
