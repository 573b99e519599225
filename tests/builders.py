"""Builders of blocks, comparisons and answers for tests."""

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import numpy.typing as npt

from pgversus.answers.answer import Answer, Caveat, StudyAnswer, Unanswered
from pgversus.host.identity import ServerUser
from pgversus.records.preparation import ArmFacts, Difference
from pgversus.records.trials import Block, LatencyHistogram, Window, trial_of
from pgversus.stats.analysis import analyze
from pgversus.stats.confidence import look_rule
from pgversus.stats.effects import Samples
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import MARGINS, Metric
from pgversus.study.servers import Release
from pgversus.study.study import Context, Skipped, StudyMetadata
from pgversus.study.workload import Operation, PgbenchWorkload, QueryMode, Script, Step, Workload

DATA = Path(__file__).parent / "data"
GOLDEN = Path(__file__).parent / "golden"
MYSELF = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
"""The current user as the servers' user, for tests without a directory accessible to other users."""

Microseconds = npt.NDArray[np.int64]


def window(latencies_us: Sequence[int] | Microseconds, seconds: float = 1.0, failed: int = 0) -> Window:
    """Return a window of transactions with these latencies in microseconds."""
    latencies = np.asarray(latencies_us, dtype=np.int64)
    return Window(
        transactions=int(latencies.size),
        seconds=seconds,
        latency_sum_s=float(latencies.sum()) / 1e6,
        latency_max_s=float(latencies.max(initial=0)) / 1e6,
        histogram=LatencyHistogram.from_microseconds(latencies),
        failed=failed,
    )


def latency_block(number: int, *latencies_us: Sequence[int] | Microseconds | None) -> Block:
    """Return a block with one window per arm, from one client without pauses; None leaves an arm out."""
    trials = {}
    for arm, latencies in enumerate(latencies_us):
        if latencies is not None:
            whole = np.asarray(latencies, dtype=np.int64)
            trials[arm] = trial_of(arm, [window(whole, seconds=float(whole.sum()) / 1e6)])
    return Block(number=number, trials=trials)


def rate_block(number: int, *tps: float | None, transactions: int = 100) -> Block:
    """Return a block in which each arm has exactly this tps; None leaves an arm out."""
    trials = {}
    for arm, rate in enumerate(tps):
        if rate is not None:
            latencies = np.full(transactions, max(1, round(1e6 / rate)), dtype=np.int64)
            trials[arm] = trial_of(arm, [window(latencies, seconds=transactions / rate)])
    return Block(number=number, trials=trials)


def vacuum(*more: Step) -> Operation:
    """Return an operation: VACUUM of pgbench_accounts, followed by these steps."""
    steps = (Step(name="VACUUM pgbench_accounts", sql="VACUUM pgbench_accounts;"), *more)
    return Operation(name=", ".join(step.name for step in steps), steps=steps)


def operation_block(number: int, operation: Operation, *seconds: Sequence[float]) -> Block:
    """Return a block from the seconds of each step of an operation, per arm."""
    trials = {}
    for arm, times in enumerate(seconds):
        steps = {step.name: time for step, time in zip(operation.steps, times, strict=True)}
        whole = replace(window([], seconds=sum(times)), transactions=1, latency_sum_s=sum(times), steps=steps)
        trials[arm] = trial_of(arm, [whole])
    return Block(number=number, trials=trials)


def rate_blocks(*arms: Sequence[float | None]) -> list[Block]:
    """Return blocks from one series per arm: `rate_blocks([100, 101], [110, 111])` returns two blocks of two arms."""
    return [rate_block(number, *rates) for number, rates in enumerate(zip(*arms, strict=True), start=1)]


def comparison(
    labels: Sequence[str] = ("16.12", "17.8"),
    design: Design | None = None,
    workload: Workload | None = None,
    dataset: Dataset | None = None,
) -> Comparison:
    """Return a comparison of servers with these labels."""
    requested = workload or PgbenchWorkload(scripts=(Script(name="select-only"),), clients=4)
    return Comparison(
        arms=tuple(
            Arm(
                index=index,
                label=label,
                server=Release(major=16 + index, minor=None),
                settings=(),
                workload=requested,
                dataset=dataset or Dataset(pgbench_scale=1),
            )
            for index, label in enumerate(labels)
        ),
        factors=("server",),
        design=design or Design(seed=7),
    )


def judged_by(metric: Metric) -> Design:
    """Return a design whose verdict is based on this metric, with the metric's default margin."""
    return Design(metric=metric, margin=MARGINS[metric], seed=7)


def open_loop() -> PgbenchWorkload:
    """Return a workload with a rate."""
    return PgbenchWorkload(
        scripts=(Script(name="lag.sql", weight=2, text="SELECT 1;\n"), Script(name="tpcb-like")),
        clients=8,
        threads=2,
        query_mode=QueryMode.PREPARED,
        variables=(("rows", "1000"),),
        rate=50.0,
    )


def answer(
    blocks: Sequence[Block],
    of: Comparison | None = None,
    *,
    caveats: Sequence[Caveat] = (),
    differences: Sequence[Difference] = (),
    stopped: StopReason = StopReason.DECIDED,
    invalid: frozenset[int] = frozenset(),
    failure: str | None = None,
    wall_s: float | None = None,
    study_wall_s: float | None = None,
    is_from_file: bool = False,
    block_bytes: Sequence[int] = (),
) -> Answer:
    """Return the answer from these blocks; by default each block takes 44 seconds.

    block_bytes: the size of the blocks of each arm; empty if not recorded.
    """
    requested = of or comparison()
    rule = look_rule(requested.design, len(requested.contenders))
    return Answer(
        context=Context(number=1, levels=(), comparison=requested),
        comparison=requested,
        arms=tuple(
            ArmFacts(
                version=arm.label,
                origin="zonky",
                compiler="gcc 7.5.0",
                flags="-O2" if arm.index else "",
                sha256=None,
                compiled_in={"block_size": str(block_bytes[arm.index])} if block_bytes else {},
            )
            for arm in requested.arms
        ),
        analysis=analyze(Samples(blocks), requested, rule, invalid, block_bytes=block_bytes),
        rule=rule,
        caveats=tuple(caveats),
        differences=tuple(differences),
        stopped=stopped,
        failure=failure,
        failed_trials=sum(len(block.failures) for block in blocks),
        blocks=tuple(blocks),
        wall_s=44.0 * len(blocks) if wall_s is None else wall_s,
        study_wall_s=44.0 * len(blocks) if study_wall_s is None else study_wall_s,
        is_from_file=is_from_file,
        client="pgbench 18.6",
        host={"cpu": "test", "cores": 2},
        results="pgversus-results/test",
    )


def study_answer(
    answers: Sequence[Answer],
    *,
    unanswered: Sequence[Unanswered] = (),
    published: str | None = None,
    metrics: Sequence[str] = (),
    skipped: Sequence[Skipped] = (),
    stopped: StopReason = StopReason.DECIDED,
) -> StudyAnswer:
    """Return a study of these comparisons; each context has a workload and a load as levels."""
    placed = tuple(
        replace(one, context=replace(one.context, number=number, levels=(("workload", f"w{number}"), ("load", "c4"))))
        for number, one in enumerate(answers, 1)
    )
    return StudyAnswer(
        study=StudyMetadata(
            name="s-quick",
            title="Two | workloads",
            question="Is one of them *faster*?",
            seed=7,
            verdicts=sum(len(one.analysis.results) for one in answers) + len(unanswered),
            contexts=len(answers) + len(unanswered),
            published=published,
            metrics=tuple(metrics),
            skipped=tuple(skipped),
        ),
        answers=placed,
        unanswered=tuple(unanswered),
        stopped=stopped,
        results="pgversus-results/s-quick",
    )


def scaled(blocks: Sequence[Block], arm: int, factor: float) -> list[Block]:
    """Return the blocks with the seconds of one arm divided by a factor, which multiplies its tps."""
    changed = []
    for block in blocks:
        trials = dict(block.trials)
        if arm in trials:
            windows = tuple(replace(window, seconds=window.seconds / factor) for window in trials[arm].windows)
            trials[arm] = trial_of(arm, windows)
        changed.append(block._replace(trials=trials))
    return changed


def swapped(blocks: Sequence[Block]) -> list[Block]:
    """Return the blocks with arms 0 and 1 swapped."""
    other = {0: 1, 1: 0}
    return [
        block._replace(
            trials={other[arm]: trial_of(other[arm], whole.windows) for arm, whole in block.trials.items()},
        )
        for block in blocks
    ]
