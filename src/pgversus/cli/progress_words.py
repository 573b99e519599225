"""How it is said while a comparison runs how contenders stand, and how long it may still take."""

import math
from collections.abc import Mapping

from pgversus.engine.progress import Look, Outlook
from pgversus.records.trials import Block, Phase
from pgversus.report.small_print import window_length
from pgversus.report.verdicts import verdict_word
from pgversus.stats.analysis import Standing
from pgversus.stats.confidence import FARTHEST, Verdict
from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.study import Context
from pgversus.study.workload import Operation
from pgversus.text.translation import later, tell, tell_number
from pgversus.text.units import change, duration, latency, percent

_WIDEST = math.log(2)
"""Half the widest interval that is shown, as a log-ratio: ±100 %. Beyond it, as after 2 blocks, it says nothing."""
_STEPS = {
    Phase.START: later("block {block}: starting {arm}"),
    Phase.WARM_UP: later("block {block}: warming up {arm}"),
    Phase.MEASURE: later("block {block}: measuring {arm}, window {window}/{windows}"),
}


def beginning_words(comparison: Comparison) -> str:
    """What will be done of a context, and for how long at most."""
    design = comparison.design
    return tell(
        "blocks of {work} for each of {arms} arms, {limit}",
        work=_work_words(comparison),
        arms=len(comparison.arms),
        limit=_limit_words(design),
    )


def step_words(comparison: Comparison, block: int, arm: int, phase: Phase, round_number: int) -> str:
    """What runs now, without the context."""
    label = comparison.arms[arm].label
    if isinstance(comparison.workload, Operation):
        return tell("block {block}: the operation on {arm}", block=block, arm=label)
    windows = comparison.design.rounds
    return tell(_STEPS[phase], block=block, arm=label, window=round_number, windows=windows)


def standing_words(look: Look) -> str:
    """How a contender stands, in one line for a pipe: `+2.0 % ±1.1 % faster`."""
    stands = look.standing
    if stands.verdict is Verdict.INVALID:
        return verdict_word(Verdict.INVALID)
    if stands.log_ratio is None:
        return tell("no block yet")
    parts = [ratio_words(stands)]
    if stands.verdict is not Verdict.UNDECIDED:
        parts.append(verdict_word(stands.verdict))
    elif look.seconds_left:
        parts.append(tell("about {time} left", time=duration(look.seconds_left)))
    return " ".join(parts)


def block_words(block: Block, comparison: Comparison, looks: Mapping[int, Look]) -> str:
    """How all contenders of a block stand, in one line for a pipe, without the context."""
    arms = comparison.arms
    standing = "   ".join(f"{arms[arm].label} {standing_words(look)}" for arm, look in sorted(looks.items()))
    number = tell("block {block}", block=block.number)
    return f"{number}  {standing}"


def ratio_words(stands: Standing) -> str:
    """`+2.0 % ±1.1 %`; without a half-width that says nothing, empty for what has no ratio."""
    if stands.log_ratio is None or stands.verdict is Verdict.INVALID or not abs(stands.log_ratio.point) < FARTHEST:
        return ""
    ratio = change(math.exp(stands.log_ratio.point))
    half = stands.interval.half_width
    return f"{ratio} ±{percent(math.expm1(half))}" if half <= _WIDEST else ratio


def verdict_words(verdict: Verdict, *, is_final: bool) -> str:
    """A verdict, which may not be known yet."""
    if verdict is Verdict.UNDECIDED and not is_final:
        return tell("undecided so far")
    return verdict_word(verdict)


def blocks_words(number: int) -> str:
    """`4 blocks`."""
    return tell_number("{number} block", "{number} blocks", number)


def to_go_words(look: Look, *, is_fixed: bool) -> str:
    """What a contender may still take; empty once its verdict is known. is_fixed: whether that was given."""
    if look.standing.verdict is not Verdict.UNDECIDED or look.blocks_left == 0:
        return ""
    if look.blocks_left is None:
        return tell("at most {time} to go", time=duration(look.seconds_left)) if look.seconds_left else ""
    if look.is_before_first_look:
        return tell_number("first look in {number} block", "first look in {number} blocks", look.blocks_left)
    if is_fixed:
        return tell_number("{number} block to go", "{number} blocks to go", look.blocks_left)
    return tell_number("about {number} block to go", "about {number} blocks to go", look.blocks_left)


def outlook_words(outlook: Outlook, running_s: float) -> list[str]:
    """How far the study has come: contexts, time, and what is left. running_s: that the block of now has taken."""
    words = [contexts_words(outlook)] if outlook.contexts > 1 else []
    spent = duration(outlook.spent_s + running_s)
    if outlook.budget_s is None:
        words.append(tell("{time} so far", time=spent))
    else:
        words.append(tell("{time} of at most {budget}", time=spent, budget=duration(outlook.budget_s)))
    return [*words, *filter(None, [left_words(outlook, running_s)])]


def contexts_words(outlook: Outlook) -> str:
    """How many contexts get no more blocks."""
    return tell("{ended} of {total} contexts done", ended=outlook.ended, total=outlook.contexts)


def left_words(outlook: Outlook, running_s: float) -> str:
    """How long it may still take; empty while nobody can tell."""
    if outlook.seconds_left is None:
        return ""
    left = duration(max(0.0, outlook.seconds_left - running_s))
    return tell("at most {time} left", time=left) if outlook.is_at_most else tell("about {time} left", time=left)


def with_context(context: Context, words: str) -> str:
    """The words behind the context that they are of."""
    return f"{context.label}  {words}" if context.label else words


def _work_words(comparison: Comparison) -> str:
    design, seconds = comparison.design, comparison.design.window_s
    if isinstance(comparison.workload, Operation):
        took = latency(seconds) if seconds < 1 else duration(seconds)
        return tell("one repetition of about {time}", time=took)
    return tell_number(
        "{number} window of {time}", "{number} windows of {time}", design.rounds, time=window_length(design)
    )


def _limit_words(design: Design) -> str:
    if design.fixed_blocks is not None:
        return blocks_words(design.fixed_blocks)
    return tell("until the answer is known, at most {time}", time=duration(design.budget_s))
