"""What a first load leaves behind: running servers, or stopped ones."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgversus.errors import WorkloadError
from pgversus.lab import load_runner
from pgversus.lab.load_runner import LoadRunner
from pgversus.lab.pilot import PilotResult
from pgversus.study.comparison import CacheState
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison

WORKLOAD = PgbenchWorkload(scripts=(Script(name="select-only"),))
PILOT = PilotResult(
    writes=False,
    slowest_latency_s=0.001,
    latency_p99_s=0.001,
    longest_transaction_s=0.001,
    connect_s=0.001,
)


class PretendedServers:
    """Two servers that record whether they were stopped."""

    def __init__(self, work_mem: Iterator[str]) -> None:
        """work_mem: the setting of new sessions, each time that it is read."""
        self.servers = [SimpleNamespace(load_target=None, can_restart=True)] * 2
        self.stopped: list[bool] = []
        self._work_mem = work_mem

    def start_all(self, *, reads_in: bool) -> None:
        del reads_in

    def stop_all(self, *, writes: bool) -> None:
        self.stopped.append(writes)

    def settings(self, _server: object) -> dict[str, Any]:
        return {
            "track_activities": SimpleNamespace(value="on"),
            "work_mem": SimpleNamespace(value=next(self._work_mem)),
        }


def runner_on(
    monkeypatch: pytest.MonkeyPatch, servers: PretendedServers, pilot: Callable[[], PilotResult], **options: Any
) -> LoadRunner:
    """Return a runner whose first load has a given result."""
    monkeypatch.setattr(load_runner, "session_settings", servers.settings)
    monkeypatch.setattr(load_runner, "run_pilot", lambda *_: pilot())
    monkeypatch.setattr(load_runner, "check_settings_in_scripts", lambda *_: "")
    requested = replace(comparison(), cache=options.pop("cache", CacheState.WARM))
    loads = [SimpleNamespace(workload=WORKLOAD)] * 2
    return LoadRunner(requested, cast("Any", servers), cast("Any", loads), contexts=1, **{"explain": None, **options})


@pytest.mark.parametrize(
    ("cache", "writes", "after", "stopped"),
    [
        (CacheState.WARM, False, "4MB", []),
        (CacheState.WARM, True, "4MB", [True]),
        (CacheState.COLD, False, "4MB", [False]),
        (CacheState.WARM, False, "8MB", [True]),
    ],
)
def test_servers_keep_running_for_the_next_first_load_unless_they_were_changed(
    monkeypatch: pytest.MonkeyPatch, cache: CacheState, *, writes: bool, after: str, stopped: list[bool]
) -> None:
    servers = PretendedServers(iter(["4MB"] * 2 + [after] * 2))
    first = runner_on(monkeypatch, servers, lambda: replace(PILOT, writes=writes), cache=cache).try_out()
    assert servers.stopped == stopped
    assert first.not_explained == "", "no plans were requested"


def test_plans_of_a_load_that_changes_settings_are_discarded(monkeypatch: pytest.MonkeyPatch) -> None:
    servers = PretendedServers(iter(["4MB", "4MB", "8MB", "8MB"]))
    explain = lambda *_: ("plans", "")  # noqa: E731 - used once
    first = runner_on(monkeypatch, servers, lambda: PILOT, explain=explain).try_out()
    assert first.plans is None
    assert first.not_explained == "the load has changed settings of new sessions: work_mem"


def test_servers_are_stopped_if_the_first_load_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails() -> PilotResult:
        raise WorkloadError("the workload fails", slug="workload-failed", where="here")

    servers = PretendedServers(iter(["4MB", "4MB"]))
    with pytest.raises(WorkloadError):
        runner_on(monkeypatch, servers, fails).try_out()
    # A single statement that fails has written nothing.
    assert servers.stopped == [False]
