"""Servers that get no more memory from a random moment on.

A limit of a control group would let the kernel kill one of their processes, as kills.py does. This is the other half:
the kernel refuses, and servers say "out of memory" or cannot start a session.
"""

import subprocess
from contextlib import suppress
from random import Random

import psutil

from pgversus.host.identity import server_user
from tests.faults.fault import Fault, Outcome
from tests.faults.kills import WITH_SERVERS
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import Strike, is_server, watched
from tests.live.conftest import CommandLine


def _limited(strike: Strike) -> bool:
    """Give the servers that run now not a page more than they have; whether there was one."""
    found = [process for process in strike.processes[1:] if is_server(process)]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            size = process.memory_info().vms
            # As their user: root may do it only with a capability that containers lack. They may end meanwhile.
            subprocess.run(
                ["prlimit", f"--pid={process.pid}", f"--as={size}:"],
                check=False,
                capture_output=True,
                **server_user().popen_arguments(),
            )
    return bool(found)


def _play(line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    with watched(line, *RUN) as run:
        run.strike(rng, WITH_SERVERS, _limited)
        return outcome_of(run, run.end())


MEMORY = (
    Fault(
        name="no-memory",
        what="servers that run at the moment get no more memory",
        play=_play,
        tries=25,
        tries_in_tests=2,
    ),
)
