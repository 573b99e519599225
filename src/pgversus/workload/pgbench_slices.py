"""Slices of one run of pgbench that was stopped and continued: what ended in each.

A statement that is in flight when its client is stopped is let finish, and the slice ends when the clients have their
answers, at the mean of these moments: so it is as long as a client has worked in it. pgbench notices their ends when it
is continued, so they count in the next slice: each slice is given as many transactions as it gives away, and all work
of its time is its own.

pgbench does not report which session of the server is which client's. At a stop the client whose last transaction ended
first is in the transaction that began first; that tells them apart where a transaction is one statement.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import fmean

import numpy as np
import numpy.typing as npt

from pgversus.stats.histogram import LatencyHistogram
from pgversus.workload.pgbench_log import Ends

Integers = npt.NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A moment at which all clients were stopped; in microseconds by the clock of the log."""

    stopped: int
    sessions: tuple[tuple[int, int], ...]
    """Of each session when the transaction began that was in flight, and when it finished; not before the stop."""

    @property
    def end(self) -> int:
        """The mean moment at which the sessions finished: those that wait for others do no work."""
        return round(fmean(finished for _, finished in self.sessions)) if self.sessions else self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """What ended between a continuation and the end of what was in flight at the next stop."""

    transactions: int
    latency_sum_s: float
    """Of those with a latency."""
    latency_max_s: float
    histogram: LatencyHistogram
    """Of those whose beginning is known: all but first ones of a client that pgbench logged with a time of 0."""


def slices(ends: Ends, begins: Sequence[int], stops: Sequence[Stop]) -> list[Slice]:
    """Return the slices in order.

    begins: when each slice began, ascending, in microseconds by the clock of the log. stops: the one before the first
    slice, and that of each slice. Latencies are counted without the pauses between.
    """
    starts = np.array(begins, dtype=np.int64)
    paused = _paused(ends, starts, stops)

    def worked(moments: Integers) -> Integers:
        """Microseconds of a client without its pauses until then."""
        return moments - paused[np.searchsorted(starts, moments, side="right"), ends.clients]

    follows = np.zeros(len(ends.clients), dtype=bool)
    follows[1:] = (np.diff(ends.clients) == 0) & (np.diff(ends.numbers) == 1)
    began = np.where(follows, np.append(0, ends.microseconds[:-1]), ends.microseconds - ends.times)
    latencies = worked(ends.microseconds) - worked(began)
    is_known = follows | (ends.times > 0)
    # 0 before the first slice, then from 1. What ends after the last stop was continued for the end of the run alone.
    position = np.searchsorted(starts, ends.microseconds, side="right")
    position[ends.microseconds > stops[-1].stopped] = len(begins) + 1
    order = np.argsort(position, kind="stable")
    bounds = np.searchsorted(position[order], np.arange(1, len(begins) + 2))
    return [_slice(latencies[part], is_known[part]) for begin, end in pairwise(bounds) for part in (order[begin:end],)]


def _paused(ends: Ends, starts: Integers, stops: Sequence[Stop]) -> Integers:
    """Pauses of each client until each slice began, shape (slices + 1, clients), in microseconds."""
    clients = int(ends.clients.max(initial=-1)) + 1
    moments = np.array([one.stopped for one in stops[:-1]], dtype=np.int64)
    firsts = np.searchsorted(ends.clients, np.arange(clients + 1))
    last_ends = np.zeros((len(moments), clients), dtype=np.int64)
    for client, (first, end) in enumerate(pairwise(firsts)):
        own = ends.microseconds[first:end]
        last_ends[:, client] = np.append(0, own)[np.searchsorted(own, moments, side="right")]
    pauses = np.zeros((len(starts) + 1, clients), dtype=np.int64)
    for number, (start, stop) in enumerate(zip(starts, stops[:-1], strict=True)):
        finished = np.full(clients, stop.end, dtype=np.int64)
        known = [finish for _, finish in sorted(stop.sessions)][:clients]
        finished[np.argsort(last_ends[number], kind="stable")[: len(known)]] = known
        pauses[number + 1] = start - finished
    summed: Integers = pauses.cumsum(axis=0)
    return summed


def _slice(latencies: Integers, is_known: npt.NDArray[np.bool_]) -> Slice:
    known = latencies[is_known]
    return Slice(
        transactions=len(latencies),
        latency_sum_s=float(known.sum()) / 1e6,
        latency_max_s=float(known.max(initial=0)) / 1e6,
        histogram=LatencyHistogram.from_microseconds(known),
    )
