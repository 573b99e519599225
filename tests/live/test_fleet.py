"""A study that a fleet measures: its scheduler and workers run on this machine, each worker with a cache of its own."""

from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.conftest import PROGRAM, CommandLine, own_command_line
from tests.live.fleets import CHOSEN, Fleet, started_fleet

STUDY = """
title = "Two statements on a fleet"

[factors]
server = ["17.8", "17.8"]

[workloads.one]
builtin = "select-only"

[workloads.other]
sql = "SELECT count(*) FROM pgbench_branches;"

[dataset]
scale = 1

[design]
blocks = 4
windows = 4
window = "50ms"
"""
HOSTS = ("db1", "db2")
DASK = (str(PROGRAM.with_name("dask")),)


@pytest.fixture
def fleet(command_line: CommandLine, shared_cache: Path, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(own_command_line(shared_cache, tmp_path)) for name in HOSTS}
        yield stack.enter_context(started_fleet(command_line, hosts, STUDY))


@pytest.mark.long
def test_hosts_share_the_blocks_of_a_study(fleet: Fleet) -> None:
    stdout = fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert '"blocks": 4' in stdout
    found = fleet.blocks()
    assert {host for *_, host in found} == {*HOSTS}
    assert fleet.driver.leftovers() == [], "the driver measures nothing"
    report = fleet.driver.run("report", "results", "--verbose")
    assert "db1" in report.stdout
    assert "db2" in report.stdout
    fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert fleet.blocks() == found


@pytest.mark.long
def test_a_worker_that_dask_starts_measures_like_any_other(fleet: Fleet) -> None:
    for name in HOSTS:
        fleet.stop(name)
    line, folder = replace(fleet.hosts["db2"], program=DASK), fleet.folder("db2")
    options = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
    files = (part for option, name in options.items() for part in (option, str(folder / name)))
    kind = ("--no-nanny", "--worker-class", "pgversus.fleet.worker.HostWorker", "--name", "db2")
    fleet.start("db2", line, "worker", fleet.address, *kind, *files)
    fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert {host for *_, host in fleet.blocks()} == {"db2"}


def test_whoever_has_no_certificate_of_the_fleet_is_refused(fleet: Fleet) -> None:
    strangers = fleet.driver.run("fleet", "certificates", "others", "driver")
    assert strangers.code == 0
    study = ("run", "study.toml", *CHOSEN, "--fleet")
    ended = fleet.driver.run(*study, fleet.address, "--certificates", "others/driver")
    assert (ended.code, "error[fleet-unreachable]" in ended.stderr) == (3, True), ended.stderr
    plain = fleet.address.replace("tls://", "tcp://")
    ended = fleet.driver.run(*study, plain)
    assert (ended.code, "error[fleet-unreachable]" in ended.stderr) == (3, True), ended.stderr
    ended = fleet.driver.run(*study, "tcp://10.1.2.3:8786")
    assert (ended.code, "error[fleet-address]" in ended.stderr) == (2, True), ended.stderr
