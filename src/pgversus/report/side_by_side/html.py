"""Two results side by side as a page of its own: without scripts, without anything from elsewhere."""

from jinja2 import Environment, PackageLoader, StrictUndefined

from pgversus.language import spoken, tell
from pgversus.report.sentences import percent_of_confidence
from pgversus.report.side_by_side.put import SideBySide
from pgversus.report.side_by_side.section import side_by_side_section
from pgversus.report.visible import visible


def side_by_side_html(found: SideBySide) -> str:
    """The page, in the language of now; texts of users are escaped."""
    environment = Environment(
        loader=PackageLoader("pgversus.report"), autoescape=True, undefined=StrictUndefined, trim_blocks=True
    )
    environment.filters["visible"] = visible
    environment.globals["tell"] = tell
    page = environment.get_template("side_by_side.html")
    return page.render(language=spoken().value, section=side_by_side_section(found), confidence=percent_of_confidence())
