"""Which settings plan a statement as before, in words."""

from pgversus.plans.levels import Level
from pgversus.plans.sentences.telling import Language
from pgversus.report.plans.compared import ComparedPlans
from pgversus.study.planner_switches import ButFor, Why

_WHY = {
    Language.ENGLISH: {
        Why.NEW_SWITCH: "a switch that {old} does not have",
        Why.CHANGED_DEFAULT: "the default of {old}",
        Why.OTHER_VALUE: "as it is set on {old}",
        Why.SWITCH: "a switch of both",
        Why.MEMORY: "set alike on both: {new} needs another amount of memory",
    },
    Language.JAPANESE: {
        Why.NEW_SWITCH: "{old} にはないスイッチ",
        Why.CHANGED_DEFAULT: "{old} の既定値",
        Why.OTHER_VALUE: "{old} での設定値",
        Why.SWITCH: "両方にあるスイッチ",
        Why.MEMORY: "設定値は両方で同じだが、{new} が使うメモリ量は異なる",
    },
}
_FOUND = {
    Language.ENGLISH: "with {settings} ({why}) {new} {does} it as {old}",
    Language.JAPANESE: "{settings} とすると {new} は {old} と同じ{does}になる: {why}",
}
_BUT_FOR = {
    Language.ENGLISH: {
        ButFor.SORTS: ", but for sorts of rows that are in order already",
        ButFor.BATCHES: ", but for the number of batches",
    },
    Language.JAPANESE: {
        ButFor.SORTS: "。ただし、すでに順序どおりの行の Sort を除く",
        ButFor.BATCHES: "。ただし、バッチ数を除く",
    },
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
    why = _WHY[language][candidate.why].format(old=old, new=new)
    found = _FOUND[language].format(settings=candidate.words, why=why, old=old, new=new, does=does)
    but_for = one.undone_by.but_for
    return found if but_for is None else found + _BUT_FOR[language][but_for]
