"""Copies of data are removed when any arm has written or died."""

import pytest

from pgversus.errors import ServerError
from pgversus.lab import arm_servers
from pgversus.lab.arm_servers import ArmServer, ExternalServer, ServerSet
from tests.builders import comparison


class Kept(ExternalServer):
    """A server whose copy is expensive."""

    forgotten = False

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
