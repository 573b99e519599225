"""Plans in a results file: one row per statement and arm."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import from_json

from pgversus.records.plans import (
    Captured,
    CapturedPlans,
    CapturedStatement,
    Explained,
    PlannerSetting,
    PlanOverride,
    RowsDigest,
    SampledPlans,
    Statement,
    Uncertainty,
)
from pgversus.store.codec import added_columns
from pgversus.store.rows import Count, Number, Place, read_rows
from pgversus.text.documents import document_without_secrets
from pgversus.text.redaction import code_without_secrets

Row = tuple[str, Mapping[str, Any]]
"""A table name and the values of one row."""

_SETTINGS = TypeAdapter(dict[str, PlannerSetting])
_STATISTICS = TypeAdapter(dict[str, str])
_PARAMETERS = TypeAdapter(tuple[str | None, ...])
_SAMPLED = TypeAdapter(SampledPlans)
_OVERRIDE = TypeAdapter(PlanOverride)
_INDEX_KEYS = TypeAdapter(dict[str, tuple[str, ...]])
_RUNS = TypeAdapter(list[str])
_UNCERTAINTIES = TypeAdapter(tuple[Uncertainty, ...])
_MOST_VALUES_OF_PLAN = 2_000_000
# A node has about 40.
_TABLES = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = 'plan'"
_ARM_ROWS = TypeAdapter(list[tuple[Place, str, str, int, str | None, str | None]])
_ARMS = """
SELECT arm, settings, statistics, is_searched, {index_keys}, sampled
FROM explained_arm WHERE context = ? ORDER BY arm
"""
_PLAN_ROWS = TypeAdapter(
    list[
        tuple[
            Place,
            Number,
            str,
            Number,
            str,
            str | None,
            str | None,
            str | None,
            str | None,
            str | None,
            Count | None,
            str | None,
            str | None,
            str | None,
            str | None,
        ]
    ]
)
_PLANS = """
SELECT arm, statement, script, number, text, template, parameters, planned, run, {more_runs}, row_count, rows_digest,
       {ordered_digest}, {uncertainties}, undone_by
FROM plan WHERE context = ? ORDER BY arm, statement
"""
_CHECKED = """
SELECT context FROM plan WHERE row_count IS NOT NULL
UNION SELECT context FROM explained_arm WHERE sampled IS NOT NULL
"""


def plan_rows(context: int, plans: CapturedPlans) -> Iterator[Row]:
    """Yield the rows of a context's plans."""
    for arm, captured in enumerate(plans.arms):
        at = {"context": context, "arm": arm}
        settings = document_without_secrets(_SETTINGS.dump_json(dict(captured.settings)).decode())
        statistics, index_keys = (json.dumps(dict(found)) for found in (captured.statistics, captured.index_keys))
        row = {**at, "settings": settings, "statistics": statistics, "index_keys": index_keys}
        sampled = document_without_secrets(_SAMPLED.dump_json(plans.sampled[arm]).decode()) if plans.sampled else None
        yield "explained_arm", {**row, "is_searched": plans.is_searched, "sampled": sampled}
        undone_by = plans.undone_by[arm - 1] if arm else (None,) * len(captured.statements)
        for number, (one, override) in enumerate(zip(captured.statements, undone_by, strict=True), start=1):
            yield "plan", {**at, "statement": number, **_statement(one, override)}


def read_plans(database: sqlite3.Connection, context: int, *, arms: int) -> CapturedPlans | None:
    """Return the plans of one context; None if none were captured, as in older files without these tables.

    arms: number of arms in the context. ValueError for damaged data.
    """
    if not _has_tables(database):
        return None
    statements: dict[int, list[CapturedStatement]] = defaultdict(list)
    undone_by: dict[int, list[PlanOverride | None]] = defaultdict(list)
    for arm, _, *values, override in read_rows(
        database,
        _PLANS.format(**added_columns(database, "plan")),
        _PLAN_ROWS,
        key=2,
        parameter=context,
        most_values=_MOST_VALUES_OF_PLAN,
    ):
        statements[arm].append(_captured(values))
        undone_by[arm].append(None if override is None else _OVERRIDE.validate_json(override))
    arms_with_keys = _ARMS.format(**added_columns(database, "explained_arm"))
    found = list(read_rows(database, arms_with_keys, _ARM_ROWS, key=1, parameter=context))
    if not found:
        return None
    captured = tuple(
        Captured(
            statements=tuple(statements[arm]),
            statistics=_STATISTICS.validate_json(statistics),
            settings=_SETTINGS.validate_json(document_without_secrets(settings)),
            index_keys=_INDEX_KEYS.validate_json(index_keys or "{}"),
        )
        for arm, settings, statistics, _, index_keys, _ in found
    )
    sampled = tuple(_SAMPLED.validate_json(document_without_secrets(text)) for *_, text in found if text is not None)
    numbers = {tuple(one.statement.number for one in arm.statements) for arm in captured}
    if [arm for arm, *_ in found] != list(range(arms)) or len(numbers) > 1 or len(sampled) not in (0, arms):
        raise ValueError(f"the plans of context {context} are not for the same statements on all of its arms")
    overrides = tuple(tuple(undone_by[arm]) for arm in range(1, arms))
    return CapturedPlans(arms=captured, undone_by=overrides, is_searched=bool(found[0][3]), sampled=sampled)


def checked_contexts(database: sqlite3.Connection) -> frozenset[int]:
    """Return the contexts in which rows were compared or plans sampled under load, which may cause caveats."""
    if not _has_tables(database):
        return frozenset()
    return frozenset(context for (context,) in database.execute(_CHECKED))


def _has_tables(database: sqlite3.Connection) -> bool:
    return database.execute(_TABLES).fetchone() is not None


def _statement(one: CapturedStatement, override: PlanOverride | None) -> dict[str, Any]:
    statement, explained, rows = one.statement, one.explained, one.rows
    parameters = list(map(_parameter, statement.parameters))
    return {
        "script": statement.script,
        "number": statement.number,
        "text": code_without_secrets(statement.text),
        "template": statement.template and code_without_secrets(statement.template),
        "parameters": json.dumps(parameters) if statement.template is not None else None,
        "planned": None if explained is None else document_without_secrets(explained.planned),
        "run": None if explained is None else document_without_secrets(explained.run),
        "more_runs": None
        if explained is None
        else json.dumps([document_without_secrets(one) for one in explained.more_runs]),
        "row_count": None if rows is None else rows.rows,
        "rows_digest": None if rows is None else rows.digest,
        "ordered_digest": None if rows is None else rows.in_order,
        "uncertainties": None if rows is None else _UNCERTAINTIES.dump_json(rows.uncertainties).decode(),
        "undone_by": None if override is None else _OVERRIDE.dump_json(override).decode(),
    }


def _parameter(value: str | None) -> str | None:
    return None if value is None else code_without_secrets(value)


def _captured(values: list[Any]) -> CapturedStatement:
    script, number, text, template, parameters, planned, run, more_runs, *rows = values
    filled = () if parameters is None else map(_parameter, _PARAMETERS.validate_json(parameters))
    statement = Statement(
        script=script,
        number=number,
        text=code_without_secrets(text),
        template=template and code_without_secrets(template),
        parameters=tuple(filled),
    )
    if (planned is None) is not (run is None):
        raise ValueError("a statement with only one of its two plans")
    more = () if more_runs is None else tuple(map(_plan, _RUNS.validate_json(more_runs)))
    return CapturedStatement(
        statement=statement,
        explained=None if planned is None else Explained(planned=_plan(planned), run=_plan(run or ""), more_runs=more),
        rows=_rows(*rows),
    )


def _rows(count: int | None, digest: str | None, in_order: str | None, uncertainties: str | None) -> RowsDigest | None:
    if count is None:
        return None
    reasons = () if uncertainties is None else _UNCERTAINTIES.validate_json(uncertainties)
    return RowsDigest(rows=count, digest=digest, in_order=in_order, uncertainties=reasons)


def _plan(text: str) -> str:
    # Python's json accepts lone surrogates, which cannot be written to a report.
    from_json(text)
    return document_without_secrets(text)
