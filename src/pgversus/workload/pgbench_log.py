"""pgbench's transaction log, read at a few million transactions per second and reduced to a histogram.

A line is `client transaction time script epoch microseconds [lag] [retries]`; time is in microseconds, or one of the
words `failed` and `skipped` for a transaction that has no latency. With a rate, time counts from the scheduled start.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pgversus.stats.histogram import LatencyHistogram

_COLUMNS, _TIME_COLUMN = 6, 2
_NO_LATENCY = re.compile(rb"^\d+ \d+ (?:failed|skipped) .*\n", re.MULTILINE)


class UnreadableLogError(ValueError):
    """A file that is no transaction log of pgbench."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Latencies:
    """What a transaction log says of one window."""

    histogram: LatencyHistogram
    sum_s: float
    max_s: float


def read_latencies(files: Iterable[Path]) -> Latencies:
    """The latencies in the log files of one run (one file for each thread).

    UnreadableLogError when there is no file, or a line in one is not of pgbench's form.
    """
    parts = [_read_microseconds(file) for file in files]
    if not parts:
        raise UnreadableLogError("pgbench left no transaction log")
    microseconds = np.concatenate(parts)
    return Latencies(
        histogram=LatencyHistogram.from_microseconds(microseconds),
        sum_s=float(microseconds.sum()) / 1e6,
        max_s=float(microseconds.max(initial=0)) / 1e6,
    )


def _read_microseconds(file: Path) -> npt.NDArray[np.int64]:
    data = file.read_bytes()
    if data and not data.endswith(b"\n"):
        raise UnreadableLogError(f"{file.name}: its last line is cut short")
    if b"failed" in data or b"skipped" in data:
        data = _NO_LATENCY.sub(b"", data)
    if not data:
        return np.zeros(0, dtype=np.int64)
    try:
        columns = np.loadtxt(BytesIO(data), dtype=np.int64, usecols=range(_COLUMNS), comments=None, ndmin=2)
    except ValueError as error:
        raise UnreadableLogError(f"{file.name}: {error}") from error
    if columns.min() < 0:
        raise UnreadableLogError(f"{file.name}: a negative number")
    return columns[:, _TIME_COLUMN]
