"""Latency distributions of the blocks of an arm, and quantiles that have no column of their own.

The schema has a column for each quantile that existed when it was fixed; later ones are read from the histograms.
"""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter

from pgversus.records.trials import BIN_WIDTH, LatencyHistogram
from pgversus.store.rows import Number, Place, read_rows
from pgversus.study.metrics import QUANTILES

_MOST_BINS = math.ceil(math.log(2**63) / BIN_WIDTH)
"""Latencies are whole microseconds in 64 bits."""
_MOST_COUNTED = 2**31
"""Largest number of transactions in one bin of a trial, so that the sum over all trials fits into 64 bits."""
_ROWS = TypeAdapter(list[tuple[Number, Place, Annotated[int, Field(ge=0, le=_MOST_BINS)], str]])
_COUNTS = TypeAdapter(Annotated[list[Annotated[int, Field(ge=0, le=_MOST_COUNTED)]], Field(max_length=_MOST_BINS)])
QUANTILE_COLUMNS = {"latency_p50_s": 0.50, "latency_p95_s": 0.95, "latency_p99_s": 0.99}
_TRIAL_ROWS = TypeAdapter(list[tuple[Number, Number, Place, Annotated[int, Field(ge=0, le=_MOST_BINS)], str]])
_OF_ALL_TRIALS = "SELECT context, block, arm, first_bin, counts FROM latency_histogram ORDER BY context, block, arm"
_ALL = "SELECT block, arm, first_bin, counts FROM latency_histogram WHERE context = ? ORDER BY block, arm"


def read_latencies(
    database: sqlite3.Connection, context: int, *, arms: int
) -> Mapping[int, Sequence[LatencyHistogram]]:
    """Return the latencies of each block by arm, in order, omitting arms and blocks without any.

    arms: number of arms in the context. ValueError for damaged data.
    """
    found: dict[int, list[LatencyHistogram]] = defaultdict(list)
    for _, arm, first_bin, text in read_rows(database, _ALL, _ROWS, key=2, parameter=context):
        if arm >= arms:
            raise ValueError(f"latencies of an arm that context {context} does not have")
        if (histogram := _histogram(first_bin, text)).total:
            found[arm].append(histogram)
    return dict(sorted(found.items()))


def read_other_quantiles(database: sqlite3.Connection) -> Mapping[tuple[int, int, int], Mapping[float, float]]:
    """Return the quantiles without a column, by context, block and arm, in seconds. ValueError for damaged data."""
    others = [q for q in QUANTILES.values() if q not in QUANTILE_COLUMNS.values()]
    if not others:
        return {}
    rows = read_rows(database, _OF_ALL_TRIALS, _TRIAL_ROWS, key=3)
    histograms = {(context, block, arm): _histogram(first, text) for context, block, arm, first, text in rows}
    return {key: {q: one.quantile(q) for q in others} for key, one in histograms.items() if one.total}


def _histogram(first_bin: int, text: str) -> LatencyHistogram:
    return LatencyHistogram(first_bin, np.asarray(_COUNTS.validate_json(text), dtype=np.int64))
