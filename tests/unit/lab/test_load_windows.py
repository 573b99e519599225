from collections.abc import Iterator, Sequence
from itertools import repeat

import pytest

from pgversus.lab.load_windows import run_until_steady
from pgversus.records.trials import Window
from tests.builders import window


class Invocation:
    """A load with these numbers of transactions in successive runs, which records its arguments."""

    def __init__(self, transactions: Iterator[int]) -> None:
        self.runs: list[tuple[float, int]] = []
        self._transactions = transactions

    def __call__(self, seconds: float, seed: int) -> Window:
        self.runs.append((seconds, seed))
        return window([1000] * next(self._transactions), seconds)


@pytest.mark.parametrize(
    ("transactions", "runs"),
    [
        ([100, 100], 2),
        ([100, 90], 2),
        ([100, 104], 2),
        ([50, 90, 110, 112], 4),
        ([round(10 * 1.2**n) for n in range(20)], 8),
    ],
)
def test_warm_up_continues_while_the_load_becomes_faster(transactions: Sequence[int], runs: int) -> None:
    load = Invocation(iter(transactions))
    run_until_steady(load, 4.0, 7)
    assert load.runs == [(2.0, 7 + number) for number in range(runs)]


def test_one_second_is_too_short_for_two_halves() -> None:
    load = Invocation(repeat(100))
    run_until_steady(load, 1.0, 1)
    assert load.runs == [(1.0, 1)]
