"""The answer for a terminal or a pipe: the sentence, the tables, then the caveats."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.arm_tables import HEADS, TIME_HEADS, TIMES_NOTE, SizeTable, size_tables
from pgversus.report.caveats import caveat_text
from pgversus.report.console import STYLES, answer_parts, print_parts, terminal_table
from pgversus.report.methodology import comparison_lines
from pgversus.report.overview import MOST_ROWS
from pgversus.report.published import (
    NOTHING_PUBLISHED,
    PublishedRatio,
    agreement_notes,
    agreement_word,
    published_cells,
)
from pgversus.report.sentences import answer_sentences, interval_heading, metric_text
from pgversus.report.study_answer import answer_tables
from pgversus.report.study_page import StudyPage, study_page
from pgversus.report.sweeps import HeatCell, HeatMap, heat_color
from pgversus.report.values import (
    COUNTERS_NOTE,
    PlacedQuantityRow,
    QuantityRow,
    change_texts,
    quantity_rows,
    uses_factors,
    value_text,
)
from pgversus.report.verdicts import MARKS, VerdictRow, verdict_word
from pgversus.report.why import Explanation, why_of
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.confidence import DIFFERENT
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import LATENCIES, Quantity, StepTime
from pgversus.study.workload import Step
from pgversus.text.translation import _
from pgversus.text.units import latency, plus_minus

_WIDTH_OF_LATENCY = 6
"""Width of a latency name in columns, including the gap."""


def print_answer(answer: Answer, console: Console, columns: int | None = None) -> None:
    """Print the whole answer; the console decides about colors.

    console: as wide as WIDEST. columns: width of the actual terminal; None for a pipe.
    """
    print_parts(_parts(answer), console, columns)


def _parts(answer: Answer) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(sentence, style="bold") for sentence in answer_sentences(answer)]
    parts += [Text(""), _verdict_table(answer), Text(""), *_more_times(answer)]
    for sizes in size_tables([answer]):
        parts += [size_table(sizes), Text("")]
    parts += _counters(answer)
    for why in why_of(answer):
        parts += [*why_texts(why), Text("")]
    parts += [Text(line) for line in _caveat_lines(answer)]
    parts += [Text(line, style="dim") for line in comparison_lines(answer)]
    return parts


def why_texts(why: Explanation) -> list[Text]:
    """Return the effect of the plans, then each changed plan with its sentences."""
    claim = (
        _("why ({context}): {claim}", context=why.context, claim=why.claim)
        if why.context
        else _("why: {claim}", claim=why.claim)
    )
    lines = [Text(claim), *(Text(f"  {note}") for note in why.notes)]
    for one in why.changed:
        lines.append(Text(f"  {one.statement}: {one.headline}"))
        lines += [Text(f"    - {sentence}") for sentence in one.sentences]
    return lines


def _counters(answer: Answer) -> list[RenderableType]:
    """Return a table for each contender, followed by one note on how to read them."""
    as_factors = uses_factors([answer])
    found = [(result, quantity_rows(answer, result, as_factors=as_factors)) for result in answer.analysis.results]
    tables = [_quantity_table(answer, result, rows) for result, rows in found if rows]
    spaced = (part for table in tables for part in (Text(""), table))
    return [*list(spaced)[1:], Text(_(COUNTERS_NOTE), style="dim"), Text("")] if tables else []


def _verdict_table(answer: Answer) -> Table:
    comparison, metric = answer.comparison, answer.analysis.metric
    first, baseline = comparison.workload.main_metric, comparison.baseline.label
    against = (
        _("vs {baseline}", baseline=baseline)
        if metric is first
        else _("{metric} vs {baseline}", metric=metric_text(metric), baseline=baseline)
    )
    rows = terminal_table("", metric_text(first), "±", against, interval_heading(), _("verdict"), _("blocks"))
    for arm in comparison.arms:
        value = answer.analysis.arm_values[arm.index].get(first)
        cells: list[RenderableType] = [Text(arm.label), *_value_cells(value, partial(value_text, first))]
        if arm.index == BASELINE:
            cells += ["", "", "", str(sum(block.has(BASELINE) for block in answer.blocks))]
        else:
            cells += _result_cells(answer, answer.analysis.result_of(arm.index))
        rows.add_row(*cells)
    return rows


def _result_cells(answer: Answer, result: ContenderResult) -> list[RenderableType]:
    shown = change_texts(result.ratios.get(answer.analysis.metric), as_factors=uses_factors([answer]))
    return [
        shown.value and (MARKS.get(result.verdict) or shown.value),
        shown.interval,
        Text(verdict_word(result.verdict), style=STYLES[result.verdict]),
        str(result.blocks),
    ]


def _more_times(answer: Answer) -> list[RenderableType]:
    """Return the latencies of a load, or the steps of an operation that has several."""
    workload = answer.comparison.workload
    if not workload.steps:
        latencies = _latency_table(answer, is_open_loop=workload.is_open_loop)
        return [latencies, Text("")] if latencies.row_count else []
    return [_step_table(answer, workload.steps), Text("")] if len(workload.steps) > 1 else []


def _latency_table(answer: Answer, *, is_open_loop: bool) -> Table:
    """Return a table with one row per metric and arm, narrow enough for a terminal with any number of arms."""
    comparison = answer.comparison
    head = _("latency (from the scheduled start)") if is_open_loop else _("latency (closed loop)")
    against = _("vs {baseline}", baseline=comparison.baseline.label)
    rows = terminal_table(head, _("value"), "±", against, interval_heading())
    for metric in LATENCIES:
        if not any(metric in values for values in answer.analysis.arm_values):
            continue
        name = _(metric.short)
        space = " " * (_WIDTH_OF_LATENCY - cell_len(name))
        for arm in comparison.arms:
            rows.add_row(Text(f"{name}{space}{arm.label}"), *_time_cells(answer, metric, arm.index))
    return rows


def _step_table(answer: Answer, steps: Sequence[Step]) -> Table:
    """Return a table with one row per step and arm."""
    comparison = answer.comparison
    against = _("vs {baseline}", baseline=comparison.baseline.label)
    rows = terminal_table(_("steps"), _("time"), "±", against, interval_heading())
    width = max(len(step.name) for step in steps)
    for step in steps:
        for arm in comparison.arms:
            name = Text(f"{step.name:<{width}}  {arm.label}")
            rows.add_row(name, *_time_cells(answer, StepTime(step.name), arm.index))
    return rows


def _time_cells(answer: Answer, quantity: Quantity, arm: int) -> list[RenderableType]:
    """Return a duration on an arm, and its change from the baseline."""
    ratio = None if arm == BASELINE else answer.analysis.result_of(arm).ratios.get(quantity)
    cells = _value_cells(answer.analysis.arm_values[arm].get(quantity), latency)
    shown = change_texts(ratio, as_factors=uses_factors([answer]))
    return [*cells, shown.value, shown.interval]


def _quantity_table(answer: Answer, result: ContenderResult, rows: list[QuantityRow]) -> Table:
    """Return a table of memory and of counters that differ."""
    baseline, contender = answer.comparison.baseline.label, answer.comparison.arms[result.contender].label
    shown = terminal_table(_("counters"), baseline, contender, _("change"), interval_heading())
    for label, *cells in rows:
        shown.add_row(Text(label), *cells)
    return shown


def _value_cells(estimate: Estimate | None, show: Callable[[float], str]) -> list[RenderableType]:
    if estimate is None:
        return ["", ""]
    return [show(estimate.value), Text(plus_minus(estimate.value, estimate.low, estimate.high), style="dim")]


def size_table(found: SizeTable) -> Table:
    """Return a table of the sizes of tables and indexes, with a column per arm."""
    shown = terminal_table(_("sizes"), *found.arms)
    for name, *cells in found.rows:
        shown.add_row(Text(name), *cells)
    return shown


def _caveat_lines(answer: Answer) -> list[str]:
    caveats = (_("{caveat} ({slug})", caveat=caveat_text(caveat), slug=caveat.slug) for caveat in answer.caveats)
    lines = [_("caveat: {caveat}", caveat=caveat) for caveat in caveats]
    defaults = [d for d in answer.differences if d.is_default]
    if defaults:
        shown = "; ".join(f"{d.name} {' / '.join(value or '-' for value in d.values)}" for d in defaults)
        lines.append(_("defaults that differ between versions or builds: {settings}", settings=shown))
    return lines


def print_study_answer(
    answer: StudyAnswer, console: Console, columns: int | None = None, *, with_published: bool = False
) -> None:
    """Print the whole study; a single comparison of the command line is printed by print_answer.

    console and columns: as for print_answer. with_published: whether to show published figures next to the measured
    ones, if the study has any.
    """
    if answer.is_comparison and answer.answers:
        print_parts(list(answer_parts(answer_tables(answer, MOST_ROWS))), console, columns)
        print_answer(answer.answers[0], console, columns)
        return
    print_parts(_parts_of_study(study_page(answer, with_published=with_published)), console, columns)


def _parts_of_study(page: StudyPage) -> list[RenderableType]:
    parts: list[RenderableType] = [Text(page.title, style="bold")]
    if page.question:
        parts.append(Text(page.question))
    parts += [Text(sentence) for sentence in page.answer]
    parts += _judged(page)
    for found in page.heat_maps:
        parts += [_heat_table(found), Text("")]
    if page.published is not None:
        parts += [_published_table(page.published), *map(Text, agreement_notes(page.published)), Text("")]
    if page.arm_values:
        parts += [_table_of_arms(_("all arms"), map(_, HEADS), page.arm_values), Text("")]
    if page.tps is not None:
        parts += [_table_of_arms(_("tps"), page.tps.workloads, page.tps.rows), Text("")]
    for sizes in page.sizes:
        parts += [size_table(sizes), Text("")]
    if page.times:
        parts += [
            _table_of_arms(_("times"), map(_, TIME_HEADS), page.times),
            Text(_(TIMES_NOTE), style="dim"),
            Text(""),
        ]
    if page.quantities:
        parts += [_quantities_of_study(page.quantities), Text(_(COUNTERS_NOTE), style="dim"), Text("")]
    for why in page.why:
        parts += [*why_texts(why), Text("")]
    parts += [Text(sentence) for sentence in page.overview]
    parts += [Text(_("not measured: {line}", line=line), style="red") for line in page.not_measured]
    parts += [Text(_("caveat: {caveat}", caveat=line)) for line in page.caveats]
    parts += [Text(line, style="dim") for line in page.small_print]
    parts.append(Text(_("results: {folder}", folder=page.results), style="dim"))
    return parts


def _judged(page: StudyPage) -> Iterator[RenderableType]:
    """Yield the tables that are the answer, or the verdicts."""
    yield Text("")
    yield from answer_parts(page.tables)
    if not page.tables:
        yield verdicts_of_study(page.verdicts)
        yield Text("")


def _heat_table(found: HeatMap) -> Table:
    """Return a table whose cells are colored by ratio if they show a difference."""
    shown = terminal_table(found.title, *found.columns)
    for place, cells in found.rows:
        shown.add_row(Text(place), *(_heat_cell(cell) for cell in cells))
    return shown


def _heat_cell(cell: HeatCell | None) -> Text:
    if cell is None:
        return Text("")
    style = f"black on {heat_color(cell)}" if heat_color(cell) else ""
    # On two lines, so that four columns fit into 80 characters.
    return Text(f"{cell.text}\n{cell.interval}".strip(), style=style)


def _published_table(rows: Sequence[PublishedRatio]) -> RenderableType:
    if not rows:
        return Text(_(NOTHING_PUBLISHED))
    shown = terminal_table(
        _("published and measured"), "", _("published"), _("measured"), interval_heading(), _("agreement")
    )
    for row, cells in zip(rows, published_cells(rows), strict=True):
        shown.add_row(*map(Text, cells), Text(agreement_word(row)))
    return shown


def _table_of_arms(first: str, heads: Iterable[str], rows: Iterable[tuple[str, ...]]) -> Table:
    """Return a table whose rows begin with a context and an arm."""
    shown = terminal_table(first, "", *heads)
    for context, arm, *cells in rows:
        shown.add_row(Text(context), Text(arm), *cells)
    return shown


def _quantities_of_study(rows: Sequence[PlacedQuantityRow]) -> Table:
    """Return a table of counters, grouped by verdict."""
    has_several = len({row.contender for row in rows}) > 1
    shown = terminal_table(_("counters"), "", _("baseline"), _("contender"), _("change"), interval_heading())
    above = None
    for row in rows:
        place = f"{row.context}  {row.contender}" if has_several else row.context
        label, *cells = row.quantity
        shown.add_row(Text("" if place == above else place), Text(label), *cells)
        above = place
    return shown


def verdicts_of_study(rows: Sequence[VerdictRow], *, is_narrow: bool = False) -> Table:
    """Return the table of verdicts; constant columns become part of a heading, and empty columns are omitted.

    is_narrow: whether headings take two lines, changes are in the column of the verdicts, and the number of blocks is
    omitted if it is constant, or if several contenders need a column.
    """
    metrics, baselines = {row.metric for row in rows}, {row.baseline for row in rows}
    contenders = {row.contender for row in rows}
    metric = metrics.pop() if len(metrics) == 1 else _("value")
    baseline = baselines.pop() if len(baselines) == 1 else _("baseline")
    contender = contenders.pop() if len(contenders) == 1 else ""
    checks = [""] if any(row.check for row in rows) else []
    factors = _common_factors(rows)
    has_blocks = not is_narrow or (bool(contender) and len({row.blocks for row in rows}) > 1)
    gap = "\n" if is_narrow else " "
    values = [f"{metric}{gap}{baseline}", f"{metric}{gap}{contender}".strip()]
    changes = [] if is_narrow else [_("change")]
    heads = [*values, *changes, interval_heading(), _("verdict"), *([_("blocks")] if has_blocks else []), *checks]
    names = [*(factors or [""]), *([] if contender else [""])]
    shown = terminal_table(*names, *heads)
    # Like the first column, the others that name a verdict are texts.
    for column in shown.columns[: len(names)]:
        column.justify = "left"
    for row in rows:
        place = [level for _factor, level in row.levels] if factors else [row.context]
        cells: list[RenderableType] = [Text(text) for text in [*place, *([] if contender else [row.contender])]]
        cells += [row.baseline_text, row.contender_text, *([row.claim] if changes else []), row.interval]
        word = f"{row.word} {row.change}" if is_narrow and row.verdict in DIFFERENT else row.word
        cells += [Text(word, style=STYLES[row.verdict]), *([row.blocks] if has_blocks else [])]
        shown.add_row(*cells, *([Text(row.check, style="yellow bold")] if checks else []))
    return shown


def _common_factors(rows: Sequence[VerdictRow]) -> list[str]:
    """Return the factors that all contexts have levels of; empty if they differ."""
    found = {tuple(factor for factor, _level in row.levels) for row in rows}
    return list(found.pop()) if len(found) == 1 else []
