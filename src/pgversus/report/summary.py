"""The answer on one screen of a terminal: verdict, arms, latencies, five counters, the cause, and the next command.

Everything else is in the full report (report/terminal.py, page/). All ratios of one summary have the same form.
"""

import io
import shlex
from collections.abc import Iterator, Mapping
from itertools import islice

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.console import STYLES, SafeConsole, answer_parts, print_parts, terminal_table
from pgversus.report.methodology import restarts
from pgversus.report.overview import MOST_ROWS, joint_caveats, not_measured, overview_sentences, verdict_rows
from pgversus.report.sentences import answer_sentences, interval_heading, metric_text
from pgversus.report.study_answer import answer_tables, study_sentences
from pgversus.report.terminal import verdicts_of_study
from pgversus.report.values import (
    COUNTERS_NOTE,
    change_texts,
    counter_label,
    counter_text,
    mean_text,
    sure_counter_names,
    uses_factors,
    value_text,
)
from pgversus.report.verdicts import MARKS, verdict_in_table
from pgversus.report.why import study_why, why_of
from pgversus.report.windows import windows_text
from pgversus.stats.analysis import Estimate
from pgversus.stats.confidence import DIFFERENT
from pgversus.stats.counters import CounterRatio
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import LATENCIES, Quantity, StepTime
from pgversus.study.study import StudyKind
from pgversus.text.redaction import visible
from pgversus.text.translation import N_, _, ngettext, shortened_list, together
from pgversus.text.units import duration, ratio_texts

_PICTURE_COLUMNS = 100
_PICTURE = """<svg viewBox="0 0 {width} {height}" xmlns="http://www.w3.org/2000/svg">
<style>
.{unique_id}-matrix {{ font-family: ui-monospace, Menlo, Consolas, "DejaVu Sans Mono", monospace; }}
.{unique_id}-matrix {{ font-size: {char_height}px; line-height: {line_height}px; }}
.{unique_id}-title {{ font-family: system-ui, sans-serif; font-size: 18px; }}
{styles}
</style>
<defs>
{lines}
</defs>
{chrome}
<g transform="translate({terminal_x}, {terminal_y})">
{backgrounds}
<g class="{unique_id}-matrix">{matrix}</g>
</g>
</svg>
"""
# The default template of rich loads its font from the web, and clips the lower edge of the last line.
_MOST_COUNTERS = 5
_MOST_CAVEATS = 3
_LINES_OF_WHY = 3
_MOST_READ = 12
_RANGE = N_("{least} to {most}")
_RESTARTED = N_("method: {windows} per arm and block, servers restarted for each block; {duration}")
_NOT_RESTARTED = N_("method: {windows} per arm and block; {duration}")


def print_summary(answer: StudyAnswer, console: Console, columns: int | None = None) -> None:
    """Print the summary; console and columns: as for print_answer."""
    if answer.study.kind in (StudyKind.UPGRADE_CHECK, StudyKind.TIMELINE):
        parts = _tables(answer)
    else:
        parts = _comparison(answer.answers[0]) if answer.is_comparison and answer.answers else _study(answer)
    print_parts([*parts, *_caveats(answer), *_ending(answer)], console, columns)


def summary_picture(answer: StudyAnswer) -> str:
    """Return the summary as an SVG picture of a terminal, with the command as its title; it loads no font."""
    console = SafeConsole(record=True, file=io.StringIO(), force_terminal=True, width=_PICTURE_COLUMNS)
    print_summary(answer, console, _PICTURE_COLUMNS)
    return console.export_svg(title=visible(answer.invocation.command) or "pgversus report", code_format=_PICTURE)


def print_sentences(answer: StudyAnswer, console: Console, columns: int | None = None) -> None:
    """Print only the sentences of the answer."""
    print_parts([Text(sentence) for sentence in study_sentences(answer)], console, columns)


def _comparison(answer: Answer) -> Iterator[RenderableType]:
    yield from (Text(sentence, style="bold") for sentence in answer_sentences(answer))
    yield Text("")
    yield _arms(answer)
    counters = _counters(answer) if answer.blocks else None
    for table in (_times(answer) if answer.blocks else None, counters):
        if table is not None:
            yield Text("")
            yield table
    if counters is not None:
        yield Text(_(COUNTERS_NOTE), style="dim")
    yield Text("")
    yield from _why(answer)


def _tables(answer: StudyAnswer) -> Iterator[RenderableType]:
    yield from (Text(sentence, style="bold") for sentence in study_sentences(answer))
    yield Text("")
    yield from answer_parts(answer_tables(answer, MOST_ROWS))
    yield from (Text(_("not measured: {line}", line=line), style="red") for line in not_measured(answer))


def _study(answer: StudyAnswer) -> Iterator[RenderableType]:
    yield Text(answer.study.title, style="bold")
    yield from map(Text, study_sentences(answer))
    yield Text("")
    yield verdicts_of_study(verdict_rows(answer, MOST_ROWS), is_narrow=True)
    yield Text("")
    yield Text(together(*overview_sentences(answer)))
    yield from map(Text, _reasons(answer))
    yield from (Text(_("not measured: {line}", line=line), style="red") for line in not_measured(answer))


def _reasons(answer: StudyAnswer) -> Iterator[str]:
    """Yield a few reasons for differences, each with the contexts that share it."""
    found: dict[str, list[str]] = {}
    # Reading the plans of a context takes time.
    for why in islice((one for one in study_why(answer) if one.verdict in DIFFERENT), _MOST_READ):
        # A workload is recognized by its name alone.
        found.setdefault(why.brief[0], []).append(why.context.removeprefix("workload="))
    for claim, contexts in islice(found.items(), _LINES_OF_WHY):
        yield _("why ({context}): {claim}", context=shortened_list(contexts), claim=claim)


def _arms(answer: Answer) -> Table:
    """Return a table with one row per arm."""
    comparison, metric = answer.comparison, answer.analysis.metric
    against = _("vs {baseline}", baseline=comparison.baseline.label)
    rows = terminal_table("", metric_text(metric), _("range over blocks"), against, interval_heading(), _("verdict"))
    for arm in comparison.arms:
        trials = [block.trials[arm.index] for block in answer.blocks if arm.index in block.trials]
        values = [value for trial in trials if (value := trial.value(metric)) is not None]
        values = values if metric in answer.analysis.arm_values[arm.index] else []
        shown = [value_text(metric, value) for value in (min(values), max(values))] if values else []
        cells = [
            mean_text(answer, arm.index, metric),
            _(_RANGE, least=shown[0], most=shown[1]) if shown else "",
        ]
        rows.add_row(Text(arm.label), *cells, *_verdict_cells(answer, arm.index))
    return rows


def _verdict_cells(answer: Answer, arm: int) -> list[RenderableType]:
    if arm == BASELINE:
        return ["", "", ""]
    result = answer.analysis.result_of(arm)
    shown = change_texts(result.ratios.get(answer.analysis.metric), as_factors=uses_factors([answer]))
    change = shown.value and (MARKS.get(result.verdict) or shown.value)
    return [change, shown.interval, Text(verdict_in_table(answer, result), style=STYLES[result.verdict])]


def _times(answer: Answer) -> Table | None:
    """Return a table of latencies, or of the steps of an operation that has several, with a column per arm."""
    workload = answer.comparison.workload
    if not workload.steps:
        head = _("latency from the scheduled start") if workload.is_open_loop else _("latency")
        return _by_arm(answer, head, {_(metric.short): metric for metric in LATENCIES})
    steps: Mapping[str, Quantity] = {step.name: StepTime(step.name) for step in workload.steps}
    return _by_arm(answer, _("steps"), steps) if len(steps) > 1 else None


def _by_arm(answer: Answer, head: str, quantities: Mapping[str, Quantity]) -> Table:
    arms = answer.comparison.arms
    rows = terminal_table(head, *(arm.label for arm in arms), *_against(answer))
    for name, quantity in quantities.items():
        values = [mean_text(answer, arm.index, quantity) for arm in arms]
        if not any(values):
            continue
        rows.add_row(Text(name), *values, *_change(answer, answer.analysis.results[0].ratios.get(quantity)))
    return rows


def _against(answer: Answer) -> list[str]:
    """Return the heading of the ratio column, which is shown only for a single contender."""
    one = len(answer.analysis.results) == 1
    return [_("vs {baseline}", baseline=answer.comparison.baseline.label)] if one else []


def _change(answer: Answer, ratio: Estimate | CounterRatio | None) -> list[str]:
    """Return the cell of the ratio column, if there is one."""
    if len(answer.analysis.results) > 1:
        return []
    return [ratio_texts(ratio.value, None, None, as_factors=uses_factors([answer])).value if ratio else ""]


def _counters(answer: Answer) -> Table | None:
    """Return a table of the counters with the largest significant differences, with a column per arm."""
    names = sure_counter_names(answer, _MOST_COUNTERS)
    if not names:
        return None
    arms = answer.comparison.arms
    rows = terminal_table(_("counters"), *(arm.label for arm in arms), *_against(answer))
    for name in names:
        found = [answer.analysis.counters[arm.index].get(name) for arm in arms]
        values = ["" if value is None else counter_text(name, value) for value in found]
        change = _change(answer, answer.analysis.results[0].counters.get(name))
        rows.add_row(Text(counter_label(answer, name)), *values, *change)
    return rows


def _why(answer: Answer) -> Iterator[Text]:
    """Yield the claim, and if it is the only one, the first differences of the first changed plan."""
    found = why_of(answer)
    for why in found[:_LINES_OF_WHY]:
        yield Text(_("why: {claim}", claim=together(*why.brief)))
    if len(found) == 1:
        room = _LINES_OF_WHY - len(found[0].brief)
        yield from (Text(f"  - {sentence}") for one in found[0].changed[:1] for sentence in one.sentences[:room])


def _caveats(answer: StudyAnswer) -> Iterator[Text]:
    lines = joint_caveats(answer)
    yield from (Text(_("caveat: {caveat}", caveat=line)) for line in lines[:_MOST_CAVEATS])
    if (more := len(lines) - _MOST_CAVEATS) > 0:
        yield Text(
            ngettext("{number} more caveat in the full report", "{number} more caveats in the full report", more)
        )


def _ending(answer: StudyAnswer) -> Iterator[Text]:
    """Yield the method, the results folder, and the next command."""
    if measured := [one for one in answer.answers if one.blocks]:
        method = _RESTARTED if restarts(measured) else _NOT_RESTARTED
        wall_s = sum(one.wall_s for one in answer.answers)
        yield Text(_(method, windows=windows_text(measured), duration=duration(wall_s)), style="dim")
    yield Text(_("results: {folder}", folder=answer.results), style="dim")
    yield Text(_("next: {command}", command=f"pgversus report {shlex.quote(answer.results)} --verbose"), style="dim")
