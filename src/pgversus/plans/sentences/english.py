"""Changes between plans, in English."""

from collections.abc import Callable, Mapping

from pgversus.plans.changes import Change, Kind
from pgversus.plans.levels import Level
from pgversus.plans.sentences.numbers import EXACT, number

LEVELS = {
    Level.OPERATORS: "another plan: other operators",
    Level.CONDITIONS: "another plan: the same operators with other conditions or keys",
    Level.BEHAVIOUR: "the same plan, which went another way",
    Level.WORK: "the same plan, with other amounts of work",
    Level.IDENTICAL: "the same plan",
}


def sentence(change: Change) -> str:
    """One change."""
    return _SENTENCES[change.kind](change)


def more(count: int) -> str:
    """There are so many more of the kind that was just told."""
    return f"... and {number(count)} more like these"


def _times(value: str | float | None) -> str:
    return {"0": "never", "1": "once"}.get(number(value), f"{number(value)} times")


def _ran(change: Change) -> str:
    if change.was is None or change.now is None:
        return ""
    return f": it ran {_times(change.was)}, now {_times(change.now)}"


def _with_details(change: Change) -> str:
    return f"{change.node} ({'; '.join(change.details)})" if change.details else change.node


def _estimate(text: object) -> str:
    expected, actual, off = str(text).split("/")
    came = f"{number(float(expected))} expected, {number(float(actual))} came"
    return came if float(off) < EXACT else f"{came} ({number(float(off))}x off)"


def _keys(change: Change) -> str:
    if not change.was:
        return f"{change.node} has a {change.name} now: {change.now}"
    if not change.now:
        return f"{change.node} has no {change.name} any more; it was {change.was}"
    return f"{change.name} of {change.node} was {change.was}, now {change.now}"


_SENTENCES: Mapping[Kind, Callable[[Change], str]] = {
    Kind.SUBPLAN_PULLED_UP: lambda c: f"{c.name} over {c.node} was pulled up into the main plan{_ran(c)}",
    Kind.SUBPLAN_PUSHED_DOWN: lambda c: f"{c.node} is now read in {c.name} and not in the main plan{_ran(c)}",
    Kind.JOIN: lambda c: f"{c.was} is now a {c.now}",
    Kind.ACCESS: lambda c: f"{c.was} is now {c.now}",
    Kind.OPERATOR: lambda c: f"{c.was} is now {c.now}",
    Kind.ORDER_FROM_INDEX: lambda c: f"{_with_details(c)} is gone: the order now comes from index {c.name}",
    Kind.ADDED: lambda c: f"new: {_with_details(c)}",
    Kind.REMOVED: lambda c: f"gone: {_with_details(c)}",
    Kind.NOT_READ: lambda c: f"{c.name} is not read any more; it was by {_with_details(c)}",
    Kind.READ: lambda c: f"{c.name} is read now, by {_with_details(c)}",
    Kind.ARRANGEMENT: lambda _: "the same operators stand in another order",
    Kind.CONDITION_MOVED: lambda c: f"{c.name} was {c.was}, is now {c.now}",
    Kind.CONDITION_GONE: lambda c: f"{c.node} has no {c.name} {c.was} any more",
    Kind.CONDITION_NEW: lambda c: f"{c.node} has a new {c.name}: {c.now}",
    Kind.KEY_ORDER: lambda c: f"{c.name} of {c.node} was {c.was}, now {c.now}: the same columns in another order",
    Kind.KEYS: _keys,
    Kind.SPILL_GONE: lambda c: f"{c.node} writes no temporary files any more",
    Kind.SPILL_NEW: lambda c: f"{c.node} now spills to temporary files",
    Kind.FACT: lambda c: f"{c.name} of {c.node} was {c.was}, now {c.now}",
    Kind.LOOPS: lambda c: f"{c.node} ran {_times(c.was)}, now {_times(c.now)}",
    Kind.ROWS: lambda c: f"{c.node} gave {number(c.was)} rows, now {number(c.now)}",
    Kind.ROWS_REMOVED: lambda c: f"{c.node} read and threw away {number(c.was)} rows, now {number(c.now)}",
    Kind.ESTIMATE: lambda c: f"rows of {c.node}: {_estimate(c.was)}; now {_estimate(c.now)}",
    Kind.BLOCKS: lambda c: f"blocks read in all, from the buffers or not: {number(c.was)}, now {number(c.now)}",
    Kind.JIT: lambda c: f"functions compiled by JIT: {number(c.was)}, now {number(c.now)}",
}
