"""Counters of a window are those of the load, without the cost of reading them."""

from pgversus.lab.readings import Reading, grown


def reading(**server: float) -> Reading:
    return Reading(server=server, host={"host_cpu_s": server["buffers_hit"]})


def test_the_cost_of_reading_is_subtracted_down_to_zero() -> None:
    before = reading(buffers_hit=100.0, tuples_returned=0.0, wal_bytes=5.0)
    after = reading(buffers_hit=180.0, tuples_returned=600.0, wal_bytes=7.0)
    assert grown(before, after, {"buffers_hit": 30.0, "tuples_returned": 601.0}) == {
        "buffers_hit": 50.0,
        "tuples_returned": 0.0,
        "wal_bytes": 2.0,
        "host_cpu_s": 80.0,
    }
