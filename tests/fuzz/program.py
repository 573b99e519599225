"""The program, run in this process as by a command line, with a string as its terminal."""

import gc
import io
import os
import signal
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from pgversus.cli.main import run
from pgversus.errors import ExitCode
from tests.fuzz.watching import assert_shown_only

_EXPECTED = frozenset({ExitCode.DONE, ExitCode.USAGE, ExitCode.HOST, ExitCode.FAILED_TRIALS, ExitCode.RESULTS})
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class Terminal(io.StringIO):
    """A standard stream that is connected to an interactive terminal."""

    def isatty(self) -> bool:
        return True


class _Typed(io.TextIOWrapper):
    """Standard input from a pipe."""

    def __init__(self, content: bytes) -> None:
        super().__init__(io.BytesIO(content), encoding="utf-8")


def exit_code_of(
    arguments: Sequence[str],
    folder: Path,
    *,
    stdin: bytes = b"",
    environment: Mapping[str, str] | None = None,
    may_fail_with: frozenset[int] = _EXPECTED,
) -> int:
    """Return the exit code of a run in this folder; AssertionError for a bug or for control characters in its output.

    Its cache, its home and its temporary files are in the folder.
    """
    own = {
        "PATH": os.environ["PATH"],
        "HOME": str(folder / "home"),
        "PGVERSUS_CACHE": str(folder / "cache"),
        # No colors, so that each escape in the output comes from the input.
        "TERM": "dumb",
        "LC_ALL": "C.UTF-8",
        **(environment or {}),
    }
    with _restored(), _environment(own), _streams(stdin) as shown:
        os.chdir(folder)
        try:
            code = run(list(arguments))
        finally:
            printed = shown.getvalue()
    assert code in may_fail_with, f"exit {code}: {printed[-300:]}\n{_crash_report(folder)}"
    assert_shown_only(printed)
    return code


@contextmanager
def _streams(stdin: bytes) -> Iterator[Terminal]:
    before = sys.stdin, sys.stdout, sys.stderr
    shown = Terminal()
    sys.stdin, sys.stdout, sys.stderr = _Typed(stdin), shown, shown
    try:
        yield shown
    finally:
        sys.stdin, sys.stdout, sys.stderr = before


@contextmanager
def _environment(own: Mapping[str, str]) -> Iterator[None]:
    before = dict(os.environ)
    os.environ.clear()
    os.environ.update(own)
    try:
        yield
    finally:
        os.environ.clear()
        os.environ.update(before)


@contextmanager
def _restored() -> Iterator[None]:
    """Restore the process state that a command line changes, because its process usually ends afterwards."""
    handlers = {number: signal.getsignal(number) for number in _INTERRUPTS}
    place = os.open(".", os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
        os.fchdir(place)
        os.close(place)
        gc.enable()


def _crash_report(folder: Path) -> str:
    return "\n".join(path.read_text(encoding="utf-8")[-1500:] for path in folder.glob("pgversus-crash-*"))
