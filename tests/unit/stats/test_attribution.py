"""Three arms yield two parts of a difference, whose intervals have the stated coverage."""

import math

import numpy as np
import pytest

from pgversus.records.trials import Block
from pgversus.stats.analysis import Analysis, analyze
from pgversus.stats.attribution import Attribution, attribution
from pgversus.stats.confidence import Verdict, look_rule
from pgversus.stats.effects import Samples
from pgversus.study.design import Design
from tests.builders import comparison, rate_block

BLOCKS = 8
CLIENTS = 4


def analyzed(blocks: list[Block]) -> Analysis:
    requested = comparison(("new, old plans", "old", "new"), Design(fixed_blocks=BLOCKS))
    return analyze(Samples(blocks), requested, look_rule(requested.design, 2))


def parts(back_s: float, old_s: float, new_s: float, *, noise: float = 0.0, seed: int = 1) -> Attribution | None:
    """Return the attribution for times of the three arms, with common noise per block and noise per trial."""
    rng = np.random.default_rng(seed)
    blocks = []
    for number in range(1, BLOCKS + 1):
        weather = rng.lognormal(0.0, noise)
        rates = [CLIENTS / (time * weather * rng.lognormal(0.0, noise)) for time in (back_s, old_s, new_s)]
        blocks.append(rate_block(number, *rates))
    return attribution(analyzed(blocks), CLIENTS)


def test_without_noise_the_parts_are_exact() -> None:
    found = parts(0.057, 0.058, 0.001)
    assert found is not None
    assert (found.whole_s.value, found.plans_s.value, found.rest_s.value) == pytest.approx((0.057, 0.056, 0.001))
    assert found.share is not None
    assert (found.whole.value, found.plans.value, found.rest.value) == pytest.approx((58, 57, 58 / 57))
    assert found.share_of_time is not None
    assert found.share.value == pytest.approx(math.log(57) / math.log(58))
    assert found.share_of_time.value == pytest.approx(56 / 57)
    assert found.blocks == BLOCKS


@pytest.mark.parametrize(
    ("back_s", "old_s", "new_s", "rest"),
    [(1.0, 1.2, 0.5, Verdict.FASTER), (1.0, 0.8, 0.5, Verdict.SLOWER), (1.0, 1.0, 0.5, Verdict.EQUIVALENT)],
)
def test_the_rest_is_the_effect_with_old_plans(back_s: float, old_s: float, new_s: float, rest: Verdict) -> None:
    found = parts(back_s, old_s, new_s)
    assert found is not None
    assert found.rest_verdict is rest
    assert found.rest_s.value == pytest.approx(old_s - back_s, abs=1e-9)


def test_a_slowdown_is_split_into_parts() -> None:
    found = parts(0.010, 0.011, 0.030)
    assert found is not None
    assert found.share is not None
    assert found.whole_s.value == pytest.approx(-0.019)
    # With the old plans it would be a tenth faster.
    assert found.share.value == pytest.approx(math.log(1 / 3) / math.log(11 / 30))
    assert found.share.value > 1


def test_no_share_is_reported_if_the_whole_may_be_zero() -> None:
    found = parts(1.0, 1.01, 1.0, noise=0.05)
    assert found is not None
    assert found.share is None
    assert found.whole_s.low < 0 < found.whole_s.high


def test_too_few_blocks_give_no_attribution() -> None:
    assert attribution(analyzed([rate_block(1, 1.0, 1.0, 2.0)]), CLIENTS) is None


@pytest.mark.slow
def test_the_interval_of_the_share_covers_the_true_value() -> None:
    """Both ratios have 95 % coverage together; over the corners of both, the share has at least as much."""
    found = [parts(2.0, 2.1, 1.0, noise=0.05, seed=seed) for seed in range(400)]
    shares = [one.share for one in found if one is not None and one.share is not None]
    assert len(shares) == len(found)
    truth = math.log(2.0) / math.log(2.1)
    missed = sum(not share.low <= truth <= share.high for share in shares)
    assert missed <= 0.05 * len(shares)


def test_the_share_does_not_depend_on_the_order_of_parts() -> None:
    """Code that is a fifth faster saves most on the slow plan; its share is the same if plans are restored first."""
    code_first, plans_first = parts(80.0, 100.0, 8.0), parts(10.0, 100.0, 8.0)
    assert code_first is not None
    assert plans_first is not None
    assert code_first.share is not None
    assert plans_first.share is not None
    assert code_first.share.value == pytest.approx(1 - plans_first.share.value)
    assert code_first.rest_s.value > 9 * plans_first.plans_s.value
