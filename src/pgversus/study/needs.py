"""What a study will need, before anything is fetched or loaded: trials, disk, time. Estimates, and said to be such."""

from dataclasses import dataclass

from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.design import FIRST_LOOK, Design
from pgversus.study.disk import disk_bytes, snapshots_of
from pgversus.study.parts import parts_of
from pgversus.study.study import Study
from pgversus.study.windows import FirstLoad, between_s, fit_windows
from pgversus.study.workload import PgbenchWorkload

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
