"""The library that draws charts, as it stands in a page."""

from functools import cache

from pgversus.report.safety import inlined

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
