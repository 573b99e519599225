"""The plans of all arms, side by side: each contender's against the baseline's."""

from collections.abc import Collection, Sequence

from pgversus.errors import WorkloadError
from pgversus.lab.explaining.capture import Captured, CapturedStatement
from pgversus.plans.difference import difference
from pgversus.plans.explain import read_plans
from pgversus.plans.plan import Plan
from pgversus.report.compared_plans import ComparedPlans, PlansAnswer, UnlikeStatistics
from pgversus.study.planner_switches import Undoing


def compared(
    labels: Sequence[str], captured: Sequence[Captured], undone_by: Sequence[Sequence[Undoing | None]]
) -> PlansAnswer:
    """What has changed for each statement. labels, captured: of the arms, the baseline first.

    undone_by: of each contender, for each statement the settings that bring its old plan back.
    """
    found = []
    for contender in range(1, len(labels)):
        pair_of_labels = labels[0], labels[contender]
        pairs = zip(captured[0].statements, captured[contender].statements, strict=True)
        for pair, undoing in zip(pairs, undone_by[contender - 1], strict=True):
            plans = [_plan(one, label) for one, label in zip(pair, pair_of_labels, strict=True) if one.explained]
            if len(plans) == len(pair):
                found.append(
                    ComparedPlans(
                        statement=pair[0].statement.words,
                        labels=pair_of_labels,
                        plans=(plans[0], plans[1]),
                        difference=difference(*plans),
                        same_rows=_same_rows(*pair),
                        undone_by=undoing,
                        is_searched=True,
                    )
                )
    read = {node.relation for one in found for plan in one.plans for node in plan.nodes}
    return PlansAnswer(compared=tuple(found), unlike=tuple(_unlike(labels, captured, read)))


def refuse_other_statements(labels: Sequence[str], captured: Sequence[Captured]) -> None:
    """WorkloadError where an arm was sent other statements: a script may go another way by what it reads."""
    sent = [[(one.statement.script, one.statement.number) for one in arm.statements] for arm in captured]
    for contender in range(1, len(labels)):
        if sent[contender] != sent[0]:
            raise _other_statements((labels[0], labels[contender]), (sent[0], sent[contender]))


def _plan(one: CapturedStatement, label: str) -> Plan:
    assert one.explained is not None  # noqa: S101 - asked of those that have a plan
    return read_plans(one.explained.run, label)[0]


def _other_statements(labels: tuple[str, str], sent: Sequence[Sequence[tuple[str, int]]]) -> WorkloadError:
    return WorkloadError(
        "the arms are sent other statements, so their plans cannot be held against each other",
        slug="workload-other-statements",
        where=f"{labels[0]} and {labels[1]}",
        found=f"{len(sent[0])} and {len(sent[1])} statements",
        expected="the same statements on every arm",
        to_do="give a script that takes the same way on all arms",
    )


def _same_rows(one: CapturedStatement, other: CapturedStatement) -> bool | None:
    return None if one.rows is None or other.rows is None else one.rows == other.rows


def _unlike(
    labels: Sequence[str], captured: Sequence[Captured], read: Collection[str | None]
) -> list[UnlikeStatistics]:
    """Of tables that some plan reads: others have no say in it."""
    base = {name: digest for name, digest in captured[0].statistics.items() if name.rpartition(".")[2] in read}
    found = []
    for label, one in zip(labels[1:], captured[1:], strict=True):
        tables = [name for name in base.keys() & one.statistics.keys() if base[name] != one.statistics[name]]
        if tables:
            found.append(UnlikeStatistics(labels=(labels[0], label), tables=tuple(sorted(tables))))
    return found
