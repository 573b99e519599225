"""Standard output and standard error, which may be closed, full, or a pipe whose reader has exited."""

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


class _DroppingFile(io.FileIO):
    """A file to which writing never fails: text that cannot be written is dropped."""

    def write(self, data: "ReadableBuffer", /) -> int:
        with suppress(OSError):
            # None if the write would block.
            if (written := super().write(data)) is not None:
                return written
        return memoryview(data).nbytes


def make_streams_safe() -> None:
    """Ensure that closed streams and narrow encodings never end a measurement; the results folder has everything.

    Writing to standard error never fails, so that neither progress nor error messages change the exit code.
    """
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, Path(os.devnull).open("w", encoding="utf-8"))  # noqa: SIM115 - open until the process ends
        elif isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")
    if isinstance(sys.stderr, io.TextIOWrapper):
        raw = _DroppingFile(sys.stderr.fileno(), "wb", closefd=False)
        sys.stderr = io.TextIOWrapper(
            io.BufferedWriter(raw), sys.stderr.encoding, sys.stderr.errors, line_buffering=True
        )


def detach(stream: TextIO) -> None:
    """Discard the buffered text of a stream that cannot be written.

    Python would retry at exit and return 120 instead of the exit code.
    """
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


class Rendered(str):
    """Output of rich, whose only control sequences are colors."""

    __slots__ = ()


def rendered(print_to: Callable[["Console", int | None], None], output: str | None = None) -> Rendered:
    """Return the output of rich, with colors if standard output is a terminal.

    print_to: receives a console on which no table is cut, and the columns of the terminal, or None for a pipe.
    output: the output file, if any; it has no colors.

    The text is collected in memory, because rich would end the process if standard output could not be written.
    """
    from pgversus.report.console import WIDEST, SafeConsole  # noqa: PLC0415 - the same

    page, is_terminal = io.StringIO(), output is None and sys.stdout.isatty()
    columns = shutil.get_terminal_size().columns if is_terminal else None
    print_to(SafeConsole(file=page, force_terminal=is_terminal, width=WIDEST), columns)
    return Rendered(page.getvalue())


def pass_json_flag(context: click.Context, *, as_json: bool) -> None:
    """Pass a --json before `list` on to it; UsageError before a subcommand without JSON output."""
    if as_json and context.invoked_subcommand == "list":
        context.default_map = {"list": {"as_json": True}}
    elif as_json:
        raise click.UsageError(f"{context.invoked_subcommand} has no JSON output")


def write_out(text: str | Iterable[str], results: str) -> None:
    """Print a text, whole or in pieces; on failure, raise HostError with the path of the results.

    Control characters are made visible on a terminal. A program that reads a pipe gets the data unchanged.
    """
    pieces = (text,) if isinstance(text, str) else text
    if sys.stdout.isatty():
        pieces = (piece if isinstance(piece, Rendered) else visible(piece) for piece in pieces)
    try:
        sys.stdout.writelines(pieces)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has exited (pgversus ... | head).
        detach(sys.stdout)
    except OSError as error:
        detach(sys.stdout)
        raise HostError(
            "the answer could not be printed",
            slug="host-output",
            where="standard output",
            found=error.strerror or str(error),
            expected="writable standard output",
            to_do=f"nothing is lost: the results are in {results}"
            if results
            else "redirect the output to a writable file; the command itself has finished",
        ) from error


def write_answer(content: str | Iterable[str], output: str | None, results: str) -> None:
    """Write an answer to the file given with -o, or print it; HostError if it cannot be written."""
    if output is None:
        write_out(content, results)
    else:
        write_file(Path(output), content)


def write_error(text: str) -> None:
    """Print a text on standard error with control characters made visible, since people read it."""
    sys.stderr.write(f"{visible(text)}\n")


def read_text(path: str, flag: str) -> str:
    """Return the content of a script; StudyError if it cannot be read or is not UTF-8."""
    return _decoded(_read_bytes(path, flag), path, flag)


def read_stdin(flag: str) -> str:
    """Return the content of standard input; StudyError if it is not UTF-8."""
    return _decoded(b"" if sys.stdin is None else sys.stdin.buffer.read(), "-", flag)


def _decoded(content: bytes, path: str, flag: str) -> str:
    try:
        # pgbench and psql send the mark at the beginning of some files to the server.
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise StudyError(
            "a file is not UTF-8",
            slug="study-script-encoding",
            where=f"{flag} {path}",
            found=str(error),
            expected="UTF-8",
            to_do="convert it to UTF-8, for example: iconv -f LATIN1 -t UTF-8 OLD > NEW",
        ) from error


def setup_files(paths: Iterable[str], flag: str) -> tuple[SetupFile, ...]:
    """Return files for psql, identified by the hash of their content; StudyError for an unreadable one."""
    return tuple(setup_file(str(Path(path).absolute()), _read_bytes(path, flag)) for path in paths)


def _read_bytes(path: str, flag: str) -> bytes:
    if any("\ud800" <= letter <= "\udfff" for letter in path):
        # The name is stored with the results.
        raise _no_file(path, flag, "a name that is not UTF-8")
    try:
        file = Path(path)
        if file.is_file() or not file.exists():
            return file.read_bytes()
    except OSError as error:
        raise _no_file(path, flag, error.strerror or str(error)) from error
    # psql and pgbench read the file again for each arm, when a pipe would be empty.
    raise _no_file(path, flag, "a directory, a pipe or a device")


def _no_file(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "a file could not be read",
        slug="study-no-file",
        where=f"{flag} {os.fsencode(path).decode(errors='replace')}",
        found=found,
        expected="a regular file",
        to_do="check the path; it is relative to the current directory",
    )
