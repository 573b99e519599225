"""Whole comparisons with their verdicts. They are timing-sensitive, so they run alone."""

import pytest

from tests.live.conftest import EXAMPLES, CommandLine

pytestmark = pytest.mark.measures


@pytest.mark.parametrize(("setup", "script"), [("cte.sql", "cte_in.sql"), ("range.sql", "range_contains.sql")])
def test_planner_improvements_of_17_are_detected(command_line: CommandLine, setup: str, script: str) -> None:
    # The two others, and the effect of plans, are measured in tests/live/test_why.py.
    files = ("--setup", str(EXAMPLES / setup), "-f", str(EXAMPLES / script))
    ended = command_line.compare("16.12", "17.8", *files, "-c", "4", "--no-plans")
    assert ended.code == 0, ended.stderr
    (verdict,) = ended.comparison["verdicts"]
    assert verdict["verdict"] == "faster", ended.comparison["answer"]
    assert verdict["low"] > 1
    assert verdict["seconds_measured"] <= 120
    assert ended.caveats == []


MOST_ATTEMPTS = 2
"""If the hypervisor takes CPU time away, "undecided" is a correct answer, and the test tries again."""


@pytest.mark.long
def test_a_known_effect_is_detected_and_lies_in_the_interval(command_line: CommandLine) -> None:
    script = command_line.write("sleep.sql", "SELECT pg_sleep(current_setting('bench.delay')::float);\n")
    # The server rounds the rest of a sleep up to whole milliseconds: these sleeps take 39 and 41 ms. Sleeps of whole
    # milliseconds would take 39 or 40 ms, depending on the last bit of a floating-point number.
    # The median is compared: if others take the CPUs for moments, some sleepers wake up late by more than the
    # difference, and they dominate the mean, which is tps in a closed loop.
    # Few windows per block: if rounds are measured again, many windows would leave too few blocks.
    load = ("--set", "bench.delay=0.0385,0.0405", "-f", script, "-c", "8", "--window", "1s", "--windows", "2")
    arguments = ("17.8", *load, "--warmup", "1", "--no-plans", "--metric", "latency_p50", "--budget", "5m", "--json")
    for attempt in range(MOST_ATTEMPTS):
        ended = command_line.run("compare", *arguments, "--results", f"results-{attempt}")
        assert ended.code == 0, ended.stderr
        (verdict,) = ended.comparison["verdicts"]
        stolen = any(caveat["slug"] == "host-stolen" for caveat in ended.comparison["caveats"])
        if not (stolen and verdict["verdict"] == "undecided"):
            break
    assert verdict["verdict"] == "slower"
    assert verdict["low"] <= 41 / 39 <= verdict["high"]


@pytest.mark.long
def test_a_server_is_not_faster_than_itself(command_line: CommandLine) -> None:
    # At most 5 of 100 comparisons may be wrong, so one that is wrong proves nothing. All attempts would fail in the
    # same way if the order of the arms or their positions had an effect.
    verdicts = []
    for attempt in range(3):
        arguments = ("17.8", "17.8", "-i", "-S", "-c", "2", "--budget", "20s", "--no-plans", "--json")
        ended = command_line.run("compare", *arguments, "--results", f"results-{attempt}")
        assert ended.code == 0, ended.stderr
        verdicts += [verdict["verdict"] for verdict in ended.comparison["verdicts"]]
        if verdicts[-1] in ("equivalent", "undecided"):
            return
    pytest.fail(f"all verdicts are wrong: {verdicts}")
