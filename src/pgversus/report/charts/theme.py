"""Colors and marks of charts and pages, distinguishable with any color vision, light or dark, and in black and white.

In a page a color is the name of a CSS variable, so that a chart follows the reader's theme without being redrawn.
In a picture, which has no style sheet, names are replaced with the colors for paper.
"""

from collections.abc import Mapping
from typing import Any

from pgversus.stats.confidence import Verdict

_LIGHT_AND_DARK = {
    "bg": ("#ffffff", "#15181c"),
    "fg": ("#1b1f24", "#e8eaed"),
    "muted": ("#5a6472", "#a3adba"),
    "line": ("#d5dae1", "#3a414b"),
    "panel": ("#f5f7f9", "#1e2329"),
    "band": ("#e4e8ed", "#2c333c"),
    # Okabe and Ito's palette, some lighter on black: contrast at least 3:1 with the background, as marks need.
    "s1": ("#0072b2", "#56b4e9"),
    "s2": ("#c25500", "#f0914d"),
    "s3": ("#007a5a", "#3ecfa3"),
    "s4": ("#a94f85", "#e39cc4"),
    "s5": ("#6b5b00", "#e0d04a"),
    "s6": ("#444c56", "#c3cad3"),
    # Verdicts, also as text: contrast at least 4.5:1, on their own tints too.
    "faster": ("#0b5a8f", "#7cc0f2"),
    "slower": ("#9a3f00", "#ffa366"),
    "equivalent": ("#00664a", "#5fd6ae"),
    "undecided": ("#555d68", "#b4bcc7"),
    "invalid": ("#7d1f63", "#f19ad8"),
    "faster-tint": ("#e2f0fa", "#12293a"),
    "slower-tint": ("#fdeade", "#3a2211"),
    "equivalent-tint": ("#e0f3ed", "#0f2f26"),
    "undecided-tint": ("#eceff2", "#2a3038"),
    "invalid-tint": ("#f7e4f2", "#381a30"),
    "mark": ("#fff1c7", "#463a10"),
}
SERIES = tuple(f"var(--s{number})" for number in range(1, 7))
SHAPES = ("circle", "square", "triangle-up", "diamond", "cross", "triangle-down")
DASHES = ([1, 0], [6, 3], [2, 2], [8, 3, 2, 3], [12, 4], [4, 2, 1, 2])
FONT = 'system-ui, "Hiragino Sans", "Noto Sans CJK JP", "Noto Sans JP", "Yu Gothic UI", Meiryo, sans-serif'


def css_variables() -> str:
    """Return all colors as CSS variables that follow the reader's theme."""
    return "".join(f"--{name}:light-dark({light},{dark});" for name, (light, dark) in _LIGHT_AND_DARK.items())


def verdict_color(verdict: Verdict) -> str:
    """Return the name of the verdict's color."""
    return f"var(--{verdict.value})"


def config() -> dict[str, Any]:
    """Return the fonts and line styles of every chart."""
    axis = {
        "labelColor": "var(--fg)",
        "titleColor": "var(--muted)",
        "titleFontWeight": "normal",
        "domainColor": "var(--muted)",
        "tickColor": "var(--muted)",
        "gridColor": "var(--line)",
        "labelFontSize": 12,
        "titleFontSize": 12,
        "labelLimit": 320,
    }
    legend = {"labelColor": "var(--fg)", "titleColor": "var(--muted)", "labelFontSize": 12, "labelLimit": 400}
    return {
        "background": "transparent",
        "font": FONT,
        "axis": axis,
        "legend": legend,
        "view": {"stroke": "transparent"},
        "text": {"color": "var(--fg)", "fontSize": 12},
        "title": {"color": "var(--fg)", "subtitleColor": "var(--muted)"},
    }


def print_theme(value: Any) -> Any:
    """Replace the color names of a specification with colors, for a picture."""
    if isinstance(value, Mapping):
        return {key: print_theme(one) for key, one in value.items()}
    if isinstance(value, list):
        return [print_theme(one) for one in value]
    if isinstance(value, str) and value.startswith("var(--") and value.endswith(")"):
        light, _ = _LIGHT_AND_DARK[value.removeprefix("var(--").removesuffix(")")]
        return light
    return "#ffffff" if value == "transparent" else value
