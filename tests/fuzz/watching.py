"""Detect forbidden effects of reading an input: writes elsewhere, programs, connections, too much time or memory."""

import os
import platform
import resource
import sys
import tempfile
import unicodedata
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from enum import Enum, auto
from functools import cache
from pathlib import Path
from typing import Any

from pgversus.builds import zonky_client
from pgversus.host.commands import CLEAN_ENVIRONMENT, ending_with_us
from pgversus.study.build_options import USUAL_COMPILER
from tests.bounded import processor_time

MOST_MEMORY_BYTES = 1 << 30
"""Limit for reading one input, above the current use of the process."""


class Effects(Enum):
    """Handling of inputs that start a program or open a connection."""

    FORBIDDEN = auto()
    """Report a finding."""
    STOPPED = auto()
    """Stop it and count the input as accepted: a valid command line starts something."""
    DRY_RUN = auto()
    """Allow checks for tools of the host, stop a registry's client, and report everything else as a finding."""
    ALLOWED = auto()


class StoppedError(BaseException):
    """Something would have been started. Not an Exception, so that the program does not handle it as its own."""


class EscapeError(BaseException):
    """A forbidden write, start of a program, or connection was attempted."""


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
    **dict.fromkeys(("os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.utime"), (0,)),
    **dict.fromkeys(("os.setxattr", "os.removexattr", "os.mkfifo", "os.mknod"), (0,)),
    **dict.fromkeys(("os.symlink", "os.link"), (1,)),
    "os.rename": (0, 1),
}
"""For each event, the positions of the arguments that are paths of changed files."""
_STARTING = frozenset(
    {
        *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.spawn", "os.fork", "os.forkpty"),
        *("pty.spawn", "socket.connect", "socket.bind", "socket.sendto", "socket.getaddrinfo", "socket.gethostbyname"),
    }
)
_REGISTRIES = {("-m", "pip"), ("-m", zonky_client.__name__)}
_PATH = CLEAN_ENVIRONMENT["PATH"].split(":")
_IN_USE: list["_Watch"] = []


class _Watch:
    """The effects that are allowed while one input is read."""

    def __init__(self, folder: Path, effects: Effects) -> None:
        self.escapes: list[str] = []
        self._folder = os.path.realpath(folder)
        self._effects = effects
        self._process = os.getpid()

    def look_at(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Raise EscapeError or StoppedError for a forbidden event."""
        if os.getpid() != self._process:
            return
        if event in _STARTING:
            self._started(event, arguments)
            return
        for path in _changed_paths(event, arguments):
            if not self._is_inside(path):
                self._escape(f"{event}: {path!r:.200}")

    def _started(self, event: str, arguments: tuple[Any, ...]) -> None:
        words = arguments[1] if event == "subprocess.Popen" else ()
        is_dry_run = self._effects is Effects.DRY_RUN
        is_registry = any(tuple(words[at : at + 2]) in _REGISTRIES for at in range(len(words)))
        if self._effects is Effects.STOPPED or (is_dry_run and is_registry):
            raise StoppedError(event)
        is_allowed = self._effects is Effects.ALLOWED or (is_dry_run and _asks_for_tools(*words))
        if not is_allowed:
            self._escape(f"{event}: {arguments[:2]!r:.300}")

    def _is_inside(self, path: str | bytes | os.PathLike[str]) -> bool:
        text = os.fsdecode(path)
        # The last component may be a link: removing or renaming it affects the link itself.
        parent, name = os.path.split(os.path.abspath(text))  # noqa: PTH100 - without disk access
        whole = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118 - the same
        return whole in {os.devnull, self._folder} or whole.startswith(f"{self._folder}/")

    def _escape(self, what: str) -> None:
        self.escapes.append(what)
        raise EscapeError(what)


def _asks_for_tools(*words: str) -> bool:
    """Return whether a command only checks for a program of the host, its compiler's version, or a header."""
    match words:
        case ("/bin/sh", "-c", 'test -x "$0"', path):
            # A program of the host, or the directory in which programs start.
            return os.path.dirname(path) in _PATH or path == os.getcwd()  # noqa: PTH109, PTH120 - without disk access
        case (program, "--version"):
            return program == USUAL_COMPILER
        case ("/bin/sh", "-c", 'printf "%s" "$0" | "$@"', _, program, "-I/usr/include/libxml2", "-E", "-x", "c", "-"):
            return program == USUAL_COMPILER
        case _:
            return False


def _changed_paths(event: str, arguments: tuple[Any, ...]) -> Iterator[Any]:
    if event == "open":
        path, mode, flags = arguments
        is_written = (isinstance(mode, str) and bool({*"wax+"} & {*mode})) or bool((flags or 0) & _WRITING)
        if is_written and not isinstance(path, int):
            yield path
    elif event in _PATHS:
        directories = [number for number in arguments[1:] if isinstance(number, int) and number > 2]
        for place in _PATHS[event]:
            path = arguments[place]
            if isinstance(path, int) or (directories and event in {"os.chown", "os.remove", "os.rmdir"}):
                # Through an open descriptor, whose opening was checked.
                continue
            yield path


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if _IN_USE and (event == "open" or event in _PATHS or event in _STARTING):
        _IN_USE[-1].look_at(event, arguments)


@cache
def _begin_to_look() -> None:
    # Queried once per process, about the host and not for an input; the second call is for crash reports.
    ending_with_us()
    platform.platform()
    platform.processor()
    # An audit hook cannot be removed, so there is one for all inputs.
    sys.addaudithook(_look)


@contextmanager
def watched(folder: Path, *, effects: Effects, seconds: float) -> Iterator[None]:
    """Raise AssertionError or EscapeError for forbidden effects in the body; any warning is an error.

    folder: the only writable place.
    seconds: limit of CPU time.
    """
    _begin_to_look()
    watch = _Watch(folder, effects)
    unraisable: list[str] = []
    before = sys.unraisablehook, tempfile.tempdir, sys.dont_write_bytecode
    sys.unraisablehook = lambda found: unraisable.append(f"{found.exc_value!r} in {found.object!r:.100}")
    tempfile.tempdir = str(folder)
    # The first import of a module would write its bytecode next to it.
    sys.dont_write_bytecode = True
    _IN_USE.append(watch)
    try:
        with warnings.catch_warnings(), processor_time(seconds):
            warnings.simplefilter("error")
            yield
    finally:
        _IN_USE.pop()
        sys.unraisablehook, tempfile.tempdir, sys.dont_write_bytecode = before
    # The program may have caught the exception.
    if watch.escapes:
        raise EscapeError(watch.escapes[0])
    assert not unraisable, unraisable[0]


@contextmanager
def bounded_memory(most_bytes: int = MOST_MEMORY_BYTES) -> Iterator[None]:
    """Raise MemoryError if the process uses more than this in addition to its current memory."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    most = pages * resource.getpagesize() + most_bytes
    resource.setrlimit(resource.RLIMIT_AS, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))


_DIRECTIONS = frozenset({"LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"})
_MARKS = frozenset("\u200e\u200f\u061c")


@cache
def _is_obeyed(character: str) -> bool:
    """Return whether a terminal obeys a character, according to its Unicode properties."""
    return (
        (unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and character not in "\n\t")
        or unicodedata.bidirectional(character) in _DIRECTIONS
        or character in _MARKS
    )


def assert_shown_only(text: str) -> None:
    """Raise AssertionError if a text contains characters that a terminal obeys."""
    found = sorted(character for character in set(text) if _is_obeyed(character))
    assert not found, f"{found!r} in what goes to a terminal: {_around(text, found[0])!r}" if found else ""


def _around(text: str, character: str) -> str:
    at = text.index(character)
    return text[max(0, at - 40) : at + 40]
