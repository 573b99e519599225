"""Run a number of tries of each fault and print a table: `python -m tests.faults --tries 5 --fault kill-guard`."""

import argparse
import signal
import sys
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor, as_completed

from tests.faults.catalog import FAULTS, fetch_server, play
from tests.faults.fault import Fault, Outcome, Tally

_WORKERS = 3


def main(arguments: Sequence[str]) -> int:
    """Print the table; return 1 if an invariant was violated."""
    options = _parser().parse_args(arguments)
    for number in (signal.SIGINT, signal.SIGTERM):
        # Background jobs of a script ignore these signals by default.
        signal.signal(number, signal.default_int_handler)
    faults = [FAULTS[name] for name in options.fault or FAULTS]
    fetch_server()
    tallies = {fault.name: Tally() for fault in faults}
    tries = [
        (fault, options.seed + number)
        for number in range(max(fault.tries for fault in faults) if options.tries is None else options.tries)
        for fault in faults
        if not fault.why_not() and (options.tries is not None or number < fault.tries)
    ]
    with ThreadPoolExecutor(options.workers) as pool:
        running = {pool.submit(play, fault, seed): (fault, seed) for fault, seed in tries}
        try:
            for future in as_completed(running):
                _count(*running[future], _outcome(future), tallies)
        except KeyboardInterrupt:
            print("interrupted: no further tries are started", file=sys.stderr)
            pool.shutdown(cancel_futures=True)
    _print_table(faults, tallies)
    return int(any(tally.violations for tally in tallies.values()))


def _count(fault: Fault, seed: int, outcome: Outcome, tallies: dict[str, Tally]) -> None:
    tallies[fault.name].add(seed, outcome)
    for words in outcome.violations:
        print(f"VIOLATION --fault {fault.name} --seed {seed} --tries 1, {outcome.moment}: {words}", flush=True)


def _outcome(future: Future[Outcome]) -> Outcome:
    """Return the outcome; an error of the try itself, such as a hanging run, is a violation as well."""
    try:
        return future.result()
    except Exception as error:  # noqa: BLE001 - one failing try must not hide the others
        return Outcome(moment="?", end="?", violations=(f"{type(error).__name__}: {error}",))


def _print_table(faults: Sequence[Fault], tallies: dict[str, Tally]) -> None:
    for fault in faults:
        tally = tallies[fault.name]
        if why := fault.why_not():
            print(f"\n{fault.what}: not possible here: {why}")
            continue
        print(f"\n{fault.what}: {tally.moments.total()} tries, {len(tally.violations)} violations")
        _print_counts("struck in", tally.moments)
        _print_counts("ended", tally.ends)


def _print_counts(heading: str, counts: Counter[str]) -> None:
    for words, number in counts.most_common():
        print(f"  {heading:>9} {number:5}  {words}")
        heading = ""


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Faults at random moments.")
    parser.add_argument("--tries", type=int, help="of each fault, in place of its own number")
    parser.add_argument("--fault", action="append", choices=list(FAULTS), help="this one alone; repeatable")
    parser.add_argument("--seed", type=int, default=1, help="of the first try; the next ones follow")
    parser.add_argument("--workers", type=int, default=_WORKERS, help="tries at the same time")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
