"""pgbench's transaction log, reduced to a histogram at a million transactions in half a second.

A line is `client transaction time script epoch microseconds [lag] [retries]`; time is in microseconds, or one of the
words `failed` and `skipped` for a transaction that has no latency. With a rate, time counts from the scheduled start.

The times themselves are not to be trusted in a closed loop. pgbench looks at its clock lazily: where the last reply is
there already when it looks for it, the transaction is logged with a time of 0. On two cores that happens to a third of
short transactions. The moment at the end of the line is another look at the clock and always true: when the transaction
ended. A client without a rate begins the next one at once, so in a closed loop a latency is the time from one end to
the next of the same client. Only the first transaction of each client, and one after a transaction without a latency,
keeps the time that was logged; where that is 0, nobody knows it.

Slices of a run that was stopped and continued: a statement in flight when its client is stopped may finish, and the
slice ends when the clients have their answers, at the mean of these moments; so it is as long as a client has worked
in it. pgbench notices these ends when it is continued, so they count in the next slice: each slice receives as many
transactions as it gives away, and all work of its time is its own.

pgbench does not report which session of the server belongs to which client. At a stop the client whose last
transaction ended first is in the transaction that began first; that tells them apart where a transaction is one
statement.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from statistics import fmean

import numpy as np
import numpy.typing as npt

from pgversus.host.permissions import open_regular
from pgversus.records.trials import LatencyHistogram

_CLIENT, _NUMBER, _TIME, _EPOCH, _MICROSECONDS, _LAG = 0, 1, 2, 4, 5, 6
_COLUMNS_OF_CLOSED_LOOP, _COLUMNS_OF_OPEN_LOOP = 6, 7
_NO_LATENCY = re.compile(rb"^\d+ \d+ (?:failed|skipped) .*\n", re.MULTILINE)

# What numpy makes of a number that is too large.
_LARGEST = np.iinfo(np.int64).max
_MOST_SECONDS, _MICROSECONDS_PER_S = 10**11, 10**6
# Since 1970: times of day are added up in microseconds, which must fit into 64 bits as well.
_MOST_CLIENTS = 2**16
# Who reads a log has a place for each, numbered from 0.

Numbers = npt.NDArray[np.int64]


class UnreadableLogError(ValueError):
    """A file that is no transaction log of pgbench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """What a transaction log says of one window."""

    histogram: LatencyHistogram
    sum_s: float
    max_s: float
    unclocked: int
    """Transactions that pgbench logged with a time of 0. In a closed loop they are first ones of their clients and are
    left out; with a rate they are counted with what was logged, which is too low."""


def read_latencies(files: Sequence[Path], *, is_open_loop: bool) -> Latencies:
    """The latencies in the log files of one run (one file for each thread).

    UnreadableLogError when there is no file, or a line in one is not of pgbench's form.
    """
    parts = _parts(files, _COLUMNS_OF_OPEN_LOOP if is_open_loop else _COLUMNS_OF_CLOSED_LOOP)
    take = _scheduled if is_open_loop else _end_to_end
    latencies, unclocked = zip(*(take(part) for part in parts), strict=True)
    microseconds = np.concatenate(latencies)
    return Latencies(
        histogram=LatencyHistogram.from_microseconds(microseconds),
        # As doubles, since the sum of many may not fit into 64 bits.
        sum_s=float(microseconds.sum(dtype=np.float64)) / 1e6,
        max_s=float(microseconds.max(initial=0)) / 1e6,
        unclocked=sum(unclocked),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Ends:
    """When each transaction of a closed loop ended, ordered by client and number."""

    clients: Numbers
    numbers: Numbers
    microseconds: Numbers
    """Since 1970, by the clock that pgbench read when it began; ascending for each client."""
    times: Numbers
    """How long pgbench says that each took, in microseconds; 0 where it did not look at its clock in time."""


def read_ends(files: Sequence[Path]) -> Ends:
    """Return the ends of all transactions in the log files of one run; those without a latency are left out.

    UnreadableLogError when there is no file, or a line in one is not of pgbench's form.
    """
    lines = np.concatenate([part[:, : _MICROSECONDS + 1] for part in _parts(files, _COLUMNS_OF_CLOSED_LOOP)])
    ordered = _ordered(lines)
    return Ends(
        clients=ordered[:, _CLIENT],
        numbers=ordered[:, _NUMBER],
        microseconds=_end(ordered),
        times=ordered[:, _TIME],
    )


def _parts(files: Sequence[Path], columns: int) -> list[Numbers]:
    if not files:
        raise UnreadableLogError("pgbench left no transaction log")
    return [_read_numbers(file, columns) for file in files]


def _end(lines: Numbers) -> Numbers:
    ends: Numbers = lines[:, _EPOCH] * _MICROSECONDS_PER_S + lines[:, _MICROSECONDS]
    return ends


def _ordered(lines: Numbers) -> Numbers:
    """By client and number; UnreadableLogError where a client ends one transaction before the one before it."""
    ordered: Numbers = lines[np.lexsort((lines[:, _NUMBER], lines[:, _CLIENT]))]
    steps = np.diff(_end(ordered))
    if (steps[np.diff(ordered[:, _CLIENT]) == 0] < 0).any():
        raise UnreadableLogError("a client ends a transaction before the one before it")
    return ordered


def _scheduled(lines: Numbers) -> tuple[Numbers, int]:
    """Latencies from the scheduled starts, and how many of them end where the transaction began."""
    return lines[:, _TIME], int((lines[:, _TIME] <= lines[:, _LAG]).sum())


def _end_to_end(lines: Numbers) -> tuple[Numbers, int]:
    """Times from the client's last end to each end, and how many transactions had neither that nor a time."""
    if not len(lines):
        return lines[:, _TIME], 0
    ordered = _ordered(lines)
    end = _end(ordered)
    # One without a latency leaves a gap in the numbers: the end before this one is then not that of the one before.
    same_client, next_number = np.diff(ordered[:, _CLIENT]) == 0, np.diff(ordered[:, _NUMBER]) == 1
    follows = np.append(False, same_client & next_number)
    latencies = np.where(follows, np.append(0, np.diff(end)), ordered[:, _TIME])
    is_known = follows | (ordered[:, _TIME] > 0)
    return latencies[is_known], int((~is_known).sum())


def _read_numbers(file: Path, columns: int) -> Numbers:
    try:
        # Whoever may run programs beside pgbench may put something else in its place.
        with open_regular(file) as log:
            data = log.read()
    except ValueError as error:
        raise UnreadableLogError(str(error)) from error
    if data and not data.endswith(b"\n"):
        raise UnreadableLogError(f"{file.name}: its last line is cut short")
    if b"failed" in data or b"skipped" in data:
        data = _NO_LATENCY.sub(b"", data)
    if not data:
        return np.zeros((0, columns), dtype=np.int64)
    rows = data.count(b"\n")
    width = len(data[: data.index(b"\n")].split())
    numbers = _numbers(data, file.name)
    if width < columns or numbers.size != rows * width or numbers.min() < 0 or numbers.max() == _LARGEST:
        raise UnreadableLogError(f"{file.name}: not {columns} or more whole numbers in every line")
    lines = numbers.reshape(rows, width)
    most = lines.max(axis=0)
    if most[_EPOCH] > _MOST_SECONDS or most[_MICROSECONDS] >= _MICROSECONDS_PER_S or most[_CLIENT] >= _MOST_CLIENTS:
        raise UnreadableLogError(f"{file.name}: not a client, its transaction and a time of day in every line")
    return lines


def _numbers(data: bytes, name: str) -> Numbers:
    with warnings.catch_warnings():
        # How numpy says that it met something that is no number.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning) as error:
            raise UnreadableLogError(f"{name}: {error}") from error


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
