"""For any study of a file, every block measures every open arm once in each round."""

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pgversus.engine.context_state import ContextState
from pgversus.engine.hosts import ThisHost
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_contexts
from pgversus.errors import StudyFileError
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block, LatencyHistogram, Window
from pgversus.study.study import Context, Study
from tests.fuzz.study_files import near_a_good_one
from tests.unit.study.file.reading import study
from tests.unit.study.file.test_garbage import many

LATENCIES = LatencyHistogram.from_microseconds(np.full(600, 1000))
MOST_ACTIONS = 400
MOST_CONTEXTS = 40


@dataclass
class Written:
    """A testbed, its trial runner and its clock in one, which record all calls."""

    rng: Random
    actions: list[tuple[str, int, int]] = field(default_factory=list)
    """Action, context and arm since the last block was stored; a start belongs to no context."""
    done: int = 0

    def begin_part(self, contexts: Sequence[Context]) -> None:
        del contexts

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        del known
        design = context.comparison.design
        return Preparation(design=design, arms=(), differences=(), writes=False, connect_allowance_s=0)

    def preparing(self) -> nullcontext[None]:
        return nullcontext()

    def trial_runner(self, context: Context) -> "WrittenContext":
        return WrittenContext(self, context.number)

    def failures(self, context: Context, arm: int) -> nullcontext[None]:
        del context, arm
        return nullcontext()

    def can_share_start(self, one: Context, other: Context) -> bool:
        return len(one.comparison.arms) == len(other.comparison.arms)

    def clock(self) -> float:
        return float(self.done)

    def note(self, what: str, context: int, arm: int) -> None:
        self.done += 1
        if self.done > MOST_ACTIONS:
            raise KeyboardInterrupt
        self.actions.append((what, context, arm))


@dataclass
class WrittenContext:
    """The trial runner of one context."""

    testbed: Written
    number: int
    windows: dict[int, list[Window]] = field(default_factory=dict)

    def start(self, arm: int) -> None:
        self.testbed.note("start", 0, arm)

    def warm_up(self, arm: int, seed: int) -> Mapping[str, float]:
        del seed
        self.testbed.note("warm-up", self.number, arm)
        return {}

    def measure(self, arm: int, seed: int, name: str) -> None:
        del seed, name
        self.testbed.note("measure", self.number, arm)
        faster = 2 if arm % 2 else 1
        one = Window(
            transactions=faster * self.testbed.rng.randint(900, 1100),
            seconds=1.0,
            latency_sum_s=1.0,
            latency_max_s=1.0,
            histogram=LATENCIES,
        )
        self.windows.setdefault(arm, []).append(one)

    def collect(self, arm: int) -> list[Window]:
        return self.windows.pop(arm)

    def counted(self, arm: int, transactions: int) -> Mapping[str, float]:
        del arm, transactions
        return {}

    def abandon(self) -> None:
        assert not self.windows

    def stop_all(self) -> None:
        pass


def check_runs(requested: Study, testbed: Written) -> int:
    """Number of its blocks."""
    states = [ContextState(context, requested.verdicts) for context in requested.contexts]
    numbers: Counter[int] = Counter()

    def keep(state: ContextState, block: Block) -> None:
        context = state.context.number
        arms, rounds = {0, *state.open_arms}, state.forecast.next_rounds
        numbers[context] += 1
        assert block.number == numbers[context]
        assert set(block.trials) == arms
        mine = [(what, arm) for what, whose, arm in testbed.actions if whose == context]
        assert Counter(mine) == {**{("warm-up", arm): 1 for arm in arms}, **{("measure", arm): rounds for arm in arms}}
        measured = [arm for what, arm in mine if what == "measure"]
        for first in range(0, len(measured), len(arms)):
            assert set(measured[first : first + len(arms)]) == arms
        testbed.actions = [action for action in testbed.actions if action[1] != context]

    run_contexts(
        states,
        ThisHost(testbed, testbed.clock, Progress()),
        seed=requested.seed,
        budget_s=1e9,
        progress=Progress(),
        keep=keep,
        keep_preparation=lambda _course: None,
    )
    assert all(state.stopped for state in states) or testbed.done > MOST_ACTIONS
    return numbers.total()


@many(100)
@given(st.integers(0, 2**64))
def test_each_open_arm_runs_once_in_each_round_of_each_block(seed: int) -> None:
    rng = Random(seed)  # noqa: S311 - a test, no secret
    blocks = 0
    while not blocks:
        try:
            requested = study(near_a_good_one(rng))
        except StudyFileError:
            continue
        if len(requested.contexts) <= MOST_CONTEXTS and requested.contexts[0].comparison.design.rounds <= MOST_ACTIONS:
            blocks = check_runs(requested, Written(rng))
