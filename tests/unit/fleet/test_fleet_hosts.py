"""The hosts of a fleet: who is there, which leases they have, and which of their results count."""

from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Timer
from typing import Any

import pytest

from pgversus.engine.events import BlockMeasured, ContextPrepared, Event, HostJoined, HostLost, TaskFinished
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import BlockOrder
from pgversus.errors import DatasetError, HostError, PgversusError
from pgversus.fleet import fleet_hosts
from pgversus.fleet.fleet_hosts import FleetHosts
from pgversus.fleet.messages import (
    Begin,
    Done,
    Failed,
    Measure,
    NotOpen,
    Open,
    Opened,
    Prepare,
    Reply,
    Task,
    decoded_reply,
    encoded,
    versions_here,
)
from pgversus.lab.study_host import Capture
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block
from pgversus.store.leases import Lease, Outcome
from pgversus.study.study import Study
from tests.unit.engine.test_scheduler import study
from tests.unit.stats.test_hosts import trial

(STATE,) = study(1)
CONTEXT = STATE.context
FACTS: dict[str, Any] = {"host": {}, "client": {}, "builds": {}}
QUESTION = Study(name="s", title="", question="", contexts=(CONTEXT,), seed=1, budget_s=1.0)


@dataclass
class Sent:
    """A task that a host has been sent; a future of Dask in so far as it matters."""

    host: str
    task: Task
    key: str
    status: str = "pending"
    reply: Reply | None = None
    callbacks: list[Callable[[Any], None]] = field(default_factory=list)
    at_once: Reply | None = None
    """The reply to a task that takes no time."""

    def add_done_callback(self, callback: Callable[[Any], None]) -> None:
        self.callbacks.append(callback)
        if self.at_once is not None:
            self.end(reply=self.at_once)

    def result(self, timeout: float) -> bytes:
        assert timeout > 0
        assert self.reply is not None
        return encoded(self.reply)

    def release(self) -> None:
        self.status = "released"

    def end(self, status: str = "finished", reply: Reply | None = None) -> None:
        self.status, self.reply = status, reply
        for callback in self.callbacks:
            callback(self)


@dataclass
class Connection:
    """A fleet whose hosts reply at once, except to what `holds` names."""

    there: dict[str, str]
    sent: list[Sent] = field(default_factory=list)
    holds: tuple[type, ...] = (Measure, Prepare)
    replies: dict[type, Reply] = field(
        default_factory=lambda: {Open: Opened(study=QUESTION, facts=FACTS), Begin: Done()}
    )

    def hosts(self) -> dict[str, str]:
        return dict(self.there)

    def send(self, host: str, task: Task, key: str) -> Sent:
        one = Sent(host, task, f"{key}-{len(self.sent)}")
        self.sent.append(one)
        if not isinstance(task, self.holds):
            one.at_once = self.replies[type(task)]
        return one

    def say_news(self) -> None:
        pass

    @property
    def tasks(self) -> list[str]:
        return [type(one.task).__name__ for one in self.sent]


@dataclass
class Written:
    """A ledger that records what is written."""

    entries: list[tuple[str, Any]] = field(default_factory=list)
    attempts: dict[tuple[int, int], int] = field(default_factory=dict)

    def grant_lease(self, context: int, block: int, host: str) -> Lease:
        attempt = self.attempts[context, block] = self.attempts.get((context, block), 0) + 1
        self.entries.append(("granted", (block, attempt, host)))
        return Lease(context=context, block=block, attempt=attempt)

    def end_lease(self, lease: Lease, outcome: Outcome) -> None:
        self.entries.append((outcome.value, (lease.block, lease.attempt)))

    def keep_unused(self, lease: Lease, block: Block) -> None:
        self.entries.append(("unused", (lease.block, lease.attempt, len(block.trials))))


class Watched:
    """The hosts of a fleet, and what they are told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *names: str, opened: dict[str, str] | None = None) -> None:
        monkeypatch.setattr(fleet_hosts, "_LOOK_S", 0.0)
        monkeypatch.setattr(fleet_hosts, "_REFUSED_S", 0.05)
        self.fleet = Connection({name: f"{name}-1" for name in names})
        self.ledger = Written()
        opening = Open(
            run="r",
            versions=versions_here(),
            study=QUESTION,
            files={},
            before=FACTS,
            sample_plans=False,
            check_rows=False,
        )
        begin = Begin(run="r", number=1, study=QUESTION, capture=Capture.NONE, others=(), log_prefix="")
        self.hosts = FleetHosts(
            self.fleet,  # type: ignore[arg-type]
            opening,
            begin,
            {} if opened is None else opened,
            self.ledger,
            Progress(),
        )

    def join(self) -> None:
        """Wait for the hosts that are there."""
        joined = {self.hosts.next_event() for _ in self.fleet.there}
        assert joined == {HostJoined(host=name) for name in self.fleet.there}

    def measure(self, host: str, block: int = 1) -> Sent:
        order = BlockOrder(
            context=CONTEXT,
            design=CONTEXT.comparison.design,
            number=block,
            arms=(0, 1),
            rounds=4,
            may_repeat=True,
            seconds=0.0,
        )
        self.hosts.measure(host, [order], 100.0)
        return self.fleet.sent[-1]

    def events(self, number: int) -> list[Event]:
        return [self.hosts.next_event() for _ in range(number)]


@pytest.fixture
def two(monkeypatch: pytest.MonkeyPatch) -> Watched:
    watched = Watched(monkeypatch, "db1", "db2")
    watched.join()
    return watched


def measured(block: int = 1) -> Done:
    trials = {arm: trial(arm, 1.0 + arm)._replace(counters={}, steps={}) for arm in (0, 1)}
    result = Block(number=block, trials=trials, wall_s=8.0)
    return Done(events=(BlockMeasured(host="", context=1, block=result),))


def test_every_host_opens_and_begins_the_study_before_its_first_task(two: Watched) -> None:
    assert sorted(two.fleet.tasks) == ["Begin", "Begin", "Open", "Open"]
    assert sorted(two.hosts.free()) == ["db1", "db2"]


def test_a_host_that_has_opened_the_study_only_begins_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    watched = Watched(monkeypatch, "db1", "db2", opened={"db1": "db1-1", "db2": "another worker"})
    watched.join()
    assert sorted(watched.fleet.tasks) == ["Begin", "Begin", "Open"]


def test_a_lease_is_granted_before_a_block_is_sent_and_ends_with_its_result(two: Watched) -> None:
    sent = two.measure("db1")
    assert two.ledger.entries == [("granted", (1, 1, "db1"))]
    assert two.hosts.free() == ["db2"]
    sent.end(reply=measured())
    block, finished = two.events(2)
    assert isinstance(block, BlockMeasured)
    assert (block.host, block.block.host) == ("db1", "db1")
    assert block.block.wall_s == 4.0, "two hosts share the time"
    assert finished == TaskFinished(host="db1")
    assert two.ledger.entries[1:] == [("measured", (1, 1))]
    assert sorted(two.hosts.free()) == ["db1", "db2"]


def test_a_host_is_busy_until_the_end_of_its_task_is_reported(two: Watched) -> None:
    two.measure("db1").end(reply=measured())
    assert isinstance(two.hosts.next_event(), BlockMeasured)
    assert two.hosts.free() == ["db2"]
    assert isinstance(two.hosts.next_event(), TaskFinished)
    assert "db1" in two.hosts.free()


def test_a_block_that_a_start_had_no_time_for_is_not_measured(two: Watched) -> None:
    two.measure("db1").end(reply=Done())
    assert two.events(1) == [TaskFinished(host="db1")]
    assert two.ledger.entries[1:] == [("unmeasured", (1, 1))]


@pytest.mark.parametrize("status", ["error", "cancelled", "lost"])
def test_a_task_that_fails_with_its_host_loses_the_lease(two: Watched, status: str) -> None:
    sent = two.measure("db1")
    del two.fleet.there["db1"]
    sent.end(status)
    assert two.events(1) == [HostLost(host="db1")]
    assert two.ledger.entries[1:] == [("lost", (1, 1))]
    again = two.measure("db2")
    assert two.ledger.entries[-1] == ("granted", (1, 2, "db2"))
    assert again.key != sent.key


def test_the_result_of_a_host_that_was_believed_lost_is_stored_and_not_used(two: Watched) -> None:
    sent = two.measure("db1")
    del two.fleet.there["db1"]
    assert two.events(1) == [HostLost(host="db1")]
    two.measure("db2").end(reply=measured())
    sent.end(reply=measured())
    assert len([event for event in two.events(2) if isinstance(event, BlockMeasured)]) == 1
    two.measure("db2", block=2).end(reply=measured(2))
    two.events(2)
    assert ("unused", (1, 1, 2)) in two.ledger.entries
    assert [one for one in two.ledger.entries if one[0] == "measured"] == [("measured", (1, 2)), ("measured", (2, 1))]


def test_blocks_before_a_late_failure_are_stored_and_not_used(two: Watched) -> None:
    sent = two.measure("db1")
    del two.fleet.there["db1"]
    assert two.events(1) == [HostLost(host="db1")]
    error = HostError("the disk is full", slug="host-disk-full", where="/", found="0 bytes")
    sent.end(reply=Failed(error=error, events=measured().events))
    two.measure("db2").end(reply=measured())
    two.events(2)
    assert ("unused", (1, 1, 2)) in two.ledger.entries


def test_a_restarted_worker_opens_the_study_again(two: Watched) -> None:
    two.fleet.there["db1"] = "db1-2"
    two.measure("db2").end(reply=measured())
    events = two.events(4)
    assert HostJoined(host="db1") in events
    assert two.fleet.tasks.count("Open") == 3


def test_a_host_that_has_opened_another_study_opens_this_one_again(two: Watched) -> None:
    two.measure("db1").end(reply=NotOpen())
    assert two.events(1) == [HostLost(host="db1")]
    assert HostJoined(host="db1") in two.events(1)
    assert two.fleet.tasks.count("Open") == 3


def test_a_host_that_fails_does_not_take_part_and_the_others_continue(two: Watched) -> None:
    error = HostError("the disk is full", slug="host-disk-full", where="/", found="0 bytes")
    two.measure("db1").end(reply=Failed(error=error))
    assert two.events(1) == [HostLost(host="db1")]
    assert two.hosts.free() == ["db2"]
    two.measure("db2").end(reply=Failed(error=error))
    with pytest.raises(HostError, match="disk is full"):
        two.events(2)


def test_blocks_before_a_failure_of_the_host_count(two: Watched) -> None:
    error = HostError("the disk is full", slug="host-disk-full", where="/", found="0 bytes")
    two.measure("db1").end(reply=Failed(error=error, events=measured().events))
    block, lost = two.events(2)
    assert isinstance(block, BlockMeasured)
    assert lost == HostLost(host="db1")
    assert two.ledger.entries[1:] == [("measured", (1, 1))]


@pytest.mark.parametrize("is_known", [False, True])
def test_a_context_that_another_host_has_prepared_does_not_fail(two: Watched, *, is_known: bool) -> None:
    error = DatasetError("the data differ", slug="dataset-unequal")
    known = Preparation(design=CONTEXT.comparison.design, arms=(), differences=(), writes=False, connect_allowance_s=0)
    two.hosts.prepare("db1", [(CONTEXT, known if is_known else None)])
    two.fleet.sent[-1].end(reply=Done(events=(ContextPrepared(host="db1", context=1, found=error),)))
    event = two.hosts.next_event()
    assert isinstance(event, HostLost if is_known else ContextPrepared)
    assert two.hosts.free() == ["db2"]


def test_a_host_that_took_part_and_left_is_awaited_although_another_was_refused(two: Watched) -> None:
    error = HostError("another version", slug="fleet-versions", where="w", found="f")
    two.measure("db2").end(reply=Failed(error=error))
    assert two.events(1) == [HostLost(host="db2")]
    two.measure("db1")
    del two.fleet.there["db1"]
    Timer(0.2, lambda: two.fleet.there.update({"db1": "db1-2"})).start()
    assert two.events(2) == [HostLost(host="db1"), HostJoined(host="db1")]


def test_a_host_that_another_run_uses_is_tried_again_later(two: Watched, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_hosts, "_BUSY_S", 0.1)
    error = HostError("this host is already in use", slug="fleet-host-busy", where="w", found="f")
    two.measure("db1").end(reply=Failed(error=error))
    two.measure("db2")
    assert two.events(2) == [HostLost(host="db1"), HostJoined(host="db1")]


def test_a_host_that_is_lost_with_every_task_is_not_tried_for_ever(
    two: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fleet_hosts, "_MOST_LOSSES", 2)
    for number in (1, 2):
        two.measure("db1").end("error")
        assert two.events(1) == [HostLost(host="db1")]
        if number == 1:
            assert two.events(1) == [HostJoined(host="db1")]
    two.measure("db2").end(reply=measured())
    two.events(2)
    assert two.hosts.free() == ["db2"]


def test_a_fleet_without_hosts_is_an_error_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_hosts, "_PATIENCE_S", 0.01)
    watched = Watched(monkeypatch)
    with pytest.raises(HostError, match="no hosts"):
        watched.hosts.free()


def test_the_results_of_abandoned_tasks_are_ignored(two: Watched) -> None:
    sent = two.measure("db1")
    two.hosts.abandon()
    assert two.ledger.entries[1:] == [("lost", (1, 1))]
    assert two.hosts.free() == ["db2"]
    sent.end(reply=measured())
    assert HostJoined(host="db1") in two.events(1)


@pytest.mark.parametrize("kind", [HostError, PgversusError])
def test_errors_arrive_with_all_their_parts(kind: type[PgversusError]) -> None:
    error = kind("what", slug="slug", where="where", found="found", expected="expected", to_do="to do")
    reply = decoded_reply(encoded(Failed(error=error)))
    assert isinstance(reply, Failed)
    assert (type(reply.error), str(reply.error), reply.error.slug) == (kind, str(error), "slug")
