"""The page of a running study: what it shows, when it is written, and that it ends with the study."""

import io
from pathlib import Path

import pytest

from pgversus.cli.live_page import LivePage
from pgversus.cli.progress import TerminalProgress
from pgversus.engine.progress import TimeEstimate
from pgversus.report.console import SafeConsole
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import N_, Language
from tests.builders import rate_block
from tests.unit.cli.test_progress import context, look


class Shown:
    """Progress with a page, and a manual clock."""

    def __init__(self, folder: Path, language: Language = Language.ENGLISH) -> None:
        self.path = folder / "live.html"
        self.seconds = 100.0
        self.progress = TerminalProgress(
            SafeConsole(file=io.StringIO(), width=200),
            language=language,
            page=LivePage(path=self.path, title="Lookups <18>"),
            clock=lambda: self.seconds,
        )

    @property
    def page(self) -> str:
        return self.path.read_text()

    def finish_block(self, number: int = 1, verdict: Verdict = Verdict.UNDECIDED) -> None:
        self.seconds += 10.0
        place = context(number, f"load {number}")
        self.progress.begin_blocks(place, place.comparison)
        self.progress.block_finished(place, rate_block(5, 1.0, 1.0), {1: look(verdict)}, 44.0)


@pytest.fixture
def shown(tmp_path: Path) -> Shown:
    return Shown(tmp_path)


def test_verdicts_hosts_and_the_time_left_are_on_the_page(shown: Shown) -> None:
    estimate = TimeEstimate(contexts=3, ended=1, spent_s=60.0, budget_s=600.0, seconds_left=120.0)
    shown.progress.time_estimate(lambda: estimate)
    shown.progress.host("db1", N_("measuring block {block}"), block=7)
    shown.seconds += 75.0
    shown.progress.host("db2", N_("waiting"))
    shown.finish_block(1, Verdict.FASTER)
    assert "<h1>Lookups &lt;18&gt;</h1>" in shown.page
    assert "1 of 3 contexts done · 1 min of at most 10 min · about 2 min left" in shown.page
    assert '<th scope="row">db1</th><td>measuring block 7</td><td class="number">1 min 25 s</td>' in shown.page
    assert "Verdicts so far (not final)" in shown.page
    assert "17.8  load=load 1" in shown.page
    assert "faster" in shown.page


def test_a_host_that_has_left_is_not_on_the_page(shown: Shown) -> None:
    for sentence in (N_("waiting"), ""):
        shown.seconds += 10.0
        shown.progress.host("db1", sentence)
    assert "db1" not in shown.page


def test_the_page_reloads_itself_until_the_study_ends(shown: Shown) -> None:
    with shown.progress:
        shown.finish_block()
        assert '<meta http-equiv="refresh" content="5">' in shown.page
    assert 'http-equiv="refresh"' not in shown.page
    assert "The measurement has ended" in shown.page
    assert "undecided so far" not in shown.page


def test_the_page_is_written_at_most_every_two_seconds(shown: Shown) -> None:
    shown.progress.host("db1", N_("waiting"))
    shown.seconds += 1.9
    shown.progress.host("db2", N_("waiting"))
    assert "db2" not in shown.page
    shown.seconds += 0.2
    shown.progress.host("db3", N_("waiting"))
    assert "db2" in shown.page


def test_a_page_that_cannot_be_written_does_not_end_the_study(tmp_path: Path) -> None:
    shown = Shown(tmp_path)
    shown.path.mkdir()
    shown.finish_block()
    assert shown.path.is_dir()


def test_the_page_speaks_the_language_of_the_answer(tmp_path: Path) -> None:
    shown = Shown(tmp_path, Language.JAPANESE)
    shown.finish_block()
    assert '<html lang="ja">' in shown.page
    assert "この" in shown.page
