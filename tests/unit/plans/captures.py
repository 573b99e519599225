"""Plan captures for tests."""

import json
from dataclasses import replace
from typing import Any

from pgversus.records.plans import (
    Candidate,
    Captured,
    CapturedPlans,
    CapturedStatement,
    Explained,
    OverrideReason,
    PlanOverride,
    RowsDigest,
    Statement,
    Uncertainty,
    UncertaintyKind,
)

OFF = PlanOverride(candidate=Candidate(why=OverrideReason.NEW_SWITCH, settings=(("enable_x", "off"),)))


def captured(*plans: dict[str, Any] | None, rows: int = 3, statistics: str = "a") -> Captured:
    """Return the capture of one arm. plans: plans of its statements, None for a statement without a plan."""
    return Captured(
        statements=tuple(
            CapturedStatement(
                statement=Statement(script="q.sql", number=number, text=f"SELECT\n {number}"),
                explained=None if plan is None else explained(plan),
                rows=None if plan is None else RowsDigest(rows=rows, digest="x"),
            )
            for number, plan in enumerate(plans, start=1)
        ),
        statistics={"public.t": statistics, "public.u": "same"},
        settings={},
        index_keys={"t_a": ("a", "b DESC")},
    )


def generic(plan: dict[str, Any], text: str = "SELECT $1") -> CapturedStatement:
    """Return a statement without values, with its generic plan; its name is `99`."""
    statement = Statement(script="99.sql", number=1, text=text, template=text)
    return CapturedStatement(statement=statement, explained=explained(plan), rows=None)


def with_rows(
    arm: Captured, *kinds: UncertaintyKind, in_order: str | None = None, digest: str | None = "x"
) -> Captured:
    """Return the capture of an arm with other rows. kinds: why they are uncertain, each about `f`."""
    rows = RowsDigest(
        rows=3,
        digest=digest,
        in_order=in_order,
        uncertainties=tuple(Uncertainty(kind=kind, name="f") for kind in kinds),
    )
    return replace(arm, statements=tuple(replace(one, rows=rows) for one in arm.statements))


def explained(plan: dict[str, Any]) -> Explained:
    text = json.dumps([{"Plan": plan}])
    return Explained(planned=text, run=text)


def plans_of(*arms: Captured, undone_by: PlanOverride | None = None) -> CapturedPlans:
    """Return the captures of a context. undone_by: for every statement of every contender."""
    statements = len(arms[0].statements)
    return CapturedPlans(arms=arms, undone_by=tuple((undone_by,) * statements for _ in arms[1:]))
