"""How much room the data of contexts take on disk: estimates, made before anything is fetched or loaded."""

from collections.abc import Sequence

from pgversus.study.dataset import Dataset
from pgversus.study.operation import Operation
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting, shaping_settings
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload

CHEAP_COPY_BYTES = 1024**3
"""Above it a load that only reads keeps its copies to the end; below, at most as long as the same servers are used."""
_EMPTY_CLUSTER_BYTES = 45e6
# initdb's files and the first WAL segment.
_BYTES_PER_SCALE = 16e6
# pgbench's tables with their indexes: 150 MB at scale 10.
_PREPARED_TIMES = 2
# An update of every row leaves each of them a second time.
_WAL_BYTES = 1.1e9
# What a copy may grow by under a load: max_wal_size is 1 GB unless it is set.

SnapshotName = tuple[ServerName, Dataset, tuple[Setting, ...]]
"""A server, its data, and the settings that shape what loading them writes."""


def snapshots_of(contexts: Sequence[Context]) -> list[SnapshotName]:
    """What has to be loaded, each once; what is prepared is made from what is loaded, which stays beside it."""
    arms = [arm for context in contexts for arm in context.comparison.arms]
    return list(
        dict.fromkeys(
            (arm.server, dataset, shaping_settings(arm.settings, runs_files=dataset.runs_files))
            for arm in arms
            if not isinstance(arm.server, RunningServer)
            for dataset in ((arm.dataset.loaded, arm.dataset) if arm.dataset.prepare else (arm.dataset,))
        )
    )


def disk_bytes(contexts: Sequence[Context]) -> float:
    """Of all their data at the fullest moment, when these contexts take turns; without what setup files make."""
    return sum(_data_bytes(dataset) for _, dataset, _ in snapshots_of(contexts)) + _copies_bytes(contexts)


def _copies_bytes(contexts: Sequence[Context]) -> float:
    """Of copies, at the fullest moment: as if every load only read, since nobody knows before it is tried.

    The copies that are kept are all there together. Contexts on the same servers share them. Of operations there is one
    copy at a time, that of the arm whose turn it is.
    """
    loads = [one for one in contexts if isinstance(one.comparison.workload, PgbenchWorkload)]
    sets = dict.fromkeys(
        tuple((arm.server, arm.dataset, arm.settings) for arm in context.comparison.arms) for context in loads
    )
    ours = [
        [_data_bytes(dataset) for server, dataset, _ in arms if not isinstance(server, RunningServer)] for arms in sets
    ]
    kept = sum(size for sizes in ours for size in sizes if size > CHEAP_COPY_BYTES)
    others = [sum(size for size in sizes if size <= CHEAP_COPY_BYTES) + len(sizes) * _WAL_BYTES for sizes in ours]
    return kept + max([*others, _operation_bytes(contexts)])


def _operation_bytes(contexts: Sequence[Context]) -> float:
    """Of the largest copy that an operation is run on; 0 where there is none."""
    return max(
        (
            _data_bytes(arm.dataset) + _WAL_BYTES
            for context in contexts
            if isinstance(context.comparison.workload, Operation)
            for arm in context.comparison.arms
        ),
        default=0.0,
    )


def _data_bytes(dataset: Dataset) -> float:
    times = _PREPARED_TIMES if dataset.prepare else 1
    return _EMPTY_CLUSTER_BYTES + times * _BYTES_PER_SCALE * (dataset.pgbench_scale or 0)
