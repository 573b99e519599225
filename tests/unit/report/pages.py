"""HTML pages, parsed as by a browser."""

import json
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset({"meta", "input", "br", "rect", "line", "circle", "link", "img"})


@dataclass
class Page(HTMLParser):
    """The contents of a page: elements with attributes, text, scripts and data."""

    elements: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    scripts: list[str] = field(default_factory=list)
    styles: list[str] = field(default_factory=list)
    data: dict[str, Any] = field(default_factory=dict)
    _open: list[tuple[str, dict[str, str]]] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        self.elements.append((tag, given))
        if tag not in _VOID:
            self._open.append((tag, given))

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag: str) -> None:
        while self._open and self._open.pop()[0] != tag:
            pass

    def handle_data(self, data: str) -> None:
        tag, given = self._open[-1] if self._open else ("", {})
        if tag == "script" and given.get("type") == "application/json":
            self.data[given["id"]] = json.loads(data)
        elif tag == "script":
            self.scripts.append(data)
        elif tag == "style":
            self.styles.append(data)
        elif data.strip():
            self.texts.append(data.strip())

    @property
    def text(self) -> str:
        """All visible text, in order."""
        return " ".join(self.texts)

    def row_lengths(self) -> list[list[int]]:
        """The number of cells of each row, by table."""
        found: list[list[int]] = []
        for tag, _given in self.elements:
            if tag == "table":
                found.append([])
            elif tag == "tr":
                found[-1].append(0)
            elif tag in ("td", "th"):
                found[-1][-1] += 1
        return found

    def policy(self) -> str:
        """The Content-Security-Policy of the page."""
        (found,) = (given["content"] for tag, given in self.elements if given.get("http-equiv") and tag == "meta")
        return found


def read_page(text: str) -> Page:
    """Return the parsed page."""
    page = Page()
    page.feed(text)
    page.close()
    return page
