"""Waiting for the end of a slice while a clock is changed."""

import time

import pytest

from pgversus.postgres import catalog, load_sessions
from pgversus.postgres.catalog import SessionOfLoad
from pgversus.postgres.load_sessions import LoadSessions
from pgversus.postgres.session import Connection, Target

LONGEST_S = 5.0


@pytest.mark.parametrize("server_ahead_s", [0.0, 259.0, 3600.0])
def test_a_clock_set_back_does_not_prolong_the_wait_for_the_next_slice(
    monkeypatch: pytest.MonkeyPatch, server_ahead_s: float
) -> None:
    now = time.time()
    session = SessionOfLoad(
        process=1, is_active=False, waits=False, began=now + server_ahead_s - 1, changed=now + server_ahead_s
    )
    monkeypatch.setattr(load_sessions, "connect", lambda _: _Nothing())
    monkeypatch.setattr(catalog, "disable_jit_and_logging", lambda _: None)
    monkeypatch.setattr(catalog, "sessions_of_load", lambda *_: [session])
    sessions = LoadSessions(Target(conninfo="dbname=x"))
    began = time.monotonic()
    for _ in range(3):
        assert sessions.finished([], now, LONGEST_S) is not None
    assert time.monotonic() - began < LONGEST_S


class _Nothing:
    """A connection that is never used."""

    def __enter__(self) -> Connection | None:
        return None

    def __exit__(self, *_: object) -> None:
        pass
