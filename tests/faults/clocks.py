"""The time of day jumps at a random moment, forwards or backwards, and returns."""

import sys
import time
from pathlib import Path
from random import Random

from tests.faults import jumping_clock
from tests.faults.fault import Fault, Outcome
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import ABOUT_S, Strike, watched
from tests.live.conftest import PROGRAM, CommandLine

_LARGEST_S, _LONGEST_S = 3600, 1.0


def _play(line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    flag = line.directory / "jumped"
    by_s = rng.choice([-1, 1]) * round(_LARGEST_S ** rng.random())

    def jumped(_: Strike) -> bool:
        flag.touch()
        time.sleep(rng.uniform(0, _LONGEST_S))
        flag.unlink()
        return True

    line.program = (sys.executable, "-P", str(Path(jumping_clock.__file__)), str(flag), str(by_s))
    with watched(line, *RUN) as run:
        run.strike(rng, ABOUT_S, jumped)
        first = run.end()
        line.program = (str(PROGRAM),)
        return outcome_of(run, first, may_fail_trials=False)


CLOCKS = (
    Fault(
        name="clock-jump",
        what="the time of day jumps for pgversus, by up to an hour",
        play=_play,
        tries=25,
    ),
)
