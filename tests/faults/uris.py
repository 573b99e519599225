"""An external server that goes away at a random moment, and returns after a while or after the run."""

import os
import signal
import time
from functools import partial
from random import Random

from pgversus.postgres.server import Server
from tests.faults.fault import Fault, Outcome
from tests.faults.resuming import outcome_of
from tests.faults.study import NAME, RUN, SERVER, study_of_uri
from tests.faults.watched import ABOUT_S, Strike, watched
from tests.live.conftest import CommandLine, started_server

_LONGEST_AWAY_S = 2.0


def _gone(server: Server, _: Strike) -> bool:
    """Shut the server down immediately, as in a crash of its host."""
    pid = server.postmaster_pid
    assert pid is not None
    os.kill(pid, signal.SIGQUIT)
    server.stop()
    return True


def _play(line: CommandLine, rng: Random) -> Outcome:
    with started_server(SERVER) as (server, uri):
        line.write(f"{NAME}.toml", study_of_uri(uri))
        with watched(line, *RUN, "--trust") as run:
            returns = rng.random() < 0.5
            run.strike(rng, ABOUT_S, partial(_gone, server))
            if returns:
                time.sleep(rng.uniform(0, _LONGEST_AWAY_S))
                server.start()
            first = run.end()
            return outcome_of(run, first, repair=partial(_returned, server))


def _returned(server: Server) -> None:
    if server.postmaster_pid is None:
        server.start()


URIS = (
    Fault(
        name="uri-goes-away",
        what="a server given by URI goes away, and returns during the run or after it",
        play=_play,
        tries=50,
    ),
)
