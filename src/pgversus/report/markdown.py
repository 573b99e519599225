"""A study as Markdown that fits into a pull request: the sentences, one table of verdicts, what to distrust."""

from collections.abc import Iterable, Sequence

from pgversus.report.answer import StudyAnswer
from pgversus.report.levels import HEADS, LevelRow, level_rows
from pgversus.report.overview import VerdictRow, not_measured, overview_sentences, shared_caveats, verdict_rows
from pgversus.report.published import NOTHING_PUBLISHED, PublishedRow, published_rows
from pgversus.report.sentences import answer_sentences, percent_of_confidence

_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#"})


def markdown(answer: StudyAnswer, *, with_published: bool = False) -> str:
    """The whole study; texts of users are escaped, so that no query or name becomes mark-up.

    with_published: the published figures beside the measured ones, where the study has some.
    """
    rows = verdict_rows(answer)
    parts = [f"## {escaped(answer.title)}" if answer.title else "", escaped(answer.question)]
    if len(answer.answers) == 1:
        parts += [escaped(sentence) for sentence in answer_sentences(answer.answers[0])]
    parts.append(_verdicts(rows))
    parts.append(" ".join(overview_sentences(answer)))
    if with_published:
        parts.append(_published(published_rows(answer)))
    parts.append(_levels(level_rows(answer)))
    parts.append(_list(f"not measured: {line}" for line in not_measured(answer)))
    parts.append(_list(f"caveat: {line}" for line in shared_caveats(answer)))
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Text that shows as it is, on one line."""
    return " ".join(text.split()).translate(_SPECIAL)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1) -> str:
    """A table whose first `names` columns are aligned to the left and the others to the right; cells are escaped."""
    marks = [":--"] * names + ["--:"] * (len(heads) - names)
    lines = [heads, marks, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _verdicts(rows: Sequence[VerdictRow]) -> str:
    heads = (
        "context",
        "baseline",
        "contender",
        "metric",
        "baseline value",
        "contender value",
        "change",
        percent_of_confidence(),
        "verdict",
        "blocks",
    )
    cells = [
        (
            row.context,
            row.baseline,
            row.contender,
            row.metric,
            row.baseline_level,
            row.contender_level,
            row.change,
            row.interval,
            row.verdict.value,
            row.blocks,
        )
        for row in rows
    ]
    return _without_empty(heads, cells, names=4) if rows else ""


def _published(rows: Sequence[PublishedRow]) -> str:
    if not rows:
        return NOTHING_PUBLISHED
    heads = ("context", "contender", "published", "here", percent_of_confidence(), "")
    cells = [
        (row.context, row.contender, row.published, row.measured, row.interval, row.replication.value) for row in rows
    ]
    return table(heads, cells, names=2)


def _levels(rows: Sequence[LevelRow]) -> str:
    cells = [(row.context, row.arm, *row.cells) for row in rows]
    return _without_empty(("context", "arm", *HEADS), cells, names=2) if rows else ""


def _without_empty(heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int) -> str:
    """The table without a first column that would be empty, as it is where there is one context."""
    if any(row[0] for row in rows):
        return table(heads, rows, names=names)
    return table(heads[1:], [row[1:] for row in rows], names=names - 1)


def _list(lines: Iterable[str]) -> str:
    return "\n".join(f"- {escaped(line)}" for line in lines)
