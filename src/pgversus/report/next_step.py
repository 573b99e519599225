"""What to do now that a verdict is as it is, where its sentence does not say so already."""

from pgversus.language import tell
from pgversus.report.answer import Answer
from pgversus.report.sentences import needs_check
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.verdict import Verdict
from pgversus.study.design import StopReason


def next_step(answer: Answer, result: ContenderResult) -> str:
    """One sentence; empty for an undecided verdict whose own sentence tells how much more time it needs."""
    if result.verdict is Verdict.INVALID:
        return tell("Next: mend what made trials fail, as the caveats tell it, then run the same command again.")
    if needs_check(answer, result):
        return tell("Next: mend what the caveats tell, then measure again; until then the figure may mislead.")
    if result.verdict is not Verdict.UNDECIDED:
        return tell("Next: nothing needs to be measured; what explains it is below.")
    if answer.stopped is StopReason.INTERRUPTED:
        return tell("Next: the same command goes on from here.")
    if answer.comparison.design.fixed_blocks is not None:
        return tell("Next: measure anew with more blocks, or with a wider margin if so little does not matter.")
    return ""
