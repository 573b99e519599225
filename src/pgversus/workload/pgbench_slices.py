"""Slices of one run of pgbench that was stopped and continued: what ended in each.

A transaction that is in flight when its client is stopped ends during the pause; pgbench notices when it is continued.
It counts in the slice in which pgbench notices, and has no latency. So each slice is given as many transactions as it
gives away, and transactions / seconds is the throughput as long as a slice holds many of them (docs/statistics.md).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from pgversus.stats.histogram import LatencyHistogram
from pgversus.workload.pgbench_log import Ends


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What ended between a continuation and the next stop."""

    transactions: int
    latency_sum_s: float
    """Of those with a latency."""
    latency_max_s: float
    histogram: LatencyHistogram
    """Of transactions that began and ended in the slice."""


def slices(ends: Ends, edges: Sequence[tuple[int, int]], clients: int) -> list[Slice]:
    """Return the slices in order, without leading ones in which not every client was connected yet.

    edges: when each slice began and ended, in microseconds by the clock of the log, ascending.
    """
    starts = np.array([begin for begin, _ in edges], dtype=np.int64)
    stops = np.array([end for _, end in edges], dtype=np.int64)
    position = np.searchsorted(starts, ends.microseconds, side="right") - 1
    # What ends after the last stop was continued for the end of the run alone.
    position[ends.microseconds > stops[-1]] = len(edges)
    first = _first_of_all(ends, position, clients, len(edges))
    follows = np.zeros(len(position), dtype=bool)
    follows[1:] = (np.diff(ends.clients) == 0) & (np.diff(ends.numbers) == 1) & (np.diff(position) == 0)
    latencies = np.zeros(len(position), dtype=np.int64)
    latencies[1:] = np.diff(ends.microseconds)
    order = np.argsort(position, kind="stable")
    bounds = np.searchsorted(position[order], np.arange(first, len(edges) + 1))
    return [_slice(latencies[part], follows[part]) for begin, end in pairwise(bounds) for part in (order[begin:end],)]


def _first_of_all(ends: Ends, position: np.ndarray, clients: int, count: int) -> int:
    """The first of the slices before which every client had finished a transaction; their count where there is none."""
    _, first = np.unique(ends.clients, return_index=True)
    return min(count, int(position[first].max()) + 1) if len(first) == clients else count


def _slice(latencies: np.ndarray, is_whole: np.ndarray) -> Slice:
    whole = latencies[is_whole]
    return Slice(
        transactions=len(latencies),
        latency_sum_s=float(whole.sum()) / 1e6,
        latency_max_s=float(whole.max(initial=0)) / 1e6,
        histogram=LatencyHistogram.from_microseconds(whole),
    )
