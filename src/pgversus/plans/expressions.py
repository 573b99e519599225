"""Conditions and keys in one spelling, whatever major printed them and whatever it called its subplans. Pure."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import count

from pgversus.plans.quoting import bare, outside_strings, split_inside, split_outside
from pgversus.plans.subplans import SubplanNames

_AND = " AND "
_EQUALS = " = "
_WINDOW = re.compile(r"\bOVER (?:\(\?\)|[\w$]+|\"[^\"]+\")")
_VALUE = re.compile(r"[^A-Za-z_\"]|(?:ANY|ALL|ARRAY|NULL|true|false)\b")
_GENERATED = re.compile(r"(.+)_\d+")
_QUALIFIED = re.compile(r"(?<![\w$\".])([\w$]++|\"(?:[^\"]++|\"\")*+\")\.")


class Expressions:
    """The spelling of one plan."""

    def __init__(self, subplans: SubplanNames, aliases: Iterable[tuple[str, str | None]]) -> None:
        """aliases: of each node that has one, in the order of the plan, with its relation."""
        self._subplans = subplans
        self._aliases = _own_names(aliases)

    def conjuncts(self, text: str) -> tuple[str, ...]:
        """What must hold, cut at AND, sorted: `((b = a) AND (1 = c))` is `a = b` and `c = 1`."""
        return tuple(sorted({_sides_in_order(part) for part in split_inside(self.respell(text), _AND)}))

    def respell(self, text: str) -> str:
        """A whole expression."""
        found = self._subplans.respell(text)
        if "OVER " in found:
            found = outside_strings(found, lambda part: _WINDOW.sub("OVER w", part))
        return outside_strings(found, self._with_own_names) if self._aliases else found

    def _with_own_names(self, text: str) -> str:
        return _QUALIFIED.sub(lambda match: f"{self._aliases.get(match[1], match[1])}.", text)


def is_generated(alias: str, relation: str | None) -> bool:
    """Whether PostgreSQL made this name up, `t_1` for the second t; another plan may number them otherwise."""
    return relation is not None and alias != relation and _GENERATED.fullmatch(alias) is not None


def _own_names(aliases: Iterable[tuple[str, str | None]]) -> Mapping[str, str]:
    """For each name that was made up one by relation and order, as it stands in expressions and in quotes."""
    all_names = list(aliases)
    taken = {alias for alias, relation in all_names if not is_generated(alias, relation)}
    own: dict[str, str] = {}
    numbers: dict[str | None, Iterator[int]] = {}
    for alias, relation in all_names:
        if not is_generated(alias, relation) or alias in own:
            continue
        # Those that were taken before are taken still.
        following = numbers.setdefault(relation, count(1))
        name = next(name for number in following if (name := f"{relation}_{number}") not in taken)
        taken.add(name)
        own[alias] = own[_in_quotes(alias)] = name
    return own


def _in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sides_in_order(conjunct: str) -> str:
    """Of an equality, which reads the same from both sides: columns first, values behind them."""
    sides = split_outside(conjunct, _EQUALS)
    if len(sides) != 2:  # noqa: PLR2004 - a left side and a right one
        return conjunct
    return _EQUALS.join(sorted(map(bare, sides), key=lambda side: (_VALUE.match(side) is not None, side)))
