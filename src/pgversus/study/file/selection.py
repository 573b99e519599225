"""[[exclude]] and [[only]]: the selection of measured combinations."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from itertools import product

from pgversus.errors import StudyError
from pgversus.study.file.document import Path
from pgversus.study.file.matrix import Matrix, unknown_factor, unknown_level
from pgversus.study.file.problems import Problems

Indexes = tuple[int, ...]
"""One combination: the position of a level for each factor of the matrix."""


MOST_CHOICES = 1_000_000
"""Maximum number of combinations named by all rows of one kind, which are indexed by their levels."""
MOST_FORMS = 100
"""Maximum number of different factor sets in rows of one kind: every combination is looked up in each set."""


class SelectionRows:
    """The rows of one kind, indexed so that a lookup does not depend on their number."""

    def __init__(self) -> None:
        self.count = 0
        self._choices = 0
        self._by_factors: dict[Indexes, dict[Indexes, list[int]]] = defaultdict(lambda: defaultdict(list))

    def add(self, number: int, levels: Mapping[int, Sequence[int]]) -> bool:
        """Add row `number`. levels: the selected levels by factor. Returns False if a limit is exceeded."""
        self.count += 1
        self._choices += math.prod(map(len, levels.values()))
        if self._choices > MOST_CHOICES or len(self._by_factors) > MOST_FORMS:
            return False
        rows = self._by_factors[tuple(levels)]
        for choice in product(*levels.values()):
            rows[choice].append(number)
        return True

    def matching(self, combination: Indexes) -> list[int]:
        """Return the numbers of the rows that match this combination."""
        found: list[int] = []
        for positions, rows in self._by_factors.items():
            found += rows.get(tuple(combination[position] for position in positions), ())
        return found


class Selection:
    """Selects combinations and records which exclude rows had an effect."""

    def __init__(self, exclude: SelectionRows, only: SelectionRows) -> None:
        self._exclude = exclude
        self._only = only
        self.used: set[int] = set()
        """Numbers of the exclude rows that excluded a combination."""

    @property
    def is_limited(self) -> bool:
        """Whether there are `only` rows."""
        return self._only.count > 0

    def admits(self, combination: Indexes) -> bool:
        """Return whether this combination is measured."""
        if self._only.count and not self._only.matching(combination):
            return False
        excluding = self._exclude.matching(combination)
        self.used.update(excluding)
        return not excluding

    def check_used_rows(self, problems: Problems) -> None:
        """Add a problem for each exclude row without effect, after all combinations were checked."""
        for number in range(self._exclude.count):
            if number not in self.used:
                problems.add(
                    ("exclude", number),
                    StudyError(
                        "this [[exclude]] excludes nothing",
                        slug="study-no-match",
                        found="these levels match no combination that would otherwise be measured",
                        expected="levels of at least one such combination",
                        to_do="remove it, or fix its levels",
                    ),
                )

    def excluding(self, combination: Indexes) -> Path:
        """Return the path of the first row that excludes this combination; `only` as a whole if none does."""
        rows = self._exclude.matching(combination)
        return ("exclude", min(rows)) if rows else ("only",)


def selection_of(
    exclude: Sequence[Mapping[str, str]], only: Sequence[Mapping[str, str]], matrix: Matrix, problems: Problems
) -> Selection:
    """Resolve the rows to positions of factors and levels; unknown names are problems."""
    return Selection(_rows("exclude", exclude, matrix, problems), _rows("only", only, matrix, problems))


def _rows(kind: str, tables: Sequence[Mapping[str, str]], matrix: Matrix, problems: Problems) -> SelectionRows:
    rows = SelectionRows()
    for number, table in enumerate(tables):
        if not table and not problems.concern(kind, number):
            problems.add((kind, number), _empty(kind))
        levels: dict[int, Sequence[int]] = {}
        for name, word in table.items():
            position = matrix.find(name)
            if position is None:
                if not any(problems.concern(*table, name) for table in (("factors",), ("factors", "variables"))):
                    problems.add((kind, number, name), unknown_factor(name, matrix.names))
                continue
            factor = matrix.factors[position]
            found = factor.positions(word)
            is_unsure = problems.concern(*factor.path) or problems.lost_names(factor.name)
            if not found and not is_unsure:
                problems.add((kind, number, name), unknown_level(word, factor))
            levels[position] = found
        if not rows.add(number, dict(sorted(levels.items()))):
            problems.add((kind,), _too_many(kind))
            break
    return rows


def _too_many(kind: str) -> StudyError:
    return StudyError(
        f"the [[{kind}]] rows select too many combinations",
        slug="study-too-many-treatments",
        found=f"more than {MOST_CHOICES} combinations, or more than {MOST_FORMS} different sets of factors",
        expected="rows with fewer levels",
        to_do="remove levels from [factors] instead, or split the study",
    )


def _empty(kind: str) -> StudyError:
    return StudyError(
        f"this [[{kind}]] does not specify any level",
        slug="study-file-missing-key",
        found="an empty table",
        expected="at least one factor with a level",
        to_do='server = "16.12"',
    )
