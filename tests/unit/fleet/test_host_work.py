"""The work of a host, without servers: which tasks it refuses, and how it answers."""

from collections.abc import Iterator

import pytest

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
