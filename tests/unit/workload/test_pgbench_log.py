from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.workload.pgbench import parse_summary
from pgversus.workload.pgbench_log import (
    Latencies,
    LogInterval,
    SliceEnd,
    TransactionEnds,
    UnreadableLogError,
    clocks_differ,
    read_ends,
    read_failures,
    read_latencies,
    slices,
)
from tests.builders import DATA

CAPTURED = DATA / "pgbench"
RUNS = ("closed_loop", "rate", "rate_with_limit", "serialization")


def closed(files: list[Path]) -> Latencies:
    return read_latencies(files, is_open_loop=False)


def logs(name: str) -> list[Path]:
    files = sorted(CAPTURED.glob(f"{name}.log*"))
    assert files
    return files


def by_hand(name: str) -> list[int]:
    """Independent parser: the third word of each line, if it is a number; with a rate, without number 1 of a client."""
    lines = [line.split(" ") for file in logs(name) for line in file.read_text().splitlines()]
    counted = [line for line in lines if line[1] != "1" or not name.startswith("rate")]
    return [int(line[2]) for line in counted if line[2] not in ("failed", "skipped")]


def written(directory: Path, content: bytes) -> Path:
    file = directory / "log.1"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("name", RUNS)
def test_the_log_of_a_real_run_is_read(name: str) -> None:
    latencies = by_hand(name)
    found = read_latencies(logs(name), is_open_loop=name.startswith("rate"))
    assert found.histogram.total == len(latencies)
    # A latency from end to end is slightly longer than the logged time: it includes pgbench's own work.
    assert sum(latencies) / 1e6 <= found.sum_s * 1.0001 <= sum(latencies) / 1e6 * 1.1
    assert found.histogram.quantile(0.5) == pytest.approx(
        float(np.quantile(latencies, 0.5, method="inverted_cdf")) / 1e6, rel=0.05
    )


@pytest.mark.parametrize("name", RUNS)
def test_the_log_has_as_many_transactions_as_the_summary(name: str) -> None:
    summary = parse_summary((CAPTURED / f"{name}.stdout").read_text())
    found = read_latencies(logs(name), is_open_loop=name.startswith("rate"))
    assert found.histogram.total + found.omitted == summary.transactions


def test_failed_transactions_have_no_latency() -> None:
    lines = [line for file in logs("serialization") for line in file.read_text().splitlines()]
    summary = parse_summary((CAPTURED / "serialization.stdout").read_text())
    assert len(lines) == summary.transactions + summary.failed
    assert closed(logs("serialization")).histogram.total == summary.transactions


def test_skipped_transactions_have_no_latency() -> None:
    lines = logs("rate_with_limit")[0].read_text().splitlines()
    skipped = [line for line in lines if " skipped " in line]
    assert skipped
    found = read_latencies(logs("rate_with_limit"), is_open_loop=True)
    assert found.histogram.total + found.omitted == len(lines) - len(skipped)


def test_with_a_rate_the_first_transactions_of_sessions_are_omitted(tmp_path: Path) -> None:
    lines = b"0 1 900 0 100 1000 10\n1 1 800 0 100 1100 10\n0 2 30 0 100 1200 10\n1 2 50 0 100 1300 10\n"
    found = read_latencies([written(tmp_path, lines)], is_open_loop=True)
    assert (found.histogram.total, found.omitted) == (2, 2)
    assert found.sum_s == pytest.approx(80e-6)
    # Without later ones, they are all that is known.
    only = read_latencies([written(tmp_path, lines[: lines.index(b"0 2")])], is_open_loop=True)
    assert (only.histogram.total, only.omitted) == (2, 0)


def test_with_a_rate_latency_counts_from_the_scheduled_start() -> None:
    """Lag (the seventh column) is part of the latency, as in pgbench's own mean of all transactions."""
    rows = [line.split(" ") for line in logs("rate")[0].read_text().splitlines()]
    assert all(int(row[2]) >= int(row[6]) for row in rows)
    shown = next(
        line for line in (CAPTURED / "rate.stdout").read_text().splitlines() if line.startswith("latency average")
    )
    assert np.mean([int(row[2]) for row in rows]) / 1000 == pytest.approx(float(shown.split()[3]), abs=0.002)
    found = read_latencies(logs("rate"), is_open_loop=True)
    assert 1e6 * found.sum_s == pytest.approx(sum(int(row[2]) for row in rows if row[1] != "1"))


def test_the_logs_of_all_threads_are_combined() -> None:
    files = logs("closed_loop")
    assert len(files) == 2
    whole, parts = closed(files), [closed([file]) for file in files]
    assert whole.histogram.total == sum(part.histogram.total for part in parts)
    assert whole.sum_s == pytest.approx(sum(part.sum_s for part in parts))
    assert whole.max_s == max(part.max_s for part in parts)


@given(st.lists(st.integers(1, 10**9), min_size=1, max_size=50).map(lambda them: [*them, max(them)]))
def test_every_latency_is_read(tmp_path_factory: pytest.TempPathFactory, latencies: list[int]) -> None:
    ends = [sum(latencies[: i + 1]) for i in range(len(latencies))]
    lines = [
        f"0 {i} {value} 0 {end // 10**6} {end % 10**6}\n"
        for i, (value, end) in enumerate(zip(latencies, ends, strict=True), start=1)
    ]
    found = closed([written(tmp_path_factory.mktemp("log"), "".join(lines).encode())])
    assert found.histogram.total == len(latencies)
    assert found.sum_s == pytest.approx(sum(latencies) / 1e6)
    assert found.max_s == pytest.approx(max(latencies, default=0) / 1e6)


def test_a_transaction_logged_without_a_time_lasts_from_the_previous_end(tmp_path: Path) -> None:
    # The second transaction of client 0 has no time, nor has the only one of client 1.
    lines = b"0 1 90 0 0 100\n1 1 0 0 0 120\n0 2 0 0 0 240\n0 3 60 0 0 310\n"
    found = closed([written(tmp_path, lines)])
    assert (found.histogram.total, found.unclocked) == (3, 1)
    assert found.sum_s == pytest.approx((90 + 140 + 70) / 1e6)
    assert found.max_s == pytest.approx(140 / 1e6)
    assert found.histogram.least == pytest.approx(70 / 1e6, rel=0.01)


def test_real_short_transactions_have_similar_latencies() -> None:
    """Transactions logged without a time have neither zero latency nor that of two transactions."""
    found = closed(logs("short"))
    times = [int(line.split()[2]) for line in (CAPTURED / "short.log0").read_text().splitlines()]
    clocked = sorted(time for time in times if time)
    assert found.histogram.least >= 0.5 * clocked[0] / 1e6
    assert found.histogram.quantile(0.95) <= 1.2 * clocked[int(0.95 * len(clocked))] / 1e6


def test_real_short_transactions_have_the_mean_of_pgbenchs_summary() -> None:
    lines = (CAPTURED / "short.log0").read_text().splitlines()
    unclocked = sum(line.split()[2] == "0" for line in lines)
    assert unclocked > len(lines) / 100, "the capture shows what it was made for"
    found = closed(logs("short"))
    shown = next(
        line for line in (CAPTURED / "short.stdout").read_text().splitlines() if line.startswith("latency average")
    )
    assert 1000 * found.sum_s / found.histogram.total == pytest.approx(float(shown.split()[3]), rel=0.05)
    assert found.unclocked <= 1


def test_a_failed_transaction_is_not_part_of_adjacent_latencies(tmp_path: Path) -> None:
    found = closed([written(tmp_path, b"0 1 50 0 0 100\n0 2 failed 0 0 900\n0 3 60 0 1 0\n")])
    assert found.sum_s == pytest.approx((50 + 60) / 1e6)


def test_a_missing_log_is_an_error() -> None:
    with pytest.raises(UnreadableLogError, match="no transaction log"):
        closed([])


@pytest.mark.parametrize("content", [b"", b"0 1 failed 0 1795295474 727081\n"])
def test_a_log_without_latencies_is_valid(tmp_path: Path, content: bytes) -> None:
    found = closed([written(tmp_path, content)])
    assert (found.histogram.total, found.sum_s, found.max_s) == (0, 0.0, 0.0)


@pytest.mark.parametrize(
    "garbage",
    [
        b"hello\n",
        b"0 2\n",
        b"0 2 \n",
        b"0 2 skip\n",
        b"0 2 1.5 0 1795295470 1\n",
        b"0 2 1e3 0 1795295470 1\n",
        b"0 2 nan 0 1795295470 1\n",
        b"0 2 99999999999999999999999 0 1795295470 1\n",
        b"0,2,500,0,1795295470,1\n",
        b"# comment\n",
        b"\x00\x00\x00\x00\n",
        b"\xff\xfe\xfd\n",
        b"pgbench: error: no space left\n",
        b"0 2 -500 0 1795295470 1\n",
        b"0 2 500 0 -1795295470 1\n",
        b"0 2 500 0 9223372036854775806 1\n",
        b"0 2 500 0 1795295470 1000000\n",
        b"9223372036854775806 2 500 0 1795295470 1\n",
        b"70000 2 500 0 1795295470 1\n",
        b"0 2 -9223372036854775808 0 1795295470 1\n",
        b"0 2 " + b"9" * 100_000 + b" 0 1795295470 1\n",
        b"1" * 1_000_000 + b"\n",
        b"0 2 500 0 1795295470 1 " * 100_000 + b"\n",
        bytes(1_000_000) + b"\n",
    ],
)
def test_a_line_in_another_format_is_rejected(tmp_path: Path, garbage: bytes) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    with pytest.raises(UnreadableLogError, match=r"log\.1"):
        closed([written(tmp_path, whole + garbage)])
    with pytest.raises(UnreadableLogError):
        read_ends([written(tmp_path, whole + garbage)])


def test_ends_of_a_client_that_go_back_in_time_are_rejected(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLogError, match="before the previous one"):
        closed([written(tmp_path, b"0 1 50 0 100 0\n0 2 50 0 99 999999\n")])
    with pytest.raises(UnreadableLogError, match="before the previous one"):
        read_ends([written(tmp_path, b"0 1 50 0 100 0\n0 2 50 0 99 999999\n")])
    # The order of ends of different clients does not matter.
    assert closed([written(tmp_path, b"0 1 50 0 100 0\n1 1 50 0 99 999999\n")]).histogram.total == 2


def test_the_sum_of_long_times_does_not_overflow(tmp_path: Path) -> None:
    lines = b"".join(b"%d 1 9000000000000000000 0 100 0\n" % client for client in range(5))
    assert closed([written(tmp_path, lines)]).sum_s == pytest.approx(4.5e13)


@given(st.lists(st.integers(1, 10**9), max_size=50))
def test_every_transaction_has_a_latency_or_is_unclocked(
    tmp_path_factory: pytest.TempPathFactory, latencies: list[int]
) -> None:
    lines = [f"0 {i} {value} 0 {i} 0\n" for i, value in enumerate(latencies, start=1)]
    found = closed([written(tmp_path_factory.mktemp("log"), "".join(lines).encode())])
    assert found.histogram.total + found.unclocked == len(latencies)


def test_a_log_truncated_before_its_last_time_is_rejected(tmp_path: Path) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    last = whole.rstrip().rindex(b"\n") + 1
    time = whole.index(b" ", whole.index(b" ", last) + 1) + 1
    for end in range(last + 1, time + 1):
        with pytest.raises(UnreadableLogError):
            closed([written(tmp_path, whole[:end])])


def test_detailed_failures_are_rejected_because_they_are_never_requested() -> None:
    with pytest.raises(UnreadableLogError):
        closed(logs("serialization_retried"))


def ends(*clients: list[int], first_times: list[int] | None = None) -> TransactionEnds:
    """The ends of each client's transactions in microseconds. first_times: logged time of each client's first one."""
    numbers = [number for client in clients for number in range(1, len(client) + 1)]
    firsts = first_times or [0] * len(clients)
    times = [
        first if number == 1 else 0
        for client, first in zip(clients, firsts, strict=True)
        for number in range(1, len(client) + 1)
    ]
    return TransactionEnds(
        clients=np.array([index for index, client in enumerate(clients) for _ in client], dtype=np.int64),
        numbers=np.array(numbers, dtype=np.int64),
        microseconds=np.array([end for client in clients for end in client], dtype=np.int64),
        times=np.array(times, dtype=np.int64),
    )


def stop(stopped: int, *sessions: tuple[int, int]) -> SliceEnd:
    """A stop, with beginning and end of the transaction of each session."""
    return SliceEnd(stopped=stopped, sessions=sessions)


def test_a_transaction_counts_in_the_slice_that_notices_its_end_and_pauses_are_excluded() -> None:
    # One client. The statement in flight at the stop at 195 ends at 200, and pgbench is continued at 300.
    stops = [stop(55, (50, 60)), stop(195, (190, 200)), stop(400, (390, 400))]
    found = slices(ends([50, 110, 150, 190, 301, 340, 390, 900]), [100, 300], stops)
    assert [one.transactions for one in found] == [3, 3]
    assert [one.histogram.total for one in found] == [3, 3]
    # Nothing ran from 60 to 100 and from 200 to 300: 110 began at 50, 301 at 190.
    assert [one.latency_sum_s for one in found] == pytest.approx([(20 + 40 + 40) * 1e-6, (11 + 39 + 50) * 1e-6])
    assert [one.latency_max_s for one in found] == pytest.approx([40e-6, 50e-6])


def test_a_slice_of_one_execution_has_its_latency() -> None:
    # Each statement is sent at the beginning of a slice, ends with it, and is noticed at the beginning of the next. The
    # first one was sent at 5 and finished at 90.
    begins, stops = [100, 300, 500], [stop(10, (5, 90)), stop(105, (100, 200)), stop(305, (301, 400)), stop(620)]
    found = slices(ends([101, 301, 501], first_times=[96]), begins, stops)
    assert [one.transactions for one in found] == [1, 1, 1]
    assert [one.latency_max_s for one in found] == pytest.approx([86e-6, 100e-6, 100e-6])
    # If pgbench did not read its clock in time, the first latency is unknown.
    unknown = slices(ends([101, 301, 501]), begins, stops)
    assert [one.histogram.total for one in unknown] == [0, 1, 1]


def test_latencies_exclude_the_pauses_of_each_client() -> None:
    # Both clients are stopped at 100. The second client's statement began first and finished at 160, the first client's
    # finished at 110. Both ends are noticed at 201.
    begins, stops = [10, 200], [stop(5, (0, 5), (1, 5)), stop(100, (90, 110), (60, 160)), stop(300)]
    found = slices(ends([20, 90, 201], [15, 60, 201]), begins, stops)
    # 20 began before 5, 90 at 20, 201 at 90 and finished at 110; 60 began at 15, 201 at 60 and finished at 160.
    assert found[1].latency_sum_s == pytest.approx((20 + 1 + 100 + 1) * 1e-6)
    assert found[1].latency_max_s == pytest.approx(101e-6)
    assert found[0].latency_sum_s == pytest.approx((70 + 45) * 1e-6)
    assert stops[1].end == 135


def test_a_client_whose_session_has_ended_gets_the_mean_end_of_the_others() -> None:
    begins, stops = [10, 200], [stop(5), stop(100, (90, 150)), stop(300)]
    found = slices(ends([20, 80, 201], [15, 60, 201]), begins, stops)
    # The session is assigned to the client whose last transaction ended first.
    assert found[1].latency_sum_s == pytest.approx((150 - 60 + 1 + 150 - 80 + 1) * 1e-6)


def test_transactions_after_the_last_stop_are_not_counted() -> None:
    (only,) = slices(ends([90, 150, 201, 202, 203]), [100], [stop(95), stop(200)])
    assert only.transactions == 1


def test_a_run_without_transactions_has_empty_slices() -> None:
    (only,) = slices(ends([]), [100], [stop(95), stop(200)])
    assert (only.transactions, only.latency_sum_s, only.histogram.total) == (0, 0.0, 0)


@pytest.mark.parametrize(("shift_us", "differ"), [(0, False), (-200, False), (-10_000, True), (10_000, True)])
def test_a_pgbench_that_waited_between_its_two_clocks_is_noticed(shift_us: int, *, differ: bool) -> None:
    # Slices of 20 ms every 50 ms, with a transaction each millisecond.
    begins = [100_000 + 50_000 * number for number in range(4)]
    stops = [stop(90_000), *(stop(begin + 20_000) for begin in begins)]
    true_ends = [begin + 1000 * number for begin in begins for number in range(1, 20)]
    logged = ends([end + shift_us for end in true_ends])
    assert clocks_differ(logged, begins, stops) is differ


def test_latencies_of_a_log_that_is_too_early_are_negative_and_can_be_left_out() -> None:
    begins, stops = [100_000, 200_000], [stop(90_000), stop(120_000), stop(220_000)]
    # Three transactions of the second slice, the first of which seems to end before it.
    found = slices(ends([110_000, 199_000, 201_000, 203_000]), begins, stops)
    assert found[1].latency_sum_s < 0
    bare = found[1].without_latencies()
    assert (bare.transactions, bare.latency_sum_s, bare.histogram.total) == (2, 0.0, 0)


@given(
    st.lists(st.lists(st.integers(1, 50), min_size=40, max_size=80), min_size=1, max_size=4),
    st.lists(st.tuples(st.integers(1, 100), st.integers(1, 100)), min_size=1, max_size=8),
    st.data(),
)
def test_every_end_between_the_first_start_and_the_last_stop_is_counted_once(
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


INTERVAL_LOG = b"""\
0 1 900 0 100 0
0 2 400 0 100 500
1 1 0 0 100 600
0 3 failed 0 100 900
0 4 300 0 100 999
0 5 700 0 101 0
"""


def test_only_transactions_that_end_in_the_interval_count(tmp_path: Path) -> None:
    files = [written(tmp_path, INTERVAL_LOG)]
    interval = LogInterval(begin=100_000_500, end=101_000_000)
    found = read_latencies(files, is_open_loop=False, interval=interval)
    # From the end of client 0 before the interval to its first end in it, and the logged time after the failure.
    assert (found.histogram.total, found.unclocked) == (2, 1)
    assert found.sum_s == pytest.approx(0.0008)
    assert read_failures(files, interval) == 1
    assert read_failures(files, LogInterval(begin=0, end=100_000_900)) == 0


def test_consecutive_intervals_have_all_transactions_of_a_run() -> None:
    files = logs("serialization")
    whole = read_latencies(files, is_open_loop=False)
    ends = read_ends(files).microseconds
    edges = [int(edge) for edge in np.linspace(ends.min(), ends.max() + 1, 5)]
    parts = [read_latencies(files, is_open_loop=False, interval=LogInterval(*pair)) for pair in pairwise(edges)]
    assert sum(part.histogram.total for part in parts) == whole.histogram.total
    assert sum(part.unclocked for part in parts) == whole.unclocked
    failures = sum(b" failed " in line for file in files for line in file.read_bytes().splitlines())
    assert read_failures(files, LogInterval(begin=0, end=2**62)) == failures > 0
