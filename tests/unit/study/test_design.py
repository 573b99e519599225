import math

import pytest

from pgversus.study.design import Design, WindowKind
from pgversus.study.metrics import JUDGED, MARGINS, Metric


def test_the_margin_is_a_ratio_on_the_log_scale() -> None:
    assert Design(margin=0.05).log_margin == pytest.approx(math.log(1.05))


def test_every_judged_metric_has_a_margin() -> None:
    assert set(MARGINS) == set(JUDGED)
    assert all(0 < margin < 1 for margin in MARGINS.values())


def test_half_of_a_block_may_be_repeated() -> None:
    assert Design(rounds=8).most_repeats == 4
    assert Design(rounds=1, metric=Metric.TIME).most_repeats == 1
    assert Design(rounds=50, window_kind=WindowKind.SLICE).most_repeats == 25
    assert Design(rounds=1, window_kind=WindowKind.TRANSACTIONS).most_repeats == 1
    # The user chose the length of the only window of a load.
    assert Design(rounds=1).most_repeats == 0
