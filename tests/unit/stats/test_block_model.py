"""The number of rounds depends only on spreads and costs, and leads to an answer soonest."""

import math
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.records.trials import Block, Trial
from pgversus.stats.block_model import BlockModel, block_model, may_choose_rounds, soonest_rounds
from pgversus.stats.confidence import look_rule
from pgversus.study.design import Design, WindowKind
from pgversus.study.metrics import Metric
from pgversus.study.windows import between_s

DESIGN = Design(window_kind=WindowKind.SLICE, window_s=0.02, rounds=50)
RULE = look_rule(DESIGN, 1)
ROUND_S = DESIGN.window_s + between_s(DESIGN)
CHOICES = (24, 50, 76, 100, 150, 200)


def trial(arm: int, log_tps: float, rounds: int, error: float | None = None) -> Trial:
    return Trial(
        arm=arm,
        transactions=round(1e9 * rounds * math.exp(log_tps)),
        seconds=rounds * DESIGN.window_s,
        latency_sum_s=1.0,
        latency_max_s=1.0,
        quantiles={},
        ratio_error=error,
        window_count=rounds,
    )


def block(number: int, ratio: float, *, error: float | None = 0.01, rounds: int = 50, start_s: float = 0.5) -> Block:
    wall_s = start_s + 2 * rounds * ROUND_S
    trials = {0: trial(0, 0.0, rounds), 1: trial(1, ratio, rounds, error)}
    return Block(number=number, trials=trials, wall_s=wall_s)


def blocks(ratios: Sequence[float], *, error: float | None = 0.01) -> list[Block]:
    return [block(number, ratio, error=error) for number, ratio in enumerate(ratios, 1)]


def model(*, windows: float, starts: float, start_s: float = 0.5, count: int = 3) -> BlockModel:
    """Return the model of blocks of 50 rounds. windows, starts: standard deviations of such a block."""
    return BlockModel(
        window_variance=50 * windows**2,
        start_variance=starts**2,
        start_s=start_s,
        round_s=2 * ROUND_S,
        blocks=count,
        inverse_rounds=count / 50,
    )


def test_variance_and_time_are_split_between_windows_and_starts() -> None:
    found = block_model(blocks([0.01, 0.05, 0.09]), 1, DESIGN)
    assert found is not None
    assert found.window_variance == pytest.approx(50 * 0.01**2)
    assert found.start_variance == pytest.approx(0.04**2 - 0.01**2, rel=1e-3)
    assert found.start_s == pytest.approx(0.5)
    assert found.round_s == pytest.approx(2 * 0.024)
    assert found.block_s(100) == pytest.approx(0.5 + 100 * 0.048)


@pytest.mark.parametrize("known", [blocks([0.01, 0.02]), blocks([0.01, 0.02, 0.03], error=None), []])
def test_no_model_with_too_few_blocks_or_without_window_errors(known: list[Block]) -> None:
    assert block_model(known, 1, DESIGN) is None


@given(st.lists(st.floats(-0.2, 0.2), min_size=3, max_size=30))
def test_the_model_ignores_which_arm_is_ahead(ratios: list[float]) -> None:
    rounds = []
    for sign in (1, -1):
        found = block_model(blocks([sign * ratio for ratio in ratios]), 1, DESIGN)
        assert found is not None
        rounds.append(soonest_rounds(found, DESIGN, RULE, 900.0))
    assert rounds[0] == rounds[1]


@given(st.floats(0, 0.2), st.floats(0, 0.2), st.floats(0, 60), st.integers(3, 99), st.floats(0, 3600))
def test_block_length_changes_by_a_factor_between_half_and_four(
    windows: float, starts: float, start_s: float, count: int, left_s: float
) -> None:
    found = model(windows=windows, starts=starts, start_s=start_s, count=count)
    assert soonest_rounds(found, DESIGN, RULE, left_s) in CHOICES


def test_window_noise_adds_rounds_and_start_noise_adds_blocks() -> None:
    of_windows = soonest_rounds(model(windows=0.04, starts=0.0, start_s=5.0), DESIGN, RULE, 900.0)
    of_starts = soonest_rounds(model(windows=0.001, starts=0.02), DESIGN, RULE, 900.0)
    assert of_windows > 50 > of_starts


def test_blocks_are_not_shortened_when_there_are_many() -> None:
    early, late = (model(windows=0.001, starts=0.05, count=count) for count in (10, 30))
    assert soonest_rounds(early, DESIGN, RULE, 900.0) < 50 <= soonest_rounds(late, DESIGN, RULE, 900.0)


def test_blocks_are_long_if_no_number_of_rounds_suffices() -> None:
    hopeless = model(windows=2.0, starts=0.1, count=90)
    assert soonest_rounds(hopeless, DESIGN, RULE, 900.0) == 200


def test_before_the_first_look_the_interval_is_unbounded_even_without_noise() -> None:
    quiet = model(windows=0.0, starts=0.0, count=3)
    assert quiet.half_width(0, 50, RULE) == math.inf
    assert quiet.half_width(1, 50, RULE) == 0.0


def test_blocks_until_is_the_number_that_reaches_the_half_width() -> None:
    found = model(windows=0.02, starts=0.01)
    more = found.blocks_until(0.02, 50, RULE)
    assert more is not None
    assert found.half_width(more, 50, RULE) < 0.02 <= found.half_width(more - 1, 50, RULE)
    assert found.blocks_until(0.0001, 50, RULE) is None


@pytest.mark.parametrize(
    "design",
    [
        replace(DESIGN, window_kind=WindowKind.RUN),
        replace(DESIGN, rounds_are_given=True),
        replace(DESIGN, fixed_blocks=6),
        replace(DESIGN, metric=Metric.LATENCY_P95),
    ],
)
def test_required_numbers_of_rounds_are_kept(design: Design) -> None:
    assert may_choose_rounds(DESIGN)
    assert not may_choose_rounds(design)
