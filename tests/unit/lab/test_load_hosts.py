"""The load of several hosts: how it is divided, and how their windows are merged."""

from dataclasses import replace

import pytest

from pgversus.errors import StudyError
from pgversus.lab.load_hosts import JointWindow, divided, merged
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import window

WORKLOAD = PgbenchWorkload(scripts=(Script(name="select-only"),), clients=8, threads=4, rate=80.0)


@pytest.mark.parametrize(
    ("hosts", "clients", "threads"), [(1, [8], [4]), (3, [3, 3, 2], [3, 3, 2]), (8, [1] * 8, [1] * 8)]
)
def test_clients_and_rate_are_divided_equally(hosts: int, clients: list[int], threads: list[int]) -> None:
    parts = divided(WORKLOAD, hosts)
    assert [part.clients for part in parts] == clients
    assert [part.threads for part in parts] == threads
    assert [part.rate for part in parts] == [10.0 * number for number in clients]


def test_without_a_rate_there_is_none_on_any_host() -> None:
    assert {part.rate for part in divided(replace(WORKLOAD, rate=None), 3)} == {None}


def test_more_hosts_than_clients_are_refused() -> None:
    with pytest.raises(StudyError) as caught:
        divided(WORKLOAD, 9)
    assert caught.value.slug == "fleet-few-clients"


def test_merged_windows_have_the_percentiles_of_all_transactions() -> None:
    fast = replace(window([1000] * 90, 2.0), counters={"client_cpu_s": 0.5}, failed=1)
    slow = replace(window([50_000] * 10, 2.0), counters={"client_cpu_s": 0.25}, connect_s=0.3, was_disturbed=True)
    found = merged(JointWindow(windows=(fast, slow), transactions=140, clock_error_s=0.004))
    assert (found.transactions, found.seconds, found.failed) == (100, 2.0, 1)
    assert found.histogram.quantile(0.5) == pytest.approx(0.001, rel=0.01)
    assert found.histogram.quantile(0.95) == pytest.approx(0.05, rel=0.01)
    assert found.latency_sum_s == pytest.approx(90 * 0.001 + 10 * 0.05)
    assert (found.latency_max_s, found.connect_s, found.was_disturbed) == (0.05, 0.3, True)
    assert found.counters == {"client_cpu_s": 0.75}
    assert found.gauges == {"load_hosts": 2.0, "load_clock_error_s": 0.004}
