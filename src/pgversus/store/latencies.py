"""Latency distributions of a context, all blocks of an arm together, read when somebody wants to see them."""

import json
import sqlite3
from collections import defaultdict
from collections.abc import Mapping

import numpy as np

from pgversus.stats.histogram import LatencyHistogram, merge

_COUNTS = "SELECT arm, first_bin, counts FROM latency_histogram WHERE context = ? ORDER BY block, arm"


def read_latencies(database: sqlite3.Connection, context: int) -> Mapping[int, LatencyHistogram]:
    """By arm, in order; none of an arm of which no latency was kept."""
    found: dict[int, list[LatencyHistogram]] = defaultdict(list)
    for arm, first_bin, counts in database.execute(_COUNTS, (context,)):
        found[arm].append(LatencyHistogram(first_bin, np.asarray(json.loads(counts), dtype=np.int64)))
    merged = {arm: merge(histograms) for arm, histograms in sorted(found.items())}
    return {arm: histogram for arm, histogram in merged.items() if histogram.counts.size}
