"""Why a contender differs, as far as plans and counters tell; every renderer shows these."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.plans.levels import Level
from pgversus.plans.sentences.telling import Language, headline, sentences
from pgversus.report.answer import Answer, Attributed, StudyAnswer
from pgversus.report.compared_plans import ComparedPlans
from pgversus.report.plan_text import times
from pgversus.report.quantities import sure_counters
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.undoing import undoing
from pgversus.report.units import count, duration, latency, percent
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.attribution import Attribution, Bounded
from pgversus.stats.verdict import Verdict

_MOST_SENTENCES = 12
"""Of one statement; `pgversus plans` has all."""
_MOST_COUNTERS = 4
_DECIDED = (Verdict.FASTER, Verdict.SLOWER)
_MOSTLY, _ALL_BUT_ALL = 0.5, 0.9
"""Shares above which a difference is said to come mostly from the plans, and from them."""
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


def attributed_sentence(labels: tuple[str, str], verdict: Verdict, found: Attribution, recall: str) -> str:
    """What the plans account for. labels: of baseline and contender. recall: what brought the baseline's plans back."""
    old, new = labels
    gain = "gains" if found.whole_s.value > 0 else "loses"
    measured = (
        f"with {recall} {new} has the plans of {old}. Measured so, in {count(found.blocks, 'block')}, they account for "
        f"{latency(abs(found.plans_s.value))} of the {latency(abs(found.whole_s.value))} that {new} {gain} in each "
        "transaction"
    )
    rest = f"{_REST[found.rest_verdict]} ({_seconds(found.rest_s)})"
    if found.share is None:
        return f"{_capital(measured)}; how much of it that is cannot be told; {rest}."
    share = (
        f"{percent(found.share.value)}, between {percent(found.share.low)} and {percent(found.share.high)}, "
        f"{percent_of_confidence()}"
    )
    how = next((words for least, words in _BECAUSE if found.share.low >= least), "")
    begin = f"{new} is {verdict} {how} its plans: " if how else ""
    return f"{begin}{measured if begin else _capital(measured)} ({share}); {rest}."


_BECAUSE = ((_ALL_BUT_ALL, "because of"), (_MOSTLY, "mostly because of"))
"""By the least share that the interval leaves to the plans."""


def _claim(answer: Answer, result: ContenderResult, changed: Sequence[ComparedPlans]) -> str:
    old, new = (answer.comparison.arms[index].label for index in (0, result.contender))
    if not changed:
        return _same_plans(answer, result, old, new)
    attributed = answer.attributed.get(result.contender)
    if attributed is not None and attributed.found is not None:
        took = f" {duration(attributed.wall_s)}."
        return attributed_sentence((old, new), result.verdict, attributed.found, attributed.recall) + took
    return f"The plans of {new} are not those of {old}. {_not_measured(result, changed, attributed, old, new)}"


def _not_measured(
    result: ContenderResult, changed: Sequence[ComparedPlans], attributed: Attributed | None, old: str, new: str
) -> str:
    if attributed is not None:
        return f"What they account for was not measured: {attributed.failure}."
    if result.verdict not in _DECIDED:
        return "What they account for is not measured before the verdict is known."
    if any(one.undone_by is None for one in changed):
        return (
            f"What they account for cannot be measured: no setting was found that brings the plan of {old} back on "
            f"{new}. A rewrite that does can be named in a study."
        )
    return "What they account for was not measured."


def _same_plans(answer: Answer, result: ContenderResult, old: str, new: str) -> str:
    same = f"{new} has the plans of {old}"
    if result.verdict not in _DECIDED:
        return f"{same}."
    rows = sure_counters(answer, result, _MOST_COUNTERS)
    if not rows:
        return f"{same}, and no counter differs beyond chance: the code that runs them is what differs."
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


def _seconds(parts: Bounded) -> str:
    """`-1.2 ms [-3 ms, +0.4 ms]` of time: what is gained is less of it."""
    return f"{_signed(parts.value)} [{_signed(parts.high)}, {_signed(parts.low)}]"


def _signed(seconds: float) -> str:
    return f"{'-' if seconds > 0 else '+' if seconds < 0 else ''}{latency(abs(seconds))}"


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
