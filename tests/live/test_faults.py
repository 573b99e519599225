"""Faults at random moments: no finished trial is lost, nothing is left over, no verdict is partial (tests/faults)."""

import pytest

from tests.faults.catalog import FAULTS, fetch_server, play
from tests.faults.fault import Fault


def _marks(fault: Fault, seed: int) -> list[pytest.MarkDecorator]:
    tools = [pytest.mark.needs_tools] if fault.needs_tools else []
    return [*tools, pytest.mark.long] if seed > 1 else tools


TRIES = [
    pytest.param(name, seed, marks=_marks(fault, seed))
    for name, fault in FAULTS.items()
    for seed in range(1, fault.tries_in_tests + 1)
]


@pytest.fixture(scope="session", autouse=True)
def server() -> None:
    fetch_server()


@pytest.mark.parametrize(("name", "seed"), TRIES)
def test_all_invariants_hold_after_a_fault(name: str, seed: int) -> None:
    fault = FAULTS[name]
    if why := fault.why_not():
        pytest.skip(why)
    outcome = play(fault, seed)
    assert outcome.violations == (), outcome
