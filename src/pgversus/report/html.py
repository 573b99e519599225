"""Pages of HTML from templates: texts are escaped and their control characters shown, and the style is one for all."""

from importlib.resources import files

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pgversus.report.charts.theme import FONT, SIGNS, css_variables
from pgversus.report.safety import data_text, policy
from pgversus.text.redaction import visible
from pgversus.text.translation import spoken, tell, tell_number


def rendered_page(template: str, scripts: tuple[str, ...] = (), /, *, title: str, **values: object) -> str:
    """The page of a template in the language that is spoken. It may run these scripts and no other."""
    style = f":root{{{css_variables()}--font:{FONT}}}\n{template_text('report.css')}"
    page = _environment().get_template(template)
    return page.render(
        language=spoken().value,
        title=title,
        policy=policy(scripts, style),
        style=Markup(style),  # noqa: S704 - our own, as the scripts
        scripts_of_page=[Markup(script) for script in scripts],  # noqa: S704
        **values,
    )


def template_text(name: str) -> str:
    """What stands beside the templates."""
    return files("pgversus.report").joinpath("templates", name).read_text(encoding="utf-8")


def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pgversus.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["data"] = lambda value: Markup(data_text(value))  # noqa: S704 - escaped for where it stands
    environment.globals.update(tell=tell, tell_number=tell_number, signs=SIGNS)
    return environment


def _shown(value: object) -> object:
    """Every text that is put into a page, with its control characters made visible; escaping comes after it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value
