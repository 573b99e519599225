"""What was captured on each arm is held against the baseline's, and what makes it doubtful is said first."""

import json
from typing import Any

import pytest

from pgversus.errors import WorkloadError
from pgversus.lab.explaining.capture import Captured, CapturedStatement
from pgversus.lab.explaining.comparing import compared, refuse_other_statements
from pgversus.lab.explaining.statements import Statement
from pgversus.plans.levels import Level
from pgversus.plans.sentences.telling import Language
from pgversus.postgres.explain import Explained, RowsDigest
from pgversus.report.undoing import undoing
from pgversus.study.planner_switches import Candidate, Undoing, Why
from tests.unit.plans.raw import scan

LABELS = ("16", "17", "18")
OFF = Undoing(candidate=Candidate(why=Why.NEW_SWITCH, settings=(("enable_x", "off"),)), but_for_sorts=False)


def captured(*plans: dict[str, Any] | None, rows: int = 3, statistics: str = "a") -> Captured:
    """One arm. plans: of its statements, None for one that has none."""
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
    )


def explained(plan: dict[str, Any]) -> Explained:
    text = json.dumps([{"Plan": plan}])
    return Explained(planned=text, run=text)


def test_each_contender_is_held_against_the_baseline() -> None:
    arms = [captured(None, scan("t")), captured(None, scan("t")), captured(None, scan("t", "Index Scan"))]
    refuse_other_statements(LABELS, arms)
    found = compared(LABELS, arms, [[None, None], [None, OFF]])
    assert [(one.labels, one.difference.level) for one in found.compared] == [
        (("16", "17"), Level.IDENTICAL),
        (("16", "18"), Level.OPERATORS),
    ]
    assert {one.statement for one in found.compared} == {"q.sql, statement 2: SELECT 2"}
    assert (found.warnings, found.unlike) == ([], ())
    assert [undoing(one, Language.ENGLISH) for one in found.compared] == [
        "",
        "with enable_x = off (a switch that 16 does not have) 18 plans it as 16",
    ]


def test_other_rows_and_other_statistics_are_said() -> None:
    found = compared(LABELS[:2], [captured(scan("t")), captured(scan("t"), rows=4, statistics="b")], [[None]])
    assert [one.same_rows for one in found.compared] == [False]
    assert [text.split(":")[0] for text in found.warnings] == [
        "17 returns other rows than 16",
        "statistics of public.t differ between 16 and 17",
    ]


def test_other_statements_are_not_held_against_each_other() -> None:
    with pytest.raises(WorkloadError) as caught:
        refuse_other_statements(LABELS[:2], [captured(scan("t")), captured(scan("t"), scan("t"))])
    assert (caught.value.slug, caught.value.found) == ("workload-other-statements", "1 and 2 statements")
