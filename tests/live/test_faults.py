"""Faults at random moments: no finished trial is lost, nothing is left over, no verdict is partial (tests/faults)."""

import pytest

from tests.faults.catalog import FAULTS, fetch_server, play

TRIES = [
    pytest.param(name, seed, marks=pytest.mark.needs_tools if fault.needs_tools else ())
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
