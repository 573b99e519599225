"""Latency distributions of a context, merged over all blocks of an arm and read on demand."""

import math
import sqlite3
from collections import defaultdict
from collections.abc import Mapping
from typing import Annotated

import numpy as np
from pydantic import Field, TypeAdapter

from pgversus.records.trials import BIN_WIDTH, LatencyHistogram, merge
from pgversus.store.rows import Number, Place, read_rows

_MOST_BINS = math.ceil(math.log(2**63) / BIN_WIDTH)
"""Latencies are whole microseconds in 64 bits."""
_MOST_COUNTED = 2**31
"""Largest number of transactions in one bin of a trial, so that the sum over all trials fits into 64 bits."""
_ROWS = TypeAdapter(list[tuple[Number, Place, Annotated[int, Field(ge=0, le=_MOST_BINS)], str]])
_COUNTS = TypeAdapter(Annotated[list[Annotated[int, Field(ge=0, le=_MOST_COUNTED)]], Field(max_length=_MOST_BINS)])
_ALL = "SELECT block, arm, first_bin, counts FROM latency_histogram WHERE context = ? ORDER BY block, arm"


def read_latencies(database: sqlite3.Connection, context: int, *, arms: int) -> Mapping[int, LatencyHistogram]:
    """Return the latencies by arm, in order, omitting arms without any.

    arms: number of arms in the context. ValueError for damaged data.
    """
    found: dict[int, list[LatencyHistogram]] = defaultdict(list)
    for _, arm, first_bin, text in read_rows(database, _ALL, _ROWS, key=2, parameter=context):
        if arm >= arms:
            raise ValueError(f"latencies of an arm that context {context} does not have")
        counts = np.asarray(_COUNTS.validate_json(text), dtype=np.int64)
        found[arm].append(LatencyHistogram(first_bin, counts))
    merged = {arm: merge(histograms) for arm, histograms in sorted(found.items())}
    return {arm: histogram for arm, histogram in merged.items() if histogram.total}
