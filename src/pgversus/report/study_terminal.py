"""A study for a terminal or a pipe: the sentences first, then one row for each verdict, then what to distrust."""

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.report.answer import StudyAnswer
from pgversus.report.levels import HEADS, LevelRow, level_rows
from pgversus.report.overview import (
    VerdictRow,
    most_telling,
    not_measured,
    overview_sentences,
    shared_caveats,
    verdict_rows,
)
from pgversus.report.published import NOTHING_PUBLISHED, PublishedRow, published_rows
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.terminal import STYLES, print_answer, print_parts, table

_MOST_ROWS = 100
# More than that nobody reads on a terminal; Markdown, CSV and JSON have them all.


def print_study_answer(
    answer: StudyAnswer, console: Console, columns: int | None = None, *, with_published: bool = False
) -> None:
    """Print the whole study; one with a single context as a comparison.

    console and columns: as of print_answer. with_published: the published figures beside the measured ones, where the
    study has some.
    """
    if len(answer.answers) == 1 and not answer.unanswered and not answer.title:
        print_answer(answer.answers[0], console, columns)
        return
    print_parts(_parts(answer, with_published=with_published), console, columns)


def _parts(answer: StudyAnswer, *, with_published: bool) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(answer.title, style="bold")]
    if answer.question:
        parts.append(Text(answer.question))
    rows = most_telling(verdict_rows(answer), _MOST_ROWS)
    parts += [Text(""), _verdict_table(rows), Text("")]
    if len(rows) < (total := sum(len(one.analysis.results) for one in answer.answers)):
        parts.append(Text(f"{len(rows)} of {total} verdicts are shown; --format csv has them all."))
    if with_published:
        parts += [_published_table(published_rows(answer)), Text("")]
    if sum(len(one.comparison.arms) for one in answer.answers) <= _MOST_ROWS:
        parts += [_level_table(level_rows(answer)), Text("")]
    parts += [Text(sentence) for sentence in overview_sentences(answer)]
    parts += [Text(f"not measured: {line}", style="red") for line in not_measured(answer)]
    parts += [Text(f"caveat: {line}") for line in shared_caveats(answer)]
    parts.append(Text(f"results: {answer.results}", style="dim"))
    return parts


def _published_table(rows: list[PublishedRow]) -> RenderableType:
    if not rows:
        return Text(NOTHING_PUBLISHED)
    shown = table("published beside measured", "", "published", "here", percent_of_confidence(), "")
    for row in rows:
        cells = [row.contender, row.published, row.measured, row.interval, row.replication.value]
        shown.add_row(Text(row.context), *map(Text, cells))
    return shown


def _level_table(rows: list[LevelRow]) -> Table:
    shown = table("all arms", "", *HEADS)
    for row in rows:
        shown.add_row(Text(row.context), Text(row.arm), *row.cells)
    return shown


def _verdict_table(rows: list[VerdictRow]) -> Table:
    """A column that would say the same in every row becomes part of a head."""
    metrics, baselines = {row.metric for row in rows}, {row.baseline for row in rows}
    contenders = {row.contender for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else "value"
    baseline = baselines.pop() if len(baselines) == 1 else "baseline"
    contender = contenders.pop() if len(contenders) == 1 else ""
    names = [] if contender else [""]
    levels = [f"{metric} {baseline}", f"{metric} {contender}".strip()]
    shown = table("", *names, *levels, "change", percent_of_confidence(), "", "blocks")
    for row in rows:
        cells: list[RenderableType] = [Text(row.context)]
        if not contender:
            cells.append(Text(row.contender))
        cells += [row.baseline_level, row.contender_level, row.change, row.interval]
        cells += [Text(row.verdict.value, style=STYLES[row.verdict]), row.blocks]
        shown.add_row(*cells)
    return shown
