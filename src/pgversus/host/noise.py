"""How steady the speed of one processor is: a loop of processor work, timed pass by pass, without PostgreSQL."""

import time

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

_LOOP_S = 0.002
_RECORD_S, _WINDOW_S = 4.0, 0.05
# Of speed_noise(): about as long as a block, in windows as they are used for loads that only read.


def speed_noise() -> float:
    """Return the standard deviation of ln(B / A) over quads A B B A of identical windows of 50 ms. Takes 4 s."""
    ends = record_loops(_RECORD_S)
    speeds = window_speeds(ends, np.arange(len(ends), dtype=np.float64), _WINDOW_S)
    return float(np.std(quad_ratios(speeds)))


def record_loops(seconds: float, loop_s: float = _LOOP_S) -> Floats:
    """Run a loop of processor work for `seconds` and return the end time of each pass."""
    size = _loop_size(loop_s)
    clock = time.perf_counter
    ends = [clock()]
    last = ends[0] + seconds
    while ends[-1] < last:
        sum(range(size))
        ends.append(clock())
    return np.asarray(ends)


def window_speeds(times: Floats, work: Floats, window_s: float) -> Floats:
    """Return the mean speed in each window of a record.

    times: increasing times in seconds. work: the work done up to each of them, in any unit. Work between two times is
    spread evenly over the interval.
    """
    windows = int((times[-1] - times[0]) / window_s + 1e-9)
    edges = times[0] + window_s * np.arange(windows + 1)
    return np.asarray(np.diff(np.interp(edges, times, work)) / window_s)


def quad_ratios(speeds: Floats) -> Floats:
    """Return the log ratio B / A of each quad A B B A, at every position where a quad can begin."""
    logs = np.log(speeds)
    return (logs[1:-2] + logs[2:-1] - logs[:-3] - logs[3:]) / 2


def _loop_size(loop_s: float) -> int:
    """Return the size for which one pass takes about `loop_s` seconds, from the fastest of 20 passes."""
    size = 1000
    while True:
        took = []
        for _ in range(20):
            began = time.perf_counter()
            sum(range(size))
            took.append(time.perf_counter() - began)
        if min(took) > loop_s / 4:
            return max(1, round(size * loop_s / min(took)))
        size *= 2
