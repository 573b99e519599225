"""System calls of a whole comparison, traced with strace: the files it changes and the processes it signals."""

import os
import re
import shlex
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tests.live.conftest import EXAMPLES, PROGRAM, QUICK, CommandLine

pytestmark = [pytest.mark.live, pytest.mark.needs_tools]

_CHANGES = {
    "unlink": 0,
    "rmdir": 0,
    "mkdir": 0,
    "chmod": 0,
    "chown": 0,
    "lchown": 0,
    "truncate": 0,
    "mknod": 0,
    "creat": 0,
    "unlinkat": 1,
    "mkdirat": 1,
    "fchmodat": 1,
    "fchownat": 1,
    "mknodat": 1,
}
"""System calls that change a file, with the number of arguments before its path; a base directory counts as one."""
_MOVES = {"rename": (0, 1), "link": (0, 1), "symlink": (1,)}
_MOVES_FROM_DIRECTORIES = {"renameat": (1, 3), "renameat2": (1, 3), "linkat": (1, 3), "symlinkat": (2,)}
_SIGNALS = ("kill", "tkill", "tgkill")
_OPENS = ("open", "openat")
_FORKS = ("fork", "vfork", "clone", "clone3")
_TRACED = (
    *_CHANGES,
    *_MOVES,
    *_MOVES_FROM_DIRECTORIES,
    *_SIGNALS,
    *_OPENS,
    *_FORKS,
    "fchmod",
    "fchown",
    "chdir",
    "fchdir",
)
_CALL = re.compile(r"^(\w+)\((.*)\)\s+= (-?\d+)(.*)$")
_ARGUMENT = re.compile(r'(?:"(?:[^"\\]|\\.)*"(?:\.\.\.)?|<[^>]*>|[^,"<])+')
_DESCRIPTOR = re.compile(r"^(?:AT_FDCWD|-?\d+)<(.*)>$")


@dataclass
class Seen:
    """The effects of all processes of a command."""

    processes: set[int] = field(default_factory=set)
    changed: set[Path] = field(default_factory=set)
    signalled: set[int] = field(default_factory=set)
    """Process ids; negative ones are process groups."""

    def read(self, traces: Path, pid: int, directory: Path) -> None:
        """Read the trace of a process that started in a directory, and of all its descendants."""
        self.processes.add(pid)
        for line in (traces / f"trace.{pid}").read_text(errors="replace").splitlines():
            if not (match := _CALL.match(line)) or int(match[3]) < 0:
                continue
            name, arguments = match[1], [argument.strip() for argument in _ARGUMENT.findall(match[2])]
            if name in _FORKS:
                self.read(traces, int(match[3]), directory)
            elif name == "chdir":
                directory = directory / _text(arguments[0])
            elif name == "fchdir":
                directory = Path(_place(arguments[0]))
            elif name in _SIGNALS:
                self._signal(arguments)
            else:
                self.changed.update(Path(os.path.normpath(path)) for path in _changed(name, arguments, directory))

    def _signal(self, arguments: list[str]) -> None:
        # Signal 0 only checks whether the process exists.
        if arguments[-1] != "0":
            self.signalled.add(int(arguments[0]))


def _changed(name: str, arguments: list[str], directory: Path) -> Iterator[Path]:
    if name in ("fchmod", "fchown"):
        yield Path(_place(arguments[0]))
    elif name in _OPENS:
        at = int(name == "openat")
        if re.search(r"O_(WRONLY|RDWR|CREAT|TRUNC)", arguments[at + 1]):
            yield _from(arguments, at, directory)
    elif name in _CHANGES:
        yield _from(arguments, _CHANGES[name], directory)
    elif name in _MOVES:
        yield from (directory / _text(arguments[at]) for at in _MOVES[name])
    elif name in _MOVES_FROM_DIRECTORIES:
        yield from (_from(arguments, at, directory) for at in _MOVES_FROM_DIRECTORIES[name])


def _from(arguments: list[str], at: int, directory: Path) -> Path:
    """Return the path in an argument, relative to the descriptor in the preceding argument if there is one."""
    return (Path(_place(arguments[at - 1])) if at else directory) / _text(arguments[at])


def _place(descriptor: str) -> str:
    match = _DESCRIPTOR.match(descriptor)
    assert match is not None, descriptor
    return match[1].removesuffix(" (deleted)")


def _text(argument: str) -> str:
    assert argument.startswith('"'), argument
    assert not argument.endswith("..."), "strace has shortened it"
    return argument[1:-1]


def test_a_run_changes_only_its_own_files_and_signals_only_its_own_processes(command_line: CommandLine) -> None:
    traces = command_line.directory / "traces"
    traces.mkdir()
    strace = [
        "strace",
        "-ff",
        "--seccomp-bpf",
        "-y",
        "-s",
        "4096",
        "-e",
        f"trace={','.join(_TRACED)}",
        "-e",
        "signal=none",
    ]
    files = ("--setup", str(EXAMPLES / "correlated.sql"), "-f", str(EXAMPLES / "correlated_in.sql"))
    demo = [str(PROGRAM), "compare", "16.12", "17.8", *files, "-c", "4", *QUICK, "--results", "results"]
    process = subprocess.Popen(
        [*strace, "-o", str(traces / "trace"), "sh", "-c", f"echo $$; exec {shlex.join(demo)}"],
        cwd=command_line.directory,
        env=command_line.environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    stdout, stderr = process.communicate(timeout=500)
    assert process.returncode == 0, stderr
    seen = Seen()
    seen.read(traces, int(stdout.split()[0]), command_line.directory)

    # The traces of servers, backends, pgbench, psql, initdb and the guard were all read.
    assert {file.name for file in traces.iterdir()} == {f"trace.{pid}" for pid in seen.processes}
    assert len(seen.processes) > 50
    assert {abs(pid) for pid in seen.signalled} <= seen.processes

    own = [
        command_line.cache,
        *(place.resolve() for place in command_line.cache.iterdir()),
        command_line.directory / "results",
        *(Path(tempfile.gettempdir()) / place.name for place in _temporary(seen)),
    ]
    strange = {path for path in seen.changed if not any(path.is_relative_to(place) for place in own)}
    assert {path for path in strange if not _is_shared(path)} == set()
    assert any(path.is_relative_to(command_line.runs) for path in seen.changed)


def _temporary(seen: Seen) -> Iterator[Path]:
    """Yield directories that the run itself created in the system's temporary directory."""
    root = Path(tempfile.gettempdir())
    yield from (path for path in seen.changed if path.parent == root and path.name.startswith("pgv-"))


def _is_shared(path: Path) -> bool:
    """Return whether a path is a device without content, or shared memory under a name chosen by PostgreSQL."""
    return path in (Path("/dev/null"), Path("/dev/tty")) or (
        path.parent == Path("/dev/shm") and path.name.startswith("PostgreSQL.")
    )
