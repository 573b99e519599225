"""A browser without a network, and the pages opened in it."""

import shutil
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, sync_playwright

_NAMES = ("chromium", "chromium-browser", "google-chrome", "chrome")
_ARGUMENTS = (
    # The sandbox is unavailable to root, and the shared memory of a container is small.
    *("--no-sandbox", "--disable-dev-shm-usage", "--disable-gpu"),
    # Requests of the browser itself would be counted as requests of the page.
    *("--disable-background-networking", "--disable-component-update", "--disable-sync", "--no-first-run"),
)
_DRAWN_MS = 60_000


@dataclass
class Opened:
    """A page in the browser, with its messages and requests."""

    page: Page
    said: list[str] = field(default_factory=list)
    requests: list[str] = field(default_factory=list)

    def figures(self) -> list[dict[str, Any]]:
        """Return name, state, number of marks and width of each chart."""
        found: list[dict[str, Any]] = self.page.eval_on_selector_all(
            "figure[data-chart]",
            """figures => figures.map(figure => ({
                name: figure.dataset.chart,
                state: figure.dataset.state || "waiting",
                marks: figure.querySelectorAll(".drawing svg .mark-symbol path, .drawing svg .mark-rect path").length,
                width: figure.querySelector(".drawing svg") ? figure.querySelector(".drawing svg").clientWidth : 0,
            }))""",
        )
        return found

    def wait_until_drawn(self) -> None:
        """Wait until every chart is drawn, including those not yet scrolled into view."""
        self.page.wait_for_selector("html[data-drawn=all]", state="attached", timeout=_DRAWN_MS)


Open = Callable[..., Opened]


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    program = next((found for name in _NAMES if (found := shutil.which(name))), None)
    assert program is not None, "no Chromium on this machine (Debian: apt install chromium fonts-noto-cjk)"
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_ARGUMENTS))
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser, tmp_path: Path) -> Iterator[Open]:
    """Open the text of a page offline; options are those of a browser context, such as `color_scheme`."""
    contexts: list[BrowserContext] = []

    def opened(text: str, **options: Any) -> Opened:
        file = tmp_path / f"report-{len(contexts)}.html"
        file.write_text(text, encoding="utf-8")
        context = browser.new_context(offline=True, viewport={"width": 1100, "height": 900}, **options)
        contexts.append(context)
        found = Opened(page=context.new_page())
        found.page.on("console", lambda message: found.said.append(f"{message.type}: {message.text}"))
        found.page.on("pageerror", lambda error: found.said.append(f"error: {error}"))
        found.page.on("dialog", lambda dialog: found.said.append(f"dialog: {dialog.message}"))
        found.page.on("request", lambda request: found.requests.append(request.url))
        found.page.goto(file.as_uri())
        return found

    yield opened
    for context in contexts:
        context.close()
