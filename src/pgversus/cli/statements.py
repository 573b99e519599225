"""`pgversus statements`: list the statements of an application from exports, logs or files of SQL."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pgversus.cli.options import OUTPUT, Count
from pgversus.cli.output import write_answer
from pgversus.errors import StudyError
from pgversus.host.output_file import check_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from pgversus.statements.collection import Collection
    from pgversus.statements.sources import SourceReport

_STDIN = "-"
_SQL = ".sql"


@click.command(short_help="List the statements of an application and their shares of its time.")
@click.argument("sources", nargs=-1, required=True, metavar="FILE...")
@click.option(
    "-n", "--limit", type=Count(min=1), default=30, show_default=True, metavar="N", help="Maximum number of statements."
)
@click.option("--json", "as_json", is_flag=True, help="Print all statements with their values as one JSON document.")
@OUTPUT
def statements(sources: tuple[str, ...], *, limit: int, as_json: bool, output: str | None) -> None:
    """List the statements of an application: how often they run, their shares of its time, and known values.

    Each FILE is an export of pg_stat_statements (CSV with a header, or JSON), a log with durations (csvlog, jsonlog or
    text, also of auto_explain), a .sql file, a directory of .sql files, or - for standard input. Statements that
    differ only in constants count as one. Counters come from pg_stat_statements where there are any, values of
    parameters from logs.

    \b
    psql -c '\\copy (SELECT * FROM pg_stat_statements) TO statements.csv CSV HEADER'
    pgversus statements statements.csv
    pgversus statements statements.csv /var/log/postgresql/*.csv
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    from pgversus.report.statements import statements_document, statements_text  # noqa: PLC0415 - not for `--help`
    from pgversus.statements.collection import Collection  # noqa: PLC0415 - the same

    if output is not None:
        check_output(Path(output))
    collection = Collection()
    reports = read_sources(sources, collection)
    found = collection.statements
    if as_json:
        content = json.dumps(statements_document(found, reports), indent=2) + "\n"
    else:
        content = statements_text(found, reports, limit)
    write_answer(content, output, "")


def read_sources(sources: "Iterable[str]", collection: "Collection") -> "list[SourceReport]":
    """Add the statements of all sources to the collection; return what each contributed.

    StudyError for a file that cannot be read, whose form is unknown, or with an invalid row.
    """
    return [report for source in sources for report in _read(source, collection)]


def _read(source: str, collection: "Collection") -> "Iterator[SourceReport]":
    from pgversus.statements.sources import read_source, read_sql  # noqa: PLC0415 - not for `--help`

    if source == _STDIN:
        yield read_source("standard input", iter(_stdin()), collection)
        return
    path = Path(source)
    try:
        files = sorted(path.glob(f"*{_SQL}")) if path.is_dir() else [path]
        if not files:
            raise _unreadable(source, f"a directory without {_SQL} files")
        for file in files:
            with file.open(encoding="utf-8", errors="replace", newline="") as stream:
                if file.suffix == _SQL:
                    yield read_sql(str(file), stream.read(), file.stem, collection)
                else:
                    yield read_source(str(file), iter(stream), collection)
    except OSError as error:
        raise _unreadable(source, error.strerror or str(error)) from error


def _stdin() -> TextIO:
    if sys.stdin is None:
        raise _unreadable(_STDIN, "closed standard input")
    return open(sys.stdin.fileno(), encoding="utf-8", errors="replace", newline="", closefd=False)


def _unreadable(source: str, found: str) -> StudyError:
    return StudyError(
        "a file could not be read",
        slug="study-no-file",
        where=os.fsencode(source).decode(errors="replace"),
        found=found,
        expected="a file with statements, or a directory of .sql files",
        to_do="check the path; it is relative to the current directory",
    )
