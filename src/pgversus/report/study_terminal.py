"""A study for a terminal or a pipe: one row for each verdict, then the sentences, then what to distrust."""

from collections.abc import Sequence

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.report.answer import StudyAnswer
from pgversus.report.heat_map import HeatCell, HeatMap, heat_colour
from pgversus.report.levels import HEADS, LevelRow, TpsTable
from pgversus.report.overview import VerdictRow
from pgversus.report.published import NOTHING_PUBLISHED, PublishedRatio, published_cells
from pgversus.report.quantities import COUNTERS_NOTE, PlacedQuantityRow
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.study_page import StudyPage, study_page
from pgversus.report.terminal import STYLES, print_answer, print_parts, size_table, table, why_texts
from pgversus.report.times import TIME_HEADS, TIMES_NOTE, TimeRow
from pgversus.report.verdicts import verdict_word
from pgversus.text.translation import tell


def print_study_answer(
    answer: StudyAnswer, console: Console, columns: int | None = None, *, with_published: bool = False
) -> None:
    """Print the whole study; one with a single context as a comparison.

    console and columns: as of print_answer. with_published: the published figures beside the measured ones, where the
    study has some.
    """
    if len(answer.answers) == 1 and not answer.unanswered and not answer.study.title:
        print_answer(answer.answers[0], console, columns)
        return
    print_parts(_parts(study_page(answer, with_published=with_published)), console, columns)


def _parts(page: StudyPage) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(page.title, style="bold")]
    if page.question:
        parts.append(Text(page.question))
    parts += [Text(""), _verdict_table(page.verdicts), Text("")]
    for found in page.heat_maps:
        parts += [_heat_table(found), Text("")]
    if page.published is not None:
        parts += [_published_table(page.published), Text("")]
    if page.levels:
        parts += [_level_table(page.levels), Text("")]
    if page.tps is not None:
        parts += [_tps_table(page.tps), Text("")]
    for sizes in page.sizes:
        parts += [size_table(sizes), Text("")]
    if page.times:
        parts += [_time_table(page.times), Text(tell(TIMES_NOTE), style="dim"), Text("")]
    if page.quantities:
        parts += [_quantity_table(page.quantities), Text(tell(COUNTERS_NOTE), style="dim"), Text("")]
    for why in page.why:
        parts += [*why_texts(why), Text("")]
    parts += [Text(sentence) for sentence in page.sentences]
    parts += [Text(tell("not measured: {line}", line=line), style="red") for line in page.not_measured]
    parts += [Text(tell("caveat: {caveat}", caveat=line)) for line in page.caveats]
    parts += [Text(line, style="dim") for line in page.small_print]
    parts.append(Text(tell("results: {folder}", folder=page.results), style="dim"))
    return parts


def _heat_table(found: HeatMap) -> Table:
    """Each cell on the colour of its ratio, where there are colours and a difference."""
    shown = table(found.title, *found.columns)
    for place, cells in found.rows:
        shown.add_row(Text(place), *(_heat_cell(cell) for cell in cells))
    return shown


def _heat_cell(cell: HeatCell | None) -> Text:
    if cell is None:
        return Text("")
    style = f"black on {heat_colour(cell)}" if heat_colour(cell) else ""
    # One below the other: four columns then fit into 80 characters.
    return Text(f"{cell.text}\n{cell.interval}".strip(), style=style)


def _published_table(rows: Sequence[PublishedRatio]) -> RenderableType:
    if not rows:
        return Text(tell(NOTHING_PUBLISHED))
    shown = table(tell("published beside measured"), "", tell("published"), tell("here"), percent_of_confidence(), "")
    for row in rows:
        shown.add_row(Text(row.context), *map(Text, published_cells(row)))
    return shown


def _level_table(rows: Sequence[LevelRow]) -> Table:
    shown = table(tell("all arms"), "", *map(tell, HEADS))
    for row in rows:
        shown.add_row(Text(row.context), Text(row.arm), *row.cells)
    return shown


def _tps_table(found: TpsTable) -> Table:
    shown = table(tell("tps"), "", *found.workloads)
    for place, arm, cells in found.rows:
        shown.add_row(Text(place), Text(arm), *cells)
    return shown


def _time_table(rows: Sequence[TimeRow]) -> Table:
    shown = table(tell("times"), "", *map(tell, TIME_HEADS))
    for row in rows:
        shown.add_row(Text(row.context), Text(row.arm), *row.cells)
    return shown


def _quantity_table(rows: Sequence[PlacedQuantityRow]) -> Table:
    """The rows of one verdict stand together under its name."""
    has_several = len({row.contender for row in rows}) > 1
    shown = table(tell("counters"), "", tell("baseline"), tell("contender"), "", percent_of_confidence())
    above = None
    for row in rows:
        place = f"{row.context}  {row.contender}" if has_several else row.context
        quantity = row.quantity
        cells = [quantity.baseline, quantity.contender, quantity.change, quantity.interval]
        shown.add_row(Text("" if place == above else place), Text(quantity.name), *cells)
        above = place
    return shown


def _verdict_table(rows: Sequence[VerdictRow]) -> Table:
    """A column that would say the same in every row becomes part of a head, and one that says nothing goes."""
    metrics, baselines = {row.metric for row in rows}, {row.baseline for row in rows}
    contenders = {row.contender for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else tell("value")
    baseline = baselines.pop() if len(baselines) == 1 else tell("baseline")
    contender = contenders.pop() if len(contenders) == 1 else ""
    checks = [""] if any(row.check for row in rows) else []
    names = [] if contender else [""]
    levels = [f"{metric} {baseline}", f"{metric} {contender}".strip()]
    shown = table("", *names, *levels, tell("change"), percent_of_confidence(), "", tell("blocks"), *checks)
    for row in rows:
        cells: list[RenderableType] = [Text(row.context)]
        if not contender:
            cells.append(Text(row.contender))
        cells += [row.baseline_level, row.contender_level, row.change, row.interval]
        cells += [Text(verdict_word(row.verdict), style=STYLES[row.verdict]), row.blocks]
        shown.add_row(*cells, *([Text(row.check, style="yellow bold")] if checks else []))
    return shown
