"""Copies of data are removed when any arm has written or died."""

import pytest

from pgversus.errors import ServerError
from pgversus.lab import arm_servers
from pgversus.lab.arm_servers import ArmServer, ExternalServer, ServerSet
from tests.builders import comparison


class Kept(ExternalServer):
    """A server whose copy is expensive."""

    forgotten = False
    starts = 0
    stops = 0
    fails = False

    def start(self) -> None:
        if self.fails:
            raise ServerError("no start", slug="server-start", where="here")
        self.starts += 1

    def stop(self) -> None:
        self.stops += 1

    def forget_copy(self) -> None:
        self.forgotten = True


@pytest.mark.parametrize(
    ("dead", "writer", "forgets"),
    [(0, 1, True), (0, None, True), (1, None, True), (None, 1, True), (None, None, False)],
)
def test_copies_are_removed_after_a_crash_and_after_a_write(
    monkeypatch: pytest.MonkeyPatch, dead: int | None, writer: int | None, *, forgets: bool
) -> None:
    servers = [Kept(arm, "postgresql:///nowhere") for arm in comparison().arms]

    def wrote_since(server: ArmServer, _before: int) -> bool:
        if server.arm.index == dead:
            raise ServerError("dead", slug="server-connection", where="arm 0")
        return server.arm.index == writer

    monkeypatch.setattr(arm_servers, "wrote_since", wrote_since)
    requested = ServerSet(servers)
    requested._written_before.update({0: 5, 1: 5})
    requested.stop_all(writes=False)
    assert [server.forgotten for server in servers] == [forgets, forgets]


@pytest.mark.parametrize("answers", [True, False])
def test_servers_that_were_started_together_are_started_again_only_if_one_has_died(
    monkeypatch: pytest.MonkeyPatch, *, answers: bool
) -> None:
    servers = [Kept(arm, "postgresql:///nowhere") for arm in comparison().arms]
    monkeypatch.setattr(arm_servers, "answers", lambda server: answers or server is servers[0])
    requested = ServerSet(servers)
    for _ in range(2):
        requested.start_all(reads_in=False)
    assert [server.starts for server in servers] == [1 if answers else 2] * 2
    assert [server.stops for server in servers] == [0 if answers else 1] * 2


def test_after_a_failed_start_all_servers_are_started_again() -> None:
    servers = [Kept(arm, "postgresql:///nowhere") for arm in comparison().arms]
    requested = ServerSet(servers)
    servers[1].fails = True
    with pytest.raises(ServerError):
        requested.start_all(reads_in=False)
    servers[1].fails = False
    requested.start_all(reads_in=False)
    assert [server.starts for server in servers] == [2, 1]


def test_servers_that_were_started_together_are_stopped_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arm_servers, "answers", lambda _server: True)
    servers = [Kept(arm, "postgresql:///nowhere") for arm in comparison().arms]
    requested = ServerSet(servers)
    requested.stop_started()
    assert [server.stops for server in servers] == [0, 0]
    for _ in range(2):
        requested.start_all(reads_in=False)
    assert [server.starts for server in servers] == [1, 1]
    for _ in range(2):
        requested.stop_started()
    assert [server.stops for server in servers] == [1, 1]
    requested.start_all(reads_in=False)
    assert [server.starts for server in servers] == [2, 2]
