"""Load that is thrown away until it is steady."""

from collections.abc import Callable

from pgversus.records.trials import Window

_SHORTEST_S = 1.0
# pgbench counts whole seconds.
_MOST_HALVES = 8
_STEADY = 1.05
# Windows this short differ by as much from noise alone.


def run_until_steady(load: Callable[[float, int], Window], seconds: float, seed: int) -> None:
    """Two halves of a warm-up, then more of them as long as each is over 5 % faster than the one before.

    load: runs for so many seconds, with a random seed, which is another one each time, so that it warms more than the
    rows of one draw. seconds: of the two halves; too few for two are one run. Four times as long at most; whatever is
    not steady by then is seen in the windows (docs/statistics.md).
    """
    if seconds < 2 * _SHORTEST_S:
        load(seconds, seed)
        return
    before = 0.0
    for number in range(_MOST_HALVES):
        window = load(seconds / 2, seed + number)
        tps = window.transactions / window.seconds
        if number and tps <= _STEADY * before:
            break
        before = tps
