"""Estimates of a study's trials, disk space and time, made before anything is fetched or loaded.

Contexts that run in turn have all their data on disk at once. If that is too much, the study is measured in parts, one
after another; the data of one part is removed before that of the next is loaded.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass
from itertools import chain

from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.dataset import Dataset, Statistics
from pgversus.study.design import Design
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting, shaping_settings
from pgversus.study.study import Context, Study
from pgversus.study.windows import FirstLoad, between_s, fit_windows

CHEAP_COPY_BYTES = 1024**3
"""Copies for read-only loads are kept to the end if they are larger than this; of the others, see KEPT_COPIES_BYTES."""
KEPT_COPIES_BYTES = 1024**3
"""Total size of the smaller copies that are kept while other servers are used: making one takes half a second."""
_EMPTY_CLUSTER_BYTES = 45e6
# initdb's files and the first WAL segment.
_BYTES_PER_SCALE = 16e6
# Size of pgbench's tables with indexes: 150 MB at scale 10.
_PREPARED_TIMES = 2
# Updating every row stores each of them twice.
_WAL_BYTES = 1.1e9
# Possible growth of a copy under a load: max_wal_size defaults to 1 GB.

SnapshotName = tuple[ServerName, Dataset, tuple[Setting, ...]]
"""A server, its data, and the settings that affect the loaded data."""


def snapshots_of(contexts: Sequence[Context]) -> list[SnapshotName]:
    """Return everything to load, without duplicates; derived data are next to the loaded data that they start from."""
    arms = [arm for context in contexts for arm in context.comparison.arms]
    return list(
        dict.fromkeys(
            (arm.server, dataset, shaping_settings(arm.settings, runs_files=dataset.runs_files))
            for arm in arms
            if not isinstance(arm.server, RunningServer)
            for dataset in ((arm.dataset.loaded, arm.dataset) if arm.dataset.is_derived else (arm.dataset,))
        )
    )


def disk_bytes(contexts: Sequence[Context]) -> float:
    """Return the peak disk usage of contexts that run in turn, in bytes, without data from setup files."""
    return sum(_data_bytes(dataset) for _, dataset, _ in snapshots_of(contexts)) + _copies_bytes(contexts)


def _copies_bytes(contexts: Sequence[Context]) -> float:
    """Return the peak size of copies in bytes if every load is read-only, which is not known beforehand.

    Copies that are kept to the end all exist at once, shared by contexts on the same servers. Operations need one copy
    at a time.
    """
    loads = [one for one in contexts if not one.comparison.workload.runs_once]
    sets = dict.fromkeys(
        tuple((arm.server, arm.dataset, arm.settings) for arm in context.comparison.arms) for context in loads
    )
    ours = [
        [_data_bytes(dataset) for server, dataset, _ in arms if not isinstance(server, RunningServer)] for arms in sets
    ]
    kept = sum(size for sizes in ours for size in sizes if size > CHEAP_COPY_BYTES)
    cheap = [sum(size for size in sizes if size <= CHEAP_COPY_BYTES) for sizes in ours]
    others = [
        used + len(sizes) * _WAL_BYTES + min(sum(cheap) - used, KEPT_COPIES_BYTES)
        for used, sizes in zip(cheap, ours, strict=True)
    ]
    return kept + max([*others, _operation_bytes(contexts) + min(sum(cheap), KEPT_COPIES_BYTES)])


def _operation_bytes(contexts: Sequence[Context]) -> float:
    """Return the peak size of the copy of one arm of an operation, in bytes; 0 without operations."""
    operations = [context.comparison.arms for context in contexts if context.comparison.workload.runs_once]
    return max((_data_bytes(arm.dataset) + _WAL_BYTES for arms in operations for arm in arms), default=0.0)


def _data_bytes(dataset: Dataset) -> float:
    times = _PREPARED_TIMES if dataset.prepare else 1
    return _EMPTY_CLUSTER_BYTES + times * (_BYTES_PER_SCALE * (dataset.pgbench_scale or 0) + _restored_bytes(dataset))


def _restored_bytes(dataset: Dataset) -> float:
    """Return the size of the dump; with indexes, and if the dump is compressed, its data are several times larger."""
    return 0.0 if dataset.restore is None else float(dataset.restore.size_bytes)


MOST_AT_ONCE_BYTES = 20e9
"""Upper limit for a part, unless the data of a single context exceed it."""

_Family = list[Context]
# Contexts that share their data.


def parts_of(contexts: Sequence[Context], most_bytes: float = MOST_AT_ONCE_BYTES) -> list[list[Context]]:
    """Split contexts into parts, in order: one part if all data fit, none without contexts.

    Contexts that share data are in the same part, and those that start with the same loaded data are neighbors.
    The result depends on the study alone, so that a resumed study has the same parts.
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
# Copying, starting, reading and stopping a server with small data.
_TRY_OUT_S = 0.7
# The first load of an arm, used to fit its windows.
_LATENCY_S = 0.001
# Assumed before a load has run.
_CLASSES_OF_VALUES = 2
_LOAD_S, _LOAD_S_PER_SCALE, _RESTORED_BYTES_PER_S = 3.0, 0.2, 40e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Needs:
    """Estimates for a whole study."""

    snapshots: int
    """Combinations of server and dataset to load, and to prepare from loaded ones."""
    disk_bytes: float
    """Peak disk usage, without data from setup files; restored data count as much as their dump, the least possible."""
    parts: int
    """Number of parts, measured one after another to limit disk usage."""
    largest: str
    """Label of a context with the data that need the most space; empty if all contexts have the same data."""
    setup_files: int
    """Datasets that come from setup files or a dump, whose size is not known beforehand."""
    least_trials: int
    """Number of trials: if every verdict is reached at the first check, or all trials of a fixed design."""
    preparation_s: float
    """Time to load data and to try out loads, with both common and rare values where values are chosen."""
    least_s: float
    """Time of blocks, with these values, if every verdict is reached at the first check, no transaction is slow, and no
    load writes."""
    most_s: float | None
    """Maximum time of blocks: the budget; None for a fixed design, whose time is not limited."""


def needs_of(study: Study) -> Needs:
    """Estimate the needs of a study."""
    ours = snapshots_of(study.contexts)
    parts = parts_of(study.contexts)
    largest = max(parts, key=disk_bytes, default=[])
    datasets = len({tuple(arm.dataset.loaded for arm in one.comparison.arms) for one in study.contexts})
    blocks = [(one.comparison, one.comparison.design.stopping_rule.first_look) for one in study.contexts]
    # The application's own times are the best guess.
    latencies = {one.context: one.seconds / one.calls for one in study.statements if one.calls}
    # Each class of values has a context of its own, if the two differ.
    of_classes = {one.context for one in study.statements if one.needs_values}
    times = [_CLASSES_OF_VALUES if one.number in of_classes else 1 for one in study.contexts]
    is_fixed = all(comparison.design.stopping_rule.looks_once for comparison, _ in blocks)
    return Needs(
        snapshots=len(ours),
        disk_bytes=max(map(disk_bytes, parts), default=0.0),
        parts=len(parts),
        largest=max(largest, key=lambda one: disk_bytes([one])).label if largest and datasets > 1 else "",
        setup_files=len({dataset.loaded for _, dataset, _ in ours if dataset.setup_files or dataset.restore}),
        least_trials=sum(len(comparison.arms) * count for comparison, count in blocks),
        preparation_s=sum(_load_s(dataset) for _, dataset, _ in ours)
        + sum(
            len(comparison.arms) * (_START_S + _TRY_OUT_S) * number
            for (comparison, _), number in zip(blocks, times, strict=True)
        ),
        least_s=sum(
            _block_s(one.comparison, sum(times), latencies.get(one.number, _LATENCY_S)) * count * number
            for one, (_, count), number in zip(study.contexts, blocks, times, strict=True)
        ),
        most_s=None if is_fixed else study.budget_s,
    )


def _load_s(dataset: Dataset) -> float:
    if dataset.statistics is not Statistics.ALL:
        # Removed on a copy.
        return _START_S
    restored_s = _restored_bytes(dataset) / _RESTORED_BYTES_PER_S
    return _LOAD_S + _LOAD_S_PER_SCALE * (dataset.pgbench_scale or 0) + restored_s


def _block_s(comparison: Comparison, contexts: int, latency_s: float) -> float:
    design = _fitted(comparison, contexts, latency_s)
    # With a cold cache every window has its own restart, and so does the unmeasured one that records memory.
    is_cold = comparison.cache is CacheState.COLD
    starts, unmeasured_s = (design.rounds + 1, design.window_s) if is_cold else (1, design.warm_up_s)
    return len(comparison.arms) * (
        _START_S * starts + unmeasured_s + design.rounds * (design.window_s + between_s(design))
    )


def _fitted(comparison: Comparison, contexts: int, latency_s: float) -> Design:
    """Return the design with the windows of a read-only load."""
    workload = comparison.baseline.workload
    if workload.runs_once:
        return comparison.design
    load = FirstLoad(
        clients=workload.clients,
        writes=False,
        latency_s=latency_s,
        latency_p99_s=latency_s,
        rate=workload.rate,
        is_cold=comparison.cache is CacheState.COLD,
    )
    return fit_windows(comparison.design, load, arms=len(comparison.arms), contexts=contexts)
