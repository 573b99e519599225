"""`pgversus report`: accepted numbers of results and combinations of options."""

import gc
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from pgversus.cli.compare import compare
from pgversus.cli.report import report, unchanged_text
from pgversus.errors import StoreError
from pgversus.host.files import file_sha256
from pgversus.study.dataset import SetupFile, setup_file
from tests.real_results import unpacked
from tests.unit.answers.test_read import one_block


@pytest.fixture
def two(tmp_path: Path) -> tuple[str, str]:
    """Two results folders."""
    for name in ("a", "b"):
        one_block(tmp_path / name)
    return str(tmp_path / "a"), str(tmp_path / "b")


@pytest.fixture(autouse=True)
def collecting_garbage() -> Iterator[None]:
    """Enable garbage collection again, which a report disables because its process ends soon."""
    yield
    gc.enable()


def ran(*arguments: str) -> Result:
    return CliRunner().invoke(report, list(arguments), standalone_mode=True)


def refused(*arguments: str) -> str:
    ended = ran(*arguments)
    assert ended.exit_code == 2
    return " ".join(ended.stderr.split())


def unreadable(*arguments: str) -> str:
    ended = ran(*arguments)
    assert isinstance(ended.exception, StoreError)
    return ended.exception.where


def test_two_results_are_shown_side_by_side_in_every_format(two: tuple[str, str]) -> None:
    for form, expected in (
        ("terminal", "A and B side by side"),
        ("markdown", "## A and B side by side"),
        ("html", "<!doctype html>"),
        ("csv", "a_context,a_baseline"),
        ("json", '"schema": "pgversus.side-by-side/1"'),
    ):
        ended = ran(*two, "--format", form, "--lang", "en")
        assert ended.exit_code == 0
        assert expected in ended.stdout, form


def test_compare_prints_the_same_document_as_report(two: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("pgversus.lab.run.run_study", lambda *_arguments: None)
    monkeypatch.setattr("pgversus.postgres.client.fixed_client", lambda _user: None)
    words = ["16", "17", "-i", "-S", "--json", "--results", two[0]]
    after_the_run = CliRunner().invoke(compare, words, standalone_mode=False)
    assert after_the_run.stdout == ran(two[0], "--format", "json").stdout
    assert after_the_run.stdout == ran(two[0], "--json").stdout
    assert json.loads(after_the_run.stdout)["verdicts"]


def test_three_results_are_rejected(two: tuple[str, str]) -> None:
    assert "3 results folders are specified" in refused(*two, two[0] + "/x")


def test_the_same_results_twice_are_rejected(two: tuple[str, str]) -> None:
    assert "are the same results" in refused(two[0], two[0])
    assert "are the same results" in refused(two[0], f"{two[1]}/../a")
    assert "are the same results" in refused("nowhere", "nowhere")


def test_missing_results_are_rejected() -> None:
    assert "Missing argument" in refused()


@pytest.mark.parametrize("form", ["parquet", "trials-parquet"])
def test_a_binary_format_without_a_file_is_rejected_before_any_chart_is_written(
    two: tuple[str, str], tmp_path: Path, form: str
) -> None:
    charts = tmp_path / "charts"
    assert "name a file with --output FILE" in refused(two[0], "--format", form, "--charts", str(charts))
    assert not charts.exists()


@pytest.mark.parametrize("form", ["trials-csv", "parquet", "trials-parquet"])
def test_formats_of_one_result_are_rejected_for_two(two: tuple[str, str], form: str) -> None:
    assert f"--format {form} supports one result only" in refused(*two, "--format", form)


@pytest.mark.parametrize("flags", [("--published",), ("--charts", "d"), ("--format", "markdown", "--style", "article")])
def test_options_of_one_result_are_rejected_for_two(two: tuple[str, str], flags: tuple[str, ...]) -> None:
    assert "supports one result only, but two are specified" in refused(*two, *flags)


def test_the_unreadable_one_of_two_results_is_named(two: tuple[str, str], tmp_path: Path) -> None:
    nowhere = str(tmp_path / "nowhere")
    assert f"B: {nowhere}" in unreadable(two[0], nowhere)
    assert f"A: {nowhere}" in unreadable(nowhere, two[0])


@pytest.mark.parametrize("flags", [(), ("--format", "csv"), ("--format", "markdown", "--json")])
def test_a_style_without_markdown_is_rejected(two: tuple[str, str], flags: tuple[str, ...]) -> None:
    assert "--style article requires --format markdown" in refused(two[0], "--style", "article", *flags)


@pytest.mark.parametrize("flags", [("--quiet",), ("--format", "html"), ("--format", "csv"), ("--json",)])
def test_published_figures_require_a_format_that_shows_them(two: tuple[str, str], flags: tuple[str, ...]) -> None:
    assert "--published requires --format terminal" in refused(two[0], "--published", *flags)


def test_an_article_is_written_to_the_given_file(two: tuple[str, str], tmp_path: Path) -> None:
    file = tmp_path / "article.md"
    arguments = [two[0], "--format", "markdown", "--style", "article", "-o", str(file), "--lang", "en"]
    assert ran(*arguments).exit_code == 0
    text = file.read_text()
    assert text.startswith("# t\n\nq\n")
    # Recorded with each block.
    assert re.search(r"^\| measured on \| \d{4}-\d\d-\d\d \|$", text, re.MULTILINE)


def test_the_text_of_a_file_is_available_while_the_file_is_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("CREATE TABLE t ();\n")
    kept = SetupFile(path=str(file), sha256=file_sha256(file))
    assert unchanged_text(kept) == "CREATE TABLE t ();\n"
    file.write_text("DROP TABLE t;\n")
    assert unchanged_text(kept) is None
    assert unchanged_text(SetupFile(path=str(tmp_path), sha256="0")) is None
    assert unchanged_text(SetupFile(path=str(tmp_path / "nowhere"), sha256="0")) is None


def test_the_text_of_a_file_is_shown_without_passwords(tmp_path: Path) -> None:
    file = tmp_path / "a.sql"
    file.write_text("ALTER ROLE u PASSWORD 'Geheim99';\nVACUUM;\n")
    requested = setup_file(str(file), file.read_bytes())
    stored = SetupFile(path=str(file), sha256=requested.hidden_sha256 or "")
    for one in (requested, stored):
        assert unchanged_text(one) == "ALTER ROLE u PASSWORD ...;\nVACUUM;\n"
    file.write_text("ALTER ROLE u PASSWORD 'Geheim99';\nVACUUM FULL;\n")
    assert unchanged_text(stored) is None


@pytest.mark.slow
def test_a_report_does_not_depend_on_the_order_of_sets(tmp_path: Path) -> None:
    folder = unpacked("versions-15-to-18", tmp_path / "results")
    command = [sys.executable, "-m", "pgversus.cli.main", "report", str(folder), "--lang", "en"]
    reported = {
        subprocess.run(
            command, env={**os.environ, "PYTHONHASHSEED": str(seed)}, check=True, capture_output=True, text=True
        ).stdout
        for seed in range(4)
    }
    assert len(reported) == 1
