"""Two results side by side: for a terminal or a pipe, as Markdown for a pull request, and as an HTML page."""

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from pgversus.report.console import STYLES, print_parts, terminal_table
from pgversus.report.html import rendered_page
from pgversus.report.markdown import bullets, escaped, paragraph, table
from pgversus.report.sentences import interval_heading
from pgversus.report.side_by_side.agreement import Agreement, SideBySide
from pgversus.report.side_by_side.section import SideBySideSection, SideText, side_by_side_section
from pgversus.text.translation import _


def side_by_side_markdown(found: SideBySide) -> str:
    """Return the comparison as Markdown: ratios, values, differences, and everything without a counterpart."""
    section = side_by_side_section(found)
    parts = [
        f"## {escaped(section.title)}",
        "\n".join(f"- **{name}**: {escaped(words)}" for name, words in section.sources),
        _ratio_rows(section),
        paragraph(" ".join(section.sentences)),
        _value_rows(section),
        _list(section.notes, _("Differences")),
        _list([f"{place}: {reason}" for place, reason in section.not_comparable], _("Not comparable")),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ratio_rows(section: SideBySideSection) -> str:
    confidence = interval_heading()
    heads = (
        _("context"),
        _("metric"),
        "A",
        confidence,
        _("verdict"),
        "B",
        confidence,
        _("verdict"),
        _("B / A"),
        _("A vs B"),
        _("differences"),
    )
    rows = [
        (
            row.place,
            row.metric,
            *(cell for side in (row.a, row.b) for cell in (side.change, side.interval, side.verdict_word)),
            row.quotient,
            row.words,
            row.around,
        )
        for row in section.rows
    ]
    return table(heads, rows, names=2)


def _value_rows(section: SideBySideSection) -> str:
    heads = (
        _("values (not comparable between A and B)"),
        _("baseline in A"),
        _("contender in A"),
        _("baseline in B"),
        _("contender in B"),
        _("blocks"),
    )
    rows = [
        (
            f"{row.place} ({row.metric})",
            *(text for side in (row.a, row.b) for text in (side.baseline_text, side.contender_text)),
            f"{row.a.blocks} / {row.b.blocks}",
        )
        for row in section.rows
    ]
    return table(heads, rows)


def _list(lines: list[str], head: str) -> str:
    if not lines:
        return ""
    return f"**{escaped(head)}**\n\n{bullets(lines)}"


def side_by_side_html(found: SideBySide) -> str:
    """Return the page in the current language; user texts are escaped."""
    section = side_by_side_section(found)
    return rendered_page("side_by_side.html", title=section.title, section=section, confidence=interval_heading())


_COLORS = {
    Agreement.AGREE: "cyan",
    Agreement.LARGER_IN_A: "yellow",
    Agreement.LARGER_IN_B: "yellow",
    Agreement.HIGHER_IN_A: "yellow",
    Agreement.HIGHER_IN_B: "yellow",
    Agreement.OPPOSITE: "red",
    Agreement.OPEN: "dim",
    Agreement.NOT_JUDGED: "dim",
}


def print_side_by_side(found: SideBySide, console: Console, columns: int | None = None) -> None:
    """Print the comparison; console and columns: as for print_answer."""
    section = side_by_side_section(found)
    parts: list[RenderableType] = [Text(section.title, style="bold")]
    parts += [Text(f"{name}: {words}") for name, words in section.sources]
    if section.rows:
        parts += [Text(""), _ratios(section), Text(""), _values(section)]
    parts += [Text(""), *(Text(sentence) for sentence in section.sentences)]
    parts += [Text(_("difference: {note}", note=note)) for note in section.notes]
    parts += [
        Text(_("not comparable: {place}: {reason}", place=place, reason=reason))
        for place, reason in section.not_comparable
    ]
    print_parts(parts, console, columns)


def _ratios(section: SideBySideSection) -> Table:
    confidence = interval_heading()
    shown = terminal_table("", "A", confidence, "", "B", confidence, "", _("B / A"), _("A vs B"), _("differences"))
    for row in section.rows:
        agreement = Text(row.words, style=_COLORS[row.agreement])
        shown.add_row(Text(row.place), *_cells(row.a), *_cells(row.b), Text(row.quotient), agreement, Text(row.around))
    return shown


def _cells(side: SideText) -> list[RenderableType]:
    return [side.change, Text(side.interval), Text(side.verdict_word, style=STYLES[side.verdict])]


def _values(section: SideBySideSection) -> Table:
    """Return a table of values next to their own baselines; the columns of A and B are not comparable."""
    heads = [_("baseline in A"), _("contender in A"), _("baseline in B"), _("contender in B")]
    shown = terminal_table(_("values (not comparable between A and B)"), "", *heads, _("blocks"))
    for row in section.rows:
        a, b = row.a, row.b
        texts = (a.baseline_text, a.contender_text, b.baseline_text, b.contender_text)
        shown.add_row(Text(row.place), row.metric, *texts, f"{a.blocks} / {b.blocks}")
    return shown
