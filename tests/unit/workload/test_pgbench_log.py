from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.workload.pgbench import parse_summary
from pgversus.workload.pgbench_log import Latencies, UnreadableLogError, read_ends, read_latencies
from tests.builders import DATA

CAPTURED = DATA / "pgbench"
RUNS = ("closed_loop", "rate", "rate_with_limit", "serialization")


def closed(files: list[Path]) -> Latencies:
    return read_latencies(files, is_open_loop=False)


def logs(name: str) -> list[Path]:
    files = sorted(CAPTURED.glob(f"{name}.log*"))
    assert files
    return files


def by_hand(files: list[Path]) -> list[int]:
    """A second reader: the third word of each line, where it is a number."""
    words = [line.split(" ")[2] for file in files for line in file.read_text().splitlines()]
    return [int(word) for word in words if word not in ("failed", "skipped")]


def written(directory: Path, content: bytes) -> Path:
    file = directory / "log.1"
    file.write_bytes(content)
    return file


@pytest.mark.parametrize("name", RUNS)
def test_the_log_of_a_real_run_is_read(name: str) -> None:
    latencies = by_hand(logs(name))
    found = read_latencies(logs(name), is_open_loop=name.startswith("rate"))
    assert found.histogram.total == len(latencies)
    # From end to end a latency is a little longer than what was logged: pgbench's own work is in it.
    assert sum(latencies) / 1e6 <= found.sum_s * 1.0001 <= sum(latencies) / 1e6 * 1.1
    assert found.histogram.quantile(0.5) == pytest.approx(
        float(np.quantile(latencies, 0.5, method="inverted_cdf")) / 1e6, rel=0.05
    )


@pytest.mark.parametrize("name", RUNS)
def test_the_log_holds_as_many_transactions_as_the_summary_counts(name: str) -> None:
    summary = parse_summary((CAPTURED / f"{name}.stdout").read_text())
    found = read_latencies(logs(name), is_open_loop=name.startswith("rate"))
    assert found.histogram.total == summary.transactions


def test_failed_transactions_have_no_latency() -> None:
    lines = [line for file in logs("serialization") for line in file.read_text().splitlines()]
    summary = parse_summary((CAPTURED / "serialization.stdout").read_text())
    assert len(lines) == summary.transactions + summary.failed
    assert closed(logs("serialization")).histogram.total == summary.transactions


def test_skipped_transactions_have_no_latency() -> None:
    lines = logs("rate_with_limit")[0].read_text().splitlines()
    skipped = [line for line in lines if " skipped " in line]
    assert skipped
    assert read_latencies(logs("rate_with_limit"), is_open_loop=True).histogram.total == len(lines) - len(skipped)


def test_with_a_rate_time_counts_from_the_scheduled_start() -> None:
    """Lag (the seventh column) is part of the latency, as in pgbench's own mean."""
    rows = [line.split(" ") for line in logs("rate")[0].read_text().splitlines()]
    assert all(int(row[2]) >= int(row[6]) for row in rows)
    shown = next(
        line for line in (CAPTURED / "rate.stdout").read_text().splitlines() if line.startswith("latency average")
    )
    found = read_latencies(logs("rate"), is_open_loop=True)
    assert 1000 * found.sum_s / found.histogram.total == pytest.approx(float(shown.split()[3]), abs=0.002)


def test_the_logs_of_all_threads_are_one_run() -> None:
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


def test_a_transaction_that_was_logged_without_a_time_lasts_from_the_end_before_it(tmp_path: Path) -> None:
    # Of client 0 the second was not clocked; client 1 has one, never clocked.
    lines = b"0 1 90 0 0 100\n1 1 0 0 0 120\n0 2 0 0 0 240\n0 3 60 0 0 310\n"
    found = closed([written(tmp_path, lines)])
    assert (found.histogram.total, found.unclocked) == (3, 1)
    assert found.sum_s == pytest.approx((90 + 140 + 70) / 1e6)
    assert found.max_s == pytest.approx(140 / 1e6)
    assert found.histogram.least == pytest.approx(70 / 1e6, rel=0.01)


def test_real_short_transactions_all_take_about_as_long() -> None:
    """Those without a time have neither none nor that of two."""
    found = closed(logs("short"))
    times = [int(line.split()[2]) for line in (CAPTURED / "short.log0").read_text().splitlines()]
    clocked = sorted(time for time in times if time)
    assert found.histogram.least >= 0.5 * clocked[0] / 1e6
    assert found.histogram.quantile(0.95) <= 1.2 * clocked[int(0.95 * len(clocked))] / 1e6


def test_real_short_transactions_have_the_mean_of_pgbenchs_own_summary() -> None:
    lines = (CAPTURED / "short.log0").read_text().splitlines()
    unclocked = sum(line.split()[2] == "0" for line in lines)
    assert unclocked > len(lines) / 100, "the capture shows what it was made for"
    found = closed(logs("short"))
    shown = next(
        line for line in (CAPTURED / "short.stdout").read_text().splitlines() if line.startswith("latency average")
    )
    assert 1000 * found.sum_s / found.histogram.total == pytest.approx(float(shown.split()[3]), rel=0.05)
    assert found.unclocked <= 1


def test_a_failed_transaction_between_two_others_is_in_neither_latency(tmp_path: Path) -> None:
    found = closed([written(tmp_path, b"0 1 50 0 0 100\n0 2 failed 0 0 900\n0 3 60 0 1 0\n")])
    assert found.sum_s == pytest.approx((50 + 60) / 1e6)


def test_no_file_is_no_log() -> None:
    with pytest.raises(UnreadableLogError, match="no transaction log"):
        closed([])


@pytest.mark.parametrize("content", [b"", b"0 1 failed 0 1795295474 727081\n"])
def test_a_log_without_latencies_is_empty_and_not_broken(tmp_path: Path, content: bytes) -> None:
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
def test_a_line_that_is_not_pgbenchs_is_refused(tmp_path: Path, garbage: bytes) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    with pytest.raises(UnreadableLogError, match=r"log\.1"):
        closed([written(tmp_path, whole + garbage)])
    with pytest.raises(UnreadableLogError):
        read_ends([written(tmp_path, whole + garbage)])


def test_a_client_that_ends_before_it_has_ended_is_damage(tmp_path: Path) -> None:
    with pytest.raises(UnreadableLogError, match="before the one before it"):
        closed([written(tmp_path, b"0 1 50 0 100 0\n0 2 50 0 99 999999\n")])
    with pytest.raises(UnreadableLogError, match="before the one before it"):
        read_ends([written(tmp_path, b"0 1 50 0 100 0\n0 2 50 0 99 999999\n")])
    # Of two clients each has a time of its own.
    assert closed([written(tmp_path, b"0 1 50 0 100 0\n1 1 50 0 99 999999\n")]).histogram.total == 2


def test_the_sum_of_long_times_is_no_negative_number(tmp_path: Path) -> None:
    lines = b"".join(b"%d 1 9000000000000000000 0 100 0\n" % client for client in range(5))
    assert closed([written(tmp_path, lines)]).sum_s == pytest.approx(4.5e13)


@given(st.lists(st.integers(1, 10**9), max_size=50))
def test_no_transaction_is_lost_between_those_with_and_without_a_time(
    tmp_path_factory: pytest.TempPathFactory, latencies: list[int]
) -> None:
    lines = [f"0 {i} {value} 0 {i} 0\n" for i, value in enumerate(latencies, start=1)]
    found = closed([written(tmp_path_factory.mktemp("log"), "".join(lines).encode())])
    assert found.histogram.total + found.unclocked == len(latencies)


def test_a_log_cut_before_its_last_time_is_refused(tmp_path: Path) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    last = whole.rstrip().rindex(b"\n") + 1
    time = whole.index(b" ", whole.index(b" ", last) + 1) + 1
    for end in range(last + 1, time + 1):
        with pytest.raises(UnreadableLogError):
            closed([written(tmp_path, whole[:end])])


def test_the_words_of_detailed_failures_are_refused_because_they_are_never_asked_for() -> None:
    with pytest.raises(UnreadableLogError):
        closed(logs("serialization_retried"))
