"""The connection to a fleet: which hosts are there, and when a new connection is made."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from pgversus.engine.progress import Progress
from pgversus.fleet import fleet
from pgversus.fleet.connection import HOST
from pgversus.fleet.fleet import Fleet


@dataclass
class Connection:
    """A client of Dask in so far as it matters."""

    status: str = "running"
    workers: dict[str, Any] = field(default_factory=dict)

    def subscribe_topic(self, _topic: str, _handler: Callable[[Any], None]) -> None:
        pass

    @property
    def scheduler(self) -> "Connection":
        return self

    def identity(self, n_workers: int) -> dict[str, Any]:
        assert n_workers == -1, "all of them"
        return {"workers": self.workers}

    def sync(self, asked: Callable[..., dict[str, Any]], **arguments: int) -> dict[str, Any]:
        return asked(**arguments)

    def close(self, timeout: float) -> None:
        assert timeout > 0
        self.status = "closed"


@dataclass
class Said(Progress):
    lines: list[str] = field(default_factory=list)

    def say(self, line: str) -> None:
        self.lines.append(line)


@dataclass
class Clock:
    now: float = 0.0

    def monotonic(self) -> float:
        return self.now


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Clock:
    clock = Clock()
    monkeypatch.setattr(fleet, "time", clock)
    return clock


def a_fleet(connections: list[Connection], said: Said | None = None) -> Fleet:
    """A fleet that takes these connections one after another; without one left, the scheduler is away."""
    remaining = iter(connections)

    def connect() -> Any:
        connection = next(remaining, None)
        if connection is None:
            raise OSError("refused")
        return connection

    return Fleet(connect, said or Progress())


ONE = {"tls://db1:1": {"name": "db1", "resources": {HOST: 1}}}


def test_hosts_are_the_workers_that_measure() -> None:
    others = {"tls://other:2": {"name": "other", "resources": {}}}
    assert a_fleet([Connection(workers=ONE | others)]).hosts() == {"db1": "tls://db1:1"}


@pytest.mark.usefixtures("clock")
def test_a_closed_connection_is_replaced_at_once() -> None:
    first, said = Connection(workers=ONE), Said()
    found = a_fleet([first, Connection(workers=ONE)], said)
    first.status = "closed"
    assert found.hosts() == {"db1": "tls://db1:1"}
    assert said.lines == ["reconnected to the scheduler of the fleet"]


def test_a_connection_between_running_and_closed_is_replaced_when_it_stays_so(clock: Clock) -> None:
    first = Connection(workers=ONE)
    found = a_fleet([first, Connection(workers=ONE)])
    clock.now = 100.0
    found.hosts()
    first.status = "connecting"
    clock.now = 110.0
    assert found.hosts() == {}, "it may connect by itself"
    clock.now = 121.0
    assert found.hosts() == {"db1": "tls://db1:1"}
    assert first.status == "closed"


def test_there_are_no_hosts_while_the_scheduler_is_away(clock: Clock) -> None:
    first = Connection(workers=ONE)
    found = a_fleet([first])
    first.status = "connecting"
    clock.now = 100.0
    assert found.hosts() == {}
