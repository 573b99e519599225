"""pgbench's transaction log, reduced to a histogram at a million transactions in half a second.

A line is `client transaction time script epoch microseconds [lag] [retries]`; time is in microseconds, or one of the
words `failed` and `skipped` for a transaction that has no latency. With a rate, time counts from the scheduled start.

The times themselves are not to be trusted in a closed loop. pgbench looks at its clock lazily: where the last reply is
there already when it looks for it, the transaction is logged with the time of its own beginning, a latency of 0. On two
cores that happens to a third of short transactions. What the log does tell exactly is when each transaction began, and
a client without a rate begins the next one at once. So in a closed loop a latency is the time from one beginning to the
next of the same client; only the last transaction of each client keeps the time that was logged, unless that is not
even half of the shortest of the others: then the clock was read before the end.

Where pgbench itself was kept waiting, even beginnings share one look at the clock. What lies between that moment and
the next is then the time of all transactions that began at it, and each is given an equal part.
"""

import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pgversus.stats.histogram import LatencyHistogram

_CLIENT, _NUMBER, _TIME, _EPOCH, _MICROSECONDS, _LAG = 0, 1, 2, 4, 5, 6
_COLUMNS_OF_CLOSED_LOOP, _COLUMNS_OF_OPEN_LOOP = 6, 7
_NO_LATENCY = re.compile(rb"^\d+ \d+ (?:failed|skipped) .*\n", re.MULTILINE)

# What numpy makes of a number that is too large.
_LARGEST = np.iinfo(np.int64).max

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
    """Transactions whose end pgbench did not look at its clock for. In a closed loop they are the last ones of their
    clients and are left out; with a rate they are counted with what was logged, which is too low."""


def read_latencies(files: Sequence[Path], *, is_open_loop: bool) -> Latencies:
    """The latencies in the log files of one run (one file for each thread).

    UnreadableLogError when there is no file, or a line in one is not of pgbench's form.
    """
    if not files:
        raise UnreadableLogError("pgbench left no transaction log")
    columns = _COLUMNS_OF_OPEN_LOOP if is_open_loop else _COLUMNS_OF_CLOSED_LOOP
    parts = [_read_numbers(file, columns) for file in files]
    take = _scheduled if is_open_loop else _begin_to_begin
    latencies, unclocked = zip(*(take(part) for part in parts), strict=True)
    microseconds = np.concatenate(latencies)
    return Latencies(
        histogram=LatencyHistogram.from_microseconds(microseconds),
        sum_s=float(microseconds.sum()) / 1e6,
        max_s=float(microseconds.max(initial=0)) / 1e6,
        unclocked=sum(unclocked),
    )


def _scheduled(lines: Numbers) -> tuple[Numbers, int]:
    """Latencies from the scheduled starts, and how many of them end where the transaction began."""
    return lines[:, _TIME], int((lines[:, _TIME] <= lines[:, _LAG]).sum())


def _begin_to_begin(lines: Numbers) -> tuple[Numbers, int]:
    """Times from each beginning to the client's next, and how many transactions had neither that nor a time."""
    ordered = lines[np.lexsort((lines[:, _NUMBER], lines[:, _CLIENT]))]
    begin = ordered[:, _EPOCH] * 1_000_000 + ordered[:, _MICROSECONDS] - ordered[:, _TIME]
    # A failed transaction between two others leaves a gap in the numbers: then the next beginning is not the next.
    same_client, next_number = np.diff(ordered[:, _CLIENT]) == 0, np.diff(ordered[:, _NUMBER]) == 1
    is_followed = np.append(same_client & next_number, np.zeros(min(1, len(lines)), dtype=bool))
    steps = np.append(np.diff(begin), np.zeros(min(1, len(lines)), dtype=np.int64))
    latencies = np.where(is_followed, _shared(np.maximum(steps, 0), is_followed), ordered[:, _TIME])
    followed = latencies[is_followed & (latencies > 0)]
    is_known = latencies >= (max(1, int(followed.min()) // 2) if followed.size else 1)
    return latencies[is_known], int((~is_known).sum())


def _shared(steps: Numbers, is_followed: npt.NDArray[np.bool_]) -> Numbers:
    """The steps, those of 0 and the one that ends them in equal parts.

    A row of zeros that no longer step follows has nothing to share.
    """
    joins_next = is_followed & (steps == 0)
    group = np.cumsum(np.append(True, ~joins_next[:-1])) - 1 if len(steps) else np.zeros(0, dtype=np.int64)
    totals = np.bincount(group, weights=np.where(is_followed, steps, 0))
    shares: Numbers = (totals / np.bincount(group)).astype(np.int64)[group]
    return shares


def _read_numbers(file: Path, columns: int) -> Numbers:
    data = file.read_bytes()
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
    return numbers.reshape(rows, width)


def _numbers(data: bytes, name: str) -> Numbers:
    with warnings.catch_warnings():
        # How numpy says that it met something that is no number.
        warnings.simplefilter("error", DeprecationWarning)
        try:
            return np.fromstring(data.decode("ascii"), dtype=np.int64, sep=" ")
        except (ValueError, DeprecationWarning) as error:
            raise UnreadableLogError(f"{name}: {error}") from error
