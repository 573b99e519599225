"""The remaining time of a study, on simulated servers that need no time."""

import pytest

from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Look, Progress, TimeEstimate
from pgversus.engine.time_left import time_estimate
from pgversus.stats.confidence import Verdict
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import Metric
from pgversus.study.study import Context
from tests.builders import comparison, judged_by, latency_block, rate_block


def state(number: int, *ratios: float, fixed: int | None = None, precision: float | None = None) -> ContextState:
    """A context state with a block of 10 seconds for each ratio."""
    requested = comparison(design=Design(fixed_blocks=fixed, precision=precision, seed=7))
    made = ContextState(Context(number=number, levels=(), comparison=requested), 1)
    for block, ratio in enumerate(ratios, 1):
        made.take(rate_block(block, 100.0, 100.0 * ratio)._replace(wall_s=10.0))
    return made


UNDECIDED = (1.03, 0.98, 1.05, 0.99)


def test_the_estimate_is_the_sum_over_all_contexts() -> None:
    one, other = state(1, *UNDECIDED), state(2, 1.5, 1.51, 1.5, 1.52)
    assert (one.stopped, other.stopped) == (None, StopReason.DECIDED)
    needed_s = one.seconds_left
    assert needed_s is not None
    assert needed_s > 0
    assert time_estimate([one, other], 100_000.0) == TimeEstimate(
        contexts=2, ended=1, spent_s=80.0, budget_s=100_000.0, seconds_left=needed_s
    )


@pytest.mark.parametrize("others", [[state(2)], [state(2, 1.03)], []])
def test_an_unknown_or_excessive_estimate_is_limited_by_the_budget(
    others: list[ContextState],
) -> None:
    states = [state(1, *UNDECIDED), *others]
    found = time_estimate(states, 60.0)
    assert (found.seconds_left, found.is_at_most) == (60.0 - found.spent_s, True)


def test_a_fixed_number_of_blocks_is_not_limited_by_a_budget() -> None:
    found = time_estimate([state(1, 1.0, 1.1, fixed=6), state(2, fixed=6)], 5.0)
    # Four blocks of ten seconds, and six that are assumed to be as long.
    assert found == TimeEstimate(contexts=2, ended=0, spent_s=20.0, budget_s=None, seconds_left=100.0)


def test_no_budget_is_shown_at_the_end_of_a_fixed_number_of_blocks() -> None:
    found = time_estimate([state(1, 1.0, 1.1, 1.0, 1.1, fixed=4)], 5.0)
    assert found == TimeEstimate(contexts=1, ended=1, spent_s=40.0, budget_s=None, seconds_left=0.0)


def test_the_time_of_a_fixed_number_of_blocks_is_unknown_before_the_first() -> None:
    assert time_estimate([state(1, fixed=6)], 5.0).seconds_left is None


def test_a_look_reports_blocks_until_the_first_look_and_then_until_an_answer() -> None:
    def look(one: ContextState) -> Look:
        return one.looks(one.interim_results, 1000.0)[1]

    before, after, fixed = look(state(1, 1.03)), look(state(1, *UNDECIDED)), look(state(1, 1.03, fixed=6))
    assert (before.blocks_left, before.is_before_first_look, before.seconds_left) == (3, True, 30.0)
    assert after.blocks_left is None or after.blocks_left > 0
    assert not after.is_before_first_look
    assert (fixed.blocks_left, fixed.is_before_first_look, fixed.seconds_left) == (5, False, 50.0)
    assert look(state(1, 1.5, 1.51, 1.5, 1.52)).blocks_left == 0
    precise = look(state(1, 1.5, 1.51, 1.5, 1.52, precision=0.01))
    assert precise.interim_result.verdict is Verdict.FASTER
    assert precise.blocks_left is not None
    assert precise.blocks_left > 0
    assert precise.seconds_left == 10.0 * precise.blocks_left


@pytest.mark.parametrize(("transactions", "lacks"), [(99, True), (100, False)])
def test_no_time_is_known_for_a_percentile_of_too_few_transactions(transactions: int, *, lacks: bool) -> None:
    # p95 needs 100 of each arm in every block.
    one = ContextState(Context(number=1, levels=(), comparison=comparison(design=judged_by(Metric.LATENCY_P95))), 1)
    for number, ratio in enumerate((1.9, 2.1, 1.5, 2.7), 1):
        latencies = [5000] * transactions, [round(5000 * ratio)] * transactions
        one.take(latency_block(number, *latencies)._replace(wall_s=10.0))
    look = one.looks(one.interim_results, 1000.0)[1]
    assert (look.blocks_left is None) is lacks
    assert (one.seconds_left is None) is lacks
    found = time_estimate([one], 1000.0)
    assert (found.seconds_left == 960.0) is lacks
    assert found.is_at_most is lacks


def test_the_estimate_of_a_context_is_computed_once_for_each_number_of_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    requested: list[int] = []

    def forecast(*_: object) -> int:
        requested.append(1)
        return 9

    monkeypatch.setattr("pgversus.engine.forecast.blocks_to_end", forecast)
    one = state(1, *UNDECIDED)
    assert [one.seconds_left, one.seconds_left] == [50.0, 50.0]
    assert len(requested) == 1
    one.take(rate_block(5, 100.0, 101.0)._replace(wall_s=10.0))
    assert one.seconds_left == 40.0
    assert len(requested) == 2


def test_no_estimate_is_computed_without_an_observer() -> None:
    def estimate() -> TimeEstimate:
        raise AssertionError

    Progress().time_estimate(estimate)
