"""Simulated studies by the whole engine keep what is promised of false alarms. Full size: make bench-calibration."""

import pytest

from benchmarks.simulated_host import HOSTS
from benchmarks.simulated_study import simulate
from pgversus.stats.verdict import Verdict

STUDIES = 150


@pytest.mark.parametrize("host", sorted(HOSTS))
def test_identical_servers_are_called_different_at_most_as_often_as_promised(host: str) -> None:
    outcomes = [simulate(host, (1.0,), seed, 20) for seed in range(STUDIES)]
    false = sum(outcome.verdicts[0] in (Verdict.FASTER, Verdict.SLOWER) for outcome in outcomes)
    # 5 % of 150 is 7.5; with fixed seeds this is one number, and three standard errors above the promise is a break.
    assert false <= 7.5 + 3 * (STUDIES * 0.05 * 0.95) ** 0.5
    assert sum(outcome.covered for outcome in outcomes) >= 0.95 * STUDIES - 8


@pytest.mark.parametrize("ratio", [1.1, 1 / 1.1])
def test_ten_percent_on_a_cloud_machine_is_found_within_minutes(ratio: float) -> None:
    outcomes = [simulate("cloud", (ratio,), seed, 30) for seed in range(STUDIES)]
    expected = Verdict.FASTER if ratio > 1 else Verdict.SLOWER
    assert all(outcome.verdicts == (expected,) for outcome in outcomes)
    assert sum(outcome.measured_s for outcome in outcomes) / STUDIES < 200


def test_on_a_quiet_machine_equal_servers_are_called_equivalent() -> None:
    outcomes = [simulate("quiet", (1.0,), seed, 30) for seed in range(STUDIES)]
    assert sum(outcome.verdicts == (Verdict.EQUIVALENT,) for outcome in outcomes) >= 0.97 * STUDIES


def test_three_contenders_share_one_promise() -> None:
    outcomes = [simulate("cloud", (1.0, 1.0, 1.0), seed, 12) for seed in range(STUDIES)]
    false = sum(
        any(verdict in (Verdict.FASTER, Verdict.SLOWER) for verdict in outcome.verdicts) for outcome in outcomes
    )
    assert false <= 7.5 + 3 * (STUDIES * 0.05 * 0.95) ** 0.5
