"""Changes to sentences: each once, what is the same in many partitions together."""

import re

from pgversus.plans.difference import PlanDifference
from pgversus.plans.levels import Level
from pgversus.plans.sentences.changes import sentence
from pgversus.plans.sentences.numbers import number
from pgversus.text.translation import later, tell

_DIGITS = re.compile(r"\d+")
_MOST_ALIKE = 3
"""So many sentences that differ in their digits alone are told one by one."""
_HEADLINES = {
    Level.OPERATORS: later("another plan: other operators"),
    Level.CONDITIONS: later("another plan: the same operators with other conditions or keys"),
    Level.BEHAVIOUR: later("the same plan, which went another way"),
    Level.WORK: later("the same plan, with other amounts of work"),
    Level.IDENTICAL: later("the same plan"),
}


def headline(level: Level) -> str:
    """How far the plans are apart, in one line."""
    return tell(_HEADLINES[level])


def sentences(found: PlanDifference) -> list[str]:
    """One for each change, in their order; of many that differ in digits alone the first ones, and how many more."""
    told: dict[tuple[str, str], list[str]] = {}
    for change in found.changes:
        text = sentence(change)
        told.setdefault((change.kind, _DIGITS.sub("#", text)), []).append(text)
    lines: list[str] = []
    for texts in told.values():
        different = list(dict.fromkeys(texts))
        lines += different[:_MOST_ALIKE]
        if len(different) > _MOST_ALIKE:
            lines.append(tell("... and {rest} more like these", rest=number(len(different) - _MOST_ALIKE)))
    return lines
