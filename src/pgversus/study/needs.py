"""What a study will need, before anything is fetched or loaded: trials, disk, time. Estimates, and said to be such."""

from dataclasses import dataclass

from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import FIRST_LOOK
from pgversus.study.operation import Operation
from pgversus.study.servers import RunningServer
from pgversus.study.settings import shaping_settings
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload

CHEAP_COPY_BYTES = 1024**3
"""Up to here every block has a fresh copy of the data; above it a load that only reads keeps its copies to the end."""
_EMPTY_CLUSTER_BYTES = 45e6
# initdb's files and the first WAL segment.
_BYTES_PER_SCALE = 16e6
# pgbench's tables with their indexes: 150 MB at scale 10.
_PREPARED_TIMES = 2
# An update of every row leaves each of them a second time.
_START_S = 3.0
# Copy, start, read in, stop: a second each for small data.
_LOAD_S, _LOAD_S_PER_SCALE = 3.0, 0.2
_WAL_BYTES = 1.1e9
# What a copy may grow by under a load: max_wal_size is 1 GB unless it is set.


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Estimates for a whole study."""

    snapshots: int
    """Servers and datasets to be loaded, and those to be prepared from them."""
    disk_bytes: float
    """At the fullest moment; without what setup files make."""
    setup_files: int
    """Datasets that come from setup files, of which nobody knows the size beforehand."""
    least_trials: int
    """When every verdict is known at the first look, or of a fixed design."""
    preparation_s: float
    """Loading and trying out."""
    least_s: float
    """Of blocks, when every verdict is known at the first look and no transaction is slow."""
    most_s: float | None
    """Of blocks: the budget; None for a fixed design, which takes as long as it takes."""


def needs_of(study: Study) -> Needs:
    """What this study will need."""
    arms = [arm for context in study.contexts for arm in context.comparison.arms]
    ours = dict.fromkeys(
        (arm.server, dataset, shaping_settings(arm.settings, runs_files=dataset.runs_files))
        for arm in arms
        if not isinstance(arm.server, RunningServer)
        # What is loaded stays beside everything that is made from it.
        for dataset in ((arm.dataset.loaded, arm.dataset) if arm.dataset.prepare else (arm.dataset,))
    )
    snapshots = sum(_data_bytes(dataset) for _, dataset, _ in ours)
    blocks = [(context.comparison, _least_blocks(context.comparison)) for context in study.contexts]
    is_fixed = all(comparison.design.fixed_blocks is not None for comparison, _ in blocks)
    return Needs(
        snapshots=len(ours),
        disk_bytes=snapshots + _copies_bytes(study),
        setup_files=len({dataset.loaded for _, dataset, _ in ours if dataset.setup_files}),
        least_trials=sum(len(comparison.arms) * count for comparison, count in blocks),
        preparation_s=sum(_LOAD_S + _LOAD_S_PER_SCALE * (dataset.pgbench_scale or 0) for _, dataset, _ in ours)
        + sum(len(comparison.arms) * (_START_S + comparison.design.warm_up_s) for comparison, _ in blocks),
        least_s=sum(_block_s(comparison) * count for comparison, count in blocks),
        most_s=None if is_fixed else study.budget_s,
    )


def _least_blocks(comparison: Comparison) -> int:
    return comparison.design.fixed_blocks or FIRST_LOOK


def _block_s(comparison: Comparison) -> float:
    design = comparison.design
    # From cold every window has a start of its own, and so has the one in which memory is looked at.
    is_cold = comparison.cache is CacheState.COLD
    starts, unmeasured_s = (design.rounds + 1, design.window_s) if is_cold else (1, design.warm_up_s)
    return len(comparison.arms) * (_START_S * starts + unmeasured_s + design.measured_s_per_block)


def _copies_bytes(study: Study) -> float:
    """Of copies, at the fullest moment: as if every load only read, since nobody knows before it is tried.

    Contexts take turns, so that the copies that are kept are all there together. Those on the same servers share them.
    Of operations there is one copy at a time, that of the arm whose turn it is.
    """
    loads = [one for one in study.contexts if isinstance(one.comparison.workload, PgbenchWorkload)]
    sets = dict.fromkeys(
        tuple((arm.server, arm.dataset, arm.settings) for arm in context.comparison.arms) for context in loads
    )
    ours = [
        [_data_bytes(dataset) for server, dataset, _ in arms if not isinstance(server, RunningServer)] for arms in sets
    ]
    kept = sum(size for sizes in ours for size in sizes if size > CHEAP_COPY_BYTES)
    others = [sum(size for size in sizes if size <= CHEAP_COPY_BYTES) + len(sizes) * _WAL_BYTES for sizes in ours]
    return kept + max([*others, _operation_bytes(study)])


def _operation_bytes(study: Study) -> float:
    """Of the largest copy that an operation is run on; 0 where there is none."""
    return max(
        (
            _data_bytes(arm.dataset) + _WAL_BYTES
            for context in study.contexts
            if isinstance(context.comparison.workload, Operation)
            for arm in context.comparison.arms
        ),
        default=0.0,
    )


def _data_bytes(dataset: Dataset) -> float:
    times = _PREPARED_TIMES if dataset.prepare else 1
    return _EMPTY_CLUSTER_BYTES + times * _BYTES_PER_SCALE * (dataset.pgbench_scale or 0)
