"""Two results side by side as a page of its own: without scripts, without anything from elsewhere."""

from pgversus.report.html import rendered_page
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.side_by_side.put import SideBySide
from pgversus.report.side_by_side.section import side_by_side_section


def side_by_side_html(found: SideBySide) -> str:
    """The page, in the language of now; texts of users are escaped."""
    section = side_by_side_section(found)
    return rendered_page("side_by_side.html", title=section.title, section=section, confidence=percent_of_confidence())
