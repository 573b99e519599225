"""What an input must not do, noticed while it is read: write elsewhere, start a program, connect, take too much."""

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
"""That reading one input may take, above what the process has."""


class Effects(Enum):
    """What happens where an input starts a program or opens a connection."""

    FORBIDDEN = auto()
    """It is a finding."""
    STOPPED = auto()
    """It is not done, and the input counts as accepted: a command line that is right starts something."""
    DRY_RUN = auto()
    """The host may be asked for tools, a registry's client is stopped, and all else is a finding."""
    ALLOWED = auto()


class StoppedError(BaseException):
    """Something would have been started. No Exception, so that no code of the program takes it for one of its own."""


class EscapeError(BaseException):
    """Something was about to be written, started or connected to that must not be."""


_WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
_PATHS = {
    **dict.fromkeys(("os.mkdir", "os.rmdir", "os.remove", "os.truncate", "os.chmod", "os.chown", "os.utime"), (0,)),
    **dict.fromkeys(("os.setxattr", "os.removexattr", "os.mkfifo", "os.mknod"), (0,)),
    **dict.fromkeys(("os.symlink", "os.link"), (1,)),
    "os.rename": (0, 1),
}
"""Which arguments of an event are paths that are changed."""
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
    """What may be done while one input is read."""

    def __init__(self, folder: Path, effects: Effects) -> None:
        self.escapes: list[str] = []
        self._folder = os.path.realpath(folder)
        self._effects = effects
        self._process = os.getpid()

    def look_at(self, event: str, arguments: tuple[Any, ...]) -> None:
        """EscapeError or StoppedError for what must not be done."""
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
        # The last part may be a link: of one that is removed or renamed the link itself is meant.
        parent, name = os.path.split(os.path.abspath(text))  # noqa: PTH100 - no look at the disk
        whole = os.path.join(os.path.realpath(parent), name)  # noqa: PTH118 - the same
        return whole in {os.devnull, self._folder} or whole.startswith(f"{self._folder}/")

    def _escape(self, what: str) -> None:
        self.escapes.append(what)
        raise EscapeError(what)


def _asks_for_tools(*words: str) -> bool:
    """Whether a command only asks if a program of the host can be run, its compiler's version, or for a header."""
    match words:
        case ("/bin/sh", "-c", 'test -x "$0"', path):
            # A program of the host, or the directory in which programs begin.
            return os.path.dirname(path) in _PATH or path == os.getcwd()  # noqa: PTH109, PTH120 - no look at the disk
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
                # By an open descriptor, whose own opening was looked at.
                continue
            yield path


def _look(event: str, arguments: tuple[Any, ...]) -> None:
    if _IN_USE and (event == "open" or event in _PATHS or event in _STARTING):
        _IN_USE[-1].look_at(event, arguments)


@cache
def _begin_to_look() -> None:
    # Asked once in a process, of the host and for no input; the second for crash reports.
    ending_with_us()
    platform.platform()
    platform.processor()
    # It cannot be taken away again, so there is one for all inputs.
    sys.addaudithook(_look)


@contextmanager
def watched(folder: Path, *, effects: Effects, seconds: float) -> Iterator[None]:
    """Raise AssertionError or EscapeError for what an input must not do meanwhile; any warning is an error.

    folder: the only place that may be written to.
    seconds: of processor time.
    """
    _begin_to_look()
    watch = _Watch(folder, effects)
    unraisable: list[str] = []
    before = sys.unraisablehook, tempfile.tempdir, sys.dont_write_bytecode
    sys.unraisablehook = lambda found: unraisable.append(f"{found.exc_value!r} in {found.object!r:.100}")
    tempfile.tempdir = str(folder)
    # A module that is imported for the first time is compiled, and the result written beside it.
    sys.dont_write_bytecode = True
    _IN_USE.append(watch)
    try:
        with warnings.catch_warnings(), processor_time(seconds):
            warnings.simplefilter("error")
            yield
    finally:
        _IN_USE.pop()
        sys.unraisablehook, tempfile.tempdir, sys.dont_write_bytecode = before
    # Somebody may have caught it.
    if watch.escapes:
        raise EscapeError(watch.escapes[0])
    assert not unraisable, unraisable[0]


@contextmanager
def bounded_memory(most_bytes: int = MOST_MEMORY_BYTES) -> Iterator[None]:
    """MemoryError for what takes more than that above what this process has now."""
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
    """Whether a terminal obeys a character, by what Unicode says of it."""
    return (
        (unicodedata.category(character) in {"Cc", "Cs", "Zl", "Zp"} and character not in "\n\t")
        or unicodedata.bidirectional(character) in _DIRECTIONS
        or character in _MARKS
    )


def assert_shown_only(text: str) -> None:
    """AssertionError where a terminal would obey something in a text."""
    found = sorted(character for character in set(text) if _is_obeyed(character))
    assert not found, f"{found!r} in what goes to a terminal: {_around(text, found[0])!r}" if found else ""


def _around(text: str, character: str) -> str:
    at = text.index(character)
    return text[max(0, at - 40) : at + 40]
