"""A window that hangs is given up long before the budget of a study is gone."""

import pytest

from pgversus.study.design import Design
from pgversus.study.preparation import Preparation


@pytest.mark.parametrize(
    ("window_s", "longest_s", "budget_s", "patience_s"),
    [
        (1.0, 0.5, 900.0, 60.0),
        (5.0, 0.5, 900.0, 100.0),
        (1.0, 12.0, 900.0, 240.0),
        (30.0, 12.0, 900.0, 600.0),
        (60.0, 60.0, 900.0, 900.0),
        (1.0, 0.5, 40.0, 40.0),
    ],
)
def test_patience_is_bound_to_what_the_first_load_showed(
    window_s: float, longest_s: float, budget_s: float, patience_s: float
) -> None:
    known = Preparation(
        design=Design(window_s=window_s, budget_s=budget_s),
        arms=(),
        differences=(),
        writes=False,
        connect_allowance_s=0,
        longest_transaction_s=longest_s,
    )
    assert known.patience_s == patience_s
