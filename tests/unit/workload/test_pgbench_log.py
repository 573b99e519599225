from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.workload.pgbench import parse_summary
from pgversus.workload.pgbench_log import UnreadableLogError, read_latencies
from tests.builders import DATA

CAPTURED = DATA / "pgbench"
RUNS = ("closed_loop", "rate", "rate_with_limit", "serialization")


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
    found = read_latencies(logs(name))
    assert found.histogram.total == len(latencies)
    assert found.sum_s == pytest.approx(sum(latencies) / 1e6)
    assert found.max_s == pytest.approx(max(latencies) / 1e6)
    assert found.histogram.quantile(0.5) == pytest.approx(
        float(np.quantile(latencies, 0.5, method="inverted_cdf")) / 1e6, rel=0.0101
    )


@pytest.mark.parametrize("name", RUNS)
def test_the_log_holds_as_many_transactions_as_the_summary_counts(name: str) -> None:
    summary = parse_summary((CAPTURED / f"{name}.stdout").read_text())
    assert read_latencies(logs(name)).histogram.total == summary.transactions


def test_failed_transactions_have_no_latency() -> None:
    lines = [line for file in logs("serialization") for line in file.read_text().splitlines()]
    summary = parse_summary((CAPTURED / "serialization.stdout").read_text())
    assert len(lines) == summary.transactions + summary.failed
    assert read_latencies(logs("serialization")).histogram.total == summary.transactions


def test_skipped_transactions_have_no_latency() -> None:
    lines = logs("rate_with_limit")[0].read_text().splitlines()
    skipped = [line for line in lines if " skipped " in line]
    assert skipped
    assert read_latencies(logs("rate_with_limit")).histogram.total == len(lines) - len(skipped)


def test_with_a_rate_time_counts_from_the_scheduled_start() -> None:
    """Lag (the seventh column) is part of the latency, as in pgbench's own mean."""
    rows = [line.split(" ") for line in logs("rate")[0].read_text().splitlines()]
    assert all(int(row[2]) >= int(row[6]) for row in rows)
    shown = next(
        line for line in (CAPTURED / "rate.stdout").read_text().splitlines() if line.startswith("latency average")
    )
    found = read_latencies(logs("rate"))
    assert 1000 * found.sum_s / found.histogram.total == pytest.approx(float(shown.split()[3]), abs=0.002)


def test_the_logs_of_all_threads_are_one_run() -> None:
    files = logs("closed_loop")
    assert len(files) == 2
    whole, parts = read_latencies(files), [read_latencies([file]) for file in files]
    assert whole.histogram.total == sum(part.histogram.total for part in parts)
    assert whole.sum_s == pytest.approx(sum(part.sum_s for part in parts))
    assert whole.max_s == max(part.max_s for part in parts)


@given(st.lists(st.integers(0, 10**9), max_size=50))
def test_every_latency_is_read(tmp_path_factory: pytest.TempPathFactory, latencies: list[int]) -> None:
    lines = [f"0 {i} {value} 0 1795295470 666454\n" for i, value in enumerate(latencies, start=1)]
    found = read_latencies([written(tmp_path_factory.mktemp("log"), "".join(lines).encode())])
    assert found.histogram.total == len(latencies)
    assert found.sum_s == pytest.approx(sum(latencies) / 1e6)
    assert found.max_s == pytest.approx(max(latencies, default=0) / 1e6)


def test_no_file_is_no_log() -> None:
    with pytest.raises(UnreadableLogError, match="no transaction log"):
        read_latencies([])


@pytest.mark.parametrize("content", [b"", b"0 1 failed 0 1795295474 727081\n"])
def test_a_log_without_latencies_is_empty_and_not_broken(tmp_path: Path, content: bytes) -> None:
    found = read_latencies([written(tmp_path, content)])
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
    ],
)
def test_a_line_that_is_not_pgbenchs_is_refused(tmp_path: Path, garbage: bytes) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    with pytest.raises(UnreadableLogError, match=r"log\.1"):
        read_latencies([written(tmp_path, whole + garbage)])


def test_a_log_cut_before_its_last_time_is_refused(tmp_path: Path) -> None:
    whole = logs("closed_loop")[0].read_bytes()
    last = whole.rstrip().rindex(b"\n") + 1
    time = whole.index(b" ", whole.index(b" ", last) + 1) + 1
    for end in range(last + 1, time + 1):
        with pytest.raises(UnreadableLogError):
            read_latencies([written(tmp_path, whole[:end])])


def test_the_words_of_detailed_failures_are_refused_because_they_are_never_asked_for() -> None:
    with pytest.raises(UnreadableLogError):
        read_latencies(logs("serialization_retried"))
