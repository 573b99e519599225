"""Which factor is compared, and which of its levels is the baseline."""

from collections.abc import Sequence

from pgversus.errors import StudyError
from pgversus.study.file import schema
from pgversus.study.file.matrix import Matrix, unknown_factor, unknown_level
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_key, shown

_NEVER = ("load", "scale", "cache")
# Arms under different loads, or on different amounts of data, do different work: their ratio answers no question.


def compared_factor(sections: schema.Sections, matrix: Matrix, problems: Problems) -> int | None:
    """The position of the factor whose levels are the arms; None when there is none, which is a problem then."""
    if sections.compare is not None:
        return _said(sections.compare, matrix, problems)
    if problems.lost("compare") or problems.concern("factors") or problems.lost_names("workload"):
        return None
    factors = matrix.factors
    varied = [index for index, factor in enumerate(factors) if factor.is_varied and factor.name not in _NEVER]
    # What a variable changes is the work, most of the time: it is compared where nothing else can be, or where asked.
    # Variables are the last of the factors.
    varied = [index for index in varied if index < len(factors) - len(matrix.variables)] or varied
    if len(varied) == 1 or (varied and matrix.server.is_varied):
        return varied[0]
    if varied:
        problems.add(("compare",), _unclear([matrix.factors[index].name for index in varied]))
    else:
        problems.add(("factors",), _one_arm("no factor has two levels"))
    return None


def baseline_level(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> int:
    """The position of the baseline among the levels of the compared factor."""
    if sections.baseline is None or compared is None:
        return 0
    factor = matrix.factors[compared]
    positions = factor.positions(sections.baseline)
    if not positions and not problems.concern(*factor.path):
        problems.add(("baseline",), unknown_level(sections.baseline, factor))
    return positions[0] if positions else 0


def _said(name: str, matrix: Matrix, problems: Problems) -> int | None:
    if name.lower() in _NEVER:
        problems.add(
            ("compare",),
            StudyError(
                f"{name} cannot be compared",
                slug="study-file-bad-value",
                found=shown(name),
                expected="server, workload, dataset, a setting or a variable",
                to_do=f"leave {name.lower()} in [factors]: each of its levels gets comparisons of its own",
            ),
        )
        return None
    if problems.concern("factors", name) or problems.concern("factors", "variables", name):
        return None
    position = matrix.find(name)
    if position is None:
        if not problems.lost("factors"):
            names = [known for known in matrix.names if known not in _NEVER]
            problems.add(("compare",), unknown_factor(name, names))
        return None
    factor = matrix.factors[position]
    if not factor.is_varied and not (factor.name == "workload" and problems.lost_names("workload")):
        problems.add(("compare",), _one_arm(f"{as_key(name)} has {len(factor.levels)}"))
        return None
    return position


def _one_arm(found: str) -> StudyError:
    return StudyError(
        "there is nothing to compare",
        slug="study-one-arm",
        found=found,
        expected="a factor with two or more levels: server, workload, dataset, a setting or a variable",
        to_do='server = ["16.12", "17.8"] or work_mem = ["4MB", "64MB"] in [factors]',
    )


def _unclear(names: Sequence[str]) -> StudyError:
    return StudyError(
        "it is not said what is compared",
        slug="study-file-missing-key",
        found=f"two or more levels of {', '.join(map(as_key, names))}",
        expected="compare = the one whose levels are held against each other",
        to_do=f"compare = {shown(names[-1])}, above the first [table]",
    )
