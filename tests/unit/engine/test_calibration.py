"""Studies simulated by the whole engine keep the promised rate of false alarms. Full size: make bench-calibration."""

import math
from dataclasses import replace

import numpy as np
import pytest

from benchmarks.noise import (
    FITTED_NEIGHBORS,
    FITTED_QUADS,
    WINDOWS_S,
    neighbor_ratios,
)
from benchmarks.simulated_host import CONNECT_S, HOSTS, PAUSE_SHARE, START_S, HostSpeed
from benchmarks.simulated_study import DESIGNS, Outcome, simulate
from pgversus.host.noise import quad_ratios, record_loops, window_speeds
from pgversus.stats.confidence import Verdict
from pgversus.study.design import WindowKind

pytestmark = pytest.mark.slow

STUDIES = 60
SHORT, LONG = DESIGNS["short"], DESIGNS["long"]


def most_false_alarms(studies: int) -> float:
    # With fixed seeds this is one number; three standard errors above the promise is a failure.
    return studies * 0.05 + 3 * math.sqrt(studies * 0.05 * 0.95)


def false_alarms(outcomes: list[Outcome]) -> int:
    return sum(any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in outcome.verdicts) for outcome in outcomes)


@pytest.mark.parametrize("windows", sorted(DESIGNS))
@pytest.mark.parametrize("host", sorted(HOSTS))
def test_identical_servers_are_called_different_no_more_often_than_promised(host: str, windows: str) -> None:
    outcomes = [simulate(host, (1.0,), seed, 14, design=DESIGNS[windows]) for seed in range(STUDIES)]
    assert false_alarms(outcomes) <= most_false_alarms(STUDIES)
    assert sum(not outcome.covered for outcome in outcomes) <= most_false_alarms(STUDIES)


@pytest.mark.parametrize("windows", sorted(DESIGNS))
@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
def test_a_difference_of_ten_percent_is_found_within_minutes_on_a_cloud_machine(ratio: float, windows: str) -> None:
    outcomes = [simulate("cloud", (ratio,), seed, 30, design=DESIGNS[windows]) for seed in range(STUDIES)]
    expected = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    assert all(outcome.verdicts == (expected,) for outcome in outcomes)
    assert sum(outcome.wall_s for outcome in outcomes) / STUDIES < {"short": 45, "long": 200}[windows]


@pytest.mark.parametrize("windows", sorted(DESIGNS))
def test_on_a_quiet_machine_equal_servers_are_called_equivalent(windows: str) -> None:
    outcomes = [simulate("quiet", (1.0,), seed, 30, design=DESIGNS[windows]) for seed in range(STUDIES)]
    assert sum(outcome.verdicts == (Verdict.EQUIVALENT,) for outcome in outcomes) >= 0.97 * STUDIES


@pytest.mark.parametrize("windows", sorted(DESIGNS))
def test_three_contenders_together_keep_the_promised_error_rate(windows: str) -> None:
    outcomes = [simulate("cloud", (1.0, 1.0, 1.0), seed, 8, design=DESIGNS[windows]) for seed in range(STUDIES)]
    assert false_alarms(outcomes) <= most_false_alarms(STUDIES)


def test_a_precision_removes_the_overestimate_of_stopping_at_the_first_claim() -> None:
    """Of 60 studies of a true +1 %, those that claim a difference overestimate it. Seeds 0 to 59."""
    truth = math.log(1.01)
    seeds = range(STUDIES)
    first = [simulate("cloud", (1.01,), seed, 100) for seed in seeds]
    claimed = [outcome.log_ratio for outcome in first if outcome.verdicts == (Verdict.FASTER,)]
    precise = [simulate("cloud", (1.01,), seed, 100, precision=0.01) for seed in seeds]
    estimates = [outcome.log_ratio for outcome in precise]
    assert len(claimed) > STUDIES / 4
    assert np.mean(claimed) > truth + 3 * np.std(claimed, ddof=1) / math.sqrt(len(claimed))
    assert np.mean(claimed) > truth * 1.4
    assert abs(np.mean(estimates) - truth) < 3 * np.std(estimates, ddof=1) / math.sqrt(STUDIES)
    assert abs(np.mean(estimates) - truth) < truth * 0.2
    assert all(outcome.half_width <= truth for outcome in precise)
    # Over all looks, not only the last one.
    assert sum(not outcome.covered_always for outcome in precise) <= most_false_alarms(STUDIES)


def test_identical_servers_measured_to_a_precision_are_never_called_different() -> None:
    outcomes = [simulate("cloud", (1.0,), seed, 60, precision=0.015) for seed in range(STUDIES // 2)]
    assert false_alarms(outcomes) == 0
    assert sum(not outcome.covered_always for outcome in outcomes) <= most_false_alarms(STUDIES // 2)
    assert all(outcome.half_width <= math.log(1.015) for outcome in outcomes)


def test_short_windows_decide_sooner_than_long_ones_under_flicker_noise() -> None:
    walls = {
        windows: sum(simulate("rough", (1.1,), seed, 40, design=DESIGNS[windows]).wall_s for seed in range(20))
        for windows in DESIGNS
    }
    assert walls["short"] < walls["long"] / 3


def test_only_long_windows_are_repeated_and_only_if_the_host_reports() -> None:
    repeated = {
        (host, windows): sum(simulate(host, (1.0,), seed, 6, design=design).repeated_rounds for seed in range(5))
        for host in ("stolen", "hidden")
        for windows, design in DESIGNS.items()
    }
    assert repeated.pop(("stolen", "long")) > 0
    assert set(repeated.values()) == {0}


def test_block_time_is_the_sum_of_starts_sessions_windows_and_pauses() -> None:
    outcome = simulate("quiet", (1.1,), 1, 4, design=replace(SHORT, rounds_are_given=True))
    sessions = round(SHORT.rounds / SHORT.rounds_per_session) + 1
    arm_s = START_S + sessions * CONNECT_S + SHORT.warm_up_s + SHORT.rounds * SHORT.window_s * (1 + PAUSE_SHARE)
    assert outcome.wall_s == pytest.approx(outcome.blocks * 2 * arm_s)
    assert outcome.measured_s == pytest.approx(outcome.blocks * 2 * SHORT.rounds * SHORT.window_s)


def test_the_designs_have_short_and_long_windows() -> None:
    assert (SHORT.window_kind, LONG.window_kind) == (WindowKind.SLICE, WindowKind.RUN)
    assert SHORT.window_s < 0.05
    assert LONG.window_s >= 1


def test_the_noise_of_the_rough_host_matches_the_shared_guest_it_was_fitted_to() -> None:
    variances = np.zeros((len(WINDOWS_S), 2))
    records = 15
    for seed in range(records):
        times, work = HostSpeed(np.random.default_rng(seed), HOSTS["rough"]).record(80.0)
        for row, window_s in enumerate(WINDOWS_S):
            speeds = window_speeds(times, work, window_s)
            variances[row] += np.var(neighbor_ratios(speeds)), np.var(quad_ratios(speeds))
    ratios = np.sqrt(variances / records) / np.transpose([FITTED_NEIGHBORS, FITTED_QUADS])
    assert np.all(np.abs(np.log(ratios)) < np.log(1.3))


def test_white_noise_shrinks_with_the_square_root_of_the_window() -> None:
    # The recording shows this only if it is cut correctly.
    work = np.concatenate([[0.0], np.cumsum(np.exp(np.random.default_rng(1).normal(0, 0.1, 40_000)))])
    times = np.arange(len(work), dtype=np.float64) * 0.01
    for passes in (1, 10, 100):
        speeds = window_speeds(times, work, 0.01 * passes)
        assert len(speeds) == 40_000 // passes
        assert np.std(quad_ratios(speeds)) == pytest.approx(0.1 / passes**0.5, rel=0.15)
        assert np.std(neighbor_ratios(speeds)) == pytest.approx(0.1 * (2 / passes) ** 0.5, rel=0.15)


def test_a_linear_drift_adds_nothing_to_a_quad() -> None:
    times = np.arange(101, dtype=np.float64) / 10
    speeds = np.exp(np.arange(100) / 50)
    work = np.concatenate([[0.0], np.cumsum(speeds / 10)])
    assert np.allclose(quad_ratios(window_speeds(times, work, 0.1)), 0)


def test_the_recorded_times_of_a_loop_increase_and_last_as_long_as_requested() -> None:
    ends = record_loops(0.2, loop_s=0.001)
    assert np.all(np.diff(ends) > 0)
    assert ends[-1] - ends[0] >= 0.2
