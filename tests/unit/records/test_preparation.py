"""A hanging window is given up long before the budget of a study is spent."""

import pytest

from pgversus.records.preparation import Preparation, first_patience_s
from pgversus.study.design import Design


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
def test_patience_depends_on_the_first_load(
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


@pytest.mark.parametrize(
    ("budget_s", "contexts", "fixed_blocks", "patience_s"),
    [
        (900.0, 1, None, 225.0),
        (900.0, 12, None, 60.0),
        (72 * 3600.0, 12, None, 1.5 * 3600.0),
        (40.0, 1, None, 40.0),
        (900.0, 12, 4, 900.0),
        (72 * 3600.0, 432, 4, 900.0),
    ],
)
def test_patience_with_the_first_load_is_a_part_of_its_contexts_budget(
    budget_s: float, contexts: int, fixed_blocks: int | None, patience_s: float
) -> None:
    assert first_patience_s(Design(budget_s=budget_s, fixed_blocks=fixed_blocks), contexts) == patience_s
