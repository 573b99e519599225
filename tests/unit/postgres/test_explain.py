"""EXPLAIN is sent with options that all majors have."""

from contextlib import nullcontext
from typing import TYPE_CHECKING, cast

import pytest

from pgversus.postgres.explain import explain
from pgversus.records.plans import Statement

if TYPE_CHECKING:
    from pgversus.postgres.session import Connection

OPTIONS_OF_12 = {"ANALYZE", "VERBOSE", "COSTS", "SETTINGS", "BUFFERS", "TIMING", "SUMMARY", "FORMAT JSON"}


class _FakeConnection:
    def transaction(self, *, force_rollback: bool) -> nullcontext[None]:
        assert force_rollback
        return nullcontext()


def test_every_option_exists_in_the_oldest_major(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[str] = []

    def explained(_connection: object, options: str, _text: str) -> str:
        sent.append(options)
        return "[]"

    monkeypatch.setattr("pgversus.postgres.explain._explained", explained)
    connection = cast("Connection", _FakeConnection())
    explain(connection, Statement(script="s", number=1, text="SELECT 1"), reruns=2)
    assert len(sent) == 4  # the plan, and three executions
    for options in sent:
        assert set(options.strip().removeprefix("EXPLAIN (").removesuffix(")").split(", ")) <= OPTIONS_OF_12
