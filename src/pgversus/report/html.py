"""HTML pages from templates with a common style sheet; texts are escaped, with control characters made visible.

A page loads nothing and runs only its own scripts, which its policy identifies by their hashes. Even a user text that
broke out of its element could not run as a script, because its hash is not listed.
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

from pgversus.answers.plans import ComparedPlans, PlansAnswer
from pgversus.plans.sentences import headline, sentences
from pgversus.report.charts.theme import FONT, css_variables
from pgversus.report.plans import NOTHING_COMPARED, override_text, plan_rows, plan_warnings, statement_text, times
from pgversus.report.verdicts import SIGNS
from pgversus.text.redaction import visible
from pgversus.text.translation import _, language_in_use, ngettext

_SCRIPT_ENDS = ("</script", "<!--")


def inlined(script: str) -> str:
    """Return a script for inclusion in a page; ValueError if its text would end the script element."""
    text = script.replace("\r\n", "\n").replace("</script", "<\\/script")
    if any(end in text for end in _SCRIPT_ENDS):
        raise ValueError("the script contains the end of a script element")
    return text


def policy(scripts: Sequence[str], style: str) -> str:
    """Return the Content-Security-Policy of a page with these scripts and this style sheet."""
    hashes = " ".join(_hash(script) for script in scripts) or "'none'"
    return (
        f"default-src 'none'; script-src {hashes}; style-src {_hash(style)}; style-src-attr 'unsafe-inline'; "
        "base-uri 'none'; form-action 'none'"
    )


def data_text(value: Any) -> str:
    """Return a value as JSON for a script element; nothing in it can end the element."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, separators=(",", ":"))
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _hash(text: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def rendered_page(template: str, scripts: tuple[str, ...] = (), /, *, title: str, **values: object) -> str:
    """Render a template in the current language. scripts: the only ones that the page may run."""
    style = f":root{{{css_variables()}--font:{FONT}}}\n{template_text('report.css')}"
    page = _environment().get_template(template)
    return page.render(
        language=language_in_use().value,
        title=title,
        policy=policy(scripts, style),
        style=Markup(style),  # noqa: S704 - trusted, like the scripts
        reload_s=values.pop("reload_s", None),
        scripts_of_page=[Markup(script) for script in scripts],  # noqa: S704
        **values,
    )


@cache
def template_text(name: str) -> str:
    """Return the text of a file in the templates folder."""
    return files("pgversus.report").joinpath("templates", name).read_text(encoding="utf-8")


# A live page is rendered every few seconds, and compiling its templates would disturb the measurement.
@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("pgversus.report"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=_shown,
    )
    environment.filters["data"] = lambda value: Markup(data_text(value))  # noqa: S704 - escaped for a script element
    environment.globals.update(_=_, ngettext=ngettext, signs=SIGNS)
    return environment


def _shown(value: object) -> object:
    """Make control characters of an inserted text visible; escaping follows."""
    return visible(value) if isinstance(value, str) and not isinstance(value, Markup) else value


def plans_html(answer: PlansAnswer) -> str:
    """Return the page of compared plans. User texts are escaped; changed, new and missing nodes are marked."""
    return rendered_page(
        "plans.html",
        title=_("Compared plans"),
        warnings=plan_warnings(answer),
        nothing_compared=_(NOTHING_COMPARED),
        comparisons=[_comparison(one) for one in answer.compared],
    )


def _comparison(one: ComparedPlans) -> dict[str, object]:
    return {
        "statement": statement_text(one.statement),
        "labels": one.labels,
        "level": one.difference.level.value,
        "headline": headline(one.difference),
        "sentences": sentences(one.difference),
        "override": override_text(one),
        "times": times(one),
        "rows": plan_rows(one),
    }


_AS_IT_IS = "window.vegaEmbed = vegaEmbed;"
"""Last statement of the bundle."""


@cache
def drawing_library() -> str:
    """Return the Vega, Vega-Lite and Vega-Embed that vl-convert bundles, in their own scope.

    The bundle is a classic script with many short top-level names, which could collide with others.
    """
    # Imported here, because it takes seconds and only pages need it.
    import altair as alt  # noqa: PLC0415
    import vl_convert  # noqa: PLC0415

    # The version of Vega-Lite that the specifications were written for.
    version = ".".join(alt.SCHEMA_VERSION.removeprefix("v").split(".")[:2])
    return inlined(f"(function () {{\n{vl_convert.javascript_bundle(_AS_IT_IS, version)}\n}})();")
