"""SIGKILL at a random moment: of pgversus, its guard, a postmaster, one backend, pgbench."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType

import psutil

from tests.faults.fault import Fault, Outcome
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import ABOUT_S, IN_BLOCKS, Phase, Strike, command_of, is_postmaster, watched
from tests.live.conftest import CommandLine

Victims = Callable[[list[psutil.Process]], list[psutil.Process]]
"""Selects the processes of a run that may be struck; the run itself is the first."""
WITH_LOAD: Mapping[Phase, float] = MappingProxyType({Phase.FIRST_LOAD: ABOUT_S[Phase.FIRST_LOAD], **IN_BLOCKS})
WITH_SERVERS: Mapping[Phase, float] = MappingProxyType({Phase.LOAD: ABOUT_S[Phase.LOAD], **WITH_LOAD})


def pgversus(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the run itself."""
    return processes[:1]


def guard(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the guard, which would clean up after the run."""
    return [process for process in processes[1:] if "pgversus.host.guard" in command_of(process)]


def postmasters(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the postmasters of its servers."""
    return [process for process in processes[1:] if is_postmaster(process)]


def backends(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return sessions on its servers: those of pgbench and of pgversus."""
    return [process for process in processes[1:] if "[local]" in " ".join(command_of(process)[:1])]


def pgbench(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the pgbench processes that run its loads or load its data."""
    return [process for process in processes[1:] if Path((command_of(process) or [""])[0]).name == "pgbench"]


def killed(rng: Random, victims: Victims, strike: Strike) -> bool:
    """Kill one of the victims at random; return whether there was one."""
    found = victims(strike.processes)
    if not found:
        return False
    with suppress(psutil.NoSuchProcess):
        rng.choice(found).kill()
        return True
    return False


def _play(victims: Victims, phases: Mapping[Phase, float], line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    with watched(line, *RUN) as run:
        run.strike(rng, phases, partial(killed, rng, victims))
        return outcome_of(run, run.end(), may_fail_trials=victims not in _OF_NO_ARM)


_OF_NO_ARM = (pgversus, guard)


def _kill(name: str, what: str, victims: Victims, phases: Mapping[Phase, float]) -> Fault:
    return Fault(name=name, what=what, play=partial(_play, victims, phases), tries=100)


KILLS = (
    _kill("kill-pgversus", "kill -9 of pgversus", pgversus, ABOUT_S),
    _kill("kill-guard", "kill -9 of the guard of a run", guard, ABOUT_S),
    _kill("kill-postmaster", "kill -9 of a postmaster", postmasters, WITH_SERVERS),
    _kill("kill-backend", "kill -9 of one backend", backends, WITH_SERVERS),
    _kill("kill-pgbench", "kill -9 of pgbench", pgbench, WITH_LOAD),
)
