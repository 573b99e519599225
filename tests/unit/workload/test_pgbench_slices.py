from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.workload.pgbench_log import Ends, read_ends
from pgversus.workload.pgbench_slices import slices


def ends(*clients: list[int]) -> Ends:
    """The ends of each client's transactions, in microseconds."""
    numbers = [number for client in clients for number in range(1, len(client) + 1)]
    return Ends(
        clients=np.array([index for index, client in enumerate(clients) for _ in client], dtype=np.int64),
        numbers=np.array(numbers, dtype=np.int64),
        microseconds=np.array([end for client in clients for end in client], dtype=np.int64),
    )


def test_a_transaction_counts_in_the_slice_in_which_its_end_is_noticed_and_has_no_latency_if_it_began_before() -> None:
    # One client; it is stopped from 200 to 300 with a transaction in flight, whose end is noticed at 301.
    found = slices(ends([50, 110, 150, 190, 301, 340, 390, 900]), [(100, 200), (300, 400)], clients=1)
    assert [one.transactions for one in found] == [3, 3]
    assert [one.histogram.total for one in found] == [2, 2]
    assert [one.latency_sum_s for one in found] == pytest.approx([80e-6, 89e-6])
    assert [one.latency_max_s for one in found] == pytest.approx([40e-6, 50e-6])


def test_slices_count_from_the_one_before_which_every_client_was_connected() -> None:
    edges = [(100, 200), (300, 400), (500, 600)]
    both = ends([50, 150, 350, 550], [320, 350, 550])
    assert [one.transactions for one in slices(both, edges, clients=2)] == [2]
    assert slices(ends([50, 150, 350, 550], [650]), edges, clients=2) == []
    assert slices(ends([50, 150, 350, 550]), edges, clients=2) == []


def test_what_ends_after_the_last_stop_counts_nowhere() -> None:
    (only,) = slices(ends([90, 150, 201, 202, 203]), [(100, 200)], clients=1)
    assert only.transactions == 1


@given(
    st.lists(st.lists(st.integers(1, 50), min_size=40, max_size=80), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=8),
)
def test_every_end_between_the_first_start_and_the_last_stop_counts_once(
    gaps: list[list[int]], lengths: list[tuple[int, int]]
) -> None:
    clients = [np.cumsum(one).tolist() for one in gaps]
    edges, now = [], 100
    for running, stopped in lengths:
        edges.append((now, now + running))
        now += running + stopped
    found = slices(ends(*clients), edges, clients=len(clients))
    every = [end for client in clients for end in client]
    first = edges[len(edges) - len(found)][0] if found else now
    assert sum(one.transactions for one in found) == sum(first <= end <= edges[-1][1] for end in every)
    assert all(one.histogram.total <= one.transactions for one in found)


def test_the_ends_of_all_threads_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_text("1 1 0 0 10 5\n1 2 7 0 10 9\n")
    (tmp_path / "log.1.1").write_text("0 2 3 0 11 8\n0 1 3 0 10 7\n0 3 failed 0 12 0\n")
    found = read_ends(sorted(tmp_path.glob("log.*")))
    assert found.clients.tolist() == [0, 0, 1, 1]
    assert found.numbers.tolist() == [1, 2, 1, 2]
    assert found.microseconds.tolist() == [10_000_007, 11_000_008, 10_000_005, 10_000_009]
