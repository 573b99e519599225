"""`pgversus report`: show stored results in the requested format."""

import gc
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.answer import terminal_answer
from pgversus.cli.options import LANGUAGE, OUTPUT, QUIET, VERBOSE
from pgversus.cli.output import rendered, write_error, write_out
from pgversus.errors import ExitCode, PgversusError
from pgversus.host.output_file import write_file
from pgversus.study.dataset import SetupFile, setup_file
from pgversus.text.redaction import code_without_secrets
from pgversus.text.translation import Language, use_language

if TYPE_CHECKING:
    from pgversus.answers.answer import StudyAnswer

STYLES = ("tables", "article")
_LARGEST = 1_000_000
# Bytes; a larger file contains rows rather than commands.


def check_style(style: str | None, form: str) -> None:
    """Raise UsageError for a style with a format other than Markdown."""
    if style is not None and form != "markdown":
        raise click.UsageError(f"--style {style} requires --format markdown")


def unchanged_text(file: SetupFile) -> str | None:
    """Return the text of a file, without passwords, if its content is still the loaded one; otherwise None."""
    path = Path(file.path)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        content = path.read_bytes()
        now = setup_file(file.path, content)
        return code_without_secrets(content.decode()) if file.sha256 in (now.sha256, now.hidden_sha256) else None
    except (OSError, UnicodeDecodeError):
        return None


FORMS = ("terminal", "markdown", "html", "csv", "json")
"""Formats for two results side by side."""


def one_or_two(results: Sequence[str], form: str, others: Mapping[str, bool]) -> tuple[str, str] | None:
    """Return the two folders to show side by side, None if there is one; UsageError for other numbers.

    others: options that support one result only, and whether they are given.
    """
    if len(results) == 1:
        return None
    if len(results) > 2:  # noqa: PLR2004 - A and B
        raise click.UsageError(f"{len(results)} results folders are specified; specify one or two")
    a, b = results
    if _is_same(Path(a), Path(b)):
        raise click.UsageError(f"{a} and {b} are the same results; name two different folders")
    if form not in FORMS:
        raise click.UsageError(f"--format {form} supports one result only; formats for two are {', '.join(FORMS)}")
    given = [flag for flag, is_given in others.items() if is_given]
    if given:
        raise click.UsageError(f"{given[0]} supports one result only, but two are specified")
    return a, b


def read_both(folders: tuple[str, str]) -> "tuple[StudyAnswer, StudyAnswer]":
    """Read both answers; an error names the one that cannot be read."""
    a, b = (_read(name, folder) for name, folder in zip(("A", "B"), folders, strict=True))
    return a, b


def side_by_side_content(a: "StudyAnswer", b: "StudyAnswer", form: str, output: str | None) -> "str | Iterable[str]":
    """Return both results side by side; texts for people are in the current language."""
    # Imported here: `pgversus --help` does not need numpy.
    from pgversus.report.json_document import json_pieces  # noqa: PLC0415
    from pgversus.report.side_by_side.document import (  # noqa: PLC0415
        side_by_side,
        side_by_side_document,
        side_by_side_table,
    )
    from pgversus.report.side_by_side.text import (  # noqa: PLC0415
        print_side_by_side,
        side_by_side_html,
        side_by_side_markdown,
    )
    from pgversus.report.tidy_tables import csv_lines  # noqa: PLC0415

    forms: Mapping[str, Callable[[], str | Iterable[str]]] = {
        "terminal": lambda: rendered(
            lambda console, columns: print_side_by_side(side_by_side(a, b), console, columns), output
        ),
        "markdown": lambda: side_by_side_markdown(side_by_side(a, b)),
        "html": lambda: side_by_side_html(side_by_side(a, b)),
        "csv": lambda: csv_lines(side_by_side_table(a, b)),
        "json": lambda: json_pieces(side_by_side_document(a, b)),
    }
    return forms[form]()


def _read(name: str, folder: str) -> "StudyAnswer":
    from pgversus.answers.read import read_answer  # noqa: PLC0415 - `pgversus --help` does not need numpy

    try:
        return read_answer(Path(folder))
    except PgversusError as error:
        error.where = f"{name}: {error.where or folder}"
        raise


def _is_same(a: Path, b: Path) -> bool:
    """Return whether two paths lead to the same folder."""
    try:
        return a.samefile(b)
    except OSError:
        return a.absolute() == b.absolute()


_FOR_PEOPLE = ("terminal", "markdown", "html", "svg")
_WITH_PUBLISHED = ("terminal", "markdown")
_BINARY = ("parquet", "trials-parquet")
_FORMATS = (*_FOR_PEOPLE, "csv", "trials-csv", "json", *_BINARY)


@click.command(short_help="Show stored results as tables, HTML, Markdown, CSV or JSON.")
@click.argument("results", nargs=-1, required=True, type=click.Path(), metavar="RESULTS [RESULTS_B]")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True, help="Format of the report."
)
@click.option("--json", "as_json", is_flag=True, help="Same as --format json.")
@click.option(
    "--style",
    type=click.Choice(STYLES),
    help="Style of --format markdown: tables, or an article with everything that a write-up needs.  [default: tables]",
)
@click.option(
    "--published", is_flag=True, help="Show published figures next to the measured ones (terminal, markdown)."
)
@click.option(
    "--charts",
    "charts_directory",
    type=click.Path(),
    metavar="DIR",
    help="Also write every chart as SVG and PNG to this directory.",
)
@LANGUAGE
@OUTPUT
@VERBOSE
@QUIET
def report(
    results: tuple[str, ...],
    form: str,
    style: str | None,
    output: str | None,
    charts_directory: str | None,
    language: Language,
    *,
    as_json: bool,
    published: bool,
    verbose: bool,
    quiet: bool,
) -> int:
    """Show the results of a comparison or a study from their RESULTS folder. Nothing is measured again.

    html is a single page with charts that works offline; svg is a picture of the terminal. csv and parquet have one
    row per verdict, trials-csv and trials-parquet one row per trial.

    Two RESULTS folders are shown side by side where they are comparable: same workload, dataset and metric. Otherwise
    the report explains why not.

    \b
    pgversus report pgversus-results/planner-16-vs-17-quick
    pgversus report pgversus-results/planner-16-vs-17-quick --format html -o report.html
    pgversus report pgversus-results/planner-16-vs-17-quick --format markdown
    pgversus report pgversus-results/planner-16-vs-17-quick --format markdown --style article -o article.md
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    from pgversus.answers.read import read_answer  # noqa: PLC0415 - `pgversus --help` does not need numpy

    # All objects live until the end, millions of them for a large study: repeated garbage collection would double the
    # running time.
    gc.disable()
    chosen = form
    if verbose and quiet:
        raise click.UsageError("--verbose and --quiet cannot be used together")
    form = "json" if as_json else form
    if (verbose or quiet) and form != "terminal":
        raise click.UsageError("--verbose and --quiet require --format terminal")
    if published and (quiet or form not in _WITH_PUBLISHED):
        raise click.UsageError("--published requires --format terminal, without --quiet, or --format markdown")
    check_style(style, form)
    if as_json and chosen not in ("terminal", "json"):
        raise click.UsageError(f"--json and --format {chosen} cannot be used together")
    of_one = {"--style": style is not None, "--published": published, "--charts": charts_directory is not None}
    two = one_or_two(results, form, of_one)
    if form in _BINARY and output is None:
        # Before any chart is written.
        raise click.UsageError(f"--format {form} is binary: name a file with --output FILE")
    # Formats for programs are always English.
    form_language = language if form in _FOR_PEOPLE else Language.ENGLISH
    if two is not None:
        both = read_both(two)
        with use_language(form_language):
            return _write(side_by_side_content(*both, form, output), output, " and ".join(two))
    answer = read_answer(Path(results[0]))
    with use_language(form_language):
        options = {"output": output, "verbose": verbose, "quiet": quiet}
        content = _content(answer, "article" if style == "article" else form, options, with_published=published)
    if charts_directory is not None:
        from pgversus.host.facts import has_font_for  # noqa: PLC0415 - only needed for pictures

        if not has_font_for(language):
            write_error(f"no font for {language.value} is installed: its characters appear as boxes in charts")
        with use_language(language):
            _draw(answer, Path(charts_directory))
    return _write(content, output, results[0])


def _write(content: "str | bytes | Iterable[str]", output: str | None, results: str) -> int:
    """Write to the output file or, if it is text, to standard output; return the exit code."""
    if output is not None:
        write_file(Path(output), content)
    elif not isinstance(content, bytes):
        write_out(content, results)
    return int(ExitCode.DONE)


def _draw(answer: "StudyAnswer", directory: Path) -> None:
    """Write the charts and report their names, or that the results have no charts."""
    from pgversus.report.charts.export import pictures  # noqa: PLC0415 - only needed for pictures

    names = []
    for picture in pictures(answer):
        for name, content in ((f"{picture.name}.svg", picture.svg), (f"{picture.name}.png", picture.png)):
            write_file(directory / name, content, with_folder=True)
            names.append(name)
    written = f"charts written to {directory}: {', '.join(names)}"
    write_error(written if names else "no charts written: no block was measured")


def _content(
    answer: "StudyAnswer", form: str, options: Mapping[str, Any], *, with_published: bool
) -> "str | bytes | Iterable[str]":
    # Imported here: `pgversus --help` does not need numpy.
    from pgversus.report.article.page import article  # noqa: PLC0415
    from pgversus.report.json_document import json_pieces, study_document  # noqa: PLC0415
    from pgversus.report.markdown import markdown  # noqa: PLC0415
    from pgversus.report.page.page import page_html  # noqa: PLC0415
    from pgversus.report.summary import summary_picture  # noqa: PLC0415
    from pgversus.report.tidy_tables import csv_lines, parquet_bytes, trial_table, verdict_table  # noqa: PLC0415

    forms: Mapping[str, Callable[[], str | bytes | Iterable[str]]] = {
        "terminal": lambda: terminal_answer(answer, options, with_published=with_published),
        "markdown": lambda: markdown(answer, with_published=with_published),
        "article": lambda: article(answer, unchanged_text),
        "html": lambda: page_html(answer),
        "svg": lambda: summary_picture(answer),
        "csv": lambda: csv_lines(verdict_table(answer)),
        "trials-csv": lambda: csv_lines(trial_table(answer)),
        "json": lambda: json_pieces(study_document(answer)),
        "parquet": lambda: parquet_bytes(verdict_table(answer)),
        "trials-parquet": lambda: parquet_bytes(trial_table(answer)),
    }
    return forms[form]()
