"""The statements of an application, as a table and a JSON document."""

from collections.abc import Sequence
from dataclasses import asdict
from itertools import accumulate
from typing import Any

from pgversus.report.inventory import aligned
from pgversus.statements.document import SCHEMA
from pgversus.statements.secrets import has_secrets, text_without_secrets
from pgversus.statements.sources import SourceReport
from pgversus.statements.statement import RecordedStatement
from pgversus.text.redaction import code_without_secrets, visible
from pgversus.text.units import count, duration, latency, percent, whole

_HEADS = ("share", "calls", "mean", "kind", "values", "statement")
_LONGEST = 100
_MOST_OF_THE_TIME = 0.95


def statements_text(statements: Sequence[RecordedStatement], reports: Sequence[SourceReport], limit: int) -> str:
    """Return lines on each source, a row for each statement, and the statements that cannot be executed.

    statements: largest total time first. limit: maximum number of rows.
    """
    total_s = sum(one.seconds for one in statements)
    lines = [line for report in reports for line in source_lines(report)]
    lines += ["", _summary(statements, total_s)]
    if statements:
        rows = [_row(one, total_s) for one in statements[:limit]]
        lines += ["", *aligned([_HEADS, *rows])]
    if len(statements) > limit:
        rest_s = sum(one.seconds for one in statements[limit:])
        lines.append(f"and {count(len(statements) - limit, 'other statement')}{_of_the_time(rest_s, total_s)}")
    return "\n".join([*lines, *_obstacles(statements, total_s)]) + "\n"


def statements_document(statements: Sequence[RecordedStatement], reports: Sequence[SourceReport]) -> dict[str, Any]:
    """Return all statements as a JSON document; times in seconds, share as a fraction, null without any times."""
    total_s = sum(one.seconds for one in statements)
    return {
        "schema": SCHEMA,
        "sources": [
            {
                "file": one.where,
                "form": one.form,
                "found": one.found,
                "prepared": one.prepared,
                "skipped": dict(one.skipped),
            }
            for one in reports
        ],
        "statements": [
            {
                **asdict(one),
                "text": text_without_secrets(one.text),
                "samples": [asdict(sample) for sample in one.samples if not has_secrets(sample)],
                "share": one.seconds / total_s if total_s else None,
                "obstacle": one.obstacle,
            }
            for one in statements
        ],
    }


def source_lines(report: SourceReport) -> list[str]:
    """Return what was found in a source, and what was skipped and why."""
    lines = [f"{visible(report.where)}: {report.form}, {whole(report.found)} found"]
    if report.prepared:
        share = percent(report.prepared / report.found)
        lines.append(f"  at least {share} of them executed as prepared statements")
    return lines + [f"  skipped {whole(number)}: {reason}" for reason, number in report.skipped.most_common()]


def _summary(statements: Sequence[RecordedStatement], total_s: float) -> str:
    if not statements:
        return "no statements found"
    if not total_s:
        return count(len(statements), "statement")
    shares = accumulate(one.seconds / total_s for one in statements)
    most = next(number for number, share in enumerate(shares, start=1) if share >= _MOST_OF_THE_TIME)
    return (
        f"{count(len(statements), 'statement')}, {duration(total_s)} of execution; "
        f"{count(most, 'statement')} {'takes' if most == 1 else 'take'} {100 * _MOST_OF_THE_TIME:.0f} % of it"
    )


def _row(statement: RecordedStatement, total_s: float) -> tuple[str, ...]:
    text = " ".join(code_without_secrets(statement.text).split())
    shown = text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."
    return (
        percent(statement.seconds / total_s) if total_s else "",
        whole(statement.calls) if statement.calls else "",
        latency(statement.mean_s) if statement.calls else "",
        statement.kind.value,
        _values(statement),
        visible(f"{statement.name}: {shown}" if statement.name else shown),
    )


def _values(statement: RecordedStatement) -> str:
    if statement.samples and any(sample.values or sample.text != statement.text for sample in statement.samples):
        return str(len(statement.samples))
    return "unknown" if statement.parameters else "none needed"


def _obstacles(statements: Sequence[RecordedStatement], total_s: float) -> list[str]:
    """Return a line for each reason why statements cannot be executed, with their number and share."""
    by_reason: dict[str, list[RecordedStatement]] = {}
    for one in statements:
        if one.obstacle:
            by_reason.setdefault(one.obstacle, []).append(one)
    lines = [
        f"  {count(len(those), 'statement')}{_of_the_time(sum(one.seconds for one in those), total_s)}: {reason}"
        for reason, those in by_reason.items()
    ]
    return ["", "cannot be executed as the application does:", *lines] if lines else []


def _of_the_time(seconds: float, total_s: float) -> str:
    return f", {percent(seconds / total_s)} of the time" if total_s else ""
