"""Standard output and standard error, which may be closed, full, or read by somebody who has had enough."""

import io
import os
import shutil
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

import click

from pgversus.errors import HostError, StudyError
from pgversus.host.output_file import write_file
from pgversus.study.dataset import SetupFile, setup_file
from pgversus.text.redaction import visible

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer
    from rich.console import Console


class _Lossy(io.FileIO):
    """A file to which writing never fails: what cannot be written is lost, and nothing else."""

    def write(self, data: "ReadableBuffer", /) -> int:
        with suppress(OSError):
            # None where it would have to wait.
            if (written := super().write(data)) is not None:
                return written
        return memoryview(data).nbytes


def make_streams_safe() -> None:
    """Closed streams and narrow encodings must not end a measurement: what cannot be shown is still in the results.

    What is said on standard error never fails, so that neither progress nor an error's words change how we end.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - for as long as the process lives
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        raw = _Lossy(sys.stderr.fileno(), "wb", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stderr.encoding, sys.stderr.errors, line_buffering=True
        )


def let_go(stream: TextIO) -> None:
    """Send what a stream still holds nowhere, as it cannot be written.

    Python would try again at exit, and return 120 instead of our code.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Rendered(str):
    """What rich has printed: the control sequences in it are those of colours, and no others."""

    __slots__ = ()


def rendered(print_to: Callable[["Console", int | None], None], output: str | None = None) -> Rendered:
    """Return what rich prints, with colours where standard output is a terminal.

    print_to: gets a console on which no table is cut, and the columns of the terminal, or None for a pipe.
    output: the file that it goes to instead, which gets no colours.

    Into memory first: rich would end the process by itself where standard output cannot be written.
    """
    from pgversus.report.terminal import WIDEST, SafeConsole  # noqa: PLC0415 - the same

    page, is_terminal = io.StringIO(), output is None and sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if is_terminal else None
    print_to(SafeConsole(file=page, force_terminal=is_terminal, width=WIDEST), columns)
    return Rendered(page.getvalue())


def hand_on_json(context: click.Context, *, as_json: bool) -> None:
    """Make --json before `list` mean what it means behind it; UsageError before a word that prints no document."""
    if as_json and context.invoked_subcommand == "list":
        context.default_map = {"list": {"as_json": True}}
    elif as_json:
        raise click.UsageError(f"{context.invoked_subcommand} prints no JSON document")


def write_out(text: str | Iterable[str], results: str) -> None:
    """Print a text, whole or in pieces; HostError when it cannot be, which says where the results are.

    On a terminal control characters of texts are shown. A program that reads a pipe gets data as they are.
    """
    pieces = (text,) if isinstance(text, str) else text
    if sys.stdout.isatty():
        pieces = (piece if isinstance(piece, Rendered) else visible(piece) for piece in pieces)
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has what it wants (pgversus ... | head).
        let_go(sys.stdout)
    except OSError as error:
        let_go(sys.stdout)
        raise HostError(
            "the answer could not be printed",
            slug="host-output",
            where="standard output",
            found=error.strerror or str(error),
            expected="somewhere to write to",
            to_do=f"nothing is lost: it is in {results}",
        ) from error


def write_answer(content: str | Iterable[str], output: str | None, results: str) -> None:
    """Write an answer to the file that -o names, else print it; HostError when it cannot be written."""
    if output is None:
        write_out(content, results)
    else:
        write_file(Path(output), content)


def write_error(text: str) -> None:
    """Print a text on standard error, its control characters shown: people read it, whatever reads standard output."""
    sys.stderr.write(f"{visible(text)}\n")


def read_text(path: str, flag: str) -> str:
    """The content of a script; StudyError when it cannot be read or is no UTF-8."""
    return _decoded(_read_bytes(path, flag), path, flag)


def read_stdin(flag: str) -> str:
    """What standard input holds; StudyError when it is no UTF-8."""
    return _decoded(b"" if sys.stdin is None else sys.stdin.buffer.read(), "-", flag)


def _decoded(content: bytes, path: str, flag: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise StudyError(
            "a script is not UTF-8",
            slug="study-script-encoding",
            where=f"{flag} {path}",
            found=str(error),
            expected="UTF-8, the encoding of the databases compared",
            to_do=f"iconv -t UTF-8 {path}",
        ) from error


def setup_files(paths: Iterable[str], flag: str) -> tuple[SetupFile, ...]:
    """Files for psql, known by the hash of their content; StudyError for one that cannot be read."""
    return tuple(setup_file(str(Path(path).absolute()), _read_bytes(path, flag)) for path in paths)


def _read_bytes(path: str, flag: str) -> bytes:
    try:
        file = Path(path)
        if file.is_file() or not file.exists():
            return file.read_bytes()
    except OSError as error:
        raise _no_file(path, flag, error.strerror or str(error)) from error
    # psql and pgbench read it again, for each arm: a pipe would be empty by then.
    raise _no_file(path, flag, "a directory, a pipe or a device")


def _no_file(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "a file cannot be read",
        slug="study-no-file",
        where=f"{flag} {os.fsencode(path).decode(errors='replace')}",
        found=found,
        expected="a regular file",
        to_do="give its path from this directory",
    )
