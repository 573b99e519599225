"""Whether a verdict, or a whole study, can be relied on."""

from enum import StrEnum

from pgversus.answers.answer import Answer, Severity, StudyAnswer
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.study.design import FIRST_LOOK


class Validity(StrEnum):
    """The reliability of a verdict, or of all verdicts of a study."""

    VALID = "valid"
    UNDECIDED = "undecided"
    PARTLY_UNDECIDED = "partly undecided"
    """A study with undecided verdicts, or contexts that were not reached, whose other verdicts are valid."""
    CAUTION = "caution"
    INVALID = "invalid"


class Doubt(StrEnum):
    """A reason to treat a verdict with caution."""

    CAVEATS = "caveats"
    """At least one caveat is grave, or says that the measurement was disturbed."""
    WIDE_INTERVAL = "wide interval"
    FEW_BLOCKS = "few blocks"


_WIDE = 2.0
"""Upper bound of the ratio divided by the lower one."""


def doubts(answer: Answer, result: ContenderResult) -> list[Doubt]:
    """Return the reasons to treat a verdict with caution; empty for an invalid one, which is not in doubt."""
    if result.verdict is Verdict.INVALID:
        return []
    if result.verdict is Verdict.UNDECIDED:
        return [Doubt.CAVEATS] if answer.needs_check(result) else []
    ratio = result.ratios.get(answer.analysis.metric)
    is_wide = ratio is None or ratio.low is None or ratio.high is None or ratio.high > _WIDE * ratio.low
    found = {
        Doubt.CAVEATS: any(one.severity is not Severity.NOTE for one in answer.caveats_of(result.contender)),
        Doubt.WIDE_INTERVAL: is_wide,
        Doubt.FEW_BLOCKS: result.blocks < FIRST_LOOK,
    }
    return [doubt for doubt, applies in found.items() if applies]


def validity(answer: Answer, result: ContenderResult) -> Validity:
    """Return the reliability of one verdict."""
    if result.verdict is Verdict.INVALID:
        return Validity.INVALID
    if doubts(answer, result):
        return Validity.CAUTION
    return Validity.UNDECIDED if result.verdict is Verdict.UNDECIDED else Validity.VALID


def validity_of_study(answer: StudyAnswer) -> Validity:
    """Return the reliability of the whole study; invalid if nothing was measured."""
    found = {validity(one, result) for one in answer.answers for result in one.analysis.results}
    if not found:
        return Validity.INVALID
    if any(one.failed for one in answer.unanswered) or any(one.failure for one in answer.answers):
        found.add(Validity.CAUTION)
    elif answer.unanswered:
        # Contexts that were not reached have no verdict yet.
        found.add(Validity.UNDECIDED)
    if len(found) == 1:
        return found.pop()
    # One invalid contender does not invalidate the others.
    return Validity.PARTLY_UNDECIDED if found == {Validity.VALID, Validity.UNDECIDED} else Validity.CAUTION
