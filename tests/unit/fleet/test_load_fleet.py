"""The hosts that send load together: when a window is repeated, and what fails a trial."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError, ServerError
from pgversus.fleet import load_fleet
from pgversus.fleet.fleet import Clock
from pgversus.fleet.load_fleet import FleetLoadHosts, hosts_for_load
from pgversus.fleet.messages import (
    Close,
    Done,
    Failed,
    LoadOpened,
    NotOpen,
    OpenLoad,
    Reply,
    SendLoad,
    Sent,
    Task,
    encoded,
    versions_here,
)
from pgversus.host.identity import server_user
from pgversus.postgres.client import Client
from pgversus.study.comparison import Arm
from pgversus.study.servers import RunningServer
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.workload.aligned_run import AlignedWindow
from pgversus.workload.pgbench_run import PgbenchLoad
from tests.builders import window
from tests.unit.fleet.test_fleet_hosts import QUESTION

CLIENT = Client(pgbench=Path("/pgbench"), psql=Path("/psql"), version="17", origin="test", user=server_user())
LOAD = PgbenchLoad(
    workload=PgbenchWorkload(scripts=(Script(name="select-only"),)),
    client=CLIENT,
    script_files=(None,),
    scratch=Path("/nowhere"),
    kept_logs=None,
    connect_allowance_s=0,
    longest_s=60.0,
)
EXTERNAL: Arm = replace(QUESTION.contexts[0].comparison.arms[0], server=RunningServer(uri="postgresql:///db"))
IN_TIME = Sent(found=AlignedWindow(window=window([1000] * 10, 1.0), transactions=25, late_s=-0.5))
LATE = Sent(found=AlignedWindow(window=window([1000] * 10, 1.0), transactions=25, late_s=0.75))


@dataclass
class Finished:
    """A future that has its reply; None if its host was lost."""

    reply: Reply | None
    key: str = ""

    @property
    def status(self) -> str:
        return "finished" if self.reply is not None else "lost"

    def done(self) -> bool:
        return True

    def result(self, timeout: float) -> bytes:
        assert timeout > 0
        assert self.reply is not None
        return encoded(self.reply)

    def release(self) -> None:
        pass


@dataclass
class Connection:
    """A fleet whose hosts open a run at once and answer each load with the next of these replies."""

    replies: list[Reply | None]
    there: dict[str, str] = field(default_factory=lambda: {"db1": "db1-1", "db2": "db2-1"})
    sent: list[tuple[str, Task]] = field(default_factory=list)
    opened: Reply = field(default_factory=LoadOpened)
    unheard: set[str] = field(default_factory=set)

    def hosts(self) -> dict[str, str]:
        return dict(self.there)

    def send(self, host: str, task: Task, key: str) -> Finished:
        assert key.startswith("r-")
        self.sent.append((host, task))
        match task:
            case OpenLoad():
                return Finished(self.opened)
            case SendLoad():
                return Finished(self.replies.pop(0))
            case _:
                return Finished(Done())

    def clocks(self, addresses: Sequence[str], readings: int) -> Mapping[str, Clock]:
        assert readings > 1
        there = [address for address in addresses if address not in self.unheard]
        return {address: Clock(10.0 * number, 0.001 * (number + 1)) for number, address in enumerate(there)}

    def say_news(self) -> None:
        pass

    def of(self, kind: type) -> list[Task]:
        return [task for _, task in self.sent if isinstance(task, kind)]


def joined(connection: Connection) -> FleetLoadHosts:
    opening = OpenLoad(run="r", versions=versions_here(), study=QUESTION, client={})
    hosts = FleetLoadHosts(connection, opening, ["db2", "db1"], Progress())  # type: ignore[arg-type]
    hosts.open()
    return hosts


@pytest.fixture(autouse=True)
def _short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_fleet, "_WAIT_S", 0.05)
    monkeypatch.setattr(load_fleet, "_PATIENCE_S", 0.05)
    monkeypatch.setattr(load_fleet, "_LOOK_S", 0.01)
    monkeypatch.setattr(load_fleet, "_OTHERS_S", 0.0)


def run(hosts: FleetLoadHosts) -> float | None:
    """The clock error of a window; None if it must be repeated."""
    joint = hosts.run([LOAD, LOAD], EXTERNAL, 1.0, [1, 2])
    return None if joint is None else joint.clock_error_s


def repeated(hosts: FleetLoadHosts, times: int) -> None:
    for _ in range(times):
        assert run(hosts) is None


def test_every_host_is_told_the_window_by_its_own_clock() -> None:
    connection = Connection([IN_TIME, IN_TIME])
    assert run(joined(connection)) == 0.002
    first, second = (task for task in connection.of(SendLoad) if isinstance(task, SendLoad))
    assert second.begin_s - first.begin_s == pytest.approx(10.0)
    assert first.end_s - first.begin_s == pytest.approx(1.0)
    assert (first.seed, second.seed, first.uri) == (1, 2, "postgresql:///db")


def test_a_window_that_a_host_missed_is_repeated_with_more_time_to_connect() -> None:
    connection = Connection([IN_TIME, LATE, *[IN_TIME] * 40])
    hosts = joined(connection)
    assert run(hosts) is None
    assert hosts._lead_s > 2 * load_fleet._LEAD_S
    for _ in range(20):
        assert run(hosts) is not None
    assert hosts._lead_s == load_fleet._LEAD_S, "it becomes shorter again"


def test_a_host_that_never_connects_in_time_fails_the_trial() -> None:
    hosts = joined(Connection([LATE] * 20))
    with pytest.raises(TrialFailedError, match="connected only"):
        repeated(hosts, 10)
    assert hosts._lead_s <= load_fleet._LONGEST_LEAD_S


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        (Sent(failure="relation does not exist"), "on db2: relation does not exist"),
        (Failed(error=ServerError("w", slug="s", where="", found="gone", expected="", to_do="")), "on db2: w: gone"),
    ],
)
def test_a_failure_of_the_load_on_one_host_fails_the_trial(reply: Reply, message: str) -> None:
    with pytest.raises(TrialFailedError, match=message):
        run(joined(Connection([IN_TIME, reply])))


def test_a_failure_of_a_host_is_no_failure_of_an_arm() -> None:
    full = HostError("the disk is full", slug="s", where="", found="", expected="", to_do="")
    with pytest.raises(HostError, match="the disk is full"):
        run(joined(Connection([IN_TIME, Failed(error=full)])))


@pytest.mark.parametrize("reply", [None, NotOpen()])
def test_a_window_in_which_a_host_was_lost_is_repeated_once_it_has_opened_the_run_again(reply: Reply | None) -> None:
    connection = Connection([IN_TIME, reply, IN_TIME, IN_TIME])
    hosts = joined(connection)
    assert run(hosts) is None
    assert run(hosts) is not None
    assert [host for host, task in connection.sent if isinstance(task, OpenLoad)] == ["db1", "db2", "db2"]


def test_a_host_that_is_lost_again_and_again_ends_the_run() -> None:
    hosts = joined(Connection([IN_TIME, None] * 9))
    with pytest.raises(HostError) as caught:
        repeated(hosts, 9)
    assert caught.value.slug == "fleet-host-away"


def test_a_host_that_was_restarted_opens_the_run_again() -> None:
    connection = Connection([IN_TIME, IN_TIME])
    hosts = joined(connection)
    connection.there["db2"] = "db2-2"
    run(hosts)
    assert [host for host, task in connection.sent if isinstance(task, OpenLoad)] == ["db1", "db2", "db2"]


def test_a_host_that_stays_away_ends_the_run() -> None:
    connection = Connection([])
    hosts = joined(connection)
    del connection.there["db2"]
    with pytest.raises(HostError) as caught:
        run(hosts)
    assert caught.value.slug == "fleet-host-away"


def test_without_the_clock_of_a_host_the_window_is_repeated() -> None:
    connection = Connection([])
    hosts = joined(connection)
    connection.unheard = {"db1-1"}
    assert run(hosts) is None
    assert connection.of(SendLoad) == []


def test_a_refusal_ends_the_run() -> None:
    refusal = HostError("no", slug="fleet-other-client", where="", found="", expected="", to_do="")
    with pytest.raises(HostError) as caught:
        joined(Connection([], opened=Failed(error=refusal)))
    assert caught.value.slug == "fleet-other-client"


def test_at_the_end_every_host_that_is_there_ends_the_run() -> None:
    connection = Connection([])
    hosts = joined(connection)
    connection.there["db1"] = "db1-2"
    hosts.close()
    assert [host for host, task in connection.sent if isinstance(task, Close)] == ["db2"]


def test_a_resumed_run_has_the_same_hosts() -> None:
    connection = Connection([])
    assert hosts_for_load(connection, None) == ["db1", "db2"]  # type: ignore[arg-type]
    assert hosts_for_load(connection, ["db7"]) == ["db7"]  # type: ignore[arg-type]
    connection.there = {}
    with pytest.raises(HostError) as caught:
        hosts_for_load(connection, None)  # type: ignore[arg-type]
    assert caught.value.slug == "fleet-empty"
