"""A running pgversus: its progress and its processes."""

import subprocess
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from random import Random
from types import MappingProxyType

import psutil

from tests.faults.invariants import StoredBlocks, stored_blocks
from tests.faults.study import BLOCKS
from tests.live.conftest import CommandLine, Ended

PATIENCE_S = 150.0
"""A longer run hangs: without faults it takes ten seconds."""
_POLL_S = 0.003
_IN_WINDOWS = frozenset({"100000", "-t"})
# Arguments of pgbench: the length of a run that is stopped between its windows, or a number of transactions.


class Phase(StrEnum):
    """The phase of a run, by its output."""

    START = "start"
    LOAD = "load"
    FIRST_LOAD = "first load"
    BLOCK_1 = "block 1"
    BLOCK_2 = "block 2"
    BLOCK_3 = "block 3"
    END = "end"


SAID: Mapping[str, Phase] = MappingProxyType(
    {
        f"block {BLOCKS} ": Phase.END,
        "block 2 ": Phase.BLOCK_3,
        "block 1 ": Phase.BLOCK_2,
        "blocks of ": Phase.BLOCK_1,
        "trying the workload": Phase.FIRST_LOAD,
        "loading ": Phase.LOAD,
        "inspecting ": Phase.LOAD,
        "reading and hashing ": Phase.LOAD,
        " starts from a cached snapshot": Phase.LOAD,
    }
)
"""Texts in the output, each with the phase that it begins, the latest phase first."""
_BLOCKS = (Phase.BLOCK_1, Phase.BLOCK_2, Phase.BLOCK_3)
ABOUT_S: Mapping[Phase, float] = MappingProxyType(
    {Phase.START: 1.2, Phase.LOAD: 0.9, Phase.FIRST_LOAD: 1.2, **dict.fromkeys(_BLOCKS, 1.4), Phase.END: 0.3}
)
"""Approximate seconds of each phase: a strike comes at a random moment within them."""
IN_BLOCKS: Mapping[Phase, float] = MappingProxyType({phase: ABOUT_S[phase] for phase in _BLOCKS})


@dataclass(frozen=True, slots=True, kw_only=True)
class Strike:
    """A fault that has struck, and the state of the run just before."""

    moment: str
    blocks: StoredBlocks
    processes: list[psutil.Process]
    """Processes of the run, including its own."""
    sockets: list[Path]


@dataclass(slots=True)
class Watched:
    """A run of pgversus whose output goes to files, so that it can be read while it runs."""

    line: CommandLine
    arguments: tuple[str, ...]
    process: subprocess.Popen[str]
    said: Path
    strikes: list[Strike] = field(default_factory=list)

    @property
    def results(self) -> Path:
        """Its results folder; a missing one for a command without results."""
        _, _, after = " ".join(self.arguments).partition("--results ")
        return self.line.directory / (after.split() or ["none"])[0]

    @property
    def phase(self) -> Phase:
        """The current phase."""
        text = self.said.read_text(errors="replace")
        return next((phase for words, phase in SAID.items() if words in text), Phase.START)

    def is_running(self) -> bool:
        """Return whether it has not ended yet."""
        return self.process.poll() is None

    def strike(self, rng: Random, phases: Mapping[Phase, float], hit: Callable[["Strike"], bool]) -> bool:
        """Wait for a random moment of a random phase, then until `hit` succeeds; return whether it did in time.

        phases: approximate seconds of the phases to choose from.
        """
        phase = rng.choice(list(phases))
        delay_s = rng.uniform(0, phases[phase])
        while self.is_running() and list(Phase).index(self.phase) < list(Phase).index(phase):
            time.sleep(_POLL_S)
        time.sleep(delay_s)
        while self.is_running():
            strike = self._state()
            if hit(strike):
                self.strikes.append(strike)
                return True
            time.sleep(_POLL_S)
        return False

    @property
    def moment(self) -> str:
        """The moment of the last strike."""
        return self.strikes[-1].moment if self.strikes else "after its end"

    def end(self) -> Ended:
        """Wait for its end; raise TimeoutExpired if it hangs."""
        self.process.wait(PATIENCE_S)
        return Ended(self.process.returncode, self.said.with_suffix(".out").read_text(), self.said.read_text())

    def _state(self) -> Strike:
        # Blocks first: those that are added while processes are listed need not survive.
        blocks = stored_blocks(self.results)
        processes = self._processes()
        sockets = self.line.socket_directories()
        return Strike(moment=self._moment(processes), blocks=blocks, processes=processes, sockets=sockets)

    def _processes(self) -> list[psutil.Process]:
        """Return its own process, then all that it has started, which are its descendants while it lives."""
        with suppress(psutil.Error):
            own = psutil.Process(self.process.pid)
            return [own, *own.children(recursive=True)]
        return []

    def _moment(self, processes: list[psutil.Process]) -> str:
        phase = self.phase
        if phase not in IN_BLOCKS:
            return phase.value
        commands = list(map(command_of, processes))
        loads = [command for command in commands if command and Path(command[0]).name == "pgbench"]
        if any(_IN_WINDOWS.intersection(command) for command in loads):
            return "windows"
        if loads:
            return "warm-up"
        return "start or stop of servers" if any(map(is_postmaster, processes)) else "between windows or blocks"


@contextmanager
def watched(line: CommandLine, *arguments: str, name: str = "struck") -> Iterator[Watched]:
    """Yield a run of pgversus, which is killed at the end if it is still running."""
    said = line.directory / f"{name}.err"
    with said.open("w") as errors, said.with_suffix(".out").open("w") as output:
        process = line.start(*arguments, stdout=output, stderr=errors)
    try:
        yield Watched(line, arguments, process, said)
    finally:
        process.kill()
        process.wait()


def is_postmaster(process: psutil.Process) -> bool:
    """Return whether it is a postmaster."""
    command = command_of(process)
    return bool(command) and Path(command[0]).name == "postgres" and "listen_addresses=" in command


def is_server(process: psutil.Process) -> bool:
    """Return whether it is a process of a running server: postmaster, session, or background process."""
    return is_postmaster(process) or " ".join(command_of(process)).startswith("postgres: ")


def command_of(process: psutil.Process) -> list[str]:
    with suppress(psutil.Error):
        return process.cmdline()
    return []
