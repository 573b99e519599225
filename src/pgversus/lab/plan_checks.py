"""Checks of captured plans before they are used: the same statements on all arms, and the old plan restored."""

from collections.abc import Sequence

from pgversus.answers.plans import compared_rows
from pgversus.errors import WorkloadError
from pgversus.plans.difference import difference, has_other_spills, is_same_but_for_batches
from pgversus.plans.explain import read_plans
from pgversus.plans.levels import PlanLevel, is_same_but_for_sorts, is_same_logic
from pgversus.records.plans import Captured, CapturedPlans, CapturedStatement
from pgversus.study.counterfactual import BASELINE_AGAIN, CONTENDER_AGAIN, OLD_PLANS
from pgversus.text.units import count


def check_same_statements(labels: Sequence[str], captured: Sequence[Captured]) -> None:
    """Raise WorkloadError if the arms were sent different statements: a script may branch on what it reads."""
    # Compare by number: script names may differ if workloads are compared.
    sent = [[one.statement.number for one in arm.statements] for arm in captured]
    for contender in range(1, len(labels)):
        if sent[contender] != sent[0]:
            raise _other_statements((labels[0], labels[contender]), (sent[0], sent[contender]))


def check_plan_restored(labels: Sequence[str], plans: CapturedPlans) -> None:
    """Raise WorkloadError if the contender under the baseline's plans (study/counterfactual.py) has different plans.

    Sorts of already sorted rows may be missing. If the contender has the baseline's plan anyway and only executes it
    differently, the restored plan must be executed as on the baseline.
    """
    triples = list(zip(*(arm.statements for arm in plans.arms), strict=True))
    # If plans have changed, those are restored; how the others are executed does not matter.
    has_other_plans = any(not _is_same_plan(one[BASELINE_AGAIN], one[CONTENDER_AGAIN]) for one in triples)
    for one in triples:
        if not _is_restored(one[OLD_PLANS], one[BASELINE_AGAIN], one[CONTENDER_AGAIN], how_it_goes=not has_other_plans):
            raise WorkloadError(
                "the old plan was not restored",
                slug="workload-plan-not-restored",
                where=f"{one[OLD_PLANS].statement.description}, on {labels[OLD_PLANS]}",
                found="a different plan, or one that is executed differently",
                expected=f"the plan of {labels[BASELINE_AGAIN]}",
                to_do="add a rewrite that is executed with the old plan (pgversus plans shows its plan)",
            )


def check_rewrite(labels: Sequence[str], plans: CapturedPlans) -> None:
    """Raise WorkloadError if a rewrite returns or writes other rows on the contender than the script that it replaces.

    Rows that cannot be compared are a caveat of the measurement.
    """
    rewritten, original = (plans.arms[arm].statements for arm in (OLD_PLANS, CONTENDER_AGAIN))
    for ours, theirs in zip(rewritten, original, strict=True):
        rows = compared_rows(ours.rows, theirs.rows)
        if rows is not None and rows.is_same is False:
            raise WorkloadError(
                "the rewrite does not return or write the same rows as the script that it replaces",
                slug="workload-rewrite-not-equivalent",
                where=f"{ours.statement.description}, on {labels[OLD_PLANS]}",
                found="the same rows in a different order" if rows.differs_only_in_order else "different rows",
                expected=f"the rows of {theirs.statement.description}",
                to_do="correct the rewrite: its statements must return and write the same rows",
            )


def _is_same_plan(one: CapturedStatement, other: CapturedStatement) -> bool:
    if one.explained is None or other.explained is None:
        return one.explained is other.explained
    plans = [read_plans(explained.planned, "")[0] for explained in (one.explained, other.explained)]
    return is_same_logic(plans[0], plans[1], len(one.statement.parameters))


def _is_restored(
    restored: CapturedStatement, old: CapturedStatement, new: CapturedStatement, *, how_it_goes: bool
) -> bool:
    """how_it_goes: whether a plan that the contender executes differently must be executed as on the baseline."""
    if restored.explained is None or old.explained is None or new.explained is None:
        return (restored.explained is None) == (old.explained is None)
    planned = [read_plans(one.planned, "")[0] for one in (restored.explained, old.explained)]
    parameters = len(old.statement.parameters)
    if not is_same_logic(planned[0], planned[1], parameters):
        return is_same_but_for_sorts(planned[0], planned[1], parameters)
    run = [read_plans(one.run, "")[0] for one in (restored.explained, old.explained, new.explained)]
    was_other = difference(run[BASELINE_AGAIN], run[CONTENDER_AGAIN], parameters=parameters)
    is_other = difference(run[BASELINE_AGAIN], run[OLD_PLANS], parameters=parameters)
    if was_other.level is not PlanLevel.BEHAVIOUR:
        # Restoring another statement's plan must not make this one spill.
        return not has_other_spills(is_other)
    if not how_it_goes:
        return True
    return (
        is_same_but_for_batches(is_other) if has_other_spills(was_other) else is_other.level is not PlanLevel.BEHAVIOUR
    )


def _other_statements(labels: tuple[str, str], sent: Sequence[Sequence[int]]) -> WorkloadError:
    return WorkloadError(
        "the arms receive different statements, so their plans cannot be compared",
        slug="workload-other-statements",
        where=f"{labels[0]} and {labels[1]}",
        found="the same number of statements, but different ones"
        if len(sent[0]) == len(sent[1])
        else f"{count(len(sent[0]), 'statement')} and {count(len(sent[1]), 'statement')}",
        expected="the same statements on every arm",
        to_do="use a script that takes the same branches on all arms",
    )
