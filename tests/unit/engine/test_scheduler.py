"""The engine with a fake clock and fake servers: order, stopping, failures, interrupts."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from pgversus.engine.context_state import MOST_FAILURES_IN_A_ROW, ContextState
from pgversus.engine.hosts import ThisHost
from pgversus.engine.progress import Look, Progress, TimeEstimate
from pgversus.engine.scheduler import run_contexts, run_parts
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import DatasetError, HostError, PgversusError, ServerError, StudyError, WorkloadError
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, LatencyHistogram, Phase, Window
from pgversus.stats.analysis import analyze
from pgversus.stats.confidence import Verdict
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design, StopReason, WindowKind
from pgversus.study.metrics import Metric
from pgversus.study.servers import LocalPath, RunningServer, ServerName
from pgversus.study.study import Context
from pgversus.study.workload import PgbenchWorkload, Script

LATENCIES = LatencyHistogram.from_microseconds(np.array([1000, 1100, 1200]))


@dataclass
class Pretended:
    """Servers of given speed that record every action."""

    tps: dict[int, float]
    journal: list[tuple[str, int]] = field(default_factory=list)
    seconds: float = 0.0
    fails: Callable[[str, int, int], bool] = lambda _action, _arm, _block: False
    interrupt_at: int | None = None
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    block: int = 1
    context: int = 1
    tps_of: dict[int, dict[int, float]] = field(default_factory=dict)
    stop_s: float = 0.0
    writes: Callable[[int, int], bool] = lambda _context, _block: False
    names: list[str] = field(default_factory=list)
    """Names of the windows, in the order of their measurement."""
    open: dict[int, list[Window]] = field(default_factory=dict)
    """Windows of open sessions, by arm."""
    disturbed: Callable[[int], bool] = lambda _window: False
    """By the number of the window, over all arms and blocks."""
    empty: Callable[[int], bool] = lambda _window: False
    """The same for windows without a transaction."""

    def clock(self) -> float:
        return self.seconds

    def start(self, arm: int) -> None:
        self._do("start", arm)

    def warm_up(self, arm: int, seed: int) -> None:
        assert seed > 0
        self._do("warm-up", arm)

    def measure(self, arm: int, seed: int) -> Window:
        assert seed > 0
        self._do("measure", arm)
        number = sum(what == "measure" for what, _ in self.journal)
        tps = self.tps_of.get(self.context, self.tps)[arm] * float(np.exp(self.noise.normal(0, 0.01)))
        return Window(
            transactions=0 if self.empty(number) else round(tps * 1000),
            seconds=1000.0,
            latency_sum_s=1.0,
            latency_max_s=1.0,
            histogram=LATENCIES,
            counters={"tuples_updated": 1.0 if self.writes(self.context, self.block) else 0.0},
            was_disturbed=self.disturbed(number),
        )

    def stop_all(self) -> None:
        self.journal.append(("stop", self.block))
        self.block += 1
        self.seconds += self.stop_s

    def _do(self, action: str, arm: int) -> None:
        self.journal.append((action, arm))
        self.seconds += 1
        if self.interrupt_at == sum(what != "stop" for what, _ in self.journal):
            raise KeyboardInterrupt
        self.fail(action, arm)

    def fail(self, action: str, arm: int) -> None:
        if self.fails(action, arm, self.block):
            raise TrialFailedError(f"{action} of {arm} failed")


def comparison(arms: int = 2, **design: object) -> Comparison:
    return Comparison(
        arms=tuple(
            Arm(
                index=i,
                label=str(i),
                server=LocalPath(path="/x"),
                settings=(),
                workload=PgbenchWorkload(scripts=(Script(name="select-only"),)),
                dataset=Dataset(),
            )
            for i in range(arms)
        ),
        factors=("server",),
        design=replace(Design(rounds=4, seed=3, budget_s=1e6), **design),  # type: ignore[arg-type]
    )


@dataclass
class PretendedSite:
    """Contexts on simulated servers, all alike unless stated otherwise."""

    host: Pretended
    shares: bool = False
    unpreparable: frozenset[int] = frozenset()
    error: PgversusError = field(
        default_factory=lambda: WorkloadError(
            "the workload fails on 1", slug="workload-failed", where="x.sql", found="ERROR"
        )
    )
    prepared: list[int] = field(default_factory=list)
    host_fails_in: str = ""
    """The action whose failures are those of the host."""
    groups: list[int] = field(default_factory=list)
    """The number of contexts that were prepared on each start for first loads."""
    is_preparing: bool = False
    given: list[Preparation | None] = field(default_factory=list)
    """The known preparations, in order."""
    begun: list[list[int]] = field(default_factory=list)
    """The contexts of each part."""

    def begin_part(self, contexts: Sequence[Context]) -> None:
        self.begun.append([context.number for context in contexts])

    @contextmanager
    def preparing(self) -> Iterator[None]:
        self.is_preparing = True
        before = len(self.prepared)
        try:
            yield
        finally:
            self.is_preparing = False
            self.groups.append(len(self.prepared) - before)

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        assert self.is_preparing
        self.given.append(known)
        self.prepared.append(context.number)
        if context.number in self.unpreparable:
            raise self.error
        if known is not None:
            return known
        design = context.comparison.design
        return Preparation(design=design, arms=(), differences=(), writes=False, connect_allowance_s=0)

    def trial_runner(self, context: Context) -> "PretendedContext":
        assert not self.is_preparing
        return PretendedContext(self.host, context.number)

    @contextmanager
    def failures(self, context: Context, arm: int) -> Iterator[None]:
        assert context.number in self.prepared
        try:
            yield
        except TrialFailedError as error:
            if str(error) == f"{self.host_fails_in} of {arm} failed":
                raise HostError("the disk is full", slug="host-disk-full") from error
            raise

    def can_share_start(self, one: Context, other: Context) -> bool:
        assert one.number != other.number
        return self.shares


@dataclass
class PretendedContext:
    """The trial runner of one context; the journal records whose windows they are."""

    host: Pretended
    number: int

    def start(self, arm: int) -> None:
        self.host.start(arm)

    def warm_up(self, arm: int, seed: int) -> dict[str, float]:
        self.host.context = self.number
        self.host.warm_up(arm, seed)
        return {"server_memory_peak_bytes": 1e6 * (arm + 1)}

    def measure(self, arm: int, seed: int, name: str) -> None:
        self.host.context = self.number
        self.host.names.append(name)
        self.host.open.setdefault(arm, []).append(self.host.measure(arm, seed))

    def collect(self, arm: int) -> list[Window]:
        self.host.fail("collect", arm)
        return self.host.open.pop(arm)

    def counted(self, arm: int, transactions: int) -> dict[str, float]:
        del transactions
        self.host.fail("count", arm)
        return {"checkpoints_timed": float(arm)}

    def abandon(self) -> None:
        self.host.open.clear()

    def stop_all(self) -> None:
        self.host.stop_all()


@dataclass
class Ended:
    """A single comparison that has ended."""

    state: ContextState
    stopped: StopReason
    blocks: list[Block]
    """As they were stored, with their windows."""


def study(contexts: int, arms: int = 2, **design: object) -> list[ContextState]:
    requested = comparison(arms, **design)
    return [
        ContextState(
            Context(number=number, levels=(("load", str(number)),), comparison=requested), contexts * (arms - 1)
        )
        for number in range(1, contexts + 1)
    ]


def here(testbed: PretendedSite, progress: Progress | None = None) -> ThisHost:
    return ThisHost(testbed, testbed.host.clock, progress or Progress())


def run_all(
    states: list[ContextState],
    testbed: PretendedSite,
    kept: list[tuple[int, Block]] | None = None,
    budget_s: float = 1e6,
) -> StopReason:
    """Run all contexts. kept: receives (context, block) of each finished block."""
    finished = [] if kept is None else kept
    return run_contexts(
        states,
        here(testbed),
        seed=3,
        budget_s=budget_s,
        progress=Progress(),
        keep=lambda state, block: finished.append((state.context.number, block)),
        keep_preparation=lambda _course: None,
    )


def run(requested: Comparison, host: Pretended, kept: list[tuple[int, Block]] | None = None) -> Ended:
    state = ContextState(Context(number=1, levels=(), comparison=requested), len(requested.contenders))
    kept = [] if kept is None else kept
    reason = run_all([state], PretendedSite(host), kept, requested.design.budget_s)
    # A run of thousands of contexts has no memory for windows.
    assert state.blocks == [block.without_windows() for _, block in kept]
    return Ended(state, state.stopped or reason, [block for _, block in kept])


def blocks_of(journal: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    blocks: list[list[tuple[str, int]]] = [[]]
    for entry in journal:
        if entry[0] == "stop":
            blocks.append([])
        else:
            blocks[-1].append(entry)
    return blocks[:-1]


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_every_block_starts_warms_up_and_measures_every_arm_in_mirrored_rounds(arms: int) -> None:
    host = Pretended(dict.fromkeys(range(arms), 100.0))
    run(comparison(arms, fixed_blocks=3), host)
    everybody = list(range(arms))
    for block in blocks_of(host.journal):
        assert [action for action, _ in block] == ["start"] * arms + ["warm-up"] * arms + ["measure"] * arms * 4
        order = [arm for _, arm in block]
        assert sorted(order[:arms]) == everybody
        assert order[:arms] == order[arms : 2 * arms]
        rounds = [order[i : i + arms] for i in range(2 * arms, len(order), arms)]
        assert all(sorted(one) == everybody for one in rounds)
        assert rounds[1] == rounds[0][::-1]
        assert rounds[3] == rounds[2][::-1]


def test_a_disturbed_round_is_repeated_for_all_arms_in_the_same_order() -> None:
    # The second window of the first round, at its first try.
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda window: window == 2)
    ended = run(comparison(fixed_blocks=2), host)
    first, second = ([arm for what, arm in block if what == "measure"] for block in blocks_of(host.journal))
    assert [block.repeated_rounds for block in ended.blocks] == [1, 0]
    assert first[:2] == first[2:4]
    arms = first[:2]
    assert host.names[:5] == [
        *(f"context-1-block-001-arm-{arm}-round-01" for arm in arms),
        *(f"context-1-block-001-arm-{arm}-round-01-repeated-1" for arm in arms),
        f"context-1-block-001-arm-{arms[1]}-round-02",
    ]
    assert len(set(host.names)) == len(host.names)
    assert (len(first), len(second)) == (10, 8)
    assert all(len(trial.windows) == 4 for block in ended.blocks for trial in block.trials.values())
    kept = [window for block in ended.blocks for trial in block.trials.values() for window in trial.windows]
    assert not any(window.was_disturbed for window in kept)
    discarded = [(one.arm, one.round, one.attempt, one.was_disturbed) for one in ended.blocks[0].discarded]
    assert sorted(discarded) == sorted([(arms[0], 1, 1, False), (arms[1], 1, 1, True)])
    assert ended.blocks[1].discarded == ()


def test_on_a_host_that_is_always_disturbed_a_block_repeats_at_most_half_its_rounds() -> None:
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda _window: True)
    ended = run(comparison(fixed_blocks=2), host)
    assert [block.repeated_rounds for block in ended.blocks] == [2, 2]
    assert [len(block) for block in blocks_of(host.journal)] == [4 + 12, 4 + 12]
    assert all(len(trial.windows) == 4 for block in ended.blocks for trial in block.trials.values())


@pytest.mark.parametrize(("rounds", "per_session", "repeated"), [(4, 4, 4), (8, 4, 4), (12, 4, 8), (50, 24, 26)])
def test_a_disturbed_session_of_short_windows_is_repeated_whole(rounds: int, per_session: int, repeated: int) -> None:
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda _window: True)
    requested = comparison(
        fixed_blocks=2,
        window_kind=WindowKind.SLICE,
        window_s=0.02,
        rounds=rounds,
        rounds_per_session=per_session,
    )
    ended = run(requested, host)
    assert [block.repeated_rounds for block in ended.blocks] == [repeated, repeated]


def test_an_arm_that_does_not_start_does_not_prevent_repetitions_for_the_others() -> None:
    def fails(action: str, arm: int, block: int) -> bool:
        return (action, arm, block) == ("start", 2, 2)

    host = Pretended(dict.fromkeys(range(3), 100.0), disturbed=lambda _window: True, fails=fails)
    ended = run(comparison(3, fixed_blocks=2), host)
    assert [block.repeated_rounds for block in ended.blocks][:2] == [2, 2]


def test_on_a_host_that_stays_disturbed_repeating_pauses() -> None:
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda _window: True)
    ended = run(comparison(fixed_blocks=10), host)
    assert [block.repeated_rounds for block in ended.blocks] == [2, 2, 2, 0, 0, 0, 0, 0, 2, 0]
    assert all(block.disturbed_windows == 8 for block in ended.blocks)


def test_repeating_resumes_after_a_clean_block() -> None:
    # The fifth block is clean; in the sixth and seventh only the first window is disturbed.
    until_clean = 3 * 12 + 8
    sixth = until_clean + 8 + 1
    disturbed = {*range(until_clean + 1), sixth, sixth + 10}
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=disturbed.__contains__)
    ended = run(comparison(fixed_blocks=7), host)
    assert [block.repeated_rounds for block in ended.blocks] == [2, 2, 2, 0, 0, 1, 1]


def test_repeating_continues_if_it_helps() -> None:
    """Two of eight windows are disturbed in every round that is not a repetition of a repetition."""
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda window: window % 12 in (1, 5, 11))
    ended = run(comparison(fixed_blocks=6), host)
    assert [block.repeated_rounds for block in ended.blocks] == [2] * 6
    assert all(block.disturbed_windows == 1 for block in ended.blocks)


@pytest.mark.parametrize(("lasts", "repeats"), [(4, 1), (8, 2), (12, 3), (1000, 3)])
def test_short_windows_without_a_transaction_are_repeated_up_to_three_times(lasts: int, repeats: int) -> None:
    """The clock was set: transactions are found in no window. 2 arms have 2 windows each."""

    def is_set(window: int) -> bool:
        return window <= lasts

    host = Pretended({0: 100.0, 1: 100.0}, disturbed=is_set, empty=is_set)
    ended = run(comparison(fixed_blocks=1, rounds=2, rounds_per_session=2, window_kind=WindowKind.SLICE), host)
    block = ended.blocks[0]
    assert (block.repeated_rounds, len(block.failures)) == (2 * repeats, 2 if lasts > 16 else 0)
    # Both windows of both arms, at each attempt but the last.
    attempts = range(1, repeats + 1)
    assert sorted((one.attempt, one.arm, one.round) for one in block.discarded) == sorted(
        product(attempts, (0, 1), (1, 2))
    )


@pytest.mark.parametrize(("metric", "repeats"), [(Metric.TIME, 1), (Metric.TPS, 0)])
def test_an_operation_is_repeated_once_and_a_single_long_window_never(metric: Metric, repeats: int) -> None:
    host = Pretended({0: 100.0, 1: 100.0}, disturbed=lambda _window: True)
    ended = run(comparison(fixed_blocks=2, rounds=1, metric=metric), host)
    assert [block.repeated_rounds for block in ended.blocks[:2]] == [repeats, repeats]


def test_an_arm_that_fails_in_a_repeated_round_has_failed_and_the_rest_continues() -> None:
    host = Pretended(dict.fromkeys(range(3), 100.0), disturbed=lambda window: window == 1)
    host.fails = lambda what, arm, block: (what, arm, block) == ("measure", 2, 1) and host.seconds > 9
    ended = run(comparison(3, fixed_blocks=2), host)
    assert [failure.arm for failure in ended.blocks[0].failures] == [2]
    assert {arm: len(trial.windows) for arm, trial in ended.blocks[0].trials.items()} == {0: 4, 1: 4}


@pytest.mark.parametrize("failing", [1, 2, 3])
def test_short_windows_are_announced_once_in_a_block_whichever_arm_has_failed_before(failing: int) -> None:
    announced: list[tuple[int, int, int]] = []

    class Watching(Progress):
        def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
            super().step(context, block, arm, phase, round_number)
            if phase is Phase.MEASURE:
                announced.append((block, arm, round_number))

    host = Pretended(dict.fromkeys(range(4), 100.0))
    host.fails = lambda what, arm, _block: (what, arm) == ("warm-up", failing)
    watching = Watching()
    run_contexts(
        study(1, 4, fixed_blocks=4, window_kind=WindowKind.SLICE),
        here(PretendedSite(host), watching),
        seed=3,
        budget_s=1e6,
        progress=watching,
        keep=lambda _state, _block: None,
        keep_preparation=lambda _state: None,
    )
    first = [next(arm for what, arm in block if what == "measure") for block in blocks_of(host.journal)]
    assert announced == [(number, arm, 1) for number, arm in enumerate(first, 1)]


def test_the_order_is_random_and_follows_from_the_seed() -> None:
    journals = []
    for seed in (3, 3, 4):
        host = Pretended({0: 100.0, 1: 100.0})
        run(comparison(fixed_blocks=20, seed=seed), host)
        journals.append(host.journal)
    assert journals[0] == journals[1]
    assert journals[0] != journals[2]
    first = [block[4][1] for block in blocks_of(journals[0])]
    assert 4 <= sum(first) <= 16, "both arms open blocks"


@pytest.mark.parametrize(
    ("metric", "tps", "margin", "budget_s", "words"),
    [
        (Metric.TPS, 100.0, 0.0001, 1e6, "100 blocks, the limit of a context, are not enough"),
        (Metric.TPS, 100.0, 0.003, 120.0, "more needed, 48 s left"),
        (Metric.LATENCY_P95, 0.01, 0.05, 1e6, "too few transactions for an interval"),
        (Metric.TPS, 100.0, 0.02, 1e6, None),
    ],
)
def test_a_budget_that_cannot_suffice_is_reported_once_soon_after_six_blocks(
    metric: Metric, tps: float, margin: float, budget_s: float, words: str | None
) -> None:
    said: list[tuple[str, int]] = []

    class Watching(Progress):
        def say(self, line: str) -> None:
            said.append((line, len(state.blocks)))

    host = Pretended({0: tps, 1: tps})
    requested = comparison(metric=metric, margin=margin, budget_s=budget_s)
    state = ContextState(Context(number=1, levels=(), comparison=requested), 1)
    watching = Watching()
    run_contexts(
        [state],
        here(PretendedSite(host), watching),
        seed=3,
        budget_s=budget_s,
        progress=watching,
        keep=lambda _state, _block: None,
        keep_preparation=lambda _state: None,
    )
    if words is None:
        assert (said, state.stopped) == ([], StopReason.DECIDED)
    else:
        ((line, blocks),) = said
        assert words in line
        assert blocks in (6, 7)
        assert state.stopped is not StopReason.DECIDED


def test_a_large_effect_is_decided_at_the_first_look() -> None:
    host = Pretended({0: 100.0, 1: 150.0})
    ended = run(comparison(), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.DECIDED, 4)
    assert analyze(ended.state.samples, comparison(), ended.state.rule).results[0].verdict is Verdict.FASTER


def half_width(state: ContextState, arm: int = 1) -> float:
    return state.interim_results[arm].interval.half_width


def test_with_a_precision_measuring_continues_after_the_verdict_until_the_interval_is_narrow_enough() -> None:
    ended = run(comparison(precision=0.003), Pretended({0: 100.0, 1: 150.0}))
    assert (ended.stopped, ended.state.interim_results[1].verdict) == (StopReason.PRECISE, Verdict.FASTER)
    assert len(ended.blocks) > 4
    assert half_width(ended.state) <= math.log1p(0.003)
    before = ContextState(ended.state.context, 1)
    before.resume_from(None, None, ended.blocks[:-1])
    assert before.stopped is None
    assert math.log1p(0.003) < half_width(before)


def test_an_undecided_comparison_ends_at_its_precision() -> None:
    host = Pretended({0: 100.0, 1: 100.0})
    ended = run(comparison(precision=0.01, margin=1e-6), host)
    assert (ended.stopped, ended.state.interim_results[1].verdict) == (StopReason.PRECISE, Verdict.UNDECIDED)


def test_an_arm_that_has_reached_the_precision_gets_no_more_blocks_but_the_others_do() -> None:
    ended = run(comparison(3, precision=0.003), Pretended({0: 100.0, 1: 150.0, 2: 50.0}))
    counts = {arm: interim.blocks for arm, interim in ended.state.interim_results.items()}
    assert counts[1] != counts[2], "otherwise this shows nothing"
    assert ended.stopped is StopReason.PRECISE
    assert max(half_width(ended.state, arm) for arm in (1, 2)) <= math.log1p(0.003)


@pytest.mark.parametrize(
    ("limit", "stopped"), [({"budget_s": 100.0}, StopReason.BUDGET), ({"max_blocks": 8}, StopReason.BLOCKS)]
)
def test_a_precision_out_of_reach_ends_at_the_budget_or_the_block_limit(
    limit: dict[str, Any], stopped: StopReason
) -> None:
    ended = run(comparison(precision=1e-6, **limit), Pretended({0: 100.0, 1: 150.0}))
    assert (ended.stopped, len(ended.blocks)) == (stopped, 8)
    assert ended.state.interim_results[1].verdict is Verdict.FASTER


@pytest.mark.parametrize("metric", [Metric.LATENCY_MEAN, Metric.LATENCY_P95])
def test_a_precision_applies_to_latencies(metric: Metric) -> None:
    host = Pretended({0: 100.0, 1: 150.0})
    ended = run(comparison(metric=metric, precision=0.05, rounds=40), host)
    assert ended.stopped is StopReason.PRECISE
    assert half_width(ended.state) <= math.log1p(0.05)


def test_a_fixed_design_has_no_look_before_its_end() -> None:
    host = Pretended({0: 100.0, 1: 150.0})
    ended = run(comparison(fixed_blocks=7), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.BLOCKS, 7)


def test_the_maximum_number_of_blocks_ends_a_context() -> None:
    host = Pretended({0: 100.0, 1: 101.9})
    ended = run(comparison(max_blocks=4, margin=0.001), host)
    assert ended.stopped in (StopReason.BLOCKS, StopReason.DECIDED)
    assert len(ended.blocks) == 4


def test_no_block_begins_that_would_exceed_the_budget() -> None:
    # A block takes 2 starts + 2 warm-ups + 8 windows = 12 simulated seconds.
    host = Pretended({0: 100.0, 1: 101.0})
    ended = run(comparison(budget_s=35.0), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.BUDGET, 2)
    assert host.seconds <= 35


def test_an_arm_with_a_verdict_gets_no_more_blocks() -> None:
    host = Pretended({0: 100.0, 1: 150.0, 2: 101.0})
    ended = run(comparison(3, max_blocks=12, margin=0.0001), host)
    taking_part = [sorted(block.trials) for block in ended.blocks]
    assert taking_part[:4] == [[0, 1, 2]] * 4
    assert taking_part[4:]
    assert all(arms == [0, 2] for arms in taking_part[4:])


def test_a_failed_trial_has_a_message_and_no_result_and_the_rest_continues() -> None:
    host = Pretended({0: 100.0, 1: 150.0}, fails=lambda action, arm, block: (action, arm, block) == ("measure", 1, 2))
    ended = run(comparison(), host)
    assert ended.stopped is StopReason.DECIDED
    assert len(ended.blocks) == 5, "four good ones"
    (failure,) = ended.blocks[1].failures
    assert (failure.arm, failure.message) == (1, "measure of 1 failed")
    assert 1 not in ended.blocks[1].trials
    assert analyze(ended.state.samples, comparison(), ended.state.rule).results[0].blocks == 4


@pytest.mark.parametrize("failing", [0, 1])
def test_a_block_that_ends_without_a_pair_has_no_trials(failing: int) -> None:
    """The windows so far of the other arm would be a trial without the counters of the block."""
    windows: list[int] = []

    def fails(action: str, arm: int, block: int) -> bool:
        if (action, arm, block) == ("measure", failing, 2):
            windows.append(block)
        return len(windows) == 3 and (action, arm, block) == ("measure", failing, 2)

    ended = run(comparison(fixed_blocks=6), Pretended({0: 100.0, 1: 101.0}, fails=fails))
    assert [sorted(block.trials) for block in ended.blocks] == [[0, 1], [], *[[0, 1]] * 5]
    found = analyze(ended.state.samples, ended.state.comparison, ended.state.rule)
    assert all("checkpoints_timed" in counters for counters in found.counters)
    assert [values[Metric.TPS].n for values in found.arm_values] == [6, 6]


@pytest.mark.parametrize("action", ["start", "warm-up", "measure", "collect", "count"])
@pytest.mark.parametrize("is_of_host", [True, False])
def test_a_failure_of_the_host_ends_the_run_and_one_of_an_arm_only_its_trial(action: str, *, is_of_host: bool) -> None:
    host = Pretended({0: 100, 1: 100}, fails=lambda what, arm, block: (what, arm, block) == (action, 1, 2))
    (state,) = study(1, fixed_blocks=3)
    testbed = PretendedSite(host, host_fails_in=action if is_of_host else "")
    if is_of_host:
        with pytest.raises(HostError):
            run_all([state], testbed)
        assert [len(block.trials) for block in state.blocks] == [2]
    else:
        run_all([state], testbed)
        assert [len(block.failures) for block in state.blocks] == [0, 1, 0, 0]
    assert not host.open


def test_an_arm_that_keeps_failing_is_invalid_and_the_others_are_decided() -> None:
    host = Pretended({0: 100.0, 1: 150.0, 2: 150.0}, fails=lambda action, arm, _block: (action, arm) == ("start", 1))
    requested = comparison(3)
    ended = run(requested, host)
    results = analyze(ended.state.samples, requested, ended.state.rule, frozenset(ended.state.invalid)).results
    assert [result.verdict for result in results] == [Verdict.INVALID, Verdict.FASTER]
    assert sum(len(block.failures) for block in ended.blocks) == MOST_FAILURES_IN_A_ROW
    assert ended.stopped is StopReason.DECIDED


@pytest.mark.parametrize("action", ["start", "warm-up", "measure"])
def test_a_baseline_that_keeps_failing_makes_everything_invalid(action: str) -> None:
    host = Pretended({0: 100.0, 1: 150.0}, fails=lambda what, arm, _block: (what, arm) == (action, 0))
    ended = run(comparison(), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.FAILED, MOST_FAILURES_IN_A_ROW)
    assert ended.state.invalid == {1}
    assert all(not block.has(0) for block in ended.blocks)


def test_a_study_has_failed_if_all_contexts_have_failed_and_is_decided_if_one_is_decided() -> None:
    failing = Pretended({0: 100.0, 1: 150.0}, fails=lambda what, arm, _block: (what, arm) == ("measure", 0))
    assert run_all(study(2), PretendedSite(failing)) is StopReason.FAILED
    only_one = PretendedSite(Pretended({0: 100.0, 1: 150.0}), unpreparable=frozenset({2}))
    assert run_all(study(2), only_one) is StopReason.DECIDED


def test_a_trial_without_a_transaction_is_a_failed_trial() -> None:
    host = Pretended({0: 100.0, 1: 0.0})
    ended = run(comparison(), host)
    assert ended.stopped is StopReason.FAILED
    assert ended.blocks[0].failures[0].message == "no transaction finished in any window"


@pytest.mark.parametrize("at", range(1, 60))
def test_an_interrupt_at_any_step_stops_the_servers_and_keeps_complete_blocks(at: int) -> None:
    host = Pretended({0: 100.0, 1: 101.0}, interrupt_at=at)
    finished: list[tuple[int, Block]] = []
    ended = run(comparison(max_blocks=50, margin=0.0001), host, finished)
    kept = [block for _, block in finished]
    assert ended.stopped is StopReason.INTERRUPTED
    assert host.journal[-1][0] == "stop"
    assert ended.blocks == kept
    assert all(block.has(0, 1) for block in kept)
    assert len(kept) == (at - 1) // 12, "12 actions make a block"


def test_the_remaining_time_is_limited_by_the_remaining_budget_of_all_contexts() -> None:
    reported: list[float] = []

    class Watching(Progress):
        def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
            super().block_finished(context, block, looks, elapsed_s)
            reported.extend(look.seconds_left or 0.0 for look in looks.values() if block.number >= 4)

    host = Pretended({0: 100.0, 1: 100.0})
    watching = Watching()
    run_contexts(
        study(3, margin=0.0001, max_blocks=100, budget_s=200.0),
        here(PretendedSite(host), watching),
        seed=3,
        budget_s=200.0,
        progress=watching,
        keep=lambda _course, _block: None,
        keep_preparation=lambda _course: None,
    )
    # The first look, after 12 blocks of 12 s, or 10 of them.
    assert reported
    assert max(reported) <= 200.0 - 10 * 12.0


def names(kept: list[tuple[int, Block]]) -> list[tuple[int, int]]:
    return [(context, block.number) for context, block in kept]


def test_contexts_take_turns_in_a_fresh_random_order() -> None:
    kept: list[tuple[int, Block]] = []
    run_all(study(6, fixed_blocks=5), PretendedSite(Pretended({0: 100.0, 1: 101.0})), kept)
    turns = [names(kept)[i : i + 6] for i in range(0, 30, 6)]
    for number, turn in enumerate(turns, 1):
        assert sorted(turn) == [(context, number) for context in range(1, 7)]
    assert len({tuple(context for context, _ in turn) for turn in turns}) > 1


def test_a_context_with_all_verdicts_gets_no_more_blocks() -> None:
    host = Pretended({0: 100.0, 1: 100.0})
    host.tps_of = {2: {0: 100.0, 1: 300.0}}
    states, kept = study(3, max_blocks=12, margin=0.0001), list[tuple[int, Block]]()
    run_all(states, PretendedSite(host), kept)
    assert [state.stopped for state in states] == [StopReason.BLOCKS, StopReason.DECIDED, StopReason.BLOCKS]
    assert [len(state.blocks) for state in states] == [12, 4, 12]


def test_a_context_that_cannot_be_prepared_has_a_message_and_the_others_continue() -> None:
    states = study(3, fixed_blocks=2)
    testbed = PretendedSite(Pretended({0: 100.0, 1: 101.0}), unpreparable=frozenset({2}))
    run_all(states, testbed)
    assert [len(state.blocks) for state in states] == [2, 0, 2]
    assert states[1].failure == "the workload fails on 1 (x.sql): ERROR"
    assert testbed.prepared.count(2) == 1


def on_server(state: ContextState, server: ServerName) -> ContextState:
    """The comparison with its last arm on this server."""
    requested = state.comparison
    arms = (*requested.arms[:-1], replace(requested.arms[-1], server=server))
    return ContextState(replace(state.context, comparison=replace(requested, arms=arms)), 1)


def killed(kind: type[PgversusError], words: str) -> PgversusError:
    """The failure of a context whose program or server was killed."""
    return kind("it failed", slug="x", found=words)


OURS = LocalPath(path="/x")
SOMEBODYS = RunningServer(uri="postgresql:///x")


@pytest.mark.parametrize(
    ("server", "error", "is_kept"),
    [
        (OURS, WorkloadError("the workload fails", slug="workload-failed"), True),
        (OURS, WorkloadError("the first load hangs", slug="workload-hangs"), False),
        (OURS, DatasetError("the data cannot be loaded", slug="dataset-load-failed"), True),
        (OURS, killed(WorkloadError, "pgbench was ended by signal 9."), False),
        (OURS, killed(WorkloadError, "FATAL:  the database system is in recovery mode"), False),
        (
            OURS,
            killed(WorkloadError, "client 0 aborted in command 0; perhaps the backend died while processing"),
            False,
        ),
        (OURS, killed(DatasetError, "psql: error: connection to server was lost"), False),
        (OURS, killed(WorkloadError, "FATAL:  terminating connection due to unexpected postmaster exit"), False),
        (OURS, killed(WorkloadError, 'connection to server on socket "/x" failed: Connection refused'), False),
        (OURS, killed(WorkloadError, "could not send data to server: Broken pipe"), False),
        (OURS, killed(WorkloadError, "FATAL:  could not fork new process for connection"), False),
        (OURS, killed(WorkloadError, "pgbench: error: need at least 2003 open files, but system limit is 1024"), False),
        (OURS, killed(DatasetError, "psql: error: /data/a.sql: Permission denied"), False),
        (OURS, killed(DatasetError, "ERROR:  permission denied for table x"), True),
        (OURS, killed(WorkloadError, 'ERROR:  relation "x" does not exist'), True),
        (OURS, DatasetError("a setup file has changed", slug="dataset-changed"), False),
        (OURS, DatasetError("a file cannot be read", slug="dataset-not-readable"), False),
        (OURS, ServerError("the server did not start", slug="server-start"), False),
        (OURS, StudyError("the budget ends before the first block", slug="study-hopeless-budget"), False),
        (SOMEBODYS, WorkloadError("the workload fails", slug="workload-failed"), False),
        (SOMEBODYS, DatasetError("the data cannot be loaded", slug="dataset-load-failed"), False),
        (SOMEBODYS, ServerError("the connection was lost", slug="server-connection"), False),
    ],
)
def test_only_permanent_failures_are_stored(
    server: ServerName,
    error: PgversusError,
    is_kept: bool,  # noqa: FBT001 - from the table above
) -> None:
    states = [on_server(state, server) for state in study(2, fixed_blocks=2)]
    testbed = PretendedSite(Pretended({0: 100.0, 1: 101.0}), unpreparable=frozenset({2}))
    testbed.error = error
    kept: list[int] = []
    run_contexts(
        states,
        here(testbed),
        seed=3,
        budget_s=1e6,
        progress=Progress(),
        keep=lambda _course, _block: None,
        keep_preparation=lambda state: kept.append(state.context.number),
    )
    assert sorted(kept) == ([1, 2] if is_kept else [1])
    assert states[1].failure is not None
    assert len(states[0].blocks) == 2


@pytest.mark.parametrize("contexts", [1, 3])
def test_an_interrupt_while_storing_the_first_preparation_leaves_nothing_to_show(contexts: int) -> None:
    testbed = PretendedSite(Pretended({0: 100.0, 1: 101.0}))

    def interrupted(_course: ContextState) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run_contexts(
            study(contexts),
            here(testbed),
            seed=3,
            budget_s=1e6,
            progress=Progress(),
            keep=lambda _course, _block: None,
            keep_preparation=interrupted,
        )


def test_a_single_context_that_cannot_be_prepared_is_an_error() -> None:
    with pytest.raises(WorkloadError):
        run_all(study(1), PretendedSite(Pretended({0: 1.0, 1: 1.0}), unpreparable=frozenset({1})))


def test_contexts_on_the_same_servers_share_their_starts() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    states = study(3, fixed_blocks=4)
    run_all(states, PretendedSite(host, shares=True))
    starts = blocks_of(host.journal)
    assert len(starts) == 4
    for start in starts:
        assert [action for action, _ in start].count("start") == 2
        assert [action for action, _ in start].count("measure") == 3 * 2 * 4
    assert all(len(state.blocks) == 4 for state in states)


def test_contexts_on_the_same_servers_are_prepared_together_but_few_enough_for_blocks_to_begin_soon() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    testbed = PretendedSite(host, shares=True)
    run_all(study(10, fixed_blocks=2), testbed)
    assert testbed.groups == [8, 2]
    measured = [[action for action, _ in start].count("measure") for start in blocks_of(host.journal)]
    assert measured == [contexts * 2 * 4 for contexts in (8, 2, 10)]


def test_contexts_with_their_own_servers_are_prepared_when_their_turn_comes() -> None:
    testbed = PretendedSite(Pretended({0: 100.0, 1: 101.0}))
    run_all(study(3, fixed_blocks=2), testbed)
    assert testbed.groups == [1, 1, 1]


def test_a_context_that_cannot_be_prepared_does_not_stop_the_others_on_its_servers() -> None:
    testbed = PretendedSite(Pretended({0: 100.0, 1: 101.0}), shares=True, unpreparable=frozenset({2}))
    states = study(3, fixed_blocks=2)
    run_all(states, testbed)
    assert testbed.groups == [3]
    assert [len(state.blocks) for state in states] == [2, 0, 2]


# On the start that three contexts share: 2 starts, and 10 actions for each.
@pytest.mark.parametrize(("measured", "kept_of_it"), [(2, 0), (9, 0), (12, 1), (21, 1), (22, 2), (31, 2)])
def test_a_block_on_a_shared_start_is_stored_as_soon_as_it_is_measured(measured: int, kept_of_it: int) -> None:
    host = Pretended({0: 100.0, 1: 101.0}, interrupt_at=measured + 1)
    kept: list[tuple[int, Block]] = []
    assert run_all(study(3, fixed_blocks=4), PretendedSite(host, shares=True), kept) is StopReason.INTERRUPTED
    assert len(kept) == kept_of_it
    assert host.journal[-1][0] == "stop"
    assert [action for action, _ in host.journal].count("stop") == 1


def test_time_of_blocks_on_a_shared_start_is_their_load_plus_equal_parts_of_the_start() -> None:
    host = Pretended({0: 100.0, 1: 101.0}, stop_s=5.0)
    states, kept = study(3, fixed_blocks=2), list[tuple[int, Block]]()
    run_all(states, PretendedSite(host, shares=True), kept)
    assert [block.wall_s for _, block in kept] == pytest.approx([10 + 2 / 3, 10 + 2 / 3, 10 + 2 / 3 + 5] * 2)
    assert sum(state.wall_s for state in states) == pytest.approx(host.seconds)


def test_the_budget_is_checked_before_each_context_of_a_shared_start() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    states = study(6, margin=0.0001, max_blocks=50)
    assert run_all(states, PretendedSite(host, shares=True), budget_s=100.0) is StopReason.BUDGET
    assert sorted(len(state.blocks) for state in states) == [1, 1, 1, 2, 2, 2]
    assert host.seconds <= 100
    assert sum(state.wall_s for state in states) == pytest.approx(host.seconds)


def test_a_load_that_fails_on_a_shared_start_leaves_the_others_for_later() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    host.fails = lambda action, arm, block: (action, arm, block, host.context) == ("measure", 1, 1, 2)
    states = study(3, fixed_blocks=2)
    run_all(states, PretendedSite(host, shares=True))
    assert sum(state.wall_s for state in states) == pytest.approx(host.seconds)
    assert [sum(block.has(0, 1) for block in state.blocks) for state in states] == [2, 2, 2]


def test_a_load_that_has_failed_no_longer_shares_starts() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    host.fails = lambda action, arm, block: (action, arm, block, host.context) == ("measure", 1, 2, 2)
    states = study(3, fixed_blocks=6)
    run_all(states, PretendedSite(host, shares=True))
    failed = [state for state in states if any(block.failures for block in state.blocks)]
    assert [state.context.number for state in failed] == [2]
    assert not failed[0].shares_starts
    assert [sum(block.has(0, 1) for block in state.blocks) for state in states] == [6, 6, 6]


def test_a_load_that_has_written_no_longer_shares_starts() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    host.writes = lambda context, block: (context, block) == (2, 1)
    states, kept = study(3, fixed_blocks=4), list[tuple[int, Block]]()
    run_all(states, PretendedSite(host, shares=True), kept)
    assert [state.shares_starts for state in states] == [True, False, True]
    names = iter(host.names)
    starts = [
        [next(names).partition("-arm")[0] for action, _ in start if action == "measure"]
        for start in blocks_of(host.journal)
    ]
    (writing,) = (start for start in starts if "context-2-block-001" in start)
    assert writing[-1] == "context-2-block-001", "nothing is measured on what it has written"
    alone = [start for start in starts if any("context-2-block-002" <= name < "context-3" for name in start)]
    assert [len(set(start)) for start in alone] == [1, 1, 1]
    assert [len(state.blocks) for state in states] == [4, 4, 4]


@pytest.mark.parametrize("shares", [False, True])
@pytest.mark.parametrize("at", [1, 5, 13, 40, 52, 61, 77, 89, 100, 120, 141, 170, 180])
def test_a_resumed_study_continues_as_if_never_interrupted(at: int, shares: bool) -> None:  # noqa: FBT001
    undisturbed: list[tuple[int, Block]] = []
    run_all(study(4, fixed_blocks=4), PretendedSite(Pretended({0: 100.0, 1: 101.0}), shares), undisturbed)
    kept: list[tuple[int, Block]] = []
    first = study(4, fixed_blocks=4)
    run_all(first, PretendedSite(Pretended({0: 100.0, 1: 101.0}, interrupt_at=at), shares), kept)
    again = study(4, fixed_blocks=4)
    for state, before in zip(again, first, strict=True):
        state.resume_from(before.preparation, before.failure, before.blocks)
    run_all(again, PretendedSite(Pretended({0: 100.0, 1: 101.0}), shares), kept)
    assert sorted(names(kept)) == sorted(names(undisturbed))
    if not shares:
        assert names(kept) == names(undisturbed)
    assert [state.stopped for state in again] == [StopReason.BLOCKS] * 4


def test_no_context_gets_a_block_that_would_exceed_the_total_budget() -> None:
    host = Pretended({0: 100.0, 1: 101.0})
    states = study(3, margin=0.0001, max_blocks=50)
    assert run_all(states, PretendedSite(host), budget_s=100.0) is StopReason.BUDGET
    assert sum(state.wall_s for state in states) <= 100
    assert sorted(len(state.blocks) for state in states) == [2, 2, 4]


@pytest.mark.parametrize(("shares", "budget_s"), [(True, 150.0), (False, 175.0)])
def test_a_budget_for_few_first_looks_goes_to_the_clearest_differences(*, shares: bool, budget_s: float) -> None:
    for clear in range(1, 7):
        host = Pretended({0: 100.0, 1: 101.0}, tps_of={clear: {0: 100.0, 1: 110.0}})
        states = study(6, margin=0.0001, max_blocks=50)
        run_all(states, PretendedSite(host, shares=shares), budget_s=budget_s)
        blocks = {state.context.number: len(state.blocks) for state in states}
        assert blocks == {number: 4 if number == clear else 2 for number in range(1, 7)}
        assert states[clear - 1].stopped is StopReason.DECIDED


@pytest.mark.parametrize(("shares", "budget_s"), [(True, 330.0), (False, 380.0)])
def test_if_the_budget_ends_within_a_turn_the_clearest_difference_comes_first(*, shares: bool, budget_s: float) -> None:
    for clear in range(1, 7):
        host = Pretended({0: 100.0, 1: 101.0}, tps_of={clear: {0: 100.0, 1: 104.0}})
        states = study(6, margin=0.0001, max_blocks=50, precision=0.0001)
        run_all(states, PretendedSite(host, shares=shares), budget_s=budget_s)
        blocks = {state.context.number: len(state.blocks) for state in states}
        assert blocks == {number: 6 if number == clear else 5 for number in range(1, 7)}


def test_a_budget_for_few_first_looks_goes_to_the_largest_shares_of_the_load() -> None:
    for large in range(1, 7):
        host = Pretended({0: 100.0, 1: 101.0}, tps_of={1: {0: 100.0, 1: 110.0}})
        states = study(6, margin=0.0001, max_blocks=50)
        for state in states:
            state.context = replace(state.context, share=0.9 if state.context.number == large else 0.001)
        run_all(states, PretendedSite(host, shares=True), budget_s=150.0)
        blocks = {state.context.number: len(state.blocks) for state in states}
        assert blocks == {number: 4 if number == large else 2 for number in range(1, 7)}


def test_observers_learn_of_earlier_blocks_and_then_of_the_progress_of_the_study() -> None:
    reported: list[TimeEstimate] = []
    resumed: list[int] = []

    class Watching(Progress):
        def resumed(self, context: Context, comparison: Comparison, looks: Mapping[int, Look]) -> None:
            super().resumed(context, comparison, looks)
            resumed.append(context.number)

        def time_estimate(self, estimate: Callable[[], TimeEstimate]) -> None:
            reported.append(estimate())

        def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
            super().block_finished(context, block, looks, elapsed_s)
            assert reported[-1].spent_s == sum(state.wall_s for state in states), "reported before the block is"

    states = study(3, fixed_blocks=2)
    earlier = study(1, fixed_blocks=2)
    run_all(earlier, PretendedSite(Pretended({0: 100.0, 1: 120.0})))
    states[0].resume_from(earlier[0].preparation, None, earlier[0].blocks)
    host = Pretended({0: 100.0, 1: 120.0})
    watching = Watching()
    run_parts(
        [states[:2], states[2:]],
        here(PretendedSite(host), watching),
        seed=3,
        budget_s=1e6,
        progress=watching,
        keep=lambda _course, _block: None,
        keep_preparation=lambda _course: None,
    )
    assert resumed == [1]
    assert {time_estimate.contexts for time_estimate in reported} == {3}
    assert (reported[0].ended, reported[-1].ended) == (1, 3)
    assert reported[-1].seconds_left == 0
