"""`pgversus report`: what earlier results say, in the form that is asked for."""

import gc
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.cli.output import rendered, write_file, write_out
from pgversus.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from pgversus.report.answer import StudyAnswer

_FORMATS = ("terminal", "markdown", "csv", "trials-csv", "json", "parquet", "trials-parquet")


@click.command(short_help="Show what earlier results say: tables, Markdown, CSV, JSON.")
@click.argument("results", type=click.Path())
@click.option(
    "--format", "form", type=click.Choice(_FORMATS), default="terminal", show_default=True, help="Form of the report."
)
@click.option("--json", "as_json", is_flag=True, help="As --format json.")
@click.option("--published", is_flag=True, help="Published figures beside the measured ones (terminal, markdown).")
@click.option(
    "--charts",
    "charts_directory",
    type=click.Path(),
    metavar="DIR",
    help="Also draw lines over levels that are amounts, each as SVG and PNG, into this directory.",
)
@click.option("-o", "--output", type=click.Path(), metavar="FILE", help="Write to a file.  [default: standard output]")
def report(
    results: str, form: str, output: str | None, charts_directory: str | None, *, as_json: bool, published: bool
) -> int:
    """Show what the RESULTS folder of a comparison or a study says. Nothing is measured again.

    csv and parquet have one row for each verdict, trials-csv and trials-parquet one for each trial.

    \b
    pgversus report pgversus-results/planner-16-vs-17-quick
    pgversus report pgversus-results/planner-16-vs-17-quick --format markdown
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    from pgversus.lab.answers import read_answer  # noqa: PLC0415 - `pgversus --help` does without numpy

    # What is read stays until the end, millions of objects of a large study: looking through them for garbage, again
    # and again, would take as long as all the rest.
    gc.disable()
    answer = read_answer(Path(results))
    content = _content(answer, "json" if as_json else form, with_published=published)
    if charts_directory is not None:
        _draw(answer, Path(charts_directory))
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
    what = ", ".join(names) or "nothing: no compared factor has three levels or more that are amounts"
    click.echo(f"drawn into {directory}: {what}", err=True)


def _content(answer: "StudyAnswer", form: str, *, with_published: bool) -> "str | bytes | Iterable[str]":
    # Imported here: `pgversus --help` does without numpy.
    from pgversus.report.arrow_tables import parquet_bytes  # noqa: PLC0415
    from pgversus.report.csv_tables import csv_lines  # noqa: PLC0415
    from pgversus.report.json_pieces import json_pieces  # noqa: PLC0415
    from pgversus.report.markdown import markdown  # noqa: PLC0415
    from pgversus.report.study_document import study_document  # noqa: PLC0415
    from pgversus.report.study_terminal import print_study_answer  # noqa: PLC0415
    from pgversus.report.tidy import trial_table, verdict_table  # noqa: PLC0415

    forms: Mapping[str, Callable[[], str | bytes | Iterable[str]]] = {
        "terminal": lambda: rendered(
            lambda console, columns: print_study_answer(answer, console, columns, with_published=with_published)
        ),
        "markdown": lambda: markdown(answer, with_published=with_published),
        "csv": lambda: csv_lines(verdict_table(answer)),
        "trials-csv": lambda: csv_lines(trial_table(answer)),
        "json": lambda: json_pieces(study_document(answer)),
        "parquet": lambda: parquet_bytes(verdict_table(answer)),
        "trials-parquet": lambda: parquet_bytes(trial_table(answer)),
    }
    return forms[form]()
