"""Plans sampled from the log of a server, which has other entries as well."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgversus.lab import plan_sampling
from pgversus.lab.plan_sampling import sampled
from tests.unit.plans.captures import captured, plans_of
from tests.unit.plans.raw import scan

LOADED = SimpleNamespace(
    workload=SimpleNamespace(rate=None, clients=1, is_of_application=False),
)
OTHER = "LOG:  what is the plan:\n\tnobody knows\n"


@contextmanager
def nothing(*_arguments: object) -> Iterator[None]:
    yield


@pytest.mark.parametrize(
    ("written", "failure"), [(OTHER, "invalid JSON (auto_explain, line 1"), ("", "auto_explain logged no plans")]
)
def test_a_log_without_plans_ends_no_measurement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, written: str, failure: str
) -> None:
    log = tmp_path / "log"
    log.touch()

    def run(*_arguments: object) -> None:
        with log.open("a") as file:
            file.write(written)

    monkeypatch.setattr(plan_sampling, "finished_load", nothing)
    monkeypatch.setattr(plan_sampling, "_with_auto_explain", lambda target, _share: target)
    monkeypatch.setattr(plan_sampling, "read_window", run)
    server = SimpleNamespace(log=log, target=None)
    pilot = SimpleNamespace(slowest_latency_s=0.001)
    plans = plans_of(captured(scan("t")), captured(scan("t")))
    found = sampled(cast("Any", [server] * 2), cast("Any", [LOADED] * 2), cast("Any", pilot), plans)
    assert [failure in one.failure for one in found] == [True, True], found


def test_the_plans_of_an_application_are_not_sampled(tmp_path: Path) -> None:
    load = SimpleNamespace(workload=SimpleNamespace(is_of_application=True))
    server, plans = SimpleNamespace(log=tmp_path), plans_of(captured(scan("t")), captured(scan("t")))
    found = sampled(cast("Any", [server] * 2), cast("Any", [load] * 2), cast("Any", None), plans)
    assert [one.failure for one in found] == [plan_sampling._NOT_ALLOWED] * 2
