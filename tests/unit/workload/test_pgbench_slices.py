from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.workload.pgbench_log import Ends, read_ends
from pgversus.workload.pgbench_slices import Stop, slices


def ends(*clients: list[int], first_times: list[int] | None = None) -> Ends:
    """The ends of each client's transactions, in microseconds. first_times: what pgbench logged for each first one."""
    numbers = [number for client in clients for number in range(1, len(client) + 1)]
    firsts = first_times or [0] * len(clients)
    times = [
        first if number == 1 else 0
        for client, first in zip(clients, firsts, strict=True)
        for number in range(1, len(client) + 1)
    ]
    return Ends(
        clients=np.array([index for index, client in enumerate(clients) for _ in client], dtype=np.int64),
        numbers=np.array(numbers, dtype=np.int64),
        microseconds=np.array([end for client in clients for end in client], dtype=np.int64),
        times=np.array(times, dtype=np.int64),
    )


def stop(stopped: int, *sessions: tuple[int, int]) -> Stop:
    """A stop, with when the transaction of each session began and finished."""
    return Stop(stopped=stopped, sessions=sessions)


def test_a_transaction_counts_in_the_slice_in_which_its_end_is_noticed_and_pauses_are_no_latency() -> None:
    # One client. What is in flight at the first stop ends at 200, and pgbench is continued at 300.
    stops = [stop(55, (50, 60)), stop(195, (190, 200)), stop(400, (390, 400))]
    found = slices(ends([50, 110, 150, 190, 301, 340, 390, 900]), [100, 300], stops)
    assert [one.transactions for one in found] == [3, 3]
    assert [one.histogram.total for one in found] == [3, 3]
    # From 60 to 100 and from 200 to 300 nothing ran: 110 began at 50, 301 at 190.
    assert [one.latency_sum_s for one in found] == pytest.approx([(20 + 40 + 40) * 1e-6, (11 + 39 + 50) * 1e-6])
    assert [one.latency_max_s for one in found] == pytest.approx([40e-6, 50e-6])


def test_a_slice_of_one_execution_has_its_latency() -> None:
    # Each is sent at the beginning of a slice, ends with it, and is noticed at the beginning of the next. The first one
    # was sent at 5, and finished at 90.
    begins, stops = [100, 300, 500], [stop(10, (5, 90)), stop(105, (100, 200)), stop(305, (301, 400)), stop(620)]
    found = slices(ends([101, 301, 501], first_times=[96]), begins, stops)
    assert [one.transactions for one in found] == [1, 1, 1]
    assert [one.latency_max_s for one in found] == pytest.approx([86e-6, 100e-6, 100e-6])
    # Where pgbench did not look at its clock in time, nobody knows the first one.
    unknown = slices(ends([101, 301, 501]), begins, stops)
    assert [one.histogram.total for one in unknown] == [0, 1, 1]


def test_each_client_has_a_latency_without_its_own_pause() -> None:
    # Both clients are stopped at 100. The statement of the second began first, and finished at 160; that of the first
    # at 110. Both ends are noticed at 201.
    begins, stops = [10, 200], [stop(5, (0, 5), (1, 5)), stop(100, (90, 110), (60, 160)), stop(300)]
    found = slices(ends([20, 90, 201], [15, 60, 201]), begins, stops)
    # 20 began before 5, 90 at 20, 201 at 90 and finished at 110; 60 began at 15, 201 at 60 and finished at 160.
    assert found[1].latency_sum_s == pytest.approx((20 + 1 + 100 + 1) * 1e-6)
    assert found[1].latency_max_s == pytest.approx(101e-6)
    assert found[0].latency_sum_s == pytest.approx((70 + 45) * 1e-6)
    assert stops[1].end == 135


def test_a_client_whose_session_has_ended_counts_like_the_mean_of_the_others() -> None:
    begins, stops = [10, 200], [stop(5), stop(100, (90, 150)), stop(300)]
    found = slices(ends([20, 80, 201], [15, 60, 201]), begins, stops)
    # The session is taken for that of the client whose last transaction ended first.
    assert found[1].latency_sum_s == pytest.approx((150 - 60 + 1 + 150 - 80 + 1) * 1e-6)


def test_what_ends_after_the_last_stop_counts_nowhere() -> None:
    (only,) = slices(ends([90, 150, 201, 202, 203]), [100], [stop(95), stop(200)])
    assert only.transactions == 1


def test_a_run_without_transactions_has_empty_slices() -> None:
    (only,) = slices(ends([]), [100], [stop(95), stop(200)])
    assert (only.transactions, only.latency_sum_s, only.histogram.total) == (0, 0.0, 0)


@given(
    st.lists(st.lists(st.integers(1, 50), min_size=40, max_size=80), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=8),
    st.data(),
)
def test_every_end_between_the_first_start_and_the_last_stop_counts_once(
    gaps: list[list[int]], lengths: list[tuple[int, int]], data: st.DataObject
) -> None:
    edges, now = [], 100
    for running, stopped in lengths:
        edges.append((now, now + running))
        now += running + stopped
    # Nothing ends while pgbench is stopped.
    pauses = [(end, begin) for (_, end), (begin, _) in pairwise(edges)]
    clients = [
        [end for end in np.cumsum(one).tolist() if not any(begin < end < until for begin, until in pauses)]
        for one in gaps
    ]
    until = [begin for begin, _ in edges] + [now]
    stops = [
        stop(end, *((data.draw(st.integers(0, end)), data.draw(st.integers(end, next_begin))) for _ in clients))
        for end, next_begin in zip([90, *(end for _, end in edges)], until, strict=True)
    ]
    found = slices(ends(*clients), [begin for begin, _ in edges], stops)
    every = [end for client in clients for end in client]
    assert sum(one.transactions for one in found) == sum(100 <= end <= edges[-1][1] for end in every)
    assert all(one.histogram.total <= one.transactions for one in found)
    longest = edges[-1][1]
    assert all(0 <= one.latency_max_s * 1e6 <= longest for one in found)


def test_the_ends_of_all_threads_are_read_in_order(tmp_path: Path) -> None:
    (tmp_path / "log.1").write_text("1 1 0 0 10 5\n1 2 7 0 10 9\n")
    (tmp_path / "log.1.1").write_text("0 2 3 0 11 8\n0 1 3 0 10 7\n0 3 failed 0 12 0\n")
    found = read_ends(sorted(tmp_path.glob("log.*")))
    assert found.clients.tolist() == [0, 0, 1, 1]
    assert found.numbers.tolist() == [1, 2, 1, 2]
    assert found.times.tolist() == [3, 3, 0, 7]
    assert found.microseconds.tolist() == [10_000_007, 11_000_008, 10_000_005, 10_000_009]
