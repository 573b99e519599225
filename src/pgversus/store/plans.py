"""Plans in a results file: one row for each statement of each arm."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any

from pydantic import TypeAdapter

from pgversus.study.captured import (
    Captured,
    CapturedPlans,
    CapturedStatement,
    Explained,
    RowsDigest,
    SampledPlans,
    Statement,
)
from pgversus.study.planner_switches import PlannerSetting, Undoing

Row = tuple[str, Mapping[str, Any]]
"""A table and the values of one row."""

_SETTINGS = TypeAdapter(dict[str, PlannerSetting])
_SAMPLED = TypeAdapter(SampledPlans)
_UNDOING = TypeAdapter(Undoing)
_TABLES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'plan'"
_ARMS = "SELECT context, arm, settings, statistics, sampled FROM explained_arm ORDER BY context, arm"
_PLANS = """
SELECT context, arm, script, number, text, template, parameters, planned, run, row_count, rows_digest, undone_by
FROM plan ORDER BY context, arm, statement
"""


def plan_tables() -> str:
    """The statements that make their tables, where there are none yet."""
    return resources.files(__package__).joinpath("plans.sql").read_text(encoding="utf-8")


def plan_rows(context: int, plans: CapturedPlans) -> Iterator[Row]:
    """Every row of a context's plans."""
    for arm, captured in enumerate(plans.arms):
        at = {"context": context, "arm": arm}
        settings = _SETTINGS.dump_json(dict(captured.settings)).decode()
        row = {**at, "settings": settings, "statistics": json.dumps(dict(captured.statistics))}
        sampled = _SAMPLED.dump_json(plans.sampled[arm]).decode() if plans.sampled else None
        yield "explained_arm", {**row, "sampled": sampled}
        undone_by = plans.undone_by[arm - 1] if arm else (None,) * len(captured.statements)
        for number, (one, undoing) in enumerate(zip(captured.statements, undone_by, strict=True), start=1):
            yield "plan", {**at, "statement": number, **_statement(one, undoing)}


def read_plans(database: sqlite3.Connection) -> dict[int, CapturedPlans]:
    """Plans by context; those made before there were any have none."""
    if database.execute(_TABLES).fetchone() is None:
        return {}
    statements: dict[tuple[int, int], list[CapturedStatement]] = defaultdict(list)
    undone_by: dict[tuple[int, int], list[Undoing | None]] = defaultdict(list)
    for context, arm, *values, undoing in database.execute(_PLANS):
        statements[context, arm].append(_captured(values))
        undone_by[context, arm].append(None if undoing is None else _UNDOING.validate_json(undoing))
    arms: dict[int, list[Captured]] = defaultdict(list)
    undoings: dict[int, list[tuple[Undoing | None, ...]]] = defaultdict(list)
    sampled: dict[int, list[SampledPlans]] = defaultdict(list)
    for context, arm, settings, statistics, told in database.execute(_ARMS):
        key = context, arm
        arms[context].append(
            Captured(
                statements=tuple(statements[key]),
                statistics=json.loads(statistics),
                settings=_SETTINGS.validate_json(settings),
            )
        )
        if told is not None:
            sampled[context].append(_SAMPLED.validate_json(told))
        if arm:
            undoings[context].append(tuple(undone_by[key]))
    return {
        context: CapturedPlans(
            arms=tuple(found), undone_by=tuple(undoings[context]), sampled=tuple(sampled.get(context, ()))
        )
        for context, found in arms.items()
    }


def _statement(one: CapturedStatement, undoing: Undoing | None) -> dict[str, Any]:
    statement, explained, rows = one.statement, one.explained, one.rows
    return {
        "script": statement.script,
        "number": statement.number,
        "text": statement.text,
        "template": statement.template,
        "parameters": json.dumps(statement.parameters) if statement.template is not None else None,
        "planned": None if explained is None else explained.planned,
        "run": None if explained is None else explained.run,
        "row_count": None if rows is None else rows.rows,
        "rows_digest": None if rows is None else rows.digest,
        "undone_by": None if undoing is None else _UNDOING.dump_json(undoing).decode(),
    }


def _captured(values: list[Any]) -> CapturedStatement:
    script, number, text, template, parameters, planned, run, row_count, rows_digest = values
    filled = () if parameters is None else tuple(json.loads(parameters))
    return CapturedStatement(
        statement=Statement(script=script, number=number, text=text, template=template, parameters=filled),
        explained=None if planned is None else Explained(planned=planned, run=run),
        rows=None if row_count is None else RowsDigest(rows=row_count, digest=rows_digest),
    )
