"""Run simulated studies: the real engine and the real rule on a simulated host."""

import math
from dataclasses import dataclass, replace

from benchmarks.simulated_host import HOSTS, SimulatedHost, SimulatedSite
from pgversus.engine.context_state import ContextState
from pgversus.engine.hosts import ThisHost
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_contexts
from pgversus.stats.analysis import bounds_of, interim_result
from pgversus.stats.confidence import Interval, Verdict
from pgversus.stats.effects import Samples, log_ratio
from pgversus.study.comparison import BASELINE, Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from pgversus.study.servers import LocalPath
from pgversus.study.study import Context
from pgversus.study.windows import FirstLoad, fit_windows
from pgversus.study.workload import PgbenchWorkload, Script

NEVER_S = 1e9
SERVER = LocalPath(path="/simulated")
WORKLOAD = PgbenchWorkload(scripts=(Script(name="select-only"),))
FAST_READS = FirstLoad(clients=4, writes=False, latency_s=0.0004, latency_p99_s=0.002)
DESIGNS: dict[str, Design] = {
    # As fitted to fast reads, without an explicit length and with --window 1s.
    "short": fit_windows(Design(budget_s=NEVER_S), FAST_READS, arms=2, contexts=1),
    "long": fit_windows(Design(budget_s=NEVER_S, window_s=1.0, window_is_given=True), FAST_READS, arms=2, contexts=1),
}
"""Designs by the name of their windows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of a study."""

    verdicts: tuple[Verdict, ...]
    covered: bool
    """Whether every interval includes the truth."""
    covered_always: bool
    """Whether every interval includes the truth at every look, not only at the last one."""
    log_ratio: float
    """The estimate for the first contender."""
    half_width: float
    """Half the width of its interval, on the log scale."""
    blocks: int
    measured_s: float
    wall_s: float
    repeated_rounds: int


def simulate(
    host: str,
    ratios: tuple[float, ...],
    seed: int,
    max_blocks: int,
    *,
    design: Design = DESIGNS["short"],
    precision: float | None = None,
    host_type: type[SimulatedHost] = SimulatedHost,
    shown: Metric | None = None,
) -> Outcome:
    """Return the outcome of one study whose contenders are `ratios` times as fast as the baseline.

    shown: the metric whose intervals are checked for the truth; None for the metric of the verdict.
    """
    limited = replace(design, max_blocks=max_blocks, precision=precision)
    state = finished_context(host, ratios, limited, seed, host_type=host_type)
    comparison, metric = state.comparison, shown or design.metric
    found = [interim_result(state.samples, comparison, state.rule, arm.index) for arm in comparison.contenders]
    first = found[0]
    return Outcome(
        verdicts=tuple(interim.verdict for interim in found),
        covered=_covers(state, state.samples, metric, ratios),
        covered_always=_covers_always(state, metric, ratios),
        log_ratio=math.nan if first.log_ratio is None else first.log_ratio.point,
        half_width=first.interval.half_width,
        blocks=len(state.blocks),
        measured_s=sum(trial.seconds for block in state.blocks for trial in block.trials.values()),
        wall_s=state.wall_s,
        repeated_rounds=sum(block.repeated_rounds for block in state.blocks),
    )


def finished_context(
    host: str,
    ratios: tuple[float, ...],
    design: Design,
    seed: int,
    *,
    host_type: type[SimulatedHost] = SimulatedHost,
    others: int = 0,
) -> ContextState:
    """Measure a context until its rule stops, and return it. others: number of other verdicts that share the error."""
    comparison = _comparison(len(ratios), replace(design, seed=seed))
    machine = host_type(
        HOSTS[host],
        dict(enumerate((1.0, *ratios))),
        comparison.design,
        seed=(seed, sorted(HOSTS).index(host)),
    )
    state = ContextState(Context(number=1, levels=(), comparison=comparison), len(ratios) + others)
    run_contexts(
        [state],
        ThisHost(SimulatedSite(machine), machine.clock, Progress()),
        seed=seed,
        budget_s=NEVER_S,
        progress=Progress(),
        keep=lambda _course, _block: None,
        keep_preparation=lambda _course: None,
    )
    return state


def _covers(state: ContextState, samples: Samples, metric: Metric, ratios: tuple[float, ...]) -> bool:
    """Return whether the intervals of all contenders include the truth; latencies and times fall as speed rises."""
    sign = 1 if metric.more_is_better else -1
    intervals = (_interval(state, samples, metric, contender) for contender in range(1, len(ratios) + 1))
    return all(
        bounds.low <= sign * math.log(ratio) <= bounds.high for bounds, ratio in zip(intervals, ratios, strict=True)
    )


def _interval(state: ContextState, samples: Samples, metric: Metric, contender: int) -> Interval:
    arms = (BASELINE, contender)
    estimate = log_ratio(samples, metric, *arms)
    assert estimate is not None
    return bounds_of(estimate, samples, metric, state.rule, arms)


def _covers_always(state: ContextState, metric: Metric, ratios: tuple[float, ...]) -> bool:
    samples = Samples()
    for block in state.blocks:
        samples.add(block)
        if not _covers(state, samples, metric, ratios):
            return False
    return True


def _comparison(contenders: int, design: Design) -> Comparison:
    return Comparison(
        arms=tuple(
            Arm(index=i, label=str(i), server=SERVER, settings=(), workload=WORKLOAD, dataset=Dataset())
            for i in range(contenders + 1)
        ),
        factors=("server",),
        design=design,
    )
