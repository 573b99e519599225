"""Subplans in one spelling.

Up to 16 EXPLAIN says `$0` for what an InitPlan returns and hides the test of a SubPlan: `(SubPlan 1)`. From 17 on it
says `(InitPlan 1).col1` and `(ANY (c.c1 = (SubPlan 1).col1))`. Here all are numbered in the order of the plan, results
are written as 17 does, tests are hidden as 16 does: what 16 does not say cannot be compared.
"""

import re
from collections.abc import Iterable

from pgversus.plans.quoting import closing, outside_strings

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
