"""pgbench's transaction log, reduced to a histogram at a million transactions in half a second.

A line is `client transaction time script epoch microseconds [lag] [retries]`; time is in microseconds, or one of the
words `failed` and `skipped` for a transaction without a latency. With a rate, time counts from the scheduled start.
pgbench gives each client a first slot of its own there, so with many clients the first transactions of new sessions,
which fill their caches, would be a large part of a window. Their latencies are omitted.

In a closed loop the logged times are unreliable. pgbench reads its clock lazily: if the last reply has already arrived
when it looks for it, the transaction is logged with a time of 0. On two cores this affects a third of short
transactions. The timestamp at the end of the line is a separate reading of the clock and always correct: the end of the
transaction. Without a rate a client begins the next transaction at once, so in a closed loop a latency is the time
between two consecutive ends of the same client. Only the first transaction of each client, and one that follows a
transaction without a latency, keeps its logged time; if that is 0, its latency is unknown.

In a run that is stopped and continued in slices, a statement in flight when its client is stopped may finish. The slice
ends when the clients have their replies, at the mean of these times, so that its length is the time for which a client
has worked in it. pgbench notices these ends only when it is continued, so they count in the next slice. Each slice
therefore gains as many transactions as it loses, and contains all work done in its time.

pgbench does not report which session of the server belongs to which client. At a stop, the client whose last
transaction ended first is in the transaction that began first, which identifies the sessions if a transaction is one
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
from pgversus.records.trials import NO_LATENCIES, LatencyHistogram

_CLIENT, _NUMBER, _TIME, _EPOCH, _MICROSECONDS, _LAG = 0, 1, 2, 4, 5, 6
_COLUMNS_OF_CLOSED_LOOP, _COLUMNS_OF_OPEN_LOOP = 6, 7
_NO_LATENCY = re.compile(rb"^\d+ \d+ (?:failed|skipped) .*\n", re.MULTILINE)
_FAILED = re.compile(rb"^\d+ \d+ failed \d+ (\d{1,11}) (\d{1,6})(?!\d)", re.MULTILINE)

# The value that numpy returns for a number that is too large.
_LARGEST = np.iinfo(np.int64).max
_MOST_SECONDS, _MICROSECONDS_PER_S = 10**11, 10**6
# Since 1970: in microseconds these times must fit into 64 bits as well.
_MOST_CLIENTS = 2**16
# Arrays are allocated by client number, counted from 0.

Numbers = npt.NDArray[np.int64]


class UnreadableLogError(ValueError):
    """A file is not a transaction log of pgbench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """The latencies of one window, from a transaction log."""

    histogram: LatencyHistogram
    sum_s: float
    max_s: float
    unclocked: int
    """Transactions that pgbench logged with a time of 0. In a closed loop they are the first of their clients and are
    omitted; with a rate they count with the logged time, which is too low."""
    omitted: int
    """Transactions that are not in the histogram. With a rate they are the first of their clients."""


@dataclass(frozen=True, slots=True)
class LogInterval:
    """An interval in microseconds since 1970, by the clock of the log; its end is not part of it."""

    begin: int
    end: int

    def contains(self, moments: Numbers) -> npt.NDArray[np.bool_]:
        """Return for each moment whether it is in the interval."""
        return (moments >= self.begin) & (moments < self.end)


ALWAYS = LogInterval(0, _LARGEST)


def read_latencies(files: Sequence[Path], *, is_open_loop: bool, interval: LogInterval = ALWAYS) -> Latencies:
    """Read the latencies of transactions that ended in an interval from the log files of one run (one per thread).

    UnreadableLogError if there is no file, or a line is not in pgbench's format.
    """
    parts = _parts(files, _COLUMNS_OF_OPEN_LOOP if is_open_loop else _COLUMNS_OF_CLOSED_LOOP)
    take = _scheduled if is_open_loop else _end_to_end
    latencies, unclocked, omitted = zip(*(take(part, interval) for part in parts), strict=True)
    microseconds = np.concatenate(latencies)
    return Latencies(
        histogram=LatencyHistogram.from_microseconds(microseconds),
        # As doubles: the sum may not fit into 64 bits.
        sum_s=float(microseconds.sum(dtype=np.float64)) / 1e6,
        max_s=float(microseconds.max(initial=0)) / 1e6,
        unclocked=sum(unclocked),
        omitted=sum(omitted),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TransactionEnds:
    """The end of each transaction of a closed loop, ordered by client and number."""

    clients: Numbers
    numbers: Numbers
    microseconds: Numbers
    """Ends since 1970, by the clock that pgbench read when it began; ascending for each client."""
    times: Numbers
    """Logged durations in microseconds; 0 if pgbench did not read its clock in time."""

    @property
    def follows(self) -> npt.NDArray[np.bool_]:
        """Whether each transaction began at the previous end: the first ones, and those after a gap, did not."""
        # A transaction without a latency leaves a gap in the numbers: the previous line is then not the previous end.
        follows = np.zeros(len(self.clients), dtype=np.bool_)
        follows[1:] = (np.diff(self.clients) == 0) & (np.diff(self.numbers) == 1)
        return follows


def read_ends(files: Sequence[Path]) -> TransactionEnds:
    """Return the ends of all transactions in the log files of one run, except those without a latency.

    UnreadableLogError if there is no file, or a line is not in pgbench's format.
    """
    parts = _parts(files, _COLUMNS_OF_CLOSED_LOOP)
    return _ordered(np.concatenate([part[:, : _MICROSECONDS + 1] for part in parts]))


def _parts(files: Sequence[Path], columns: int) -> list[Numbers]:
    if not files:
        raise UnreadableLogError("pgbench wrote no transaction log")
    return [_read_numbers(file, columns) for file in files]


def _ordered(lines: Numbers) -> TransactionEnds:
    """Sort by client and number; UnreadableLogError if a transaction ends before the previous one of its client."""
    ordered = lines[np.lexsort((lines[:, _NUMBER], lines[:, _CLIENT]))]
    clients, ends = ordered[:, _CLIENT], _ends(ordered)
    if (np.diff(ends)[np.diff(clients) == 0] < 0).any():
        raise UnreadableLogError("a transaction ends before the previous one of the same client")
    return TransactionEnds(clients=clients, numbers=ordered[:, _NUMBER], microseconds=ends, times=ordered[:, _TIME])


def read_failures(files: Sequence[Path], interval: LogInterval) -> int:
    """Return the number of transactions that failed in an interval, from the log files of one run."""
    contents = (content for file in files if b"failed" in (content := _content(file)))
    found = (match for content in contents for match in _FAILED.finditer(content))
    return sum(interval.begin <= int(one[1]) * _MICROSECONDS_PER_S + int(one[2]) < interval.end for one in found)


def _ends(lines: Numbers) -> Numbers:
    ends: Numbers = lines[:, _EPOCH] * _MICROSECONDS_PER_S + lines[:, _MICROSECONDS]
    return ends


def _scheduled(lines: Numbers, interval: LogInterval) -> tuple[Numbers, int, int]:
    """Return latencies from the scheduled starts, the number of transactions that end when they began, and of others.

    If every client has one transaction only, their latencies are all that is known.
    """
    lines = lines[interval.contains(_ends(lines))]
    later = lines[lines[:, _NUMBER] > 1]
    known = later if len(later) else lines
    return known[:, _TIME], int((known[:, _TIME] <= known[:, _LAG]).sum()), len(lines) - len(known)


def _end_to_end(lines: Numbers, interval: LogInterval) -> tuple[Numbers, int, int]:
    """Return the time from each client's previous end to each end, and twice the number of unknown latencies."""
    if not len(lines):
        return lines[:, _TIME], 0, 0
    ends = _ordered(lines)
    follows = ends.follows
    latencies = np.where(follows, np.append(0, np.diff(ends.microseconds)), ends.times)
    is_known = follows | (ends.times > 0)
    is_inside = interval.contains(ends.microseconds)
    unknown = int((~is_known & is_inside).sum())
    return latencies[is_known & is_inside], unknown, unknown


def _content(file: Path) -> bytes:
    try:
        # A script's programs may replace the log, for example by a link.
        with open_regular(file) as log:
            content: bytes = log.read()
    except ValueError as error:
        raise UnreadableLogError(str(error)) from error
    return content


def _read_numbers(file: Path, columns: int) -> Numbers:
    data = _content(file)
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
        raise UnreadableLogError(f"{file.name}: some lines are not {columns} or more whole numbers")
    lines = numbers.reshape(rows, width)
    most = lines.max(axis=0)
    if most[_EPOCH] > _MOST_SECONDS or most[_MICROSECONDS] >= _MICROSECONDS_PER_S or most[_CLIENT] >= _MOST_CLIENTS:
        raise UnreadableLogError(f"{file.name}: some lines are not a client, its transaction and a time")
    return lines


def _numbers(data: bytes, name: str) -> Numbers:
    with warnings.catch_warnings():
        # numpy reports text that is not a number with this warning.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning) as error:
            raise UnreadableLogError(f"{name}: {error}") from error


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceEnd:
    """A moment at which all clients were stopped; times in microseconds by the clock of the log."""

    stopped: int
    sessions: tuple[tuple[int, int], ...]
    """Beginning and end of the transaction in flight in each session; the end is not before the stop."""

    @property
    def end(self) -> int:
        """Mean time at which the sessions finished: a session that waits for others does no work."""
        return round(fmean(finished for _, finished in self.sessions)) if self.sessions else self.stopped


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """The transactions between a continuation and the end of those in flight at the next stop."""

    transactions: int
    latency_sum_s: float
    """Sum over the transactions with a latency."""
    latency_max_s: float
    histogram: LatencyHistogram
    """Latencies of transactions whose start is known: all except a client's first ones logged with a time of 0."""

    def without_latencies(self) -> "Slice":
        """Return the slice with only its number of transactions."""
        return Slice(transactions=self.transactions, latency_sum_s=0.0, latency_max_s=0.0, histogram=NO_LATENCIES)


def slices(ends: TransactionEnds, begins: Sequence[int], stops: Sequence[SliceEnd]) -> list[Slice]:
    """Return the slices in order; latencies exclude the pauses between them.

    begins: start of each slice, ascending, in microseconds by the clock of the log.
    stops: the stop before the first slice, and the stop of each slice.
    """
    starts = np.array(begins, dtype=np.int64)
    paused = _paused(ends, starts, stops)

    def worked(moments: Numbers) -> Numbers:
        """Subtract the pauses of each client until these moments, in microseconds."""
        return moments - paused[np.searchsorted(starts, moments, side="right"), ends.clients]

    follows = ends.follows
    began = np.where(follows, np.append(0, ends.microseconds[:-1]), ends.microseconds - ends.times)
    latencies = worked(ends.microseconds) - worked(began)
    is_known = follows | (ends.times > 0)
    # 0 before the first slice, then from 1. After the last stop pgbench is continued only to end the run.
    position = np.searchsorted(starts, ends.microseconds, side="right")
    position[ends.microseconds > stops[-1].stopped] = len(begins) + 1
    order = np.argsort(position, kind="stable")
    bounds = np.searchsorted(position[order], np.arange(1, len(begins) + 2))
    return [_slice(latencies[part], is_known[part]) for begin, end in pairwise(bounds) for part in (order[begin:end],)]


_FARTHEST_OUTSIDE = 1000
# Microseconds: both clocks are read within a few.


def clocks_differ(ends: TransactionEnds, begins: Sequence[int], stops: Sequence[SliceEnd]) -> bool:
    """Return whether pgbench's clock differs from the clock of begins and stops, which are as for slices().

    pgbench reads the time of day and the monotonic clock one after the other when it starts. If it has to wait for a
    processor between them, all of its times are too early. Then it seems to end transactions while it is stopped.
    """
    starts, stopped = np.array(begins, dtype=np.int64), np.array([one.stopped for one in stops], dtype=np.int64)
    position = np.searchsorted(starts, ends.microseconds, side="right")
    is_between = (ends.microseconds > stopped[0]) & (ends.microseconds <= stopped[-1])
    return bool(np.any(is_between & (ends.microseconds > stopped[position] + _FARTHEST_OUTSIDE)))


def _paused(ends: TransactionEnds, starts: Numbers, stops: Sequence[SliceEnd]) -> Numbers:
    """Return the pauses of each client until the start of each slice, shape (slices + 1, clients), in microseconds."""
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
    summed: Numbers = pauses.cumsum(axis=0)
    return summed


def _slice(latencies: Numbers, is_known: npt.NDArray[np.bool_]) -> Slice:
    known = latencies[is_known]
    return Slice(
        transactions=len(latencies),
        latency_sum_s=float(known.sum()) / 1e6,
        latency_max_s=float(known.max(initial=0)) / 1e6,
        histogram=LatencyHistogram.from_microseconds(known),
    )
