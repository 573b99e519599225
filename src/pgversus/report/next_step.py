"""What to do now that a verdict is as it is, where its sentence does not say so already."""

from pgversus.report.answer import Answer
from pgversus.report.sentences import needs_check
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.study.design import StopReason
from pgversus.text.translation import tell


def next_step(answer: Answer, result: ContenderResult) -> str:
    """One sentence; empty for an undecided verdict whose own sentence tells how much more time it needs."""
    if result.verdict is Verdict.INVALID:
        return tell("Next: mend what made trials fail, as the caveats tell it, then run the same command again.")
    if needs_check(answer, result):
        return tell("Next: mend what the caveats tell, then measure again; until then the figure may mislead.")
    if result.verdict is not Verdict.UNDECIDED:
        return tell("Next: nothing more needs to be measured.")
    if answer.stopped is StopReason.INTERRUPTED:
        # What a study file asks for is gone on with; a comparison of the command line begins afresh.
        again = tell("Next: the same command goes on from here.")
        return again if answer.is_from_file else tell("Next: measure again, to the end.")
    if answer.comparison.design.fixed_blocks is not None:
        return tell("Next: measure anew with more blocks, or with a wider margin if so little does not matter.")
    return ""
