"""Pages of HTML from templates: texts are escaped and their control characters shown, and the style is one for all.

A page may run its own scripts, known by their hashes, and nothing else; it loads nothing. Texts of users cannot become
a script even where one escaped its place: what has none of these hashes does not run.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from pgversus.plans.sentences import headline, sentences
from pgversus.report.charts.theme import FONT, SIGNS, css_variables
from pgversus.report.plans import NOTHING_COMPARED, ComparedPlans, PlansAnswer, plan_rows, times, undoing
from pgversus.text.redaction import visible
from pgversus.text.translation import _, language_in_use, ngettext

_SCRIPT_ENDS = ("</script", "<!--")


def inlined(script: str) -> str:
    """A script as it may stand inside a page; ValueError for one that would end before its end."""
    text = script.replace("\r\n", "\n").replace("</script", "<\\/script")
    if any(end in text for end in _SCRIPT_ENDS):
        raise ValueError("a script that holds the end of a script")
    return text


def policy(scripts: Sequence[str], style: str) -> str:
    """The Content-Security-Policy of a page with these scripts and this style sheet."""
    hashes = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; style-src-attr 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def data_text(value: Any) -> str:
    """A value as JSON that may stand inside a script element: nothing in it ends that."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def rendered_page(template: str, scripts: tuple[str, ...] = (), /, *, title: str, **values: object) -> str:
    """The page of a template in the language that is spoken. It may run these scripts and no other."""
    style = f":root{{{css_variables()}--font:{FONT}}}\n{template_text('report.css')}"
    page = _environment().get_template(template)
    return page.render(
        language=language_in_use().value,
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
    environment.globals.update(_=_, ngettext=ngettext, signs=SIGNS)
    return environment


def _shown(value: object) -> object:
    """Every text that is put into a page, with its control characters made visible; escaping comes after it."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def plans_html(answer: PlansAnswer) -> str:
    """The page; texts of users are escaped. Nodes that are in no other plan, or changed, are marked."""
    return rendered_page(
        "plans.html",
        title=_("Compared plans"),
        warnings=answer.warnings,
        nothing_compared=_(NOTHING_COMPARED),
        comparisons=[_comparison(one) for one in answer.compared],
    )


def _comparison(one: ComparedPlans) -> dict[str, object]:
    return {
        "statement": one.statement,
        "labels": one.labels,
        "level": one.difference.level.value,
        "headline": headline(one.difference.level),
        "sentences": sentences(one.difference),
        "undoing": undoing(one),
        "times": times(one) if one.difference.time is not None else "",
        "rows": plan_rows(one),
    }


_AS_IT_IS = "window.vegaEmbed = vegaEmbed;"
"""What the bundle does in the end."""


@cache
def drawing_library() -> str:
    """Vega, Vega-Lite and Vega-Embed, as Vega's converter carries them, in a scope of their own.

    The bundle is a classic script whose top is full of short names, which would meet those of others.
    """
    # Imported here: seconds, for who wants a page.
    import altair as alt  # noqa: PLC0415
    import vl_convert  # noqa: PLC0415

    # The converter's version of Vega-Lite is the one that made the specifications.
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return inlined(f"(function () {{\n{vl_convert.javascript_bundle(_AS_IT_IS, version)}\n}})();")
