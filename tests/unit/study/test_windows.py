import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.design import FIRST_LOOK, Design, WindowKind
from pgversus.study.metrics import Metric, transactions_for_quantile
from pgversus.study.windows import FirstLoad, check_budget, check_first_loads, check_windows, fit_windows

LATENCIES = st.floats(1e-5, 600)
ROOMY = Design(budget_s=24 * 3600.0)


def first(latency_s: float = 0.001, clients: int = 1, *, writes: bool = False, rate: float | None = None) -> FirstLoad:
    return FirstLoad(clients=clients, writes=writes, latency_s=latency_s, latency_p99_s=2 * latency_s, rate=rate)


def fitted(load: FirstLoad, design: Design = ROOMY) -> Design:
    return fit_windows(design, load, arms=2, contexts=1)


@pytest.mark.parametrize(
    ("latency_s", "clients", "window_s", "slice_s", "rounds", "per_session"),
    [
        (0.00005, 1, 0.02, 0.02, 50, 24),
        (0.002, 1, 0.02, 0.02, 50, 24),
        (0.008, 1, 0.01, 0.01, 100, 50),
        (0.018, 1, 0.018, 0.005, 56, 28),
        (0.1, 1, 0.1, 0.005, 10, 10),
        (20.0, 1, 20.0, 0.005, 2, 2),
        (0.001, 4, 0.02, 0.02, 50, 24),
        (0.1, 4, 0.4, 0.4, 4, 4),
    ],
)
def test_a_read_only_statement_gets_short_slices_with_at_least_one_execution(
    *, latency_s: float, clients: int, window_s: float, slice_s: float, rounds: int, per_session: int
) -> None:
    found = fitted(first(latency_s, clients))
    assert (found.window_kind, found.window_transactions) == (WindowKind.SLICE, None)
    assert found.window_s == pytest.approx(window_s)
    assert found.slice_s == slice_s
    assert (found.rounds, found.rounds_per_session) == (rounds, per_session)


@given(LATENCIES)
def test_one_client_is_paused_during_its_first_execution_or_after_a_whole_slice(latency_s: float) -> None:
    found = fitted(first(latency_s))
    if latency_s < 0.01:
        assert found.slice_s == (0.02 if latency_s < 0.0025 else 0.01)
    else:
        assert 0.001 <= found.slice_s <= max(0.003, 0.3 * latency_s)


@given(LATENCIES, st.floats(1, 50), st.integers(2, 99))
def test_clients_wait_for_each_other_only_briefly(latency_s: float, tail: float, clients: int) -> None:
    found = fitted(replace(first(latency_s, clients), latency_p99_s=tail * latency_s))
    if max(latency_s, tail * latency_s / 2) < 0.25:
        assert found.slice_s >= max(0.02, 4 * latency_s, 2 * tail * latency_s)
    else:
        # If that took too long, each client executes a fixed number of transactions instead.
        assert found.window_kind is WindowKind.TRANSACTIONS
        assert found.window_transactions == max(1, round(0.5 / latency_s))


@given(LATENCIES, st.floats(1, 50), st.integers(1, 99))
def test_a_slice_of_several_statements_holds_many_transactions(latency_s: float, tail: float, clients: int) -> None:
    load = replace(first(latency_s, clients), latency_p99_s=tail * latency_s, is_one_statement=False)
    found = fitted(load)
    if found.window_kind is WindowKind.SLICE:
        assert max(0.02, 20 * latency_s, 4 * tail * latency_s) <= found.slice_s <= 0.1
    else:
        assert latency_s > 0.1 / 20 - 1e-4 or tail * latency_s > 0.1 / 4 - 1e-3
        assert found.window_s >= latency_s


@pytest.mark.parametrize(
    ("latency_s", "clients", "connect_s", "window_s"),
    [(0.001, 1, 0.005, 0.1), (0.001, 4, 0.02, 0.5), (0.001, 99, 3.0, 3.0), (0.2, 1, 0.005, 0.2), (20.0, 4, 3.0, 20.0)],
)
def test_a_load_that_cannot_be_paused_has_windows_long_enough_for_new_sessions(
    latency_s: float, clients: int, connect_s: float, window_s: float
) -> None:
    found = fitted(replace(first(latency_s, clients), connect_s=connect_s, may_pause=False))
    assert found.window_kind is WindowKind.TRANSACTIONS
    assert found.window_s == pytest.approx(window_s)


@pytest.mark.parametrize("window_s", [0.005, 0.05, 0.9])
def test_a_given_slice_is_used_if_transactions_fit(window_s: float) -> None:
    given_length = replace(ROOMY, window_s=window_s, window_kind=WindowKind.SLICE, window_is_given=True)
    slow = fitted(replace(first(0.2), is_one_statement=False), given_length)
    assert (slow.window_kind, slow.window_transactions) == (
        WindowKind.TRANSACTIONS,
        max(1, round(window_s / 0.2)),
    )
    fast = fitted(first(window_s / 1000, writes=True), given_length)
    if window_s >= 0.02:
        assert (fast.window_kind, fast.window_s) == (WindowKind.SLICE, window_s)


def test_a_given_number_of_transactions_is_used() -> None:
    requested = replace(ROOMY, window_kind=WindowKind.TRANSACTIONS, window_transactions=20, window_is_given=True)
    found = fitted(first(0.01), requested)
    assert (found.window_kind, found.window_transactions, found.window_s) == (WindowKind.TRANSACTIONS, 20, 0.2)


@given(LATENCIES, st.booleans())
def test_rounds_are_even_so_that_each_has_its_mirror(latency_s: float, writes: bool) -> None:  # noqa: FBT001 - drawn
    found = fitted(first(latency_s, writes=writes))
    assert found.rounds >= 2
    assert found.rounds % 2 == 0
    assert found.rounds_per_session == 1 or found.rounds_per_session % 2 == 0


@pytest.mark.parametrize(
    ("clients", "latency_s", "window_s", "rounds"), [(1, 0.001, 1.0, 8), (64, 0.001, 2.0, 8), (1, 3.0, 9.0, 2)]
)
def test_loads_that_write_have_long_windows(clients: int, latency_s: float, window_s: float, rounds: int) -> None:
    found = fitted(first(latency_s, clients, writes=True))
    assert (found.window_kind, found.window_s, found.rounds) == (WindowKind.RUN, window_s, rounds)


@given(LATENCIES, st.integers(2, 9), st.integers(1, 9), st.floats(10, 3600))
def test_long_windows_grow_only_while_the_first_look_fits_the_budget(
    latency_s: float, arms: int, contexts: int, budget_s: float
) -> None:
    found = fit_windows(Design(budget_s=budget_s), first(latency_s, writes=True), arms=arms, contexts=contexts)
    assert found.window_s >= latency_s
    if found.window_s > max(1.0, math.ceil(latency_s)):
        assert arms * 2 * found.window_s * FIRST_LOOK <= budget_s / contexts / 2


@pytest.mark.parametrize(("budget_s", "window_s"), [(900.0, 8.0), (150.0, 4.0)])
def test_a_short_budget_makes_windows_of_slow_transactions_shorter(budget_s: float, window_s: float) -> None:
    design = Design(budget_s=budget_s)
    found = fitted(first(2.5, writes=True), design)
    assert (found.window_s, found.rounds) == (window_s, 2)
    assert fitted(first(2.5, writes=True), replace(design, fixed_blocks=4)).window_s == 8.0


@given(LATENCIES, st.booleans(), st.integers(1, 60), st.integers(1, 20))
def test_windows_of_whole_seconds_from_the_user_are_kept(
    latency_s: float,
    writes: bool,  # noqa: FBT001 - drawn
    seconds: int,
    rounds: int,
) -> None:
    chosen = Design(window_s=float(seconds), window_is_given=True, rounds=rounds, rounds_are_given=True)
    assert fitted(first(latency_s, writes=writes), chosen) == chosen


@given(LATENCIES, st.integers(1, 20))
def test_a_given_number_of_windows_is_kept(latency_s: float, rounds: int) -> None:
    found = fitted(first(latency_s), replace(ROOMY, rounds=rounds, rounds_are_given=True))
    assert found.rounds == rounds
    assert found.window_s == fitted(first(latency_s)).window_s


def test_fitting_only_changes_windows() -> None:
    design = Design(seed=5, margin=0.03, max_blocks=20)
    for writes in (False, True):
        found = fitted(first(writes=writes), design)
        assert (found.seed, found.margin, found.max_blocks, found.budget_s) == (5, 0.03, 20, design.budget_s)


@given(LATENCIES)
def test_slow_executions_are_warmed_up_twice_unless_the_warm_up_is_given(latency_s: float) -> None:
    found = fitted(first(latency_s))
    if found.window_kind is WindowKind.TRANSACTIONS:
        assert found.warm_up_s >= 2 * latency_s
    requested = replace(ROOMY, warm_up_s=7.0, warm_up_is_given=True)
    assert fitted(first(latency_s), requested).warm_up_s == 7.0


def test_a_budget_below_one_block_is_rejected_unless_blocks_are_fixed() -> None:
    design = Design(window_s=600.0, rounds=2, budget_s=60.0)
    with pytest.raises(StudyError, match="budget"):
        check_budget(design, 2)
    check_budget(replace(design, fixed_blocks=2), 2)
    check_budget(replace(design, window_s=1.0), 2)


def test_with_a_cold_cache_an_unmeasured_window_replaces_the_warm_up() -> None:
    found = fitted(replace(first(2.5), is_cold=True), Design())
    assert (found.window_kind, found.window_s, found.warm_up_s) == (WindowKind.RUN, 3.0, 3.0)


@pytest.mark.parametrize("is_cold", [False, True])
@given(rate=st.floats(0.01, 1000))
def test_windows_under_a_rate_are_rarely_empty(rate: float, is_cold: bool) -> None:  # noqa: FBT001 - a column
    found = fitted(replace(first(clients=4, rate=rate), is_cold=is_cold), Design())
    assert found.window_s * rate >= 10
    assert found.warm_up_s * rate >= 10


@given(rate=st.floats(0.1, 1000))
def test_a_judged_percentile_has_enough_transactions_per_block(rate: float) -> None:
    design = Design(metric=Metric.LATENCY_P95)
    open_loop = fitted(first(clients=4, rate=rate), design)
    closed_loop = fitted(first(1 / rate), design)
    for found in (open_loop, closed_loop):
        assert found.measured_s_per_block * rate >= transactions_for_quantile(0.95)


def test_windows_too_short_for_a_rate_are_rejected_unless_fitted() -> None:
    short = Design(window_s=2.0, window_is_given=True)
    with pytest.raises(StudyError) as refused:
        check_windows(short, rate=2.0, is_cold=False)
    assert (refused.value.slug, refused.value.to_do[:18]) == ("study-short-window", "use windows of 6 s")
    check_windows(short, rate=5.5, is_cold=False)
    with pytest.raises(StudyError):
        check_windows(short, rate=5.5, is_cold=False, clients=2)
    check_windows(short, rate=None, is_cold=True)
    check_windows(Design(), rate=0.1, is_cold=False)


@pytest.mark.parametrize(("rate", "is_cold"), [(100.0, False), (None, True)])
def test_short_windows_are_rejected_with_a_rate_or_a_cold_cache(rate: float | None, is_cold: bool) -> None:  # noqa: FBT001 - a column
    for length in (
        Design(window_kind=WindowKind.SLICE, window_s=0.05, window_is_given=True),
        Design(window_kind=WindowKind.TRANSACTIONS, window_transactions=20, window_is_given=True),
    ):
        check_windows(length, rate=None, is_cold=False)
        with pytest.raises(StudyError) as refused:
            check_windows(length, rate=rate, is_cold=is_cold)
        assert refused.value.slug == "study-short-window"
        assert refused.value.to_do.startswith('use --window 1s, or window = "1s" in a study file')


@pytest.mark.parametrize(
    ("clients", "latency_s", "kind"),
    [(1, 0.05, WindowKind.TRANSACTIONS), (1, 0.001, WindowKind.SLICE), (4, 0.05, WindowKind.SLICE)],
)
def test_an_execution_whose_replies_wait_for_the_client_is_not_a_slice(
    clients: int, latency_s: float, kind: WindowKind
) -> None:
    assert fitted(replace(first(latency_s, clients), replies_wait=True)).window_kind is kind


def test_the_load_of_several_hosts_has_four_windows_of_four_seconds() -> None:
    design = fitted(replace(first(), is_joint=True))
    assert (design.window_kind, design.window_s, design.rounds) == (WindowKind.RUN, 4.0, 4)
    short = replace(ROOMY, window_s=0.05, window_kind=WindowKind.SLICE, window_is_given=True)
    with pytest.raises(StudyError, match="clocks of several hosts"):
        check_windows(short, rate=None, is_cold=False, is_joint=True)


def test_a_rate_that_is_too_low_for_the_budget_is_refused_before_the_first_load() -> None:
    with pytest.raises(StudyError) as caught:
        check_first_loads(Design(budget_s=900.0), 2, rate=0.001, clients=1)
    assert caught.value.slug == "study-hopeless-budget"
    assert "at 0.001 transactions per second" in str(caught.value.found)
    assert "use a higher rate" in str(caught.value.to_do)
    long = Design(budget_s=900.0, warm_up_s=1800.0, warm_up_is_given=True)
    with pytest.raises(StudyError) as caught:
        check_first_loads(long, 2, rate=None, clients=1)
    assert caught.value.found == "3600 s for one load on each of 2 arms, with a warm-up of 1800 s"
    assert "use a shorter warm-up" in str(caught.value.to_do)
    check_first_loads(Design(budget_s=900.0), 2, rate=1.0, clients=1)
    check_first_loads(Design(budget_s=900.0), 2, rate=None, clients=1)
