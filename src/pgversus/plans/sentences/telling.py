"""Changes to sentences: each once, what is the same in many partitions together."""

import re
from collections.abc import Callable, Mapping
from enum import StrEnum

from pgversus.plans.changes import Change, Kind
from pgversus.plans.difference import PlanDifference
from pgversus.plans.levels import Level
from pgversus.plans.sentences import english, japanese

_DIGITS = re.compile(r"\d+")
_MOST_ALIKE = 3
"""So many sentences that differ in their digits alone are told one by one."""


class Language(StrEnum):
    """In which plans can be told."""

    ENGLISH = "en"
    JAPANESE = "ja"


_SENTENCE: Mapping[Language, Callable[[Change], str]] = {
    Language.ENGLISH: english.sentence,
    Language.JAPANESE: japanese.sentence,
}
_MORE: Mapping[Language, Callable[[int], str]] = {Language.ENGLISH: english.more, Language.JAPANESE: japanese.more}
_VERDICT: Mapping[Language, Mapping[Level, str]] = {
    Language.ENGLISH: english.LEVELS,
    Language.JAPANESE: japanese.LEVELS,
}


def headline(level: Level, language: Language = Language.ENGLISH) -> str:
    """How far the plans are apart, in one line."""
    return _VERDICT[language][level]


def sentences(found: PlanDifference, language: Language = Language.ENGLISH) -> list[str]:
    """One for each change, in their order; of many that differ in digits alone the first ones, and how many more."""
    told: dict[tuple[Kind, str], list[str]] = {}
    for change in found.changes:
        text = _SENTENCE[language](change)
        told.setdefault((change.kind, _DIGITS.sub("#", text)), []).append(text)
    lines: list[str] = []
    for texts in told.values():
        different = list(dict.fromkeys(texts))
        lines += different[:_MOST_ALIKE]
        if len(different) > _MOST_ALIKE:
            lines.append(_MORE[language](len(different) - _MOST_ALIKE))
    return lines
