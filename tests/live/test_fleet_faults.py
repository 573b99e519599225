"""A fleet that loses a worker, its scheduler, its driver and a connection; its hosts have a network of their own."""

import json
import os
import shutil
import signal
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.live.conftest import INSTALLED, CommandLine, own_command_line
from tests.live.fleets import Fleet, started_fleet
from tests.live.namespaces import Network, connected_namespaces

DRIVER, HOSTS = "driver", ("db1", "db2", "db3")
CONTEXTS = 2
STUDY = """
title = "Twice as many rows on a fleet"
compare = "my.rows"

[factors]
server = ["17.8"]
"my.rows" = ["10000", "20000"]

[workloads.generated]
sql = "SELECT count(*) FROM generate_series(1, current_setting('my.rows')::int);"

[workloads.sorted]
sql = "SELECT max(g) FROM (SELECT g FROM generate_series(1, current_setting('my.rows')::int) AS g ORDER BY -g) AS s;"

[design]
blocks = 15
windows = 4
window = "50ms"
"""
BLOCKS = 15
PARTITION_S = 60


@pytest.fixture
def network() -> Iterator[Network]:
    if os.geteuid() != 0 or shutil.which("ip") is None:
        pytest.skip("network namespaces need root and the program ip")
    with connected_namespaces((DRIVER, *HOSTS)) as network:
        yield network


@pytest.fixture
def fleet(command_line: CommandLine, network: Network, shared_cache: Path, tmp_path: Path) -> Iterator[Fleet]:
    def on(host: str, line: CommandLine) -> CommandLine:
        return replace(line, program=(*network.inside(host), *INSTALLED))

    with ExitStack() as stack:
        hosts = {name: on(name, stack.enter_context(own_command_line(shared_cache, tmp_path))) for name in HOSTS}
        started = started_fleet(on(DRIVER, command_line), hosts, STUDY, network.address(DRIVER))
        yield stack.enter_context(started)


def wait_for_blocks(fleet: Fleet, number: int) -> None:
    fleet.driver.wait_for(lambda: len(fleet.blocks()) >= number, 240)


def wait_for_trial(fleet: Fleet, host: str) -> int:
    """Wait until a host runs a server; return its process id."""
    line = fleet.hosts[host]
    found: int = line.wait_for(lambda: line.postmaster(0), 120)
    return found


def kill_worker(fleet: Fleet, name: str) -> None:
    """Kill the process that measures; its parent starts it again."""
    parent = psutil.Process(fleet.programs[name].pid)
    (worker,) = (one for one in parent.children() if "spawn_main" in " ".join(one.cmdline()))
    worker.send_signal(signal.SIGKILL)


def intervals(document: str) -> list[tuple[str, float, float]]:
    """Verdict and interval of every context."""
    found: dict[str, Any] = json.loads(document)
    return [(one["verdict"], one["low"], one["high"]) for one in found["verdicts"]]


@pytest.mark.long
def test_a_study_survives_every_loss_and_gives_the_verdicts_of_an_undisturbed_run(
    fleet: Fleet, network: Network
) -> None:
    driver = fleet.run_driver()
    wait_for_blocks(fleet, 3)

    server = wait_for_trial(fleet, "db1")
    kill_worker(fleet, "db1")
    fleet.driver.wait_for(lambda: not psutil.pid_exists(server))

    wait_for_blocks(fleet, 8)
    fleet.kill_scheduler()
    fleet.start_scheduler()

    wait_for_blocks(fleet, 13)
    driver.kill()
    driver.communicate(timeout=10)
    before = fleet.blocks()
    driver = fleet.run_driver()

    wait_for_blocks(fleet, 16)
    wait_for_trial(fleet, "db2")
    network.set_link("db2", "down")
    time.sleep(PARTITION_S)
    network.set_link("db2", "up")

    disturbed = fleet.complete(driver, CONTEXTS, BLOCKS)
    # What was stored counts; what was being measured when the driver was killed is measured again.
    assert {*before} <= {*fleet.blocks()}
    assert {host for *_, host in fleet.blocks()} == {*HOSTS}

    fleet.results.rename(fleet.results.with_name("disturbed"))
    undisturbed = fleet.complete(fleet.run_driver(), CONTEXTS, BLOCKS)
    for (one, low, high), (other, other_low, other_high) in zip(
        intervals(disturbed), intervals(undisturbed), strict=True
    ):
        assert one == other == "slower"
        assert max(low, other_low) <= min(high, other_high), "the intervals overlap"
