"""A study that a fleet measures: its scheduler and workers run on this machine, each worker with a cache of its own."""

import re
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import psutil
import pytest

from tests.live.conftest import CommandLine, own_command_line, results_database

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
CHOSEN = ("--results", "results", "--no-plans", "--json")


@dataclass
class Fleet:
    """The programs of a fleet and their standard error."""

    driver: CommandLine
    hosts: dict[str, CommandLine]
    address: str = ""
    programs: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    def certificates(self, name: str) -> tuple[str, str]:
        return "--certificates", str(self.driver.directory / "fleet" / name)

    def start_scheduler(self) -> None:
        port = self.address.rpartition(":")[2] or "0"
        self._start("scheduler", self.driver, "--port", port, *self.certificates("scheduler"))
        log = self.log("scheduler")
        self.address = self.driver.wait_for(lambda: re.search(r"tls://[\d.:]+", log.read_text()))[0]

    def start_worker(self, name: str) -> None:
        self._start("worker", self.hosts[name], "--scheduler", self.address, "--name", name, *self.certificates(name))

    def run_driver(self, *arguments: str) -> subprocess.Popen[str]:
        fleet = ("--fleet", self.address, *self.certificates("driver"))
        return self.driver.start("run", "study.toml", *fleet, *CHOSEN, *arguments)

    def stop(self, name: str) -> None:
        program = self.programs.pop(name)
        program.send_signal(signal.SIGINT)
        program.wait(60)

    def log(self, name: str) -> Path:
        return self.driver.directory / f"{name}.log"

    def _start(self, what: str, line: CommandLine, *arguments: str) -> None:
        name = arguments[arguments.index("--name") + 1] if "--name" in arguments else what
        with self.log(name).open("w") as log:
            self.programs[name] = line.start("fleet", what, *arguments, stdout=subprocess.DEVNULL, stderr=log)


@pytest.fixture
def fleet(command_line: CommandLine, shared_cache: Path, tmp_path: Path) -> Iterator[Fleet]:
    command_line.write("study.toml", STUDY)
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(own_command_line(shared_cache, tmp_path)) for name in HOSTS}
        found = Fleet(command_line, hosts)
        made = command_line.run("fleet", "certificates", "fleet", "scheduler", "driver", *HOSTS)
        assert made.code == 0, made.stderr
        try:
            found.start_scheduler()
            for name in HOSTS:
                found.start_worker(name)
            yield found
        finally:
            for name in list(found.programs):
                found.stop(name)
        for line in hosts.values():
            line.wait_for(partial(has_nothing_left, line))


def has_nothing_left(line: CommandLine) -> bool:
    return line.leftovers() == []


def blocks_in(results: Path) -> list[tuple[int, int, str]]:
    """Context, number and host of every block."""
    database = results_database(results)
    try:
        return database.execute("SELECT context, block, host FROM block ORDER BY 1, 2").fetchall()
    finally:
        database.close()


def check_complete(fleet: Fleet, driver: subprocess.Popen[str]) -> list[tuple[int, int, str]]:
    """Check that every block was counted once; return them."""
    stdout, stderr = driver.communicate(timeout=300)
    assert driver.returncode == 0, stderr
    assert '"blocks": 4' in stdout
    found = blocks_in(fleet.driver.directory / "results")
    assert [block[:2] for block in found] == [(context, block) for context in (1, 2) for block in range(1, 5)]
    return found


@pytest.mark.long
def test_hosts_share_the_blocks_of_a_study(fleet: Fleet) -> None:
    found = check_complete(fleet, fleet.run_driver())
    assert {host for *_, host in found} == {*HOSTS}
    assert fleet.driver.leftovers() == [], "the driver measures nothing"
    report = fleet.driver.run("report", "results", "--verbose")
    assert "db1" in report.stdout
    assert "db2" in report.stdout
    again = fleet.run_driver()
    assert check_complete(fleet, again) == found


def worker_of(fleet: Fleet, name: str) -> psutil.Process:
    """The process that measures; its parent starts it again."""
    parent = psutil.Process(fleet.programs[name].pid)
    (worker,) = (one for one in parent.children() if "spawn_main" in " ".join(one.cmdline()))
    return worker


@pytest.mark.long
def test_blocks_of_a_killed_worker_are_measured_by_others_and_its_servers_stop(fleet: Fleet) -> None:
    driver = fleet.run_driver()
    victim = fleet.hosts["db1"]
    postmaster = victim.wait_for(lambda: victim.postmaster(0))
    # A trial is running.
    worker_of(fleet, "db1").send_signal(signal.SIGKILL)
    victim.wait_for(lambda: not psutil.pid_exists(postmaster))
    check_complete(fleet, driver)


@pytest.mark.long
def test_a_study_survives_the_end_of_its_scheduler(fleet: Fleet) -> None:
    driver = fleet.run_driver()
    fleet.hosts["db1"].wait_for(lambda: fleet.hosts["db1"].postmaster(0))
    fleet.programs["scheduler"].kill()
    fleet.programs.pop("scheduler").wait(10)
    fleet.start_scheduler()
    check_complete(fleet, driver)


@pytest.mark.long
def test_a_killed_driver_resumes(fleet: Fleet) -> None:
    results = fleet.driver.directory / "results"
    driver = fleet.run_driver()
    fleet.driver.wait_for(lambda: (results / "results.sqlite").exists() and len(blocks_in(results)) > 2)
    driver.kill()
    driver.communicate(timeout=10)
    before = blocks_in(results)
    found = check_complete(fleet, fleet.run_driver())
    # What was stored counts; what was being measured when it was killed is measured again.
    assert {*before} <= {*found}


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
