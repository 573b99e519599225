"""Two concurrent runs on one results folder, or on one cache only, of which one is killed."""

import time
from contextlib import ExitStack
from functools import partial
from random import Random

from tests.faults.fault import Fault, Outcome
from tests.faults.invariants import dishonest, missing_blocks, not_ours
from tests.faults.kills import killed, pgversus
from tests.faults.resuming import SIGKILL, outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import ABOUT_S, Watched, watched
from tests.live.conftest import CommandLine, Ended

_LATEST_S = 3.0
# Maximum delay of the second run after the first.
_OTHER_SHARE = 0.25
_IN_USE = "error[store-in-use]"
_ELSEWHERE = tuple("results-of-the-other" if argument == "results" else argument for argument in RUN)


def _play(command: tuple[str, ...], line: CommandLine, rng: Random) -> Outcome:
    """Kill one of two runs, usually the first, unless it has ended by then."""
    write_study(line, rng)
    with ExitStack() as stack:
        one = stack.enter_context(watched(line, *RUN))
        time.sleep(rng.uniform(0, _LATEST_S))
        other = stack.enter_context(watched(line, *command, name="other"))
        struck, spared = (other, one) if rng.random() < _OTHER_SHARE else (one, other)
        struck.strike(rng, ABOUT_S, partial(killed, rng, pgversus))
        struck_end, spared_end = struck.end(), spared.end()
        violations = _of_spared(spared, spared_end, struck_end, shares_folder=command == RUN)
        found = outcome_of(struck, struck_end)
    how = "was refused" if _IN_USE in spared_end.stderr else f"ended with {spared_end.code}"
    return Outcome(
        moment=found.moment, end=f"the other {how}; {found.end}", violations=(*violations, *found.violations)
    )


def _of_spared(spared: Watched, ended: Ended, struck: Ended, *, shares_folder: bool) -> list[str]:
    """Return violations of the spared run: it must succeed, or report that the folder is in use if the other has it."""
    violations = [*not_ours(ended), *dishonest(spared.results)]
    if _IN_USE in ended.stderr and shares_folder:
        return violations
    # A run that found the folder in use has not been killed.
    if struck.code not in {0, SIGKILL} and not (shares_folder and _IN_USE in struck.stderr):
        violations.append(f"the one to be killed ended with {struck.code}: {struck.stderr[-300:]}")
    if ended.code != 0:
        violations.append(f"the other one ended with {ended.code}: {ended.stderr[-300:]}")
    if missing := missing_blocks(spared.results):
        violations.append(f"the other one ended {missing} blocks too early")
    return violations


PAIRS = (
    Fault(
        name="two-on-one-folder",
        what="two runs on one results folder, one of them killed -9",
        play=partial(_play, RUN),
        tries=50,
    ),
    Fault(
        name="two-on-one-cache",
        what="two runs on one cache, one of them killed -9",
        play=partial(_play, _ELSEWHERE),
        tries=50,
    ),
)
