"""Answers of every kind, from hand-made blocks."""

from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np

from pgversus.answers.answer import Answer, AttributionResult, Caveat
from pgversus.answers.plans import compared
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Difference
from pgversus.records.trials import Block, FailedTrial, Phase
from pgversus.stats.attribution import Attribution, BoundedValue
from pgversus.stats.confidence import Verdict
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import Metric
from pgversus.study.workload import Operation, Step
from tests.builders import (
    answer,
    comparison,
    judged_by,
    latency_block,
    open_loop,
    operation_block,
    rate_block,
    vacuum,
)

_SWING = (0.999, 1.001, 1.0, 1.0005, 0.9995, 1.002, 0.998, 1.0)

RESTORATION = "enable_x = off"
"""What undoes a change of plans."""


def steady(effect: float, blocks: int = 6, rate: float = 1000.0) -> list[Block]:
    """Return blocks in which the contender's tps is `effect` times the baseline's, almost without noise."""
    return [
        rate_block(n, rate * _SWING[n % 8], rate * effect * _SWING[(n + 3) % 8], transactions=1000)
        for n in range(1, blocks + 1)
    ]


def noisy(spread: float, blocks: int = 6) -> list[Block]:
    """Return blocks whose ratios alternate by `spread` around no difference."""
    return [rate_block(n, 1000.0, 1000.0 * (1 + spread) ** (-1) ** n) for n in range(1, blocks + 1)]


def tails(blocks: int = 9) -> list[Block]:
    """Return blocks in which the contender's latency distribution has a longer tail."""
    rng = np.random.default_rng(4)
    parts = [(rng.lognormal(7.0, 0.3, 400), rng.lognormal(7.2, 0.5, 400)) for _ in range(blocks)]
    return [latency_block(n, *(values.astype(np.int64) for values in pair)) for n, pair in enumerate(parts, start=1)]


def faster() -> Answer:
    """A clear difference."""
    return answer(steady(1.1))


def slower_by_half() -> Answer:
    """Less than half of the speed, with defaults that differ."""
    return answer(
        steady(0.4),
        differences=[
            Difference(kind="setting", name="jit", values=("off", "on"), is_default=True),
            Difference(kind="setting", name="wal_level", values=("", "replica"), is_default=True),
        ],
    )


def faster_of_open_size() -> Answer:
    """A certain direction with a size that may be within the margin."""
    blocks = [rate_block(n, 1000.0, 1030.0 * (1.01 if n % 2 else 0.99)) for n in range(1, 7)]
    return answer(blocks)


def imprecise() -> Answer:
    """The budget was used up before the interval was as narrow as requested."""
    requested = comparison(design=Design(precision=0.01, seed=7))
    return answer(faster_of_open_size().blocks, requested, stopped=StopReason.BUDGET)


def equivalent() -> Answer:
    """No difference that matters."""
    return answer(steady(1.001, blocks=8))


def undecided() -> Answer:
    """The budget was used up on a noisy but not hopeless host."""
    return answer(noisy(0.02, blocks=8), stopped=StopReason.BUDGET)


def hopeless() -> Answer:
    """The budget was used up on a host that is too noisy."""
    return answer(noisy(0.9, blocks=8), stopped=StopReason.BUDGET)


def too_few() -> Answer:
    """The budget was used up before the first check."""
    return answer(steady(1.1, blocks=2), stopped=StopReason.BUDGET)


def interrupted() -> Answer:
    """Ctrl-C before the first block ended."""
    caveat = Caveat(slug="interrupted")
    return answer([], stopped=StopReason.INTERRUPTED, caveats=[caveat])


def invalid() -> Answer:
    """A contender that failed repeatedly, next to one that did not."""
    words = 'pgbench: error: ERROR:  relation "nowhere" does not exist'
    blocks = [
        rate_block(n, 1000.0 + n, None, 900.0 - n)._replace(
            failures=(FailedTrial(arm=1, phase=Phase.WARM_UP, message=words),),
        )
        for n in range(1, 6)
    ]
    values = {"arm": "17.8", "failed": 5, "blocks": 5, "phase": Phase.WARM_UP, "failure": words}
    caveat = Caveat(slug="failed-trials", arm=1, values=values)
    return answer(
        blocks,
        comparison(("16.12", "17.8", "18.6")),
        caveats=[caveat],
        stopped=StopReason.FAILED,
        invalid=frozenset({1}),
    )


def mixed_builds() -> Answer:
    """A clear difference with a grave caveat."""
    origins = {"baseline_origin": "zonky", "contender_origin": "wheel"}
    values = {"baseline": "16.12", "contender": "17.8", **origins, "parts": [("compiler", "gcc 7.5.0", "gcc 12.2.0")]}
    return answer(steady(1.1), caveats=[Caveat(slug="mixed-builds", arm=1, values=values)])


def tail_latency() -> Answer:
    """A scheduled rate, with the verdict on p95 latency."""
    return answer(tails(), comparison(design=judged_by(Metric.LATENCY_P95), workload=open_loop()))


def fixed() -> Answer:
    """A fixed number of blocks without a decision."""
    requested = comparison(design=Design(fixed_blocks=6, seed=7))
    return answer(noisy(0.05), requested, stopped=StopReason.BLOCKS)


def timed(operation: Operation, *times: tuple[float, ...]) -> Answer:
    """Return an operation whose steps took about these seconds on each arm, with 70 % dead rows."""
    blocks = [
        operation_block(
            n,
            operation,
            *(tuple(time * _SWING[(n + arm) % 8] for time in arm_times) for arm, arm_times in enumerate(times)),
        )
        for n in range(1, 7)
    ]
    dirty = SetupFile(path="/studies/dirty.sql", sha256="0")
    dataset = Dataset(pgbench_scale=10, prepare=(dirty,), variables=(("dead", "70"),))
    return answer(blocks, comparison(("15.10", "16.6"), judged_by(Metric.TIME), operation, dataset))


def operation() -> Answer:
    """An operation of one statement."""
    return timed(vacuum(), (1.9,), (0.75,))


def steps() -> Answer:
    """An operation of two steps, only one of which is faster."""
    return timed(vacuum(Step(name="pg_dump", program=("pg_dump", "-f", "db.sql"))), (1.9, 0.4), (0.75, 0.4))


CASES: Mapping[str, Callable[[], Answer]] = {
    case.__name__: case
    for case in (
        faster,
        slower_by_half,
        faster_of_open_size,
        imprecise,
        equivalent,
        undecided,
        hopeless,
        too_few,
        interrupted,
        invalid,
        mixed_builds,
        tail_latency,
        fixed,
        operation,
        steps,
    )
}


def with_plans(of: Answer, plans: CapturedPlans, attributed: AttributionResult | None = None) -> Answer:
    return replace(
        of,
        plans=lambda: compared(of.comparison.arms, plans),
        attributions={} if attributed is None else {1: attributed},
    )


def attributed(share: tuple[float, float, float] | None, rest: Verdict = Verdict.EQUIVALENT) -> AttributionResult:
    """Return an attribution of a change of 58 ms."""
    value = 1.0 if share is None else share[0]
    found = Attribution(
        whole=BoundedValue(value=6.0, low=5.5, high=6.5),
        plans=BoundedValue(value=5.0, low=4.5, high=5.5),
        rest=BoundedValue(value=1.2, low=1.1, high=1.3),
        whole_s=BoundedValue(value=0.058, low=0.05, high=0.066),
        plans_s=BoundedValue(value=0.058 * value, low=0.05, high=0.07),
        rest_s=BoundedValue(value=0.001, low=-0.002, high=0.004),
        share=None if share is None else BoundedValue(value=share[0], low=share[1], high=share[2]),
        share_of_time=None if share is None else BoundedValue(value=share[0] + 0.01, low=share[1], high=share[2]),
        rest_verdict=rest,
        blocks=8,
    )
    return AttributionResult(restoration=RESTORATION, found=found, failure="", wall_s=61.0)
