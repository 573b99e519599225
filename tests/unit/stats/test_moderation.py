import math

import numpy as np
import pytest
from scipy.special import stdtrit

from pgversus.stats.effects import LogEstimate
from pgversus.stats.moderation import moderated, selected, variance_prior

BLOCKS = 6


def drawn(
    rng: np.random.Generator, ratios: int, *, degrees: float, effects: dict[int, float] | None = None
) -> list[LogEstimate]:
    """Return estimates whose variances come from a scaled inverse chi-squared distribution with scale 0.01."""
    variances = 0.01 * degrees / rng.chisquare(degrees, ratios)
    logs = rng.normal(0, np.sqrt(variances)[:, None], (ratios, BLOCKS))
    for number, effect in (effects or {}).items():
        logs[number] += effect
    return [
        LogEstimate(point=float(row.mean()), standard_error=float(row.std(ddof=1)) / math.sqrt(BLOCKS), n=BLOCKS)
        for row in logs
    ]


def test_the_distribution_of_variances_is_found() -> None:
    prior = variance_prior(drawn(np.random.default_rng(1), 5000, degrees=8.0))
    assert prior.degrees == pytest.approx(8.0, rel=0.15)
    assert prior.variance == pytest.approx(0.01, rel=0.05)


def test_equal_variances_are_pooled() -> None:
    rng = np.random.default_rng(2)
    logs = rng.normal(0, 0.1, (500, BLOCKS))
    estimates = [
        LogEstimate(point=float(row.mean()), standard_error=float(row.std(ddof=1)) / math.sqrt(BLOCKS), n=BLOCKS)
        for row in logs
    ]
    assert variance_prior(estimates).degrees > 100
    errors = [one.standard_error for one in moderated(estimates)]
    assert max(errors) < 1.2 * min(errors)


def test_too_few_ratios_keep_their_own_errors() -> None:
    estimates = drawn(np.random.default_rng(3), 2, degrees=8.0)
    for before, after in zip(estimates, moderated(estimates), strict=True):
        assert after.standard_error == pytest.approx(before.standard_error)
        assert after.degrees == BLOCKS - 1


def test_joint_intervals_hold_for_all_ratios_of_nearly_every_study() -> None:
    rng, missed, studies = np.random.default_rng(4), 0, 400
    for _ in range(studies):
        bounds = [one.interval(14) for one in moderated(drawn(rng, 14, degrees=6.0))]
        missed += any(one.low > 0 or one.high < 0 for one in bounds)
    assert missed / studies <= 0.08


def test_moderated_intervals_are_much_narrower_than_students() -> None:
    rng = np.random.default_rng(5)
    estimates = drawn(rng, 14, degrees=20.0)
    both = zip(estimates, moderated(estimates), strict=True)
    students = float(stdtrit(BLOCKS - 1, 1 - 0.05 / 14 / 2))
    ratios = [one.interval(14).half_width / (students * before.standard_error) for before, one in both]
    assert np.median(ratios) < 0.8


def test_differences_are_selected_and_few_others() -> None:
    rng = np.random.default_rng(6)
    found = wrong = 0
    for _ in range(100):
        chosen = selected(moderated(drawn(rng, 30, degrees=10.0, effects={0: 0.4, 1: -0.4})))
        found += chosen[0] + chosen[1]
        wrong += sum(chosen[2:])
    assert found >= 190
    assert wrong <= 0.2 * (found + wrong)


def test_nothing_is_selected_from_nothing() -> None:
    assert selected([]) == []
