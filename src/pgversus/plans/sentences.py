"""Changes between plans as sentences, in English or in the language of the report."""

import re
from collections.abc import Callable, Mapping

from pgversus.plans.changes import Change, ChangeKind, is_only_order
from pgversus.plans.difference import PlanDifference
from pgversus.plans.levels import PlanLevel
from pgversus.text.translation import N_, _
from pgversus.text.units import significant, size, whole

_EXACT = 1.05
"""Estimates that are off by less than this factor count as correct."""
_SMALL = 10.0


def number(value: object) -> str:
    """Format a number as `100 000` or `2.55`; text is unchanged."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if value < _SMALL and value != int(value):
        return significant(value)
    return whole(value)


def sentence(change: Change) -> str:
    """Describe one change."""
    return _SENTENCES[change.kind](change)


def _times(value: str | float | None) -> str:
    text = number(value)
    if text == "0":
        return _("0 times")
    return _("once") if text == "1" else _("{count} times", count=text)


def _with_details(change: Change) -> str:
    if not change.details:
        return change.node
    return _("{node} ({details})", node=change.node, details="; ".join(change.details))


def _estimate(text: object) -> str:
    expected, actual, off = (float(part) for part in str(text).split("/"))
    if off < _EXACT:
        return _("estimated {expected}, actual {actual}", expected=number(expected), actual=number(actual))
    return _(
        "estimated {expected}, actual {actual} ({factor}x off)",
        expected=number(expected),
        actual=number(actual),
        factor=number(off),
    )


def _pulled_up(change: Change) -> str:
    if change.was is None or change.now is None:
        return _("{subplan} over {node} was pulled up into the main plan", subplan=change.name, node=change.node)
    return _(
        "{subplan} over {node} was pulled up into the main plan: it ran {was}, now {now}",
        subplan=change.name,
        node=change.node,
        was=_times(change.was),
        now=_times(change.now),
    )


def _pushed_down(change: Change) -> str:
    if change.was is None or change.now is None:
        return _("{node} is now read in {subplan}, not in the main plan", subplan=change.name, node=change.node)
    return _(
        "{node} is now read in {subplan}, not in the main plan: it ran {was}, now {now}",
        subplan=change.name,
        node=change.node,
        was=_times(change.was),
        now=_times(change.now),
    )


def _estimates(change: Change) -> str:
    shown = {"node": change.node, "was": _estimate(change.was), "now": _estimate(change.now)}
    if change.name:
        return _("rows of {node}, per execution: {was}; now {now}", **shown)
    return _("rows of {node}: {was}; now {now}", **shown)


def _keys(change: Change) -> str:
    if not change.was:
        return _("{node} now has a {key}: {now}", node=change.node, key=change.name, now=change.now)
    if not change.now:
        return _("{node} no longer has a {key} (it was {was})", node=change.node, key=change.name, was=change.was)
    return _("{key} of {node} was {was}, now {now}", key=change.name, **_sides(change))


def _spill_gone(change: Change) -> str:
    return _(
        "{node} no longer writes temporary files (it wrote {amount})", node=change.node, amount=_blocks(change.was)
    )


def _spill_new(change: Change) -> str:
    return _("{node} now spills to temporary files ({amount})", node=change.node, amount=_blocks(change.now))


def _blocks(value: str | float | None) -> str:
    text = number(value)
    return _("1 block") if text == "1" else _("{number} blocks", number=text)


def _size(value: str | float | None) -> str:
    return size(value) if isinstance(value, int | float) else str(value)


def _sides(change: Change) -> dict[str, object]:
    return {"node": change.node, "was": change.was, "now": change.now}


def _numbers(change: Change) -> dict[str, str]:
    was, now = (
        _("about {value}", value=number(value)) if is_rounded else number(value)
        for value, is_rounded in zip((change.was, change.now), change.are_rounded, strict=True)
    )
    return {"node": change.node, "was": was, "now": now}


_SENTENCES: Mapping[ChangeKind, Callable[[Change], str]] = {
    ChangeKind.SUBPLAN_PULLED_UP: _pulled_up,
    ChangeKind.SUBPLAN_PUSHED_DOWN: _pushed_down,
    ChangeKind.JOIN: lambda c: _("{was} is now a {now}", was=c.was, now=c.now),
    ChangeKind.JOIN_SIDES: lambda c: _(
        "the sides of {node} are swapped: the outer side was {was}, now {now}", **_sides(c)
    ),
    ChangeKind.SUBPLAN_KIND: lambda c: _("the subplan over {node} was {was}, now {now}", **_sides(c)),
    ChangeKind.ACCESS: lambda c: _("{old_access} is now {new_access}", old_access=c.was, new_access=c.now),
    ChangeKind.OPERATOR: lambda c: _("{was} is now {now}", was=c.was, now=c.now),
    ChangeKind.ORDER_FROM_INDEX: lambda c: _(
        "{node} was removed: the order now comes from index {index}", node=_with_details(c), index=c.name
    ),
    ChangeKind.ADDED: lambda c: _("new: {node}", node=_with_details(c)),
    ChangeKind.REMOVED: lambda c: _("removed: {node}", node=_with_details(c)),
    ChangeKind.NOT_READ: lambda c: _(
        "{relation} is no longer read (it was read by {node})", relation=c.name, node=_with_details(c)
    ),
    ChangeKind.READ: lambda c: _("{relation} is now read by {node}", relation=c.name, node=_with_details(c)),
    ChangeKind.ARRANGEMENT: lambda _unused: _("the same operators are in a different order"),
    ChangeKind.GENERIC: lambda c: (
        _("now a generic plan, for any parameter values; it was a custom plan, for these parameter values")
        if c.now == "generic"
        else _("now a custom plan, for these parameter values; it was a generic plan")
    ),
    ChangeKind.CONDITION_MOVED: lambda c: _(
        "{condition} moved from {was} to {now}", condition=c.name, was=c.was, now=c.now
    ),
    ChangeKind.CONDITION_GONE: lambda c: _(
        "{node} no longer has the {condition} {was}", node=c.node, condition=c.name, was=c.was
    ),
    ChangeKind.CONDITION_NEW: lambda c: _(
        "{node} has a new {condition}: {now}", node=c.node, condition=c.name, now=c.now
    ),
    ChangeKind.KEY_ORDER: lambda c: _(
        "{key} of {node} was {was}, now {now}: same columns, different order", key=c.name, **_sides(c)
    ),
    ChangeKind.KEYS: _keys,
    ChangeKind.SPILL_GONE: _spill_gone,
    ChangeKind.SPILL_NEW: _spill_new,
    ChangeKind.FACT: lambda c: _("{key} of {node} was {was}, now {now}", key=c.name, **_sides(c)),
    ChangeKind.LOOPS: lambda c: _("{node} ran {was}, now {now}", node=c.node, was=_times(c.was), now=_times(c.now)),
    ChangeKind.ROWS: lambda c: _("rows returned by {node}: {was}, now {now}", **_numbers(c)),
    ChangeKind.ROWS_REMOVED: lambda c: _("rows read and discarded by {node}: {was}, now {now}", **_numbers(c)),
    ChangeKind.ESTIMATE: _estimates,
    ChangeKind.MEMORY: lambda c: _(
        "{node} used {was} of memory, now {now}", node=c.node, was=_size(c.was), now=_size(c.now)
    ),
    ChangeKind.TEMP_BLOCKS: lambda c: _("blocks written to temporary files by {node}: {was}, now {now}", **_numbers(c)),
    ChangeKind.COUNT: lambda c: _("{name} of {node}: {was}, now {now}", name=c.name, **_numbers(c)),
    ChangeKind.BLOCKS: lambda c: _("total blocks accessed (hit or read): {was}, now {now}", **_numbers(c)),
    ChangeKind.BYTES: lambda c: _(
        "total size of blocks accessed (hit or read): {was}, now {now}", was=_size(c.was), now=_size(c.now)
    ),
    ChangeKind.JIT: lambda c: _("functions compiled by JIT: {was}, now {now}", **_numbers(c)),
}


_DIGITS = re.compile(r"\d+")
_MOST_ALIKE = 3
"""Maximum number of sentences shown that differ only in digits."""
_HEADLINES = {
    PlanLevel.OPERATORS: N_("different plan: different operators"),
    PlanLevel.CONDITIONS: N_("different plan: same operators, different conditions, keys or workers"),
    PlanLevel.BEHAVIOUR: N_("same plan, different execution"),
    PlanLevel.WORK: N_("same plan, different amounts of work"),
    PlanLevel.IDENTICAL: N_("same plan"),
}


def headline(found: PlanDifference) -> str:
    """Describe the level of difference in one line."""
    if found.level is PlanLevel.OPERATORS and is_only_order(found.changes):
        return _("different plan: the same operators in a different order")
    words = _(_HEADLINES[found.level])
    if found.is_same_plan and found.hides_tests:
        return _(
            "{headline} (tests of subplans are not compared, because only one of the two plans shows them)",
            headline=words,
        )
    return words


def sentences(found: PlanDifference) -> list[str]:
    """Return a sentence per change, in order; if many differ only in digits, the first ones and a count."""
    alike: dict[tuple[str, str], list[str]] = {}
    for change in found.changes:
        text = sentence(change)
        alike.setdefault((change.kind, _DIGITS.sub("#", text)), []).append(text)
    lines: list[str] = []
    for texts in alike.values():
        different = list(dict.fromkeys(texts))
        lines += different[:_MOST_ALIKE]
        if len(different) > _MOST_ALIKE:
            lines.append(_("... and {rest} more like these", rest=number(len(different) - _MOST_ALIKE)))
    return lines
