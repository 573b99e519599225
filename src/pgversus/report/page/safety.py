"""What the page may do: run its own two scripts, known by their hashes, and nothing else; ask nobody for anything.

Texts of users cannot become a script even where one escaped its place: what has none of these hashes does not run.
"""

import base64
import hashlib
import json
from collections.abc import Sequence
from functools import cache
from typing import Any

_AS_IT_IS = "window.vegaEmbed = vegaEmbed;"
"""What the bundle does in the end."""
_SCRIPT_ENDS = ("</script", "<!--")


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
