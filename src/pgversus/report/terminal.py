"""The answer for a terminal or a pipe: the sentence first, then the tables, then what to distrust."""

from collections.abc import Callable, Sequence
from functools import partial

from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.report.answer import Answer
from pgversus.report.overview import MARKS
from pgversus.report.quantities import COUNTERS_NOTE, QuantityRow, level_text, quantity_rows
from pgversus.report.sentences import answer_sentences, metric_words, percent_of_confidence
from pgversus.report.small_print import comparison_lines
from pgversus.report.table_sizes import SizeTable, size_tables
from pgversus.report.verdicts import verdict_word
from pgversus.report.why import Why, why_of
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.study.workload import Operation
from pgversus.text.translation import later, tell
from pgversus.text.units import change, change_interval, latency, plus_minus

_LATENCIES = {
    Metric.LATENCY_MEAN: later("mean"),
    Metric.LATENCY_P50: later("p50"),
    Metric.LATENCY_P95: later("p95"),
    Metric.LATENCY_P99: later("p99"),
    Metric.LATENCY_MAX: later("max"),
}
_WIDTH_OF_LATENCY = 6
"""Columns of such a name and of what parts it from the next."""
STYLES = {
    Verdict.FASTER: "green",
    Verdict.SLOWER: "red",
    Verdict.EQUIVALENT: "cyan",
    Verdict.UNDECIDED: "yellow",
    Verdict.INVALID: "red bold",
}
WIDEST = 10_000
"""Columns of a console on which no table is cut."""


def print_answer(answer: Answer, console: Console, columns: int | None = None) -> None:
    """Print the whole answer; colours are the console's business.

    console: as wide as WIDEST. columns: of the terminal that it stands for; None for a pipe.
    """
    print_parts(_parts(answer), console, columns)


def print_parts(parts: Sequence[RenderableType], console: Console, columns: int | None) -> None:
    """Print tables as wide as they are, since one that is cut loses values, and words wrapped for eyes.

    A program that reads a pipe wants each sentence on one line.
    """
    for part in parts:
        if isinstance(part, Table) or columns is None:
            console.print(part, soft_wrap=True)
        else:
            console.print(part, width=columns)


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


def why_texts(why: Why) -> list[Text]:
    """What the plans account for, then each changed one with its sentences."""
    claim = (
        tell("why ({context}): {claim}", context=why.context, claim=why.claim)
        if why.context
        else tell("why: {claim}", claim=why.claim)
    )
    lines = [Text(claim), *(Text(f"  {note}") for note in why.notes)]
    for one in why.changed:
        lines.append(Text(f"  {one.statement}: {one.headline}"))
        lines += [Text(f"    - {sentence}") for sentence in one.sentences]
    return lines


def _counters(answer: Answer) -> list[RenderableType]:
    """A table for each contender, and once below them how to read them."""
    found = [(result, quantity_rows(answer, result)) for result in answer.analysis.results]
    tables = [_quantity_table(answer, result, rows) for result, rows in found if rows]
    spaced = (part for table in tables for part in (Text(""), table))
    return [*list(spaced)[1:], Text(tell(COUNTERS_NOTE), style="dim"), Text("")] if tables else []


def _verdict_table(answer: Answer) -> Table:
    comparison, metric = answer.comparison, answer.analysis.metric
    first = Metric.TIME if isinstance(comparison.workload, Operation) else Metric.TPS
    baseline = comparison.baseline.label
    against = (
        tell("vs {baseline}", baseline=baseline)
        if metric is first
        else tell("{metric} vs {baseline}", metric=metric_words(metric), baseline=baseline)
    )
    rows = table("", metric_words(first), "", against, percent_of_confidence(), "", tell("blocks"))
    for arm in comparison.arms:
        level = answer.analysis.levels[arm.index].get(first)
        cells: list[RenderableType] = [Text(arm.label), *_level(level, partial(level_text, first))]
        if arm.index == BASELINE:
            cells += ["", "", "", ""]
        else:
            cells += _result_cells(answer, answer.analysis.result_of(arm.index))
        rows.add_row(*cells)
    return rows


def _result_cells(answer: Answer, result: ContenderResult) -> list[RenderableType]:
    ratio = result.ratios.get(answer.analysis.metric)
    if ratio is None:
        shown, bounds = "", ""
    else:
        shown = MARKS.get(result.verdict) or change(ratio.value)
        bounds = change_interval(ratio.low, ratio.high)
    return [shown, bounds, Text(verdict_word(result.verdict), style=STYLES[result.verdict]), str(result.blocks)]


def _more_times(answer: Answer) -> list[RenderableType]:
    """The latencies under a load, or the steps of an operation that has several."""
    workload = answer.comparison.workload
    if not isinstance(workload, Operation):
        return [_latency_table(answer, is_open_loop=workload.is_open_loop), Text("")]
    return [_step_table(answer, workload), Text("")] if len(workload.steps) > 1 else []


def _latency_table(answer: Answer, *, is_open_loop: bool) -> Table:
    """One row for each metric and arm: narrow enough for a terminal, however many arms there are."""
    comparison = answer.comparison
    head = tell("latency (from the scheduled start)") if is_open_loop else tell("latency (closed loop)")
    against = tell("vs {baseline}", baseline=comparison.baseline.label)
    rows = table(head, "", "", against, percent_of_confidence())
    for metric, words in _LATENCIES.items():
        name = tell(words)
        space = " " * (_WIDTH_OF_LATENCY - cell_len(name))
        for arm in comparison.arms:
            rows.add_row(Text(f"{name}{space}{arm.label}"), *_time_cells(answer, metric, arm.index))
    return rows


def _step_table(answer: Answer, operation: Operation) -> Table:
    """One row for each step and arm."""
    comparison = answer.comparison
    against = tell("vs {baseline}", baseline=comparison.baseline.label)
    rows = table(tell("steps"), tell("time"), "", against, percent_of_confidence())
    width = max(len(step.name) for step in operation.steps)
    for step in operation.steps:
        for arm in comparison.arms:
            name = Text(f"{step.name:<{width}}  {arm.label}")
            rows.add_row(name, *_time_cells(answer, StepTime(step.name), arm.index))
    return rows


def _time_cells(answer: Answer, quantity: Quantity, arm: int) -> list[RenderableType]:
    """A length of time on an arm, and how it stands to the baseline's."""
    ratio = None if arm == BASELINE else answer.analysis.result_of(arm).ratios.get(quantity)
    cells = _level(answer.analysis.levels[arm].get(quantity), latency)
    return [*cells, *([change(ratio.value), change_interval(ratio.low, ratio.high)] if ratio else ["", ""])]


def _quantity_table(answer: Answer, result: ContenderResult, rows: list[QuantityRow]) -> Table:
    """Memory, and what explains a difference or goes with it."""
    baseline, contender = answer.comparison.baseline.label, answer.comparison.arms[result.contender].label
    shown = table(tell("counters"), baseline, contender, "", percent_of_confidence())
    for row in rows:
        shown.add_row(Text(row.name), row.baseline, row.contender, row.change, row.interval)
    return shown


def _level(estimate: Estimate | None, show: Callable[[float], str]) -> list[RenderableType]:
    if estimate is None:
        return ["", ""]
    return [show(estimate.value), Text(plus_minus(estimate.value, estimate.low, estimate.high), style="dim")]


def size_table(found: SizeTable) -> Table:
    """Tables and indexes, a column for each arm."""
    shown = table(tell("sizes"), *found.arms)
    for name, cells in found.rows:
        shown.add_row(Text(name), *cells)
    return shown


def table(first: str, *heads: str) -> Table:
    """An empty table in our one form: names to the left, numbers to the right, no lines."""
    empty = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold", show_edge=False)
    empty.add_column(Text(first), no_wrap=True)
    for head in heads:
        empty.add_column(Text(head), justify="right", no_wrap=True)
    return empty


def _caveat_lines(answer: Answer) -> list[str]:
    caveats = (tell("{caveat} ({slug})", caveat=caveat.text, slug=caveat.slug) for caveat in answer.caveats)
    lines = [tell("caveat: {caveat}", caveat=caveat) for caveat in caveats]
    defaults = [d for d in answer.differences if d.is_default]
    if defaults:
        shown = "; ".join(f"{d.name} {' / '.join(value or '-' for value in d.values)}" for d in defaults)
        lines.append(tell("defaults that differ with version or build: {settings}", settings=shown))
    return lines
