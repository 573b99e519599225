"""What a study will need, before anything is fetched or loaded: trials, disk, time. Estimates, and said to be such.

Contexts that take turns have all their data on disk at once. Where that would be too much, a study is measured in
parts, one after another, and the data of one part are removed before those of the next are loaded.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import FIRST_LOOK, Design
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting, shaping_settings
from pgversus.study.study import Context, Study
from pgversus.study.windows import FirstLoad, between_s, fit_windows
from pgversus.study.workload import Operation, PgbenchWorkload

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


MOST_AT_ONCE_BYTES = 20e9
"""A part has no more, unless the data of a single context have."""

_Family = list[Context]
# On the same data.


def parts_of(contexts: Sequence[Context], most_bytes: float = MOST_AT_ONCE_BYTES) -> list[list[Context]]:
    """The contexts of each part, in their order; one part where all data fit, none where there is no context.

    Those on the same data are in the same part, and those that begin with the same loaded data stand beside each other.
    It follows from the study alone, so that a resumed one has the same parts.
    """
    if disk_bytes(contexts) <= most_bytes:
        return [list(contexts)] if contexts else []
    parts: list[list[Context]] = []
    for family in _families(contexts):
        if parts and disk_bytes([*parts[-1], *family]) <= most_bytes:
            parts[-1] += family
        else:
            parts.append(list(family))
    return [sorted(part, key=lambda context: context.number) for part in parts]


def _families(contexts: Sequence[Context]) -> Iterable[_Family]:
    families: defaultdict[Hashable, defaultdict[Hashable, _Family]] = defaultdict(lambda: defaultdict(list))
    for context in contexts:
        data = tuple(arm.dataset for arm in context.comparison.arms)
        loaded = tuple(dataset.loaded for dataset in data)
        families[loaded][data].append(context)
    return chain.from_iterable(same_loaded.values() for same_loaded in families.values())


_START_S = 0.5
# Copy, start, read in, stop, of small data.
_TRY_OUT_S = 1.5
# The first load of an arm, after which its windows are fitted.
_LATENCY_S = 0.001
# Assumed before anything is known of a load.
_LOAD_S, _LOAD_S_PER_SCALE = 3.0, 0.2


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Estimates for a whole study."""

    snapshots: int
    """Servers and datasets to be loaded, and those to be prepared from them."""
    disk_bytes: float
    """At the fullest moment; without what setup files make."""
    parts: int
    """Measured one after another, since the data of all would be too much at once."""
    setup_files: int
    """Datasets that come from setup files, of which nobody knows the size beforehand."""
    least_trials: int
    """When every verdict is known at the first look, or of a fixed design."""
    preparation_s: float
    """Loading and trying out."""
    least_s: float
    """Of blocks, when every verdict is known at the first look, no transaction is slow, and no load writes."""
    most_s: float | None
    """Of blocks: the budget; None for a fixed design, which takes as long as it takes."""


def needs_of(study: Study) -> Needs:
    """What this study will need."""
    ours = snapshots_of(study.contexts)
    parts = parts_of(study.contexts)
    blocks = [(context.comparison, _least_blocks(context.comparison)) for context in study.contexts]
    is_fixed = all(comparison.design.fixed_blocks is not None for comparison, _ in blocks)
    return Needs(
        snapshots=len(ours),
        disk_bytes=max(map(disk_bytes, parts), default=0.0),
        parts=len(parts),
        setup_files=len({dataset.loaded for _, dataset, _ in ours if dataset.setup_files}),
        least_trials=sum(len(comparison.arms) * count for comparison, count in blocks),
        preparation_s=sum(_LOAD_S + _LOAD_S_PER_SCALE * (dataset.pgbench_scale or 0) for _, dataset, _ in ours)
        + sum(len(comparison.arms) * (_START_S + _TRY_OUT_S) for comparison, _ in blocks),
        least_s=sum(_block_s(comparison, len(blocks)) * count for comparison, count in blocks),
        most_s=None if is_fixed else study.budget_s,
    )


def _least_blocks(comparison: Comparison) -> int:
    return comparison.design.fixed_blocks or FIRST_LOOK


def _block_s(comparison: Comparison, contexts: int) -> float:
    design = _fitted(comparison, contexts)
    # From cold every window has a start of its own, and so has the one in which memory is looked at.
    is_cold = comparison.cache is CacheState.COLD
    starts, unmeasured_s = (design.rounds + 1, design.window_s) if is_cold else (1, design.warm_up_s)
    return len(comparison.arms) * (
        _START_S * starts + unmeasured_s + design.rounds * (design.window_s + between_s(design))
    )


def _fitted(comparison: Comparison, contexts: int) -> Design:
    """The windows of a fast load that only reads."""
    workload = comparison.baseline.workload
    if not isinstance(workload, PgbenchWorkload):
        return comparison.design
    is_cold = comparison.cache is CacheState.COLD
    load = FirstLoad(
        clients=workload.clients,
        writes=False,
        latency_s=_LATENCY_S,
        latency_p99_s=_LATENCY_S,
        rate=workload.rate,
        is_cold=is_cold,
    )
    return fit_windows(comparison.design, load, arms=len(comparison.arms), contexts=contexts)
