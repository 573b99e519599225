"""What is counted in a window is the load's, without the reading of the counters itself."""

from pgversus.lab.measuring.readings import Reading, grown


def reading(**server: float) -> Reading:
    return Reading(server=server, host={"host_cpu_s": server["buffers_hit"]})


def test_the_readings_own_work_is_taken_off_and_nothing_falls_below_zero() -> None:
    before = reading(buffers_hit=100.0, tuples_returned=0.0, wal_bytes=5.0)
    after = reading(buffers_hit=180.0, tuples_returned=600.0, wal_bytes=7.0)
    assert grown(before, after, {"buffers_hit": 30.0, "tuples_returned": 601.0}) == {
        "buffers_hit": 50.0,
        "tuples_returned": 0.0,
        "wal_bytes": 2.0,
        "host_cpu_s": 80.0,
    }
