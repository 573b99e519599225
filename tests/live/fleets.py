"""A fleet on this machine: its scheduler, workers with caches of their own, and the driver of a study."""

import re
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from tests.live.conftest import CommandLine, results_database

CHOSEN = ("--results", "results", "--no-plans", "--json")
_LAST_S = 300


@dataclass
class Fleet:
    """The programs of a fleet and their standard error."""

    driver: CommandLine
    hosts: Mapping[str, CommandLine]
    listens_on: str = "127.0.0.1"
    worker_options: tuple[str, ...] = ()
    address: str = ""
    programs: dict[str, subprocess.Popen[str]] = field(default_factory=dict)

    @property
    def results(self) -> Path:
        return self.driver.directory / "results"

    def folder(self, name: str) -> Path:
        """The certificates of a host."""
        return self.driver.directory / "fleet" / name

    def certificates(self, name: str) -> tuple[str, str]:
        return "--certificates", str(self.folder(name))

    def start_scheduler(self) -> None:
        port = self.address.rpartition(":")[2] or "0"
        where = ("--host", self.listens_on, "--port", port)
        self.start("scheduler", self.driver, "fleet", "scheduler", *where, *self.certificates("scheduler"))
        log = self.log("scheduler")
        self.address = self.driver.wait_for(lambda: re.search(r"tls://[\d.:]+", log.read_text()))[0]

    def start_worker(self, name: str) -> None:
        named = ("--scheduler", self.address, "--name", name)
        self.start(name, self.hosts[name], "fleet", "worker", *named, *self.certificates(name), *self.worker_options)

    def start(self, name: str, line: CommandLine, *arguments: str) -> None:
        """Start a program of the fleet."""
        with self.log(name).open("w") as log:
            self.programs[name] = line.start(*arguments, stdout=subprocess.DEVNULL, stderr=log)

    def run_driver(self, *arguments: str) -> subprocess.Popen[str]:
        fleet = ("--fleet", self.address, *self.certificates("driver"))
        return self.driver.start("run", "study.toml", *fleet, *CHOSEN, *arguments)

    def stop(self, name: str) -> int:
        """Interrupt a program; return its exit code."""
        program = self.programs.pop(name)
        program.send_signal(signal.SIGINT)
        return program.wait(60)

    def kill_scheduler(self) -> None:
        program = self.programs.pop("scheduler")
        program.kill()
        program.wait(10)

    def log(self, name: str) -> Path:
        return self.driver.directory / f"{name}.log"

    def blocks(self) -> list[tuple[int, int, str]]:
        """Context, number and host of every block in the results."""
        if not (self.results / "results.sqlite").exists():
            return []
        database = results_database(self.results)
        try:
            return database.execute("SELECT context, block, host FROM block ORDER BY 1, 2").fetchall()
        finally:
            database.close()

    def complete(self, driver: subprocess.Popen[str], contexts: int, blocks: int) -> str:
        """Check that the driver ends well and that every block was counted once; return its output."""
        stdout, stderr = driver.communicate(timeout=_LAST_S)
        assert driver.returncode == 0, stderr
        expected = [(context, block) for context in range(1, contexts + 1) for block in range(1, blocks + 1)]
        assert [block[:2] for block in self.blocks()] == expected
        return stdout


@contextmanager
def started_fleet(
    driver: CommandLine,
    hosts: Mapping[str, CommandLine],
    study: str,
    listens_on: str = "127.0.0.1",
    worker_options: tuple[str, ...] = (),
) -> Iterator[Fleet]:
    """A fleet whose workers have been started; at the end nothing of it is left."""
    driver.write("study.toml", study)
    fleet = Fleet(driver, hosts, listens_on, worker_options)
    made = driver.run("fleet", "certificates", "fleet", "scheduler", "driver", *hosts)
    assert made.code == 0, made.stderr
    try:
        fleet.start_scheduler()
        for name in hosts:
            fleet.start_worker(name)
        yield fleet
    finally:
        for name in list(fleet.programs):
            fleet.stop(name)
    for line in hosts.values():
        line.wait_for(partial(_has_nothing_left, line))


def _has_nothing_left(line: CommandLine) -> bool:
    return line.leftovers() == []
