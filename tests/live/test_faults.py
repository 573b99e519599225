"""Faults at random moments: no finished trial is lost, nothing is left over, no verdict is partial (tests/faults)."""

import pytest

from tests.faults.catalog import FAULTS, fetch_server, play
from tests.faults.fault import Fault

TRIES = [
    pytest.param(fault, marks=pytest.mark.needs_tools if fault.needs_tools else (), id=fault.name)
    for fault in FAULTS.values()
    if fault.is_tested
]


@pytest.fixture(scope="session", autouse=True)
def server() -> None:
    fetch_server()


@pytest.mark.parametrize("fault", TRIES)
def test_all_invariants_hold_after_a_fault(fault: Fault) -> None:
    if why := fault.why_not():
        pytest.skip(why)
    outcome = play(fault, seed=1)
    assert outcome.violations == (), outcome
