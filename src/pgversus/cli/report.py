"""`pgversus report`: what earlier results say, in the form that is asked for."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.cli.language import language_option
from pgversus.cli.output import rendered, write_error, write_out
from pgversus.cli.side_by_side import one_or_two, read_both, side_by_side_content
from pgversus.cli.write_up import STYLES, refuse_style, write_up
from pgversus.errors import ExitCode
from pgversus.host.output_file import write_file
from pgversus.text.translation import Language, speaking

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pgversus.report.answer import StudyAnswer

_FOR_PEOPLE = ("terminal", "markdown", "html")
_FORMATS = (*_FOR_PEOPLE, "csv", "trials-csv", "json", "parquet", "trials-parquet")


@click.command(short_help="Show what earlier results say: tables, a page, Markdown, CSV, JSON.")
@click.argument("results", nargs=-1, required=True, type=click.Path(), metavar="RESULTS [RESULTS_B]")
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True, help="Form of the report."
)
@click.option("--json", "as_json", is_flag=True, help="As --format json.")
@click.option(
    "--style",
    type=click.Choice(STYLES),
    help="Of --format markdown: tables, or an article with everything that a write-up needs.  [default: tables]",
)
@click.option("--published", is_flag=True, help="Published figures beside the measured ones (terminal, markdown).")
@click.option(
    "--charts",
    "charts_directory",
    type=click.Path(),
    metavar="DIR",
    help="Also draw every chart as SVG and PNG, into this directory.",
)
@language_option
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to a file.  [default: standard output]")
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
) -> int:
    """Show what the RESULTS folder of a comparison or a study says. Nothing is measured again.

    html is one page with charts that opens offline. csv and parquet have one row for each verdict, trials-csv and
    trials-parquet one for each trial.

    Two RESULTS are put side by side where they are comparable: the same workload, dataset and metric. Of all else it is
    said why they are not.

    \b
    pgversus report pgversus-results/planner-16-vs-17-quick
    pgversus report pgversus-results/planner-16-vs-17-quick --format html -o report.html
    pgversus report pgversus-results/planner-16-vs-17-quick --format markdown
    pgversus report pgversus-results/planner-16-vs-17-quick --format markdown --style article -o article.md
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    from pgversus.lab.answer import read_answer  # noqa: PLC0415 - `pgversus --help` does without numpy

    # What is read stays until the end, millions of objects of a large study: looking through them for garbage, again
    # and again, would take as long as all the rest.
    gc.disable()
    form = "json" if as_json else form
    refuse_style(style, form)
    of_one = {"--style": style is not None, "--published": published, "--charts": charts_directory is not None}
    two = one_or_two(results, form, of_one)
    # What programs read is English everywhere.
    with speaking(language if form in _FOR_PEOPLE else Language.ENGLISH):
        if two is not None:
            return _write(side_by_side_content(*read_both(two), form), form, output, " and ".join(two))
        answer = read_answer(Path(results[0]))
        content = write_up(answer) if style == "article" else _content(answer, form, with_published=published)
    if charts_directory is not None:
        from pgversus.host.facts import has_font_for  # noqa: PLC0415 - only for who wants pictures

        if not has_font_for(language):
            write_error(f"no font for {language.value} is installed here: pictures will show boxes")
        with speaking(language):
            _draw(answer, Path(charts_directory))
    return _write(content, form, output, results[0])


def _write(content: "str | bytes | Iterable[str]", form: str, output: str | None, results: str) -> int:
    """To the file that is named, else to standard output; the exit code."""
    if output is not None:
        write_file(Path(output), content)
    elif isinstance(content, bytes):
        raise click.UsageError(f"--format {form} is no text: name a file with --output FILE")
    else:
        write_out(content, results)
    return int(ExitCode.DONE)


def _draw(answer: "StudyAnswer", directory: Path) -> None:
    """Write the charts, and say which; or that there are none."""
    from pgversus.report.charts.pictures import pictures  # noqa: PLC0415 - only for who wants pictures

    names = []
    for picture in pictures(answer):
        for name, content in ((f"{picture.name}.svg", picture.svg), (f"{picture.name}.png", picture.png)):
            write_file(directory / name, content, with_folder=True)
            names.append(name)
    what = ", ".join(names) or "nothing: no block was measured"
    write_error(f"drawn into {directory}: {what}")


def _content(answer: "StudyAnswer", form: str, *, with_published: bool) -> "str | bytes | Iterable[str]":
    # Imported here: `pgversus --help` does without numpy.
    from pgversus.report.arrow_tables import parquet_bytes  # noqa: PLC0415
    from pgversus.report.csv_tables import csv_lines  # noqa: PLC0415
    from pgversus.report.json_pieces import json_pieces  # noqa: PLC0415
    from pgversus.report.markdown import markdown  # noqa: PLC0415
    from pgversus.report.page.page import page_html  # noqa: PLC0415
    from pgversus.report.study_document import study_document  # noqa: PLC0415
    from pgversus.report.study_terminal import print_study_answer  # noqa: PLC0415
    from pgversus.report.tidy import trial_table, verdict_table  # noqa: PLC0415

    forms: Mapping[str, Callable[[], str | bytes | Iterable[str]]] = {
        "terminal": lambda: rendered(
            lambda console, columns: print_study_answer(answer, console, columns, with_published=with_published)
        ),
        "markdown": lambda: markdown(answer, with_published=with_published),
        "html": lambda: page_html(answer),
        "csv": lambda: csv_lines(verdict_table(answer)),
        "trials-csv": lambda: csv_lines(trial_table(answer)),
        "json": lambda: json_pieces(study_document(answer)),
        "parquet": lambda: parquet_bytes(verdict_table(answer)),
        "trials-parquet": lambda: parquet_bytes(trial_table(answer)),
    }
    return forms[form]()
