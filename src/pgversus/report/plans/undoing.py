"""Which settings plan a statement as before, in words."""

from pgversus.plans.levels import Level
from pgversus.records.plans import ButFor, Why
from pgversus.report.plans.compared import ComparedPlans
from pgversus.text.translation import later, tell

_WHY = {
    Why.NEW_SWITCH: later("a switch that {old} does not have"),
    Why.CHANGED_DEFAULT: later("the default of {old}"),
    Why.OTHER_VALUE: later("as it is set on {old}"),
    Why.SWITCH: later("a switch of both"),
    Why.MEMORY: later("set alike on both: {new} needs another amount of memory"),
}
_PLANNED = {
    None: later("with {settings} ({why}) {new} plans it as {old}"),
    ButFor.SORTS: later(
        "with {settings} ({why}) {new} plans it as {old}, but for sorts of rows that are in order already"
    ),
    ButFor.BATCHES: later("with {settings} ({why}) {new} plans it as {old}, but for the number of batches"),
}
_RUN = {
    None: later("with {settings} ({why}) {new} runs it as {old}"),
    ButFor.SORTS: later(
        "with {settings} ({why}) {new} runs it as {old}, but for sorts of rows that are in order already"
    ),
    ButFor.BATCHES: later("with {settings} ({why}) {new} runs it as {old}, but for the number of batches"),
}


def undoing(one: ComparedPlans) -> str:
    """A sentence; empty where nothing has changed that a setting could undo, or nobody has tried."""
    level = one.difference.level
    if not one.is_searched or level in (Level.WORK, Level.IDENTICAL):
        return ""
    old, new = one.labels
    is_run = level is Level.BEHAVIOUR
    if one.undone_by is None:
        if is_run:
            return tell("no setting was found with which {new} runs it as {old}", old=old, new=new)
        return tell("no setting was found with which {new} plans it as {old}", old=old, new=new)
    candidate, found = one.undone_by.candidate, (_RUN if is_run else _PLANNED)[one.undone_by.but_for]
    why = tell(_WHY[candidate.why], old=old, new=new)
    return tell(found, settings=candidate.words, why=why, old=old, new=new)
