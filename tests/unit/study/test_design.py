import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.design import (
    FIRST_LOOK,
    MARGINS,
    Design,
    fit_windows,
    refuse_hopeless_budget,
    refuse_short_windows,
)
from pgversus.study.metrics import JUDGED, Metric, transactions_for_quantile

LOADS = st.tuples(st.integers(1, 200), st.booleans(), st.floats(0, 600))


ROOMY = Design(budget_s=24 * 3600.0)


def fitted(clients: int = 1, *, writes: bool = False, slowest: float = 0.001, design: Design = ROOMY) -> Design:
    return fit_windows(design, arms=2, contexts=1, clients=clients, writes=writes, slowest_latency_s=slowest)


@pytest.mark.parametrize(
    ("clients", "writes", "slowest", "window_s", "rounds"),
    [
        (1, False, 0.001, 1.0, 8),
        (8, False, 0.001, 1.0, 8),
        (9, False, 0.001, 2.0, 8),
        (1, True, 0.001, 5.0, 4),
        (64, True, 0.001, 5.0, 4),
        (1, False, 0.4, 2.0, 4),
        (1, False, 1.0, 3.0, 2),
        (1, False, 20.0, 60.0, 2),
        (1, True, 3.0, 9.0, 2),
    ],
)
def test_windows_suit_the_load(clients: int, writes: bool, slowest: float, window_s: float, rounds: int) -> None:  # noqa: FBT001 - a column of the table
    found = fitted(clients, writes=writes, slowest=slowest)
    assert (found.window_s, found.rounds) == (window_s, rounds)


@given(LOADS)
def test_a_window_holds_three_of_the_slowest_transactions(load: tuple[int, bool, float]) -> None:
    clients, writes, slowest = load
    found = fitted(clients, writes=writes, slowest=slowest)
    assert found.window_s >= 3 * slowest
    assert found.window_s >= 1.0
    assert found.window_s == math.floor(found.window_s)


@given(LOADS, st.integers(2, 9), st.integers(1, 9), st.floats(10, 3600))
def test_windows_grow_with_slow_transactions_only_while_the_first_look_fits_the_budget(
    load: tuple[int, bool, float], arms: int, contexts: int, budget_s: float
) -> None:
    clients, writes, slowest = load
    found = fit_windows(
        Design(budget_s=budget_s),
        arms=arms,
        contexts=contexts,
        clients=clients,
        writes=writes,
        slowest_latency_s=slowest,
    )
    usual = fitted(clients, writes=writes, slowest=0.0)
    assert found.window_s >= slowest
    if found.window_s > max(usual.window_s, math.ceil(slowest)):
        assert arms * 2 * found.window_s * FIRST_LOOK <= budget_s / contexts / 2


@pytest.mark.parametrize(("budget_s", "window_s"), [(900.0, 8.0), (150.0, 4.0), (30.0, 3.0)])
def test_a_short_budget_makes_windows_of_slow_transactions_shorter(budget_s: float, window_s: float) -> None:
    design = Design(budget_s=budget_s)
    found = fitted(slowest=2.5, design=design)
    assert (found.window_s, found.rounds) == (window_s, 2)
    assert fitted(slowest=2.5, design=replace(design, fixed_blocks=4)).window_s == 8.0


@given(LOADS)
def test_rounds_are_even_so_that_each_has_its_mirror(load: tuple[int, bool, float]) -> None:
    clients, writes, slowest = load
    found = fitted(clients, writes=writes, slowest=slowest)
    assert found.rounds >= 2
    assert found.rounds % 2 == 0


@given(LOADS)
def test_what_grows_in_length_becomes_fewer(load: tuple[int, bool, float]) -> None:
    clients, writes, slowest = load
    usual, found = fitted(clients, writes=writes, slowest=0.0), fitted(clients, writes=writes, slowest=slowest)
    if found.rounds > 2:
        assert found.measured_s_per_block == pytest.approx(usual.measured_s_per_block, rel=0.5)


@given(LOADS, st.integers(1, 60), st.integers(1, 20))
def test_windows_that_the_user_chose_are_left_alone(load: tuple[int, bool, float], seconds: int, rounds: int) -> None:
    clients, writes, slowest = load
    chosen = Design(window_s=float(seconds), window_is_given=True, rounds=rounds, rounds_are_given=True)
    assert fitted(clients, writes=writes, slowest=slowest, design=chosen) == chosen


@given(LOADS, st.integers(1, 60))
def test_only_the_number_is_fitted_when_the_length_is_chosen(load: tuple[int, bool, float], seconds: int) -> None:
    clients, writes, slowest = load
    chosen = Design(window_s=float(seconds), window_is_given=True)
    found = fitted(clients, writes=writes, slowest=slowest, design=chosen)
    assert found.window_s == seconds
    assert 2 <= found.rounds <= fitted(clients, writes=writes, slowest=0.0).rounds


@given(LOADS, st.integers(1, 20))
def test_only_the_length_is_fitted_when_the_number_is_chosen(load: tuple[int, bool, float], rounds: int) -> None:
    clients, writes, slowest = load
    found = fitted(clients, writes=writes, slowest=slowest, design=replace(ROOMY, rounds=rounds, rounds_are_given=True))
    assert found.rounds == rounds
    assert found.window_s == fitted(clients, writes=writes, slowest=slowest).window_s


def test_fitting_changes_nothing_but_the_windows() -> None:
    design = Design(seed=5, margin=0.03, max_blocks=20)
    found = fitted(writes=True, design=design)
    assert (found.seed, found.margin, found.max_blocks, found.budget_s) == (5, 0.03, 20, design.budget_s)


def test_the_margin_is_a_ratio_on_the_log_scale() -> None:
    assert Design(margin=0.05).log_margin == pytest.approx(math.log(1.05))


def test_every_metric_that_is_judged_has_a_margin() -> None:
    assert set(MARGINS) == set(JUDGED)
    assert all(0 < margin < 1 for margin in MARGINS.values())


def test_a_budget_below_one_block_is_refused_and_a_fixed_design_has_none() -> None:
    design = Design(window_s=600.0, rounds=2, budget_s=60.0)
    with pytest.raises(StudyError, match="budget"):
        refuse_hopeless_budget(design, 2)
    refuse_hopeless_budget(replace(design, fixed_blocks=2), 2)
    refuse_hopeless_budget(replace(design, window_s=1.0), 2)


def test_from_cold_a_window_is_thrown_away_in_the_place_of_the_warm_up() -> None:
    found = fit_windows(Design(), arms=2, contexts=1, clients=1, writes=False, slowest_latency_s=2.5, is_cold=True)
    assert (found.window_s, found.warm_up_s) == (3.0, 3.0)


@pytest.mark.parametrize("is_cold", [False, True])
@given(rate=st.floats(0.01, 1000))
def test_under_a_rate_hardly_any_window_is_empty(rate: float, is_cold: bool) -> None:  # noqa: FBT001 - a column
    found = fit_windows(
        Design(), arms=2, contexts=1, clients=4, writes=False, slowest_latency_s=0.001, rate=rate, is_cold=is_cold
    )
    assert found.window_s * rate >= 10
    assert found.warm_up_s * rate >= 10


@given(rate=st.floats(0.1, 1000))
def test_where_a_percentile_is_judged_a_block_holds_enough_transactions(rate: float) -> None:
    design = Design(metric=Metric.LATENCY_P95)
    open_loop = fit_windows(design, arms=2, contexts=1, clients=4, writes=False, slowest_latency_s=0.001, rate=rate)
    closed_loop = fit_windows(design, arms=2, contexts=1, clients=1, writes=False, slowest_latency_s=1 / rate)
    for found in (open_loop, closed_loop):
        assert found.measured_s_per_block * rate >= transactions_for_quantile(0.95)


def test_windows_that_are_too_short_for_a_rate_are_refused_and_fitted_ones_never_are() -> None:
    short = Design(window_s=2.0, window_is_given=True)
    with pytest.raises(StudyError) as refused:
        refuse_short_windows(short, 2.0)
    assert (refused.value.slug, refused.value.to_do[:14]) == ("study-short-window", "windows of 5 s")
    refuse_short_windows(short, 5.0)
    refuse_short_windows(short, None)
    refuse_short_windows(Design(), 0.1)
