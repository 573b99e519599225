"""Comparison of the plans of all arms: each contender's with the baseline's."""

import json
import re
from collections.abc import Sequence

from pgversus.errors import WorkloadError
from pgversus.plans.difference import difference, has_other_spills, is_same_but_for_batches
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel, examined, is_same_but_for_sorts
from pgversus.plans.plan import Plan
from pgversus.records.plans import Captured, CapturedPlans, CapturedStatement
from pgversus.report.plans import ComparedPlans, PlansAnswer, UnlikeStatistics
from pgversus.study.counterfactual import BASELINE_AGAIN, CONTENDER_AGAIN, OLD_PLANS

_RELATION = re.compile(r'"Relation Name": ("(?:[^"\\]|\\.)*")')


def compared(labels: Sequence[str], plans: CapturedPlans) -> PlansAnswer:
    """Return the plan changes of each statement. labels: of the arms, the baseline first."""
    captured = plans.arms
    found = []
    for contender in range(1, len(labels)):
        pair_of_labels = labels[0], labels[contender]
        pairs = zip(captured[0].statements, captured[contender].statements, strict=True)
        for pair, undoing in zip(pairs, plans.undone_by[contender - 1], strict=True):
            own = [_plan(one, label) for one, label in zip(pair, pair_of_labels, strict=True) if one.explained]
            if len(own) == len(pair):
                found.append(
                    ComparedPlans(
                        statement=pair[0].statement.words,
                        labels=pair_of_labels,
                        plans=(own[0], own[1]),
                        difference=difference(*own),
                        same_rows=_same_rows(*pair),
                        undone_by=undoing,
                        is_searched=plans.is_searched,
                    )
                )
    return PlansAnswer(compared=tuple(found), unlike=tuple(_unlike_statistics(labels, captured)))


def check_same_statements(labels: Sequence[str], captured: Sequence[Captured]) -> None:
    """Raise WorkloadError if the arms were sent different statements: a script may branch on what it reads."""
    # Compare by number: script names may differ where the workload is compared.
    sent = [[one.statement.number for one in arm.statements] for arm in captured]
    for contender in range(1, len(labels)):
        if sent[contender] != sent[0]:
            raise _other_statements((labels[0], labels[contender]), (sent[0], sent[contender]))


def check_plan_restored(labels: Sequence[str], plans: CapturedPlans) -> None:
    """Raise WorkloadError if the contender under the baseline's plans (study/counterfactual.py) has different plans.

    Sorts of already sorted rows may be missing. If the contender's plan is the baseline's anyway and only its execution
    differs, it must execute as on the baseline.
    """
    triples = list(zip(*(arm.statements for arm in plans.arms), strict=True))
    # If plans have changed, those are restored; how the others execute does not matter.
    has_other_plans = any(_logics(one[BASELINE_AGAIN]) != _logics(one[CONTENDER_AGAIN]) for one in triples)
    for one in triples:
        if not _is_recalled(one[OLD_PLANS], one[BASELINE_AGAIN], one[CONTENDER_AGAIN], how_it_goes=not has_other_plans):
            raise WorkloadError(
                "the old plan was not restored",
                slug="workload-plan-not-recalled",
                where=f"{one[OLD_PLANS].statement.words}, on {labels[OLD_PLANS]}",
                found="a different plan, or one that is executed differently",
                expected=f"the plan of {labels[BASELINE_AGAIN]}",
                to_do="add a rewrite to the study that gets the old plan (pgversus plans shows it)",
            )


def _logics(one: CapturedStatement) -> Sequence[str]:
    return () if one.explained is None else examined(read_plans(one.explained.planned, "")[0]).logics


def _is_recalled(
    recalled: CapturedStatement, old: CapturedStatement, new: CapturedStatement, *, how_it_goes: bool
) -> bool:
    """how_it_goes: whether it must also execute as on the baseline, if it does not by itself."""
    if recalled.explained is None or old.explained is None or new.explained is None:
        return (recalled.explained is None) == (old.explained is None)
    planned = [examined(read_plans(one.planned, "")[0]) for one in (recalled.explained, old.explained)]
    if planned[OLD_PLANS].logics != planned[BASELINE_AGAIN].logics:
        return is_same_but_for_sorts(planned[OLD_PLANS], planned[BASELINE_AGAIN])
    run = [read_plans(one.run, "")[0] for one in (recalled.explained, old.explained, new.explained)]
    was_other = difference(run[BASELINE_AGAIN], run[CONTENDER_AGAIN])
    is_other = difference(run[BASELINE_AGAIN], run[OLD_PLANS])
    if was_other.level is not PlanLevel.BEHAVIOUR:
        # Restoring another statement's plan must not make this one spill.
        return not has_other_spills(is_other)
    if not how_it_goes:
        return True
    return (
        is_same_but_for_batches(is_other) if has_other_spills(was_other) else is_other.level is not PlanLevel.BEHAVIOUR
    )


def _plan(one: CapturedStatement, label: str) -> Plan:
    assert one.explained is not None  # noqa: S101 - called only for statements with a plan
    return read_plans(one.explained.run, label)[0]


def _other_statements(labels: tuple[str, str], sent: Sequence[Sequence[int]]) -> WorkloadError:
    return WorkloadError(
        "the arms are sent different statements, so their plans cannot be compared",
        slug="workload-other-statements",
        where=f"{labels[0]} and {labels[1]}",
        found=f"{len(sent[0])} and {len(sent[1])} statements",
        expected="the same statements on every arm",
        to_do="use a script that takes the same branches on all arms",
    )


def _same_rows(one: CapturedStatement, other: CapturedStatement) -> bool | None:
    return None if one.rows is None or other.rows is None else one.rows == other.rows


def other_rows(plans: CapturedPlans, contender: int) -> list[str]:
    """Return the statements for which a contender returns different rows than the baseline, if both were checked."""
    pairs = zip(plans.arms[0].statements, plans.arms[contender].statements, strict=True)
    return [pair[0].statement.words for pair in pairs if _same_rows(*pair) is False]


def _unlike_statistics(labels: Sequence[str], captured: Sequence[Captured]) -> list[UnlikeStatistics]:
    """Only for tables that some plan reads: the others have no influence."""
    texts = [one.explained.planned for arm in captured for one in arm.statements if one.explained is not None]
    read = {json.loads(name) for text in texts for name in _RELATION.findall(text)}
    base = {name: digest for name, digest in captured[0].statistics.items() if name.rpartition(".")[2] in read}
    found = []
    for label, one in zip(labels[1:], captured[1:], strict=True):
        tables = [name for name in base.keys() & one.statistics.keys() if base[name] != one.statistics[name]]
        if tables:
            found.append(UnlikeStatistics(labels=(labels[0], label), tables=tuple(sorted(tables))))
    return found
