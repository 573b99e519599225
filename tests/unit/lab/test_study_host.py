"""A host that other programs keep busy is reported before anything is fetched."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import pytest

from pgversus.engine.progress import Progress
from pgversus.lab import study_host
from pgversus.lab.study_host import open_study_host


class _Said(Progress):
    """Keeps what is said."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)


class _NothingFetchedError(Exception):
    pass


def _open(monkeypatch: pytest.MonkeyPatch, shares: Iterator[float]) -> list[str]:
    """Open a host on which others use these shares of the CPU time; return what is said before anything is fetched."""

    def fetch(*_: Any) -> NoReturn:
        raise _NothingFetchedError

    load = SimpleNamespace(now=lambda: SimpleNamespace(share_since=lambda: next(shares)))
    monkeypatch.setattr(study_host, "OtherLoad", load)
    monkeypatch.setattr(study_host, "open_resources", fetch)
    for name in ("open_cache", "host_facts", "client_facts", "check_external_servers"):
        monkeypatch.setattr(study_host, name, lambda *_: SimpleNamespace(runs=Path()))
    said = _Said()
    options: Any = SimpleNamespace(client=None, user=None)
    study: Any = None
    with pytest.raises(_NothingFetchedError), open_study_host(study, said, None, Path(), options=options):
        pass
    return said.lines


def test_a_busy_host_is_reported_before_anything_is_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    (line,) = _open(monkeypatch, iter([0.6]))
    assert line.startswith("warning: this host is busy: other programs or guests use 60.0 % of its CPU time.")


def test_an_idle_host_is_not_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    assert _open(monkeypatch, iter([0.1])) == []
