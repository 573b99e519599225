"""Which settings plan a statement as before, in words."""

from pgversus.plans.levels import Level
from pgversus.plans.sentences.telling import Language
from pgversus.report.compared_plans import ComparedPlans
from pgversus.study.planner_switches import Why

_WHY = {
    Language.ENGLISH: {
        Why.NEW_SWITCH: "a switch that {old} does not have",
        Why.CHANGED_DEFAULT: "the default of {old}",
        Why.OTHER_VALUE: "as it is set on {old}",
        Why.SWITCH: "a switch of both",
    },
    Language.JAPANESE: {
        Why.NEW_SWITCH: "{old} にはないスイッチ",
        Why.CHANGED_DEFAULT: "{old} の既定値",
        Why.OTHER_VALUE: "{old} での設定値",
        Why.SWITCH: "両方にあるスイッチ",
    },
}
_FOUND = {
    Language.ENGLISH: "with {settings} ({why}) {new} {does} it as {old}",
    Language.JAPANESE: "{settings} とすると {new} は {old} と同じ{does}になる: {why}",
}
_BUT_FOR_SORTS = {
    Language.ENGLISH: ", but for sorts of rows that are in order already",
    Language.JAPANESE: "。ただし、すでに順序どおりの行の Sort を除く",
}
_NOT_FOUND = {
    Language.ENGLISH: "no setting was found with which {new} {does} it as {old}",
    Language.JAPANESE: "{new} を {old} と同じ{does}にする設定は見つからなかった",
}
_DOES = {
    Language.ENGLISH: {True: "runs", False: "plans"},
    Language.JAPANESE: {True: "挙動", False: "実行計画"},
}


def undoing(one: ComparedPlans, language: Language) -> str:
    """A sentence; empty where nothing has changed that a setting could undo, or nobody has tried."""
    level = one.difference.level
    if not one.is_searched or level in (Level.WORK, Level.IDENTICAL):
        return ""
    old, new = one.labels
    does = _DOES[language][level is Level.BEHAVIOUR]
    if one.undone_by is None:
        return _NOT_FOUND[language].format(old=old, new=new, does=does)
    candidate = one.undone_by.candidate
    why = _WHY[language][candidate.why].format(old=old)
    found = _FOUND[language].format(settings=candidate.words, why=why, old=old, new=new, does=does)
    return found + (_BUT_FOR_SORTS[language] if one.undone_by.but_for_sorts else "")
