"""SIGKILL at a random moment: of pgversus, its guard, a postmaster, one backend, pgbench."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from random import Random
from types import MappingProxyType

import psutil

from tests.faults.fault import Fault, Outcome
from tests.faults.invariants import (
    StoredBlocks,
    dishonest,
    failed_trials,
    half_kept,
    half_measured,
    left_behind,
    lost,
    not_ours,
    stored_blocks,
)
from tests.faults.study import BLOCKS, RUN, write_study
from tests.faults.watched import ABOUT_S, Phase, Strike, Watched, command_of, is_postmaster, watched
from tests.live.conftest import CommandLine, Ended

Victims = Callable[[list[psutil.Process]], list[psutil.Process]]
"""Those of a run's processes that may be struck; its own is the first."""
_WITH_SERVERS: Mapping[Phase, float] = MappingProxyType(
    {phase: ABOUT_S[phase] for phase in (Phase.LOAD, Phase.FIRST_LOAD, Phase.BLOCKS)}
)
_WITH_LOAD: Mapping[Phase, float] = MappingProxyType(
    {phase: ABOUT_S[phase] for phase in (Phase.FIRST_LOAD, Phase.BLOCKS)}
)
SIGKILL = -9


def pgversus(processes: list[psutil.Process]) -> list[psutil.Process]:
    """The run itself."""
    return processes[:1]


def guard(processes: list[psutil.Process]) -> list[psutil.Process]:
    """What would clean up after it."""
    return [process for process in processes[1:] if "pgversus.host.guard" in command_of(process)]


def postmasters(processes: list[psutil.Process]) -> list[psutil.Process]:
    """The first processes of its servers."""
    return [process for process in processes[1:] if is_postmaster(process)]


def backends(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Sessions on its servers: those of pgbench, and its own."""
    return [process for process in processes[1:] if "[local]" in " ".join(command_of(process)[:1])]


def pgbench(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Its load, and what loads its data."""
    return [process for process in processes[1:] if Path((command_of(process) or [""])[0]).name == "pgbench"]


def _killed(rng: Random, victims: Victims, strike: Strike) -> bool:
    """Kill one of them; whether there was one."""
    found = victims(strike.processes)
    if not found:
        return False
    with suppress(psutil.NoSuchProcess):
        rng.choice(found).kill()
        return True
    return False


def _play(victims: Victims, phases: Mapping[Phase, float], line: CommandLine, rng: Random) -> Outcome:
    write_study(line)
    with watched(line, *RUN) as run:
        run.strike(rng, phases, partial(_killed, rng, victims))
        first = run.end()
        violations = [*_after_the_first(run, first)]
        kept = stored_blocks(run.results)
        again = line.run(*RUN)
        violations += _after_the_second(run, kept, again)
    return Outcome(moment=run.moment, end=_end(first, again, kept), violations=tuple(violations))


def _after_the_first(run: Watched, ended: Ended) -> Iterator[str]:
    if ended.code != SIGKILL:
        yield from not_ours(ended)
    for strike in run.strikes:
        yield from left_behind(run.line, strike.processes, strike.sockets)
        yield from lost(strike.blocks, stored_blocks(run.results))
    yield from half_kept(run.line)
    yield from half_measured(run.results)
    yield from dishonest(run.results)


def _after_the_second(run: Watched, kept: StoredBlocks, ended: Ended) -> Iterator[str]:
    """The same command again comes to its end, with every block that was there."""
    expected = 4 if failed_trials(run.results) else 0
    if ended.code != expected:
        yield f"the same command again ended with {ended.code}, not {expected}: {ended.stderr[-600:]}"
    after = stored_blocks(run.results)
    if (whole := _whole_blocks(after)) < BLOCKS:
        yield f"the same command again ended with {whole} of {BLOCKS} blocks"
    yield from lost(kept, after)
    yield from left_behind(run.line, [], [])
    yield from half_measured(run.results)
    yield from dishonest(run.results)


def _whole_blocks(blocks: StoredBlocks) -> int:
    """Blocks in which every trial has windows."""
    windows = [rows for (table, _, _), rows in blocks.items() if table == "window"]
    return sum(len({row[2] for row in rows}) == 2 for rows in windows)


def _end(first: Ended, again: Ended, kept: StoredBlocks) -> str:
    blocks = f"{_whole_blocks(kept)} blocks, "
    if first.code == SIGKILL:
        how = "killed"
    elif "error[" in first.stderr:
        how = f"{first.stderr.split('error[')[1].split(']')[0]}, exit {first.code}"
    else:
        how = "failed trial counted, exit 4" if first.code == 4 else f"unharmed, exit {first.code}"
    return f"{how}; {blocks}resumed, exit {again.code}"


def _kill(name: str, what: str, victims: Victims, phases: Mapping[Phase, float]) -> Fault:
    return Fault(name=name, what=what, play=partial(_play, victims, phases), tries=100, tries_in_tests=5)


KILLS = (
    _kill("kill-pgversus", "kill -9 of pgversus", pgversus, ABOUT_S),
    _kill("kill-guard", "kill -9 of the guard of a run", guard, ABOUT_S),
    _kill("kill-postmaster", "kill -9 of a postmaster", postmasters, _WITH_SERVERS),
    _kill("kill-backend", "kill -9 of one backend", backends, _WITH_SERVERS),
    _kill("kill-pgbench", "kill -9 of pgbench", pgbench, _WITH_LOAD),
)
