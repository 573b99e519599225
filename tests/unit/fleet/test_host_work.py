"""The work of a host, without servers: which tasks it refuses, and how it answers."""

import fcntl
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from threading import Timer
from types import SimpleNamespace

import pytest

from pgversus.errors import HostError
from pgversus.fleet import host_work
from pgversus.fleet.host_work import HostWork, WorkerOptions
from pgversus.fleet.messages import Begin, Close, Done, Failed, NotOpen, encoded
from pgversus.lab.study_host import Capture
from tests.unit.fleet.test_fleet_hosts import QUESTION


@pytest.fixture
def work() -> Iterator[HostWork]:
    work = HostWork(WorkerOptions(name="db1", run_as=None, trust=False))
    yield work
    work.close()


@pytest.mark.parametrize("task", [b"", b"text", b"\x80\x05\x8c\x06absentq\x8c\x04Task\x93."])
def test_a_task_that_cannot_be_read_is_answered_with_an_error(work: HostWork, task: bytes) -> None:
    reply = work.reply_to(task)
    assert isinstance(reply, Failed)
    assert reply.error.slug == "fleet-task-failed"


def test_a_host_that_does_not_know_the_study_says_so(work: HostWork) -> None:
    begin = Begin(run="r", number=1, study=QUESTION, capture=Capture.NONE, others=(), log_prefix="")
    assert work.reply_to(encoded(begin)) == NotOpen()


def test_the_end_of_an_unknown_run_is_accepted(work: HostWork) -> None:
    assert work.reply_to(encoded(Close(run="r"))) == Done()


def test_a_host_waits_for_a_worker_that_is_about_to_end(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(host_work, "open_cache", lambda: SimpleNamespace(root=tmp_path))
    with ExitStack() as stack:
        host_work._lock_host(stack)
    earlier = (tmp_path / "fleet.lock").open()
    fcntl.flock(earlier, fcntl.LOCK_EX)
    monkeypatch.setattr(host_work, "_ENDS_S", 0.1)
    with ExitStack() as stack, pytest.raises(HostError, match="already in use"):
        host_work._lock_host(stack)
    monkeypatch.setattr(host_work, "_ENDS_S", 30.0)
    ends = Timer(0.3, earlier.close)
    ends.start()
    with ExitStack() as stack:
        host_work._lock_host(stack)
    ends.join()
