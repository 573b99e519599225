"""A study as Markdown for a pull request: a table of verdicts, the sentences, the caveats."""

import html
import re
from collections.abc import Iterable, Iterator, Sequence

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.plans import ComparedPlans, PlansAnswer
from pgversus.plans.sentences import headline, sentences
from pgversus.report.answer_table import AnswerTable
from pgversus.report.arm_tables import HEADS, TIME_HEADS, TIMES_NOTE, SizeTable, TpsTable
from pgversus.report.plans import NOTHING_COMPARED, override_text, plan_lines, plan_warnings, statement_text, times
from pgversus.report.published import NOTHING_PUBLISHED, PublishedRatio, agreement_text, published_cells
from pgversus.report.sentences import interval_heading
from pgversus.report.study_page import study_page
from pgversus.report.sweeps import HeatMap
from pgversus.report.values import COUNTERS_NOTE, PlacedQuantityRow
from pgversus.report.verdicts import VerdictRow
from pgversus.report.why import Explanation
from pgversus.text.redaction import visible
from pgversus.text.translation import _, together

_TICKS = re.compile("`+")
_LEAST = 3


def fenced(text: str, language: str = "") -> str:
    """Return a code block whose fences are longer than any run of backticks in it."""
    shown = visible(text).strip("\n")
    longest = max((len(run) for run in _TICKS.findall(shown)), default=0)
    fence = "`" * max(_LEAST, longest + 1)
    return f"{fence}{language}\n{shown}\n{fence}"


def folded(summary: str, content: str) -> str:
    """Return collapsed content with a summary line. summary: plain text; content: Markdown."""
    line = html.escape(" ".join(visible(summary).split()), quote=False)
    return f"<details><summary>{_unnamed(line)}</summary>\n\n{content}\n\n</details>"


_SPECIAL = str.maketrans({character: f"\\{character}" for character in "\\`*_[]<>|#~&$"})
_NAMED = re.compile(r"(?<!\w)@(?=\w)|\\?#(?=\d)|\b[Gg][Hh]-(?=\d)|:(?=[a-z+\\-][\w+\\-]*:)")
"""Text that GitHub turns into a mention, an issue link or an emoji, even after a backslash: this is its last step."""
_NOTHING = "&#8203;"
"""A zero-width space, which breaks such a name at its beginning."""
_BLOCK = re.compile(r"([-+=]|\d{1,9}(?=[.)](?:\s|$)))")
"""Characters that turn a paragraph into a list, a rule or a heading if it begins with them."""


def markdown(answer: StudyAnswer, *, with_published: bool = False) -> str:
    """Return the whole study as Markdown; user texts are escaped, so that no query or name becomes mark-up.

    with_published: whether to show published figures next to the measured ones, if the study has any.
    """
    page = study_page(answer, with_published=with_published)
    parts = [
        f"## {escaped(page.title)}" if page.title else "",
        paragraph(page.question),
        paragraph(together(*page.answer)),
        *(_answer_table(found) for found in page.tables),
        "" if page.tables else _verdicts(page.verdicts),
        *(_heat_map(found) for found in page.heat_maps),
        paragraph(together(*page.overview)),
        _published(page.published) if page.published is not None else "",
        _of_arms(HEADS, page.arm_values),
        _tps(page.tps) if page.tps is not None else "",
        *(_sizes(found) for found in page.sizes),
        _of_arms(TIME_HEADS, page.times),
        paragraph(_(TIMES_NOTE)) if page.times else "",
        _quantities(page.quantities),
        paragraph(_(COUNTERS_NOTE)) if page.quantities else "",
        *(_why(found) for found in page.why),
        bullets(_("not measured: {line}", line=line) for line in page.not_measured),
        bullets(_("caveat: {caveat}", caveat=line) for line in page.caveats),
        bullets(page.small_print),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def escaped(text: str) -> str:
    """Escape a text for use inside a line, and join its lines."""
    # Made visible first, because split() treats a file separator (U+001C) as white space.
    line = " ".join(visible(text).split()).translate(_SPECIAL)
    return _unnamed(line)


def _unnamed(line: str) -> str:
    return _NAMED.sub(rf"\g<0>{_NOTHING}", line)


def paragraph(text: str) -> str:
    """Escape a text for a line of its own."""
    line = escaped(text)
    found = _BLOCK.match(line)
    if not found:
        return line
    # After a number, the mark is escaped, because it is the mark that makes a list.
    return f"\\{line}" if not found[0].isdigit() else f"{found[0]}\\{line[found.end() :]}"


def bullets(lines: Iterable[str]) -> str:
    """Return a list with an item for each line; empty without lines."""
    return "\n".join(f"- {paragraph(line)}" for line in lines)


def table(heads: Sequence[str], rows: Sequence[Sequence[str]], *, names: int = 1, keeps_empty: bool = False) -> str:
    """Return a table whose first `names` columns are left-aligned and the others right-aligned; cells are escaped.

    keeps_empty: whether to keep empty columns, which are meaningful on a map.
    """
    kept = [column for column in range(len(heads)) if keeps_empty or any(row[column] for row in rows)]
    marks = [":--"] * names + ["--:"] * (len(heads) - names)
    lines = [heads, marks, *([escaped(cell) for cell in row] for row in rows)]
    return "\n".join(f"| {' | '.join(line[column] for column in kept)} |" for line in lines) if rows else ""


def _answer_table(found: AnswerTable) -> str:
    # A head may contain the label of an arm.
    heads = [escaped(head) for head in found.heads]
    parts = (f"**{escaped(found.title)}**", table(heads, found.rows, names=found.names), bullets(found.notes))
    return "\n\n".join(part for part in parts if part)


def _verdicts(rows: Sequence[VerdictRow]) -> str:
    heads = (
        _("context"),
        _("baseline"),
        _("contender"),
        _("metric"),
        _("baseline value"),
        _("contender value"),
        _("change"),
        interval_heading(),
        _("verdict"),
        _("blocks"),
        _("caveats"),
    )
    cells = [
        (
            row.context,
            row.baseline,
            row.contender,
            row.metric,
            row.baseline_text,
            row.contender_text,
            row.claim,
            row.interval,
            row.word,
            row.blocks,
            row.check,
        )
        for row in rows
    ]
    return table(heads, cells, names=4)


def _heat_map(found: HeatMap) -> str:
    heads = (escaped(found.title), *(escaped(column) for column in found.columns))
    rows = [
        (place, *("" if cell is None else f"{cell.text} {cell.interval}".strip() for cell in cells))
        for place, cells in found.rows
    ]
    return table(heads, rows, keeps_empty=True)


def _published(rows: Sequence[PublishedRatio]) -> str:
    if not rows:
        return _(NOTHING_PUBLISHED)
    names = _("context"), _("contender"), _("published"), _("measured")
    heads = (*names, interval_heading(), _("agreement"))
    cells = zip(rows, published_cells(rows), strict=True)
    return table(heads, [(*texts, agreement_text(row)) for row, texts in cells], names=2)


def _of_arms(heads: Iterable[str], rows: Sequence[tuple[str, ...]]) -> str:
    return table((_("context"), _("arm"), *map(_, heads)), rows, names=2)


def _tps(found: TpsTable) -> str:
    return table((_("context"), _("arm (tps)"), *map(escaped, found.workloads)), found.rows, names=2)


def _sizes(found: SizeTable) -> str:
    return table((_("sizes"), *map(escaped, found.arms)), found.rows, keeps_empty=True)


def _quantities(rows: Sequence[PlacedQuantityRow]) -> str:
    heads = (
        _("context"),
        _("contender"),
        _("counter"),
        _("baseline value"),
        _("contender value"),
        _("change"),
        interval_heading(),
    )
    return table(heads, [(row.context, row.contender, *row.quantity) for row in rows], names=3)


def _why(found: Explanation) -> str:
    """Return the claim, and each changed plan as a collapsed section."""
    place = f" ({escaped(found.context)})" if found.context else ""
    head = _("Why")
    parts = [f"**{head}**{place}: {escaped(together(found.claim, *found.notes))}"]
    parts += [folded(f"{one.statement}: {one.headline}", bullets(one.sentences)) for one in found.changed]
    return "\n\n".join(parts)


def plans_markdown(answer: PlansAnswer) -> str:
    """Return the warnings, then each comparison: a heading, a list of sentences, and both plans, collapsed."""
    warnings = bullets(_("caveat: {caveat}", caveat=text) for text in plan_warnings(answer))
    parts = [part for one in answer.compared for part in _parts(one)] or [_(NOTHING_COMPARED)]
    return "\n\n".join([warnings, *parts] if warnings else parts) + "\n"


def _parts(one: ComparedPlans) -> Iterator[str]:
    baseline, contender = one.labels
    yield f"### {escaped(statement_text(one.statement))}"
    yield paragraph(f"{baseline} → {contender}: {headline(one.difference)}")
    if found := sentences(one.difference):
        yield bullets(found)
    if undone := override_text(one):
        yield paragraph(undone)
    if timing := times(one):
        yield paragraph(timing)
    for label, plan in zip(one.labels, one.plans, strict=True):
        yield folded(label, fenced("\n".join(plan_lines(plan))))
