"""Reports in a real browser without a network: drawing, readability, printing and safety."""

from pathlib import Path

import pytest
from playwright.sync_api import Page

from pgversus.answers.read import read_answer
from pgversus.report.html import plans_html
from pgversus.report.page.page import page_html
from pgversus.text.translation import Language, use_language
from tests.browser.conftest import Open, Opened
from tests.real_results import STUDIES, unpacked
from tests.unit.report.richest import all_plans
from tests.unit.report.test_page import HOSTILE, hostile_study, large_study

_FIRST_PAINT_MS = 2000
_LARGEST = 1_500_000


@pytest.fixture(scope="session")
def results(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with the results of all published studies."""
    folder = tmp_path_factory.mktemp("results")
    for name in STUDIES:
        unpacked(name, folder / name)
    return folder


def made(folder: Path, language: Language = Language.ENGLISH) -> str:
    with use_language(language):
        return page_html(read_answer(folder))


def assert_whole(opened: Opened) -> None:
    """Assert that every chart is drawn, without messages and without requests other than the page itself."""
    opened.wait_until_drawn()
    figures = opened.figures()
    assert figures
    assert {figure["state"] for figure in figures} == {"drawn"}
    assert [figure["name"] for figure in figures if not figure["marks"]] == []
    assert opened.said == []
    assert len(opened.requests) == 1
    assert opened.requests[0].startswith("file://")


@pytest.mark.parametrize("study", STUDIES)
def test_every_chart_of_a_published_study_is_drawn(study: str, results: Path, open_page: Open) -> None:
    text = made(results / study)
    assert len(text.encode()) < _LARGEST
    assert_whole(open_page(text))


@pytest.mark.parametrize("study", STUDIES)
def test_every_chart_is_drawn_in_dark_mode_and_in_japanese(study: str, results: Path, open_page: Open) -> None:
    opened = open_page(made(results / study, Language.JAPANESE), color_scheme="dark")
    assert_whole(opened)
    assert opened.page.get_attribute("html", "lang") == "ja"
    body = opened.page.eval_on_selector("body", "body => getComputedStyle(body).backgroundColor")
    label = opened.page.eval_on_selector(".drawing svg text", "text => getComputedStyle(text).fill")
    # Light text on a dark background.
    assert brightness(body) < 0.2
    assert brightness(label) > 0.5
    assert opened.page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def brightness(color: str) -> float:
    red, green, blue = (int(part) for part in color.removeprefix("rgb(").removesuffix(")").split(","))
    return (0.2126 * red + 0.7152 * green + 0.0722 * blue) / 255


@pytest.mark.parametrize("study", STUDIES)
def test_printing_draws_charts_that_were_never_scrolled_into_view(study: str, results: Path, open_page: Open) -> None:
    opened = open_page(made(results / study), color_scheme="dark")
    opened.page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    opened.wait_until_drawn()
    opened.page.emulate_media(media="print")
    assert {figure["state"] for figure in opened.figures()} == {"drawn"}
    assert brightness(opened.page.eval_on_selector("body", "b => getComputedStyle(b).backgroundColor")) > 0.9
    paper = opened.page.pdf(prefer_css_page_size=True)
    assert paper.startswith(b"%PDF")
    assert opened.said == []


FOLDED = """() => Array.from(document.querySelectorAll("details:not([open]) > :not(summary)"))
    .map(one => one.checkVisibility() && one.getBoundingClientRect().height > 0)"""
_A4_WIDTH_PX = 703
"""Between the margins of the page, at 96 pixels per inch."""


def sheets(page: Page) -> int:
    """Return the number of pages on paper."""
    return page.pdf(prefer_css_page_size=True).count(b"/Type /Page\n")


@pytest.mark.parametrize("study", STUDIES)
def test_folded_parts_are_printed_without_a_script_and_fit_the_paper(
    study: str, results: Path, open_page: Open
) -> None:
    page = open_page(made(results / study)).page
    folded = page.evaluate(FOLDED)
    assert len(folded) > 3
    assert not any(folded)
    page.set_viewport_size({"width": _A4_WIDTH_PX, "height": 900})
    page.emulate_media(media="print")
    assert page.evaluate(FOLDED) == [True] * len(folded)
    assert page.evaluate("document.documentElement.scrollWidth") <= _A4_WIDTH_PX


def test_a_folded_page_prints_on_as_many_sheets_as_an_unfolded_one(results: Path, open_page: Open) -> None:
    text = made(results / STUDIES[0])
    unfolded, hidden = text.replace("<details>", "<details open>"), text.replace("<details>", "<details hidden>")
    printed, all_open, without = (
        sheets(open_page(one, java_script_enabled=False).page) for one in (text, unfolded, hidden)
    )
    assert printed == all_open > without


def test_folded_parts_of_compared_plans_are_printed(open_page: Open) -> None:
    page = open_page(plans_html(all_plans())).page
    assert not any(page.evaluate(FOLDED))
    page.emulate_media(media="print")
    folded = page.evaluate(FOLDED)
    assert folded
    assert all(folded)


def test_a_page_of_two_thousand_trials_is_painted_quickly(open_page: Open) -> None:
    text = page_html(large_study())
    assert len(text.encode()) < _LARGEST
    opened = open_page(text)
    # The browser reports the first paint some time after the page has loaded. Playwright's wait_for_function() would
    # call eval() in the page, which the page's policy refuses.
    painted = opened.page.evaluate(
        """new Promise((resolve, reject) => {
            new PerformanceObserver(paints => {
                for (const paint of paints.getEntriesByName('first-contentful-paint')) resolve(paint.startTime);
            }).observe({type: 'paint', buffered: true});
            // Playwright would wait for ever.
            setTimeout(() => reject(new Error('nothing was painted within 30 s')), 30_000);
        })"""
    )
    assert painted < _FIRST_PAINT_MS
    # Charts are not drawn until they are scrolled into view.
    assert any(figure["state"] == "waiting" for figure in opened.figures())
    assert_whole(opened)


def test_names_and_queries_do_not_run_as_scripts(open_page: Open) -> None:
    opened = open_page(page_html(hostile_study()))
    assert_whole(opened)
    assert opened.page.evaluate("window.pwned") is None
    shown = opened.page.inner_text("h1")
    assert shown.startswith(HOSTILE[:20])


def test_the_content_security_policy_blocks_an_injected_script(open_page: Open) -> None:
    text = page_html(large_study()).replace("<main>", "<main><script>window.pwned = 1</script><img onerror='pwned=1'>")
    opened = open_page(text)
    opened.wait_until_drawn()
    assert opened.page.evaluate("window.pwned") is None
    assert any("Content Security Policy" in line for line in opened.said)


def test_a_chart_that_cannot_be_drawn_shows_an_error(open_page: Open) -> None:
    text = page_html(large_study()).replace('"mark":{"type":"rule"', '"mark":{"type":"no such mark"', 1)
    opened = open_page(text)
    opened.wait_until_drawn()
    (failed,) = [figure for figure in opened.figures() if figure["state"] == "failed"]
    assert opened.page.inner_text(f"figure[data-chart='{failed['name']}'] [role=alert]")
    assert opened.said


def test_verdicts_can_be_filtered_and_reached_by_keyboard(results: Path, open_page: Open) -> None:
    opened = open_page(made(results / "planner-16-vs-17"))
    page = opened.page
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.focus("#filter")
    page.keyboard.type("cte")
    rows = page.locator("#verdicts tbody tr:visible").first
    assert "cte_in" in rows.inner_text()
    assert page.locator("#verdicts > .wide tbody tr:visible").count() == 1
    assert page.inner_text("#filtered") == "1 / 4"
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.getAttribute('role')") == "region"
