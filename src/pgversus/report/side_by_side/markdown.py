"""Two results side by side as Markdown for a pull request; texts of users are escaped."""

from pgversus.report.markdown import escaped, paragraph, table
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.side_by_side.put import SideBySide
from pgversus.report.side_by_side.section import SideBySideSection, side_by_side_section
from pgversus.text.translation import tell


def side_by_side_markdown(found: SideBySide) -> str:
    """All of it: the ratios, the values, what is not alike, what has nothing beside it."""
    section = side_by_side_section(found)
    parts = [
        f"## {escaped(section.title)}",
        "\n".join(f"- **{name}**: {escaped(words)}" for name, words in section.sources),
        _ratios(section),
        paragraph(" ".join(section.sentences)),
        _values(section),
        _list(section.notes, tell("Not alike")),
        _list([f"{one.place}: {one.reason}" for one in section.not_comparable], tell("Not comparable")),
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def _ratios(section: SideBySideSection) -> str:
    confidence = percent_of_confidence()
    heads = (
        tell("context"),
        tell("metric"),
        "A",
        confidence,
        tell("verdict"),
        "B",
        confidence,
        tell("verdict"),
        tell("B over A"),
        tell("A and B"),
        tell("not alike"),
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


def _values(section: SideBySideSection) -> str:
    heads = (
        tell("values, not to be compared between A and B"),
        tell("A baseline"),
        tell("A contender"),
        tell("B baseline"),
        tell("B contender"),
        tell("blocks"),
    )
    rows = [
        (
            f"{row.place} ({row.metric})",
            *(level for side in (row.a, row.b) for level in (side.baseline_level, side.contender_level)),
            f"{row.a.blocks} / {row.b.blocks}",
        )
        for row in section.rows
    ]
    return table(heads, rows)


def _list(lines: list[str], head: str) -> str:
    if not lines:
        return ""
    return "\n".join([f"**{escaped(head)}**", "", *(f"- {paragraph(line)}" for line in lines)])
