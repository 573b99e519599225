"""Waits for memory and disk are a caveat only if the compared servers cannot be the cause."""

from collections.abc import Mapping

import pytest

from pgversus.answers.load_caveats import measured_of, pressure_caveats
from tests.builders import comparison, rate_block

READS_ONLY = {
    "buffers_hit": 1e6,
    "buffers_read": 5.0,
    "checkpoint_buffers_written": 0.0,
    "background_buffers_written": 0.0,
    "wal_bytes": 500.0,
    "temp_bytes": 0.0,
    "server_io_write_bytes": 0.0,
    "server_io_extend_bytes": 0.0,
    # Four clients on two processors: one always waits.
    "pressure_cpu_s": 0.97,
    "pressure_io_s": 0.01,
    "pressure_memory_s": 0.0,
}


def found(
    contender: Mapping[str, float], baseline: Mapping[str, float] | None = None, block_bytes: int | None = None
) -> list[tuple[str, int | None]]:
    block = rate_block(1, 1000.0, 1000.0, transactions=1000)
    counters = {0: READS_ONLY | dict(baseline or {}), 1: READS_ONLY | dict(contender)}
    trials = {arm: trial._replace(seconds=1.0, counters=counters[arm]) for arm, trial in block.trials.items()}
    blocks = [block._replace(trials=trials)] * 4
    measured = [measured_of(arm, blocks, block_bytes) for arm in comparison().arms]
    return [(caveat.slug, caveat.arm) for caveat in pressure_caveats(measured)]


@pytest.mark.parametrize(
    ("slug", "counters", "below"),
    [
        ("memory-pressure", {"pressure_memory_s": 0.02}, {"pressure_memory_s": 0.009}),
        ("disk-disturbed", {"pressure_io_s": 0.11}, {"pressure_io_s": 0.09}),
    ],
)
def test_waiting_beyond_its_limit_is_a_caveat_of_its_arm(
    slug: str, counters: dict[str, float], below: dict[str, float]
) -> None:
    assert found(counters) == [(slug, 1)]
    assert found({}, counters) == [(slug, None)]
    assert found(below) == []


@pytest.mark.parametrize(
    "own",
    [
        {"buffers_read": 50.0},
        # Each transaction that writes may wait for the disk.
        {"wal_bytes": 50_000.0},
        {"temp_bytes": 2e6},
        {"checkpoint_buffers_written": 500.0},
        # Unknown before 16.
        {"server_io_write_bytes": float("nan")},
    ],
)
def test_disk_waits_raise_no_caveat_if_either_server_uses_the_disk(own: dict[str, float]) -> None:
    assert found({"pressure_io_s": 0.5, **own}) == []
    assert found({"pressure_io_s": 0.5}, own) == []


def test_the_use_of_the_disk_is_judged_by_the_block_size_of_each_server() -> None:
    own = {"pressure_io_s": 0.5, "temp_bytes": 100_000.0}
    assert found(own, block_bytes=8192) == found(own) == []
    assert found(own, block_bytes=32768) == [("disk-disturbed", 1)]


def test_waiting_for_a_processor_raises_no_caveat() -> None:
    assert found({"pressure_cpu_s": 1.0}, {"pressure_cpu_s": 0.1}) == []


def test_a_host_without_pressure_counters_raises_no_caveat() -> None:
    silent = rate_block(1, 1000.0, 1000.0, transactions=1000)
    assert list(pressure_caveats([measured_of(arm, [silent]) for arm in comparison().arms])) == []
