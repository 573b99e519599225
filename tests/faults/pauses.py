"""SIGSTOP for a moment, in a window: of pgversus, of pgbench, of a backend."""

import signal
import time
from functools import partial
from random import Random

import psutil

from tests.faults.fault import Fault, Outcome
from tests.faults.kills import Victims, backends, pgbench, pgversus
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import IN_BLOCKS, Strike, watched
from tests.live.conftest import CommandLine

_SHORTEST_S, _LONGEST_S = 0.05, 1.0


def _paused(rng: Random, victims: Victims, strike: Strike) -> bool:
    """Stop one of them in a window, and continue it; whether there was one."""
    found = victims(strike.processes)
    if strike.moment != "windows" or not found:
        return False
    victim = rng.choice(found)
    try:
        victim.send_signal(signal.SIGSTOP)
        time.sleep(rng.uniform(_SHORTEST_S, _LONGEST_S))
        victim.send_signal(signal.SIGCONT)
    except psutil.NoSuchProcess:
        return False
    return True


def _play(victims: Victims, line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    with watched(line, *RUN) as run:
        run.strike(rng, IN_BLOCKS, partial(_paused, rng, victims))
        return outcome_of(run, run.end(), may_fail_trials=False)


def _pause(name: str, what: str, victims: Victims) -> Fault:
    return Fault(name=name, what=what, play=partial(_play, victims), tries=25)


PAUSES = (
    _pause("pause-pgversus", "SIGSTOP and SIGCONT of pgversus in its windows", pgversus),
    _pause("pause-pgbench", "SIGSTOP and SIGCONT of pgbench in its windows", pgbench),
    _pause("pause-backend", "SIGSTOP and SIGCONT of a backend in its windows", backends),
)
