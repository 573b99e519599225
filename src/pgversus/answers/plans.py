"""Compared plans: each contender's with the baseline's, statement by statement, and the restoration of old plans."""

from collections.abc import Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain

from pgversus.plans.difference import PlanDifference, difference
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel
from pgversus.plans.plan import Plan
from pgversus.records.plans import (
    Captured,
    CapturedPlans,
    CapturedStatement,
    PlanOverride,
    RowsDigest,
    StatementName,
    Uncertainty,
)
from pgversus.study.comparison import Arm
from pgversus.study.counterfactual import PlanRestoration, settings_together
from pgversus.study.dataset import Statistics
from pgversus.study.servers import RunningServer
from pgversus.study.workload import Workload


class RowsMethod(StrEnum):
    """How the rows of two arms were compared."""

    ORDERED = "ordered"
    """In order, because the statement orders them totally on both."""
    MULTISET = "multiset"
    """Regardless of their order."""
    NUMBER = "number"
    """Only their number, because the values of written rows may depend on more than the data."""
    NOT_COMPARABLE = "not comparable"
    """They differ, and may differ between two executions on one server as well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedRows:
    """The rows that a statement returns or writes on two arms."""

    method: RowsMethod
    is_same: bool | None
    """None if they are not comparable."""
    uncertainties: tuple[Uncertainty, ...] = ()
    """Why they are not comparable; empty if they are."""
    differs_only_in_order: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedPlans:
    """The plans of one statement on two arms."""

    statement: StatementName
    labels: tuple[str, str]
    """Labels of baseline and contender."""
    plans: tuple[Plan, Plan]
    difference: PlanDifference
    rows: ComparedRows | None = None
    """None if not checked, or if no rows are returned or written."""
    undone_by: PlanOverride | None = None
    """Settings with which the contender plans or executes the statement as the baseline does."""
    is_searched: bool = False
    """Whether such settings were searched for."""
    parameters: int = 0
    """Number of parameters, if it is prepared."""
    is_executed: bool = True
    """Whether the workload executes it; False for a generic plan of a statement whose values are unknown."""


class StatisticsCause(StrEnum):
    """Why the statistics of equal tables differ."""

    SAMPLE = "sample"
    """ANALYZE has drawn other samples."""
    TARGET = "target"
    """The arms have different statistics targets."""
    UNKNOWN = "unknown"
    """An external server: also because it was not analyzed, or has other extended statistics."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnlikeStatistics:
    """Tables whose statistics differ between two arms."""

    labels: tuple[str, str]
    tables: tuple[str, ...]
    cause: StatisticsCause = StatisticsCause.SAMPLE
    may_be_full: bool = False
    """Whether complete statistics, which are equal on equal data, were not requested but can be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotCompared:
    """A statement of an application without compared plans."""

    statement: str
    """Its name."""
    reason: str
    """In English, with a server's message if it was rejected."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlansAnswer:
    """All compared plans."""

    compared: tuple[ComparedPlans, ...]
    unlike: tuple[UnlikeStatistics, ...] = ()
    not_compared: tuple[NotCompared, ...] = ()

    def of(self, contender: str) -> tuple[ComparedPlans, ...]:
        """Return the compared plans of the executed statements of one contender, by its label."""
        return tuple(one for one in self.compared if one.labels[1] == contender and one.is_executed)

    def generic_of(self, contender: str) -> tuple[ComparedPlans, ...]:
        """Return the compared generic plans of statements that were not executed."""
        return tuple(one for one in self.compared if one.labels[1] == contender and not one.is_executed)


def changed_plans(compared: Sequence[ComparedPlans]) -> list[ComparedPlans]:
    """Return statements with different plans; without any, those whose plans are executed differently."""
    changed = [one for one in compared if not one.difference.is_same_plan]
    return changed or [one for one in compared if one.difference.level is PlanLevel.BEHAVIOUR]


def restoration_of(compared: Sequence[ComparedPlans], workload: Workload) -> PlanRestoration | None:
    """Return the restoration of all changed plans of a contender; None without changes, or if no way is known."""
    changed = changed_plans(compared)
    if not changed:
        return None
    if workload.rewrite is not None:
        return PlanRestoration(rewrite=workload.rewrite)
    found = [one.undone_by.candidate.settings for one in changed if one.undone_by is not None]
    settings = settings_together(found) if len(found) == len(changed) else None
    return None if settings is None else PlanRestoration(settings=settings)


def also_changed(compared: Sequence[ComparedPlans]) -> tuple[str, ...] | None:
    """Return other scripts whose plans also change under the settings that restore these; None if unknown."""
    found = [one.undone_by.also_changes for one in changed_plans(compared) if one.undone_by is not None]
    known = [scripts for scripts in found if scripts is not None]
    return tuple(dict.fromkeys(chain.from_iterable(known))) if known and len(known) == len(found) else None


def compared(arms: Sequence[Arm], plans: CapturedPlans, block_bytes: Sequence[int | None] | None = None) -> PlansAnswer:
    """Return the plan changes of each statement.

    arms: the baseline first. block_bytes: block size of each arm, None for an unknown one; None if all are equal.
    """
    sizes = block_bytes or [None] * len(arms)
    captured, labels = plans.arms, [arm.label for arm in arms]
    own_plans = [
        [_plan(statement, arm.index_keys, label, size) for statement in arm.statements]
        for arm, label, size in zip(captured, labels, sizes, strict=True)
    ]
    found = []
    for contender, overrides in enumerate(plans.undone_by, 1):
        pairs = zip(captured[0].statements, captured[contender].statements, strict=True)
        plans_of_pairs = zip(own_plans[0], own_plans[contender], strict=True)
        for (old, new), (old_plan, new_plan), override in zip(pairs, plans_of_pairs, overrides, strict=True):
            parameters = len(old.statement.parameters)
            if old_plan is not None and new_plan is not None:
                changed = difference(old_plan, new_plan, parameters=parameters)
                found.append(
                    ComparedPlans(
                        statement=old.statement.name,
                        labels=(labels[0], labels[contender]),
                        plans=(old_plan, changed.contender),
                        difference=changed,
                        rows=compared_rows(old.rows, new.rows),
                        undone_by=override,
                        is_searched=plans.is_searched,
                        parameters=parameters,
                        is_executed=not old.statement.is_generic,
                    )
                )
    return PlansAnswer(compared=tuple(found), unlike=tuple(_unlike_statistics(arms, captured)))


def _plan(
    one: CapturedStatement, index_keys: Mapping[str, tuple[str, ...]], label: str, block_bytes: int | None
) -> Plan | None:
    """Return the plan of a statement with its reruns; None for a statement that has no plan."""
    if one.explained is None:
        return None
    plan, *others = (read_plans(text, label)[0] for text in (one.explained.run, *one.explained.more_runs))
    return replace(plan, index_keys=index_keys, reruns=tuple(others), block_bytes=block_bytes)


def compared_rows(one: RowsDigest | None, other: RowsDigest | None) -> ComparedRows | None:
    """Return how the rows of one statement compare; None if they were not checked on both arms.

    Uncertain rows that are equal are the same rows; a difference between them means nothing.
    """
    if one is None or other is None:
        return None
    is_ordered = one.in_order is not None and other.in_order is not None
    is_hashed = one.digest is not None and other.digest is not None
    has_same_rows = one.rows == other.rows and (not is_hashed or one.digest == other.digest)
    is_same = has_same_rows and not (is_ordered and one.in_order != other.in_order)
    reasons = tuple(dict.fromkeys((*one.uncertainties, *other.uncertainties)))
    if reasons and not is_same:
        return ComparedRows(method=RowsMethod.NOT_COMPARABLE, is_same=None, uncertainties=reasons)
    hashed_method = RowsMethod.ORDERED if is_ordered else RowsMethod.MULTISET
    return ComparedRows(
        method=hashed_method if is_hashed else RowsMethod.NUMBER,
        is_same=is_same,
        differs_only_in_order=has_same_rows and not is_same,
    )


def rows_by_statement(plans: CapturedPlans, contender: int) -> list[tuple[StatementName, ComparedRows]]:
    """Return how the rows of a contender compare with the baseline's, for each statement checked on both."""
    pairs = zip(plans.arms[0].statements, plans.arms[contender].statements, strict=True)
    compared_pairs = ((one.statement.name, compared_rows(one.rows, other.rows)) for one, other in pairs)
    return [(name, rows) for name, rows in compared_pairs if rows is not None]


def _unlike_statistics(arms: Sequence[Arm], captured: Sequence[Captured]) -> Iterator[UnlikeStatistics]:
    """Yield only tables that some plan reads: the others have no influence."""
    texts = [one.explained.planned for arm in captured for one in arm.statements if one.explained is not None]
    read = {(node.schema, node.relation) for text in texts for node in read_plans(text, "")[0].nodes}
    base = {name: digest for name, digest in captured[0].statistics.items() if _is_read(name, read)}
    may_be_full = not any(arm.dataset.full_statistics or isinstance(arm.server, RunningServer) for arm in arms)
    for arm, one in zip(arms[1:], captured[1:], strict=True):
        tables = [name for name in base.keys() & one.statistics.keys() if base[name] != one.statistics[name]]
        # Statistics that were removed do not differ by chance.
        if tables and arm.dataset.statistics is Statistics.ALL:
            cause = _cause(arms[0], arm)
            yield UnlikeStatistics(
                labels=(arms[0].label, arm.label),
                tables=tuple(sorted(tables)),
                cause=cause,
                may_be_full=may_be_full and cause is StatisticsCause.SAMPLE,
            )


def _cause(one: Arm, other: Arm) -> StatisticsCause:
    targets = [
        [setting.value for setting in arm.settings if setting.name.lower() == "default_statistics_target"]
        for arm in (one, other)
    ]
    if targets[0] != targets[1]:
        return StatisticsCause.TARGET
    is_external = isinstance(one.server, RunningServer) or isinstance(other.server, RunningServer)
    return StatisticsCause.UNKNOWN if is_external else StatisticsCause.SAMPLE


def _is_read(table: str, read: AbstractSet[tuple[str, str | None]]) -> bool:
    """Return whether a table is among the pairs of schema and relation; plans without VERBOSE have no schemas."""
    schema, _, relation = table.rpartition(".")
    return (schema, relation) in read or ("", relation) in read
