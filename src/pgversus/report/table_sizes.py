"""Sizes of tables and indexes, where the arms' builds make the same rows larger or smaller."""

from collections.abc import Sequence
from dataclasses import dataclass

from pgversus.records.preparation import RUNNING_SERVER
from pgversus.report.answer import Answer
from pgversus.text.units import size

_MOST_SHOWN = 20
"""The largest of them."""
_WORTH_SHOWING = 0.005
"""Of the baseline's size: a page more or less comes and goes with each loading."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTable:
    """The same relations on each arm; every number is text already."""

    context: str
    """The first that has these data; empty for the only one."""
    arms: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """A relation, and its size on each arm; empty where it is not there."""


def size_tables(answers: Sequence[Answer]) -> list[SizeTable]:
    """One for each set of arms and data whose relations differ in size; none where builds make no difference."""
    found: dict[object, SizeTable] = {}
    for one in answers:
        sizes = [facts.sizes for facts in one.arms if facts.origin != RUNNING_SERVER]
        if len(sizes) < len(one.arms):
            # What somebody has in a database says nothing of how it was built.
            continue
        names = [name for name in sizes[0] if any(_differs(sizes[0][name], other.get(name)) for other in sizes[1:])]
        largest = set(sorted(names, key=lambda name: -sizes[0][name])[:_MOST_SHOWN])
        names = [name for name in names if name in largest]
        labels = tuple(arm.label for arm in one.comparison.arms)
        key = (labels, tuple(tuple(other.get(name) for other in sizes) for name in names))
        if names and key not in found:
            found[key] = SizeTable(
                context=one.context.label,
                arms=labels,
                rows=tuple((_short(name), tuple(_shown(other.get(name)) for other in sizes)) for name in names),
            )
    return list(found.values())


def _differs(base: int, other: int | None) -> bool:
    return other is not None and abs(other - base) > _WORTH_SHOWING * base


def _short(name: str) -> str:
    return name.removeprefix("public.")


def _shown(found: int | None) -> str:
    return "" if found is None else size(found)
