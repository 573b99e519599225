"""`pgversus statements`: list the statements of an application from its server, exports, logs or files of SQL."""

import json
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from pgversus.cli.options import OUTPUT, Count, HostlessCommand
from pgversus.cli.output import write_answer, write_error
from pgversus.errors import StudyError
from pgversus.host.output_file import check_output

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from pgversus.statements.collection import Collection
    from pgversus.statements.sources import SourceReport
    from pgversus.statements.statement import RecordedStatement

_STDIN = "-"
_SQL = ".sql"


@click.command(cls=HostlessCommand, short_help="List the statements of an application and their shares of its time.")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option(
    "-n", "--limit", type=Count(min=1), default=30, show_default=True, metavar="N", help="Maximum number of statements."
)
@click.option("--json", "as_json", is_flag=True, help="Print all statements with their values as one JSON document.")
@OUTPUT
def statements(sources: tuple[str, ...], *, limit: int, as_json: bool, output: str | None) -> None:
    """List the statements of an application: how often they run, their shares of its time, and known values.

    Each SOURCE is an export of pg_stat_statements (CSV with a header, or JSON), the URI of a database that has it, a
    log with durations (csvlog, jsonlog or text, also of auto_explain), a .sql file (which may be a pgbench script), a
    directory of .sql files, an earlier list (--json), or - for standard input. Statements that differ only in constants
    count as one. Counters come from pg_stat_statements if it is among the sources, values of parameters from logs.

    \b
    psql -c '\\copy (SELECT * FROM pg_stat_statements) TO statements.csv CSV HEADER'
    pgversus statements statements.csv
    pgversus statements statements.csv /var/log/postgresql/*.csv
    pgversus statements postgresql://db.example/app --json -o statements.json
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


def collected(sources: "Iterable[str]") -> "Sequence[RecordedStatement]":
    """Return the statements of all sources, the largest first. Errors of `read_sources`.

    Sources of which a part was skipped, in which nothing was found, or whose statements were prepared, are reported on
    standard error.
    """
    from pgversus.report.statements import source_lines  # noqa: PLC0415 - not for `--help`
    from pgversus.statements.collection import Collection  # noqa: PLC0415 - the same

    collection = Collection()
    for report in read_sources(sources, collection):
        if report.skipped or report.prepared or not report.found:
            for line in source_lines(report):
                write_error(line)
    return collection.statements


def read_sources(sources: "Iterable[str]", collection: "Collection") -> "list[SourceReport]":
    """Add the statements of all sources to the collection; return a report on each source.

    StudyError for a file that cannot be read, whose form is unknown, or with an invalid row. ServerError for a server
    that cannot be queried.
    """
    return [report for source in sources for report in _read(source, collection)]


def _read(source: str, collection: "Collection") -> "Iterator[SourceReport]":
    from pgversus.statements.sources import read_rows, read_source, read_sql  # noqa: PLC0415 - not for `--help`
    from pgversus.study.servers import is_uri  # noqa: PLC0415 - the same

    if source == _STDIN:
        yield read_source("standard input", iter(_stdin()), collection)
        return
    if is_uri(source):
        yield read_rows(*_counters_of(source), collection)
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
        raise _unreadable(str(error.filename or source), error.strerror or str(error)) from error


def _counters_of(uri: str) -> "tuple[str, list[dict[str, Any]]]":
    """Return the name of a database without its password, and its rows of pg_stat_statements."""
    from pgversus.postgres.catalog import statement_counters  # noqa: PLC0415 - not for `--help`
    from pgversus.postgres.session import connect, uri_label, uri_target  # noqa: PLC0415 - the same

    label = uri_label(uri)
    with connect(uri_target(uri, ())) as connection:
        rows = statement_counters(connection)
    if rows is None:
        raise StudyError(
            "the database does not have pg_stat_statements",
            slug="statements-no-counters",
            where=label,
            found="no extension pg_stat_statements",
            expected="the extension in this database, and its library in shared_preload_libraries",
            to_do="add pg_stat_statements to shared_preload_libraries, restart the server, and run CREATE EXTENSION "
            "pg_stat_statements in this database; or specify a database that has it",
        )
    return label, rows


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
