"""SIGSTOP for a moment during a window: of pgversus, of pgbench, of a backend."""

import re
import signal
import time
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import psutil

from pgversus.host.lost_time import LATE_S
from pgversus.study.counters import DISTURBED_WINDOWS
from tests.faults.fault import Fault, Outcome
from tests.faults.invariants import opened
from tests.faults.kills import Victims, backends, pgbench, pgversus
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import IN_BLOCKS, Strike, command_of, watched
from tests.live.conftest import CommandLine

_SHORTEST_S, _LONGEST_S = 0.05, 1.0
_LONGEST_WINDOW_S = 0.02 + LATE_S + 0.05
# Longer than a window of this study, plus the limit for lost time, plus the delays of a busy host.


def _paused(rng: Random, victims: Victims, strike: Strike) -> bool:
    """Stop one of the victims during a window and continue it; return whether there was one."""
    found = victims(strike.processes)
    if strike.moment != "windows" or not found or not _is_in_a_window(strike.processes):
        return False
    victim = rng.choice(found)
    try:
        victim.send_signal(signal.SIGSTOP)
        time.sleep(rng.uniform(_SHORTEST_S, _LONGEST_S))
        victim.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return False
    return True


def _is_in_a_window(processes: list[psutil.Process]) -> bool:
    """Return whether a load is running: between two windows it is stopped."""
    with suppress(psutil.Error):
        return any(process.status() != psutil.STATUS_STOPPED for process in pgbench(processes))
    return False


def _at_work(processes: list[psutil.Process]) -> list[psutil.Process]:
    """Return the sessions of loads that execute a statement."""
    return [one for one in backends(processes) if re.search(r" postgres \[local\] SELECT", " ".join(command_of(one)))]


def _play(victims: Victims, line: CommandLine, rng: Random) -> Outcome:
    """Run one try: a window in which time was lost must not be among the results without being reported."""
    write_study(line, rng)
    with watched(line, *RUN) as run:
        run.strike(rng, IN_BLOCKS, partial(_paused, rng, victims))
        first = run.end()
        repeated, longest_s = _repeated_rounds(run.results), _longest_unreported_window_s(run.results)
        found = outcome_of(run, first, may_fail_trials=False)
    lost = (
        f"a window of {longest_s:.2f} s is among the results, not reported as disturbed"
        if longest_s > _LONGEST_WINDOW_S
        else ""
    )
    again = "rounds measured again" if repeated else "no round measured again"
    return replace(found, end=f"{found.end}; {again}", violations=(*found.violations, *filter(None, [lost])))


def _repeated_rounds(folder: Path) -> int:
    return int(_number(folder, "SELECT coalesce(sum(repeated_rounds), 0) FROM block"))


def _longest_unreported_window_s(folder: Path) -> float:
    """Return the longest window, except those of trials reported as disturbed although a round was measured again.

    A block measures a disturbed session once more. If other work disturbs that one as well, it counts, with a caveat.
    """
    return _number(
        folder,
        "SELECT coalesce(max(window.seconds), 0) FROM window JOIN block USING (context, block) "
        "LEFT JOIN counter ON counter.context = window.context AND counter.block = window.block "
        "AND counter.arm = window.arm AND counter.name = ? WHERE counter.value IS NULL OR block.repeated_rounds = 0",
        DISTURBED_WINDOWS,
    )


def _number(folder: Path, query: str, *values: str) -> float:
    with opened(folder) as database:
        (number,) = database.execute(query, values).fetchone()
        return float(number)


def _pause(name: str, what: str, victims: Victims) -> Fault:
    return Fault(name=name, what=what, play=partial(_play, victims), tries=25)


PAUSES = (
    _pause("pause-pgversus", "SIGSTOP and SIGCONT of pgversus in its windows", pgversus),
    _pause("pause-pgbench", "SIGSTOP and SIGCONT of pgbench in its windows", pgbench),
    _pause("pause-backend", "SIGSTOP and SIGCONT of a backend in its windows", _at_work),
)
