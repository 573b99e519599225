"""Normalizes conditions and keys, independently of the major version and of names of subplans. Pure.

Quotes and parentheses are located in a single pass, however deeply they are nested.

Up to 16 EXPLAIN prints `$0` for the result of an InitPlan and hides the test of a SubPlan: `(SubPlan 1)`. From 17 on
it prints `(InitPlan 1).col1` and `(ANY (c.c1 = (SubPlan 1).col1))`. Here subplans are numbered in the order of the
plan, results are written as in 17, and tests are hidden as in 16, because they cannot be compared with 16.
"""

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import count

_STRING = re.compile(r"('(?:[^']++|'')*+')")
_QUOTED = re.compile(r"'(?:[^']++|'')*+'|\"(?:[^\"]++|\"\")*+\"|[()\[\]]")
_NOWHERE = -1
"""Stands for text outside all parentheses."""


def outside_strings(text: str, change: Callable[[str], str]) -> str:
    """Apply a change to the text outside string literals."""
    if "'" not in text:
        return change(text)
    return "".join(part if index % 2 else change(part) for index, part in enumerate(_STRING.split(text)))


def closing(text: str, start: int) -> int:
    """Return the position after the parenthesis that closes the one at `start`, or the end of the text."""
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
    """Return the text without enclosing parentheses and white space."""
    begin, end, _ = _inside(text, 0, len(text), _Brackets(text, "").ends)
    return text[begin:end]


def split_outside(text: str, word: str) -> list[str]:
    """Split at occurrences of `word` outside parentheses and quotes."""
    if word not in text:
        return [text]
    places = _Brackets(text, word).places.get(_NOWHERE, [])
    return [text[begin:end] for begin, end in _between(0, len(text), places, word)]


def split_inside(text: str, word: str) -> list[str]:
    """Split at `word` like `split_outside`, and split parts that are parenthesized as a whole again."""
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


def enclosing(text: str, word: str) -> tuple[int, int] | None:
    """Return the innermost, last parentheses directly around a word that is there once; None without any."""
    brackets = _Brackets(text, word)
    once = (
        opening
        for opening, places in brackets.places.items()
        if opening in brackets.ends and text[opening] == "(" and len(places) == 1
    )
    begin = max(once, default=None)
    return None if begin is None else (begin, brackets.ends[begin])


class _Brackets:
    """The parentheses of a text, and the positions of a word outside quotes."""

    def __init__(self, text: str, word: str) -> None:
        """word: empty for none."""
        self.ends: dict[int, int] = {}
        """The position after each closing parenthesis, by the position of the opening one."""
        self.places: dict[int, list[int]] = {}
        """Positions of the word, by the innermost parenthesis around it."""
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
    """Return the bounds of a part without enclosing parentheses and white space, and its innermost parenthesis."""
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
_INIT_PLAN = "InitPlan"
_REFERENCE = re.compile(r"\b(InitPlan|SubPlan) ([\w$]+)")
_PARAMETER = re.compile(r"\$\d+(?!\d)")
_PARAMETER_OR_RESULT = re.compile(r"\$(\d+)(?!\d)|\(InitPlan \d+\)\.col\d+")
_TEST = re.compile(r"\((?:ANY|ALL) \(|\(\(?ROW\(")
_TESTED = re.compile(r"\((hashed )?SubPlan (\d+)\)\.col\d+")
_NAMED_TEST = re.compile(r"(?:\bEXISTS|\bARRAY)?\((?:rescan )?(hashed )?SubPlan (\d+)\)(?!\.col)")


class SubplanNames:
    """Maps the subplan names of one plan to normalized names."""

    def __init__(self, names: Iterable[str]) -> None:
        """names: names of subplans from EXPLAIN ("Subplan Name"), in the order of the plan."""
        self._numbers: dict[str, int] = {}
        self._returned: dict[str, str] = {}
        for name in names:
            match = _NAME.fullmatch(name)
            if match is None:
                continue
            kind, given, returned = match.groups()
            number = self._numbers.setdefault(given, len(self._numbers) + 1)
            # A SubPlan returns parameters as well, to a SET of several columns, which EXPLAIN prints in outputs only.
            for column, parameter in enumerate((returned or "").split(",") if kind == _INIT_PLAN else (), start=1):
                self._returned[parameter] = f"({kind} {number}).col{column}"

    def scope(self, name: str) -> str:
        """Return `InitPlan 1` for `InitPlan 1 (returns $0)`; names of CTEs are unchanged."""
        match = _NAME.fullmatch(name)
        return f"{match[1]} {self._numbers[match[2]]}" if match else name

    def respell(self, text: str) -> str:
        """Return an expression with normalized names of subplans."""
        if "$" not in text and "Plan " not in text:
            return text
        return outside_strings(text, self._renumber)

    def _renumber(self, text: str) -> str:
        numbered = _REFERENCE.sub(lambda match: f"{match[1]} {self._numbers.get(match[2], match[2])}", text)
        return _PARAMETER.sub(lambda match: self._returned.get(match[0], match[0]), numbered)


def renumbered(text: str, numbers: Mapping[str, str]) -> str:
    """Return an expression with other numbers of subplans. numbers: new ones by old ones."""
    if "Plan " not in text:
        return text
    return outside_strings(
        text, lambda part: _REFERENCE.sub(lambda match: f"{match[1]} {numbers.get(match[2], match[2])}", part)
    )


def with_aliases(text: str, names: Mapping[str, str]) -> str:
    """Return a conjunct, or a key, with other names of tables. names: new ones by old ones."""
    if not names:
        return text
    return _sides_in_order(
        outside_strings(text, lambda part: _QUALIFIED.sub(lambda match: f"{names.get(match[1], match[1])}.", part))
    )


def without_tables(conjunct: str) -> str:
    """Return a conjunct, or a key, without the names of tables, as it is printed without VERBOSE."""
    return _sides_in_order(outside_strings(conjunct, lambda part: _QUALIFIED.sub("", part)))


def without_values(text: str, parameters: int) -> str:
    """Return an expression with `$?` for each parameter from $1 to `parameters`, and for each result of an InitPlan."""
    return outside_strings(
        text,
        lambda part: _PARAMETER_OR_RESULT.sub(
            lambda match: match[0] if match[1] and not 1 <= int(match[1]) <= parameters else "$?", part
        ),
    )


def without_tests(text: str) -> str:
    """Replace `(ANY (a = (SubPlan 1).col1))` by `(SubPlan 1)`; the same for ALL, rows, EXISTS and ARRAY."""
    if "Plan " not in text:
        return text
    pieces, done = [], 0
    while (match := _TEST.search(text, done)) is not None:
        end = closing(text, match.start())
        tested = _TESTED.search(text, match.start(), end)
        # If the whole contains no test, no part of it does.
        found = text[match.start() : end] if tested is None else f"({tested[1] or ''}SubPlan {tested[2]})"
        pieces += [text[done : match.start()], found]
        done = end
    whole = "".join([*pieces, text[done:]])
    return _NAMED_TEST.sub(lambda match: f"({match[1] or ''}SubPlan {match[2]})", whole)


_AND = " AND "
_EQUALS = " = "
_WINDOW = re.compile(r"\bOVER (?:\(\?\)|[\w$]+|\"[^\"]+\")")
_VALUE = re.compile(r"[^A-Za-z_\"]|(?:ANY|ALL|ARRAY|NULL|true|false)\b")
_QUALIFIED = re.compile(r"(?<![\w$\".])([\w$]++|\"(?:[^\"]++|\"\")*+\")\.")


class Expressions:
    """Normalizes the expressions of one plan."""

    def __init__(self, subplans: SubplanNames, *renamed: Mapping[str, str]) -> None:
        """renamed: names to use instead of aliases; of two names for one alias, the last."""
        self._subplans = subplans
        names = [name for given in renamed for name in given.items()]
        self._aliases = {**dict(names), **{_in_quotes(old): new for old, new in names}}

    def conjuncts(self, text: str) -> tuple[str, ...]:
        """Split a condition at AND and sort the parts: `((b = a) AND (1 = c))` becomes `a = b` and `c = 1`."""
        return tuple(sorted({_sides_in_order(part) for part in split_inside(self.respell(text), _AND)}))

    def respell(self, text: str) -> str:
        """Return a normalized expression."""
        found = self._subplans.respell(text)
        if "OVER " in found:
            found = outside_strings(found, lambda part: _WINDOW.sub("OVER w", part))
        return outside_strings(found, self._with_own_names) if self._aliases else found

    def _with_own_names(self, text: str) -> str:
        return _QUALIFIED.sub(lambda match: f"{self._aliases.get(match[1], match[1])}.", text)


def own_names(written: Collection[str], generated: Mapping[str, str | None]) -> dict[str, str]:
    """Map generated aliases to names that depend only on relation and order.

    written: the other aliases of the plan. generated: relations by alias, in order.
    """
    own: dict[str, str] = {}
    numbers: dict[str | None, Iterator[int]] = {}
    for alias, relation in generated.items():
        following = numbers.setdefault(relation, count(1))
        own[alias] = next(name for number in following if (name := f"{relation}_{number}") not in written)
    return own


def _in_quotes(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _sides_in_order(conjunct: str) -> str:
    """Return an equality with its sides in a fixed order: columns first, then values."""
    sides = split_outside(conjunct, _EQUALS)
    if len(sides) != 2:  # noqa: PLR2004 - a left side and a right one
        return conjunct
    return _EQUALS.join(sorted(map(bare, sides), key=lambda side: (_VALUE.match(side) is not None, side)))
