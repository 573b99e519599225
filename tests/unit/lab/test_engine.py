"""The engine with a fake clock and fake servers: order, stopping, failures, interrupts."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
import pytest

from pgversus.lab.apparatus import TrialFailedError
from pgversus.lab.engine import MOST_FAILURES_IN_A_ROW, Run, run_blocks
from pgversus.lab.progress import Silence
from pgversus.stats.analysis import analyse
from pgversus.stats.histogram import LatencyHistogram
from pgversus.stats.trials import Block, Window
from pgversus.stats.verdict import Verdict
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.design import Design, StopReason
from pgversus.study.servers import BinDirectory
from pgversus.study.workload import Dataset, PgbenchWorkload, Script

LATENCIES = LatencyHistogram.from_microseconds(np.array([1000, 1100, 1200]))


@dataclass
class Pretended:
    """Servers whose speed is given, and whose every action is written down."""

    tps: dict[int, float]
    journal: list[tuple[str, int]] = field(default_factory=list)
    seconds: float = 0.0
    fails: Callable[[str, int, int], bool] = lambda _action, _arm, _block: False
    interrupt_at: int | None = None
    noise: np.random.Generator = field(default_factory=lambda: np.random.default_rng(1))
    block: int = 1

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
        tps = self.tps[arm] * float(np.exp(self.noise.normal(0, 0.01)))
        return Window(
            transactions=round(tps * 1000), seconds=1000.0, latency_sum_s=1.0, latency_max_s=1.0, histogram=LATENCIES
        )

    def stop_all(self) -> None:
        self.journal.append(("stop", self.block))
        self.block += 1

    def _do(self, action: str, arm: int) -> None:
        self.journal.append((action, arm))
        self.seconds += 1
        if self.interrupt_at == sum(what != "stop" for what, _ in self.journal):
            raise KeyboardInterrupt
        if self.fails(action, arm, self.block):
            raise TrialFailedError(f"{action} of {arm} failed")


def comparison(arms: int = 2, **design: object) -> Comparison:
    return Comparison(
        arms=tuple(Arm(index=i, label=str(i), server=BinDirectory(path="/x"), settings=()) for i in range(arms)),
        factors=("server",),
        workload=PgbenchWorkload(scripts=(Script(name="select-only"),)),
        dataset=Dataset(),
        design=replace(Design(rounds=4, seed=3, budget_s=1e6), **design),  # type: ignore[arg-type]
    )


def run(asked: Comparison, host: Pretended) -> Run:
    return run_blocks(asked, host, clock=host.clock, progress=Silence(), keep=lambda _block: None)


def blocks_of(journal: list[tuple[str, int]]) -> list[list[tuple[str, int]]]:
    blocks: list[list[tuple[str, int]]] = [[]]
    for entry in journal:
        if entry[0] == "stop":
            blocks.append([])
        else:
            blocks[-1].append(entry)
    return blocks[:-1]


@pytest.mark.parametrize("arms", [2, 3, 5])
def test_every_block_starts_warms_and_measures_every_arm_in_mirrored_rounds(arms: int) -> None:
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


def test_chance_decides_who_is_first_and_the_seed_decides_chance() -> None:
    journals = []
    for seed in (3, 3, 4):
        host = Pretended({0: 100.0, 1: 100.0})
        run(comparison(fixed_blocks=20, seed=seed), host)
        journals.append(host.journal)
    assert journals[0] == journals[1]
    assert journals[0] != journals[2]
    first = [block[4][1] for block in blocks_of(journals[0])]
    assert 4 <= sum(first) <= 16, "both arms open blocks"


def test_a_large_effect_ends_at_the_first_look() -> None:
    host = Pretended({0: 100.0, 1: 150.0})
    ended = run(comparison(), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.DECIDED, 4)
    assert analyse(ended.blocks, comparison(), ended.rule).results[0].verdict is Verdict.FASTER


def test_a_fixed_design_takes_no_look_before_its_end() -> None:
    host = Pretended({0: 100.0, 1: 150.0})
    ended = run(comparison(fixed_blocks=7), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.BLOCKS, 7)


def test_the_number_of_blocks_is_an_end() -> None:
    host = Pretended({0: 100.0, 1: 101.9})
    ended = run(comparison(max_blocks=4, margin=0.001), host)
    assert ended.stopped in (StopReason.BLOCKS, StopReason.DECIDED)
    assert len(ended.blocks) == 4


def test_no_block_begins_that_would_end_beyond_the_budget() -> None:
    # A block takes 2 starts + 2 warm-ups + 8 windows = 12 pretended seconds.
    host = Pretended({0: 100.0, 1: 101.0})
    ended = run(comparison(budget_s=35.0), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.BUDGET, 2)
    assert host.seconds <= 35


def test_an_arm_whose_verdict_is_known_gets_no_more_blocks() -> None:
    host = Pretended({0: 100.0, 1: 150.0, 2: 101.0})
    ended = run(comparison(3, max_blocks=12, margin=0.0001), host)
    taking_part = [sorted(block.trials) for block in ended.blocks]
    assert taking_part[:4] == [[0, 1, 2]] * 4
    assert taking_part[4:]
    assert all(arms == [0, 2] for arms in taking_part[4:])


def test_a_failed_trial_has_words_and_no_number_and_the_rest_goes_on() -> None:
    host = Pretended({0: 100.0, 1: 150.0}, fails=lambda action, arm, block: (action, arm, block) == ("measure", 1, 2))
    ended = run(comparison(), host)
    assert ended.stopped is StopReason.DECIDED
    assert len(ended.blocks) == 5, "four good ones"
    (failure,) = ended.blocks[1].failures
    assert (failure.arm, failure.words) == (1, "measure of 1 failed")
    assert 1 not in ended.blocks[1].trials
    assert analyse(ended.blocks, comparison(), ended.rule).results[0].blocks == 4


def test_an_arm_that_fails_again_and_again_is_invalid_and_the_others_are_decided() -> None:
    host = Pretended({0: 100.0, 1: 150.0, 2: 150.0}, fails=lambda action, arm, _block: (action, arm) == ("start", 1))
    asked = comparison(3)
    ended = run(asked, host)
    results = analyse(ended.blocks, asked, ended.rule, frozenset(ended.invalid)).results
    assert [result.verdict for result in results] == [Verdict.INVALID, Verdict.FASTER]
    assert sum(len(block.failures) for block in ended.blocks) == MOST_FAILURES_IN_A_ROW
    assert ended.stopped is StopReason.DECIDED


@pytest.mark.parametrize("action", ["start", "warm-up", "measure"])
def test_a_baseline_that_keeps_failing_makes_everything_invalid(action: str) -> None:
    host = Pretended({0: 100.0, 1: 150.0}, fails=lambda what, arm, _block: (what, arm) == (action, 0))
    ended = run(comparison(), host)
    assert (ended.stopped, len(ended.blocks)) == (StopReason.FAILED, MOST_FAILURES_IN_A_ROW)
    assert ended.invalid == {1}
    assert all(not block.has(0) for block in ended.blocks)


def test_a_trial_without_a_transaction_is_a_failed_trial() -> None:
    host = Pretended({0: 100.0, 1: 0.0})
    ended = run(comparison(), host)
    assert ended.stopped is StopReason.FAILED
    assert ended.blocks[0].failures[0].words == "no transaction finished in any window"


@pytest.mark.parametrize("at", range(1, 60))
def test_an_interrupt_at_any_step_stops_the_servers_and_keeps_whole_blocks(at: int) -> None:
    host = Pretended({0: 100.0, 1: 101.0}, interrupt_at=at)
    kept: list[Block] = []
    ended = run_blocks(
        comparison(max_blocks=50, margin=0.0001), host, clock=host.clock, progress=Silence(), keep=kept.append
    )
    assert ended.stopped is StopReason.INTERRUPTED
    assert host.journal[-1][0] == "stop"
    assert ended.blocks == kept
    assert all(block.has(0, 1) for block in kept)
    assert len(kept) == (at - 1) // 12, "12 actions make a block"
