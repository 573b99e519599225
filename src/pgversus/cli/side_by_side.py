"""`pgversus report A B`: two results side by side, in the form that is asked for."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.cli.output import rendered
from pgversus.errors import PgversusError

if TYPE_CHECKING:
    from pgversus.report.answer import StudyAnswer

FORMS = ("terminal", "markdown", "html", "csv", "json")
"""In which two results can be shown."""


def one_or_two(results: Sequence[str], form: str, others: Mapping[str, bool]) -> tuple[str, str] | None:
    """The two folders that are to be put side by side; None where there is one. UsageError for anything else.

    others: flags that one result alone can have, and whether they are given.
    """
    if len(results) == 1:
        return None
    if len(results) > 2:  # noqa: PLR2004 - A and B
        raise click.UsageError(f"{len(results)} results are named; one is shown, or two side by side")
    a, b = results
    if _is_same(Path(a), Path(b)):
        raise click.UsageError(f"{a} and {b} are the same results; name two folders to put side by side")
    if form not in FORMS:
        raise click.UsageError(f"--format {form} is of one result; two side by side have {', '.join(FORMS)}")
    given = [flag for flag, is_given in others.items() if is_given]
    if given:
        raise click.UsageError(f"{given[0]} is of one result, and two are named")
    return a, b


def read_both(folders: tuple[str, str]) -> "tuple[StudyAnswer, StudyAnswer]":
    """Both answers; what cannot be read says which of the two it is."""
    a, b = (_read(name, folder) for name, folder in zip(("A", "B"), folders, strict=True))
    return a, b


def side_by_side_content(a: "StudyAnswer", b: "StudyAnswer", form: str) -> "str | Iterable[str]":
    """What is shown of both, people's words in the language of now."""
    # Imported here: `pgversus --help` does without numpy.
    from pgversus.report.csv_tables import csv_lines  # noqa: PLC0415
    from pgversus.report.json_pieces import json_pieces  # noqa: PLC0415
    from pgversus.report.side_by_side.document import side_by_side_document, side_by_side_table  # noqa: PLC0415
    from pgversus.report.side_by_side.html import side_by_side_html  # noqa: PLC0415
    from pgversus.report.side_by_side.making import side_by_side  # noqa: PLC0415
    from pgversus.report.side_by_side.markdown import side_by_side_markdown  # noqa: PLC0415
    from pgversus.report.side_by_side.terminal import print_side_by_side  # noqa: PLC0415

    forms: Mapping[str, Callable[[], str | Iterable[str]]] = {
        "terminal": lambda: rendered(lambda console, columns: print_side_by_side(side_by_side(a, b), console, columns)),
        "markdown": lambda: side_by_side_markdown(side_by_side(a, b)),
        "html": lambda: side_by_side_html(side_by_side(a, b)),
        "csv": lambda: csv_lines(side_by_side_table(a, b)),
        "json": lambda: json_pieces(side_by_side_document(a, b)),
    }
    return forms[form]()


def _read(name: str, folder: str) -> "StudyAnswer":
    from pgversus.lab.answer import read_answer  # noqa: PLC0415 - `pgversus --help` does without numpy

    try:
        return read_answer(Path(folder))
    except PgversusError as error:
        error.where = f"{name}: {error.where or folder}"
        raise


def _is_same(a: Path, b: Path) -> bool:
    """By what is there: one folder may have two paths."""
    try:
        return a.samefile(b)
    except OSError:
        return a.absolute() == b.absolute()
