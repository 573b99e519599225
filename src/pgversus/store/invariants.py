"""Invariants of studies, comparisons and preparations, which all written ones satisfy. They are checked on reading.

Reports and resumed runs rely on them. A violation raises ValueError.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from functools import lru_cache
from typing import Any

from pgversus.errors import StudyError
from pgversus.records.preparation import Preparation
from pgversus.study.comparison import Comparison
from pgversus.study.design import MOST_BLOCKS, MOST_CONTENDERS, Design
from pgversus.study.published import read_figures
from pgversus.study.study import StudyMetadata
from pgversus.study.workload import Operation, PgbenchWorkload, Workload

_LARGEST = 1e15
"""Largest number in designs and preparations: seconds, counts, bytes."""
_MOST_VERDICTS = 10_000_000
_LARGEST_SHARE = 10
_NUMBERS_OF_DESIGN = tuple(one.name for one in fields(Design) if one.name != "seed")
"""The fields of a design that may be numbers. A seed has no upper limit."""


def check_study(study: StudyMetadata, comparisons: Mapping[int, Comparison]) -> None:
    """Check a study. comparisons: those of all contexts, by number."""
    if study.contexts != len(comparisons) or list(comparisons) != list(range(1, len(comparisons) + 1)):
        raise ValueError(f"contexts {list(comparisons)[:10]} instead of 1 to {study.contexts}")
    contenders = sum(len(comparison.contenders) for comparison in comparisons.values())
    if comparisons and not contenders <= study.verdicts <= _MOST_VERDICTS:
        raise ValueError(f"{study.verdicts} verdicts for {contenders} contenders")
    if study.kind.has_one_context and study.contexts != 1:
        raise ValueError(f"a {study.kind} of {study.contexts} contexts")
    if study.seed < 0:
        raise ValueError("a negative seed")
    for one in study.statements:
        if one.context is not None and one.context not in comparisons:
            raise ValueError(f"a statement of the missing context {one.context}")
        for problem in _impossible((one.calls, one.seconds)):
            raise ValueError(f"statement {one.name}: {problem}")
    if study.published is not None:
        try:
            read_figures(study.published)
        except StudyError as error:
            raise ValueError(f"{error.what}: {error.found}") from error


def check_context(number: int, comparison: Comparison) -> None:
    """Check a comparison. number: number of its context, for the message."""
    _refuse(number, _problems_of_comparison(comparison))


def check_preparation(number: int, preparation: Preparation, comparison: Comparison) -> None:
    """Check a preparation of a comparison. number: number of its context, for the message."""
    _refuse(number, _problems_of_preparation(preparation, comparison))


def _refuse(number: int, problems: Iterator[str]) -> None:
    for problem in problems:
        raise ValueError(f"context {number}: {problem}")


def _problems_of_comparison(comparison: Comparison) -> Iterator[str]:
    arms = comparison.arms
    if not 2 <= len(arms) <= MOST_CONTENDERS + 1:  # noqa: PLR2004 - a comparison has two sides
        yield f"{len(arms)} arms"
    if any(arm.index != place for place, arm in enumerate(arms)):
        yield "arms out of order"
    if not comparison.factors:
        yield "no compared factor"
    yield from _problems_of_design(comparison.design)
    for arm in arms:
        if not _is_positive(arm.dataset.pgbench_scale):
            yield "a pgbench scale below 1"
        if type(arm.workload) is not type(comparison.workload):
            yield "loads mixed with operations"
        yield from _problems_of_workload(arm.workload)


def _problems_of_preparation(preparation: Preparation, comparison: Comparison) -> Iterator[str]:
    arms = len(comparison.arms)
    if len(preparation.arms) != arms:
        yield "a preparation with a different number of arms"
    if any(len(one.values) != arms for one in preparation.differences):
        yield "differences for a different number of arms"
    if preparation.design.metric is not comparison.design.metric:
        yield "a metric other than the requested one"
    yield from _problems_of_design(preparation.design)
    times = (preparation.connect_allowance_s, preparation.connect_s, preparation.longest_transaction_s)
    yield from _impossible((*times, *(size for arm in preparation.arms for size in arm.sizes.values())))


# A study of thousands of contexts has a few designs.
@lru_cache(maxsize=1024)
def _problems_of_design(design: Design) -> tuple[str, ...]:
    numbers = (getattr(design, name) for name in _NUMBERS_OF_DESIGN)
    problems = list(_impossible((*numbers, *design.client_processors, *design.server_processors)))
    if design.seed < 0:
        problems.append("a negative seed")
    if not 0 < design.margin <= _LARGEST_SHARE:
        problems.append(f"a margin of {design.margin}")
    if design.precision is not None and not 0 < design.precision <= _LARGEST_SHARE:
        problems.append(f"a precision of {design.precision}")
    if min(design.rounds, design.rounds_per_session) < 1:
        problems.append("blocks without rounds")
    if not 1 <= design.max_blocks <= MOST_BLOCKS:
        problems.append(f"a maximum of {design.max_blocks} blocks")
    if not (_is_positive(design.fixed_blocks) and _is_positive(design.window_transactions)):
        problems.append("a number of blocks or transactions below 1")
    return tuple(problems)


def _problems_of_workload(workload: Workload) -> Iterator[str]:
    match workload:
        case Operation(steps=steps):
            if not steps or len({step.name for step in steps}) < len(steps):
                yield "an operation without steps, or with two steps of the same name"
        case PgbenchWorkload(scripts=scripts, clients=clients, threads=threads):
            yield from _impossible((clients, threads, *(script.weight for script in scripts)))
            if not scripts or min(clients, threads) < 1:
                yield "a load without scripts or clients"
            if not (_is_positive(workload.rate) and _is_positive(workload.scale)):
                yield "a rate or a scale that is not positive"


def _impossible(values: Iterable[Any]) -> Iterator[str]:
    for value in values:
        if isinstance(value, int | float) and not 0 <= value <= _LARGEST:
            yield f"a number out of range: {value}"


def _is_positive(value: float | None) -> bool:
    """Return whether a value is None or a positive number within the limit."""
    return value is None or 0 < value <= _LARGEST
