"""Conditions and keys in one spelling, whatever major printed them and whatever it called its subplans. Pure.

Quotes and parentheses are found in one pass over a text, however deep they are nested.

Up to 16 EXPLAIN prints `$0` for the result of an InitPlan and hides the test of a SubPlan: `(SubPlan 1)`. From 17 on
it prints `(InitPlan 1).col1` and `(ANY (c.c1 = (SubPlan 1).col1))`. Here all are numbered in the order of the plan,
results are spelled as in 17, and tests are hidden as in 16: what 16 does not print cannot be compared.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import count

_STRING = re.compile(r"('(?:[^']++|'')*+')")
_QUOTED = re.compile(r"'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"|[()\[\]]")
_NOWHERE = -1
"""In place of a parenthesis, for what stands in none."""


def outside_strings(text: str, change: Callable[[str], str]) -> str:
    """The text with what is in no string literal changed."""
    if "'" not in text:
        return change(text)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(_STRING.split(text)))


def closing(text: str, start: int) -> int:
    """Behind the parenthesis that closes the one at `start`; the end of the text where none does."""
    depth = 0
    for match in _QUOTED.finditer(text, start):
        mark = match[0]
        if mark in "([":
            depth += 1
        elif mark in ")]":
            depth -= 1
            if depth <= 0:
                return match.end()
    return len(text)


def bare(text: str) -> str:
    """The text without parentheses around the whole, and without white space around it."""
    begin, end, _ = _inside(text, 0, len(text), _Brackets(text, "").ends)
    return text[begin:end]


def split_outside(text: str, word: str) -> list[str]:
    """The parts between occurrences of `word` that stand in no parenthesis and no quotes."""
    if word not in text:
        return [text]
    places = _Brackets(text, word).places.get(_NOWHERE, [])
    return [text[begin:end] for begin, end in _between(0, len(text), places, word)]


def split_inside(text: str, word: str) -> list[str]:
    """The same of bare parts, those that stood in parentheses as a whole split in their turn."""
    brackets = _Brackets(text, word)
    parts = []
    left = [(0, len(text), brackets.places.get(_NOWHERE, []))]
    while left:
        begin, end, places = left.pop()
        begin, end, bracket = _inside(text, begin, end, brackets.ends)
        if bracket != _NOWHERE:
            places = brackets.places.get(bracket, [])
        if places:
            left += [(*bounds, []) for bounds in reversed(_between(begin, end, places, word))]
        else:
            parts.append(text[begin:end])
    return parts


class _Brackets:
    """The parentheses of a text, and where a word stands in it outside of quotes."""

    def __init__(self, text: str, word: str) -> None:
        """word: empty for none."""
        self.ends: dict[int, int] = {}
        """Of each parenthesis that is closed, by its place, where what it closes ends."""
        self.places: dict[int, list[int]] = {}
        """Of the word, by the parenthesis in which it stands."""
        opened, position = [_NOWHERE], 0
        marks = [(match.start(), match.end(), match[0]) for match in _QUOTED.finditer(text)]
        for start, end, mark in [*marks, (len(text), len(text), "")]:
            while word and (found := text.find(word, position, start)) >= 0:
                self.places.setdefault(opened[-1], []).append(found)
                position = found + len(word)
            position = end
            if mark in ("(", "["):
                opened.append(start)
            elif mark in (")", "]") and len(opened) > 1:
                self.ends[opened.pop()] = end


def _inside(text: str, begin: int, end: int, ends: Mapping[int, int]) -> tuple[int, int, int]:
    """Where a part begins and ends without what stands around the whole of it, and the last parenthesis around it."""
    bracket = _NOWHERE
    while True:
        while begin < end and text[begin].isspace():
            begin += 1
        while begin < end and text[end - 1].isspace():
            end -= 1
        if not text.startswith("(", begin) or ends.get(begin) != end or text[end - 1] != ")":
            return begin, end, bracket
        bracket, begin, end = begin, begin + 1, end - 1


def _between(begin: int, end: int, places: Sequence[int], word: str) -> list[tuple[int, int]]:
    return list(zip([begin, *(place + len(word) for place in places)], [*places, end], strict=True))


_NAME = re.compile(r"(InitPlan|SubPlan) (\S+?)(?: \(returns (\$\d+(?:,\$\d+)*)\))?")
_REFERENCE = re.compile(r"\b(InitPlan|SubPlan) ([\w$]+)")
_PARAMETER = re.compile(r"\$\d+(?!\d)")
_TEST = re.compile(r"\((?:ANY|ALL) \(|\(\(?ROW\(")
_TESTED = re.compile(r"\((hashed )?SubPlan (\d+)\)\.col\d+")
_NAMED_TEST = re.compile(r"(?:\bEXISTS|\bARRAY)?\((?:rescan )?(hashed )?SubPlan (\d+)\)(?!\.col)")


class SubplanNames:
    """How one plan calls its subplans, and how they are called here."""

    def __init__(self, names: Iterable[str]) -> None:
        """names: of subplans as EXPLAIN has them ("Subplan Name"), in the order of the plan."""
        self._numbers: dict[str, int] = {}
        self._returned: dict[str, str] = {}
        for name in names:
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            kind, given, returned = match.groups()
            number = self._numbers.setdefault(given, len(self._numbers) + 1)
            for column, parameter in enumerate((returned or "").split(","), start=1):
                self._returned[parameter] = f"({kind} {number}).col{column}"

    def scope(self, name: str) -> str:
        """`InitPlan 1 (returns $0)` as `InitPlan 1`; of a CTE the name as it is."""
        match = _NAME.fullmatch(name)
        return f"{match[1]} {self._numbers[match[2]]}" if match else name

    def respell(self, text: str) -> str:
        """An expression in the one spelling."""
        if "$" not in text and "Plan " not in text:
            return text
        return _without_tests(outside_strings(text, self._renumber))

    def _renumber(self, text: str) -> str:
        numbered = _REFERENCE.sub(lambda match: f"{match[1]} {self._numbers.get(match[2], match[2])}", text)
        return _PARAMETER.sub(lambda match: self._returned.get(match[0], match[0]), numbered)


def _without_tests(text: str) -> str:
    """`(ANY (a = (SubPlan 1).col1))` as `(SubPlan 1)`, and the same for ALL, rows, EXISTS and ARRAY."""
    pieces, done = [], 0
    while (match := _TEST.search(text, done)) is not None:
        end = closing(text, match.start())
        tested = _TESTED.search(text, match.start(), end)
        # Where none is tested in the whole, none is in a part of it.
        found = text[match.start() : end] if tested is None else f"({tested[1] or ''}SubPlan {tested[2]})"
        pieces += [text[done : match.start()], found]
        done = end
    whole = "".join([*pieces, text[done:]])
    return _NAMED_TEST.sub(lambda match: f"({match[1] or ''}SubPlan {match[2]})", whole)


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
