"""Loads and operations in one file: what of it goes together."""

from pgversus.errors import StudyError
from pgversus.study.file import schema
from pgversus.study.file.matrix import Matrix
from pgversus.study.file.problems import Problems


def refuse_mixed_kinds(sections: schema.Sections, matrix: Matrix, compared: int | None, problems: Problems) -> None:
    """Add a problem for a load that no workload takes, and for loads and operations that would stand side by side."""
    workloads = matrix.workload.values
    if any(workload.is_broken for workload in workloads) or problems.concern("factors", "workload"):
        return
    kinds = {workload.operation is not None for workload in workloads}
    if kinds == {True}:
        _refuse_loads(sections, problems)
    elif len(kinds) > 1 and compared is not None and matrix.factors[compared] is matrix.workload:
        problems.add(("compare",) if sections.compare else ("factors", "workload"), _side_by_side())
    elif len(kinds) > 1 and matrix.load.is_varied:
        problems.add(("factors", "load") if sections.factors and sections.factors.load else ("loads",), _multiplied())


def _refuse_loads(sections: schema.Sections, problems: Problems) -> None:
    for key, table in (("load", sections.load), ("loads", sections.loads)):
        if table is not None:
            problems.add(
                (key,),
                StudyError(
                    "an operation has no load: it runs once, in one session",
                    slug="study-file-conflict",
                    found=f"[{key}] and nothing but operations",
                    expected="a workload with script, sql, builtin or scripts",
                    to_do=f"leave [{key}] out",
                ),
            )


def _side_by_side() -> StudyError:
    return StudyError(
        "a load cannot be compared with an operation",
        slug="study-file-conflict",
        found="both among the workloads that are compared",
        expected="loads only, or operations only",
        to_do="compare something else, or make two studies",
    )


def _multiplied() -> StudyError:
    return StudyError(
        "operations have no load, so that each would be measured once for every load",
        slug="study-file-conflict",
        found="several loads, and operations among the workloads",
        expected="one load for the other workloads",
        to_do="keep one load, or make two studies",
    )
