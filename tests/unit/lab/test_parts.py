"""A study in parts: each ends before the next begins, and has its share of the budget."""

from collections.abc import Sequence

import pytest

from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_parts
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block
from pgversus.study.design import StopReason
from pgversus.study.study import Context
from tests.unit.engine.test_scheduler import Pretended, PretendedSite, here, study

BLOCK_S = 12.0
# 2 starts, 2 warm-ups and 8 windows of one simulated second each.


class Run:
    """The record of a run in parts."""

    def __init__(self, host: Pretended, *, unpreparable: frozenset[int] = frozenset()) -> None:
        self.testbed = PretendedSite(host, unpreparable=unpreparable)
        self.kept: list[int] = []

    def parts(self, parts: Sequence[Sequence[ContextState]], budget_s: float = 1e6) -> StopReason:
        def keep(state: ContextState, block: Block) -> None:
            del block
            self.kept.append(state.context.number)

        return run_parts(
            parts,
            here(self.testbed),
            seed=3,
            budget_s=budget_s,
            progress=Progress(),
            keep=keep,
            keep_preparation=lambda _course: None,
        )


def equal_servers() -> Pretended:
    return Pretended({0: 100.0, 1: 100.0})


def in_parts(states: list[ContextState], *sizes: int) -> list[list[ContextState]]:
    ends = [sum(sizes[: n + 1]) for n in range(len(sizes))]
    return [states[end - size : end] for size, end in zip(sizes, ends, strict=True)]


def test_a_part_ends_before_the_next_one_begins() -> None:
    run = Run(equal_servers())
    assert run.parts(in_parts(study(4, fixed_blocks=5), 1, 2, 1)) is StopReason.BLOCKS
    assert run.testbed.begun == [[1], [2, 3], [4]]
    assert run.kept[:5] == [1] * 5
    assert sorted(run.kept[5:15]) == [2] * 5 + [3] * 5
    assert run.kept[15:] == [4] * 5


def test_every_part_gets_its_share_of_the_budget_and_unused_time() -> None:
    run = Run(equal_servers())
    # Never decided; a third of the budget fits three and a half blocks, each further part one more.
    stopped = run.parts(in_parts(study(3, margin=0.0001, max_blocks=100), 1, 1, 1), budget_s=3 * 3.5 * BLOCK_S)
    assert stopped is StopReason.BUDGET
    assert [run.kept.count(context) for context in (1, 2, 3)] == [3, 3, 4]


def test_budget_that_a_later_part_left_belongs_to_the_others_when_the_study_is_resumed() -> None:
    budget_s = 1000.0
    states = study(2, margin=0.0001, max_blocks=100)
    first = Run(Pretended({}, tps_of={1: {0: 100.0, 1: 100.0}, 2: {0: 100.0, 1: 200.0}}))
    assert first.parts(in_parts(states, 1, 1), budget_s) is StopReason.BUDGET
    assert [state.stopped for state in states] == [None, StopReason.DECIDED]
    assert first.kept == [1] * 41 + [2] * 4, "half of the budget, and the first look"
    second = Run(first.testbed.host)
    second.parts(in_parts(states, 1, 1), budget_s)
    assert set(second.kept) == {1}
    assert budget_s - BLOCK_S < sum(state.wall_s for state in states) <= budget_s


def test_a_resumed_study_continues_in_the_interrupted_part() -> None:
    states = study(3, fixed_blocks=4)
    parts = in_parts(states, 1, 1, 1)
    # In the middle of the second part.
    first = Run(Pretended({0: 100.0, 1: 101.0}, interrupt_at=12 * 6 + 5))
    assert first.parts(parts) is StopReason.INTERRUPTED
    second = Run(equal_servers())
    assert second.parts(parts) is StopReason.BLOCKS
    assert second.testbed.begun == [[2], [3]]
    assert [*first.kept, *second.kept] == [1] * 4 + [2] * 4 + [3] * 4


class InterruptedSite(PretendedSite):
    """Simulate Ctrl-C while the data of the second context are loaded."""

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        if context.number == 2:
            raise KeyboardInterrupt
        return super().prepare(context, known)


class FailsThenInterrupted(PretendedSite):
    """Fail in the first context that is prepared; simulate Ctrl-C in the second."""

    def prepare(self, context: Context, known: Preparation | None) -> Preparation:
        if self.prepared:
            raise KeyboardInterrupt
        self.unpreparable = frozenset({context.number})
        return super().prepare(context, known)


def test_an_interrupt_before_a_later_part_keeps_earlier_results() -> None:
    parts = in_parts(study(2, fixed_blocks=4), 1, 1)
    run = Run(equal_servers())
    run.testbed = InterruptedSite(run.testbed.host)
    assert run.parts(parts) is StopReason.INTERRUPTED
    assert run.kept == [1] * 4


@pytest.mark.parametrize("sizes", [(2,), (1, 1)])
def test_an_interrupt_after_a_context_has_failed_keeps_the_reason(sizes: tuple[int, ...]) -> None:
    run = Run(equal_servers())
    run.testbed = FailsThenInterrupted(run.testbed.host)
    states = study(2)
    assert run.parts(in_parts(states, *sizes)) is StopReason.INTERRUPTED
    assert sorted(state.failure or "" for state in states) == ["", "the workload fails on 1 (x.sql): ERROR"]


def test_an_interrupt_before_the_first_block_leaves_nothing_to_show() -> None:
    run = Run(equal_servers())
    run.testbed = InterruptedSite(run.testbed.host)
    with pytest.raises(KeyboardInterrupt):
        run.parts([study(2)[1:], study(2)[:1]])


def test_a_part_that_cannot_be_prepared_does_not_stop_the_others() -> None:
    run = Run(equal_servers(), unpreparable=frozenset({2}))
    states = study(3, fixed_blocks=2)
    assert run.parts(in_parts(states, 1, 1, 1)) is StopReason.BLOCKS
    assert run.kept == [1, 1, 3, 3]
    assert states[1].failure == "the workload fails on 1 (x.sql): ERROR"
