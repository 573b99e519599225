"""Results as objects, and the language of their pages."""

from html import escape
from pathlib import Path

import pytest

import pgversus
from pgversus.errors import StoreError
from pgversus.report.caveats import caveat_text
from tests.real_results import unpacked


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Measured results of a bundled study."""
    return unpacked("vacuum-15-to-17", tmp_path / "results")


def test_caveats_of_a_japanese_page_are_translated(folder: Path) -> None:
    results = pgversus.load_results(folder)
    reported = {caveat_text(caveat) for one in results.answer.answers for caveat in one.caveats}
    assert reported
    page = results.html("ja")
    assert 'lang="ja"' in page
    assert [text for text in reported if escape(text) in page or text in page] == []


def test_a_page_needs_the_results_folder_and_a_known_language(folder: Path) -> None:
    results = pgversus.load_results(folder)
    folder.rename(folder.with_name("elsewhere"))
    with pytest.raises(StoreError):
        results.html("ja")
    with pytest.raises(ValueError, match="fr"):
        results.html("fr")
