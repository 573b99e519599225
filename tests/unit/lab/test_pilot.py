"""The first load of a context: long enough to show its speed, and short."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import WorkloadError
from pgversus.lab import pilot
from pgversus.lab.pilot import representative_run
from pgversus.postgres import catalog
from pgversus.records.trials import Window
from pgversus.study.design import Design
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import window

SCRIPT = Script(name="select-only")
WORKLOAD = PgbenchWorkload(scripts=(SCRIPT,))


class PretendedLoad:
    """A load that takes a given time for a run of any number of transactions."""

    def __init__(self, seconds: Callable[[int, int], float | None], **options: Any) -> None:
        """seconds: of a run, by its number from 1 and its transactions; None if no transaction finishes."""
        self.workload = replace(WORKLOAD, **options)
        self.runs: list[int | float] = []
        self.seeds: list[int] = []
        self._seconds = seconds

    @contextmanager
    def finished_transactions(
        self, _load: object, _target: object, transactions: int, seed: int, *, seconds: float
    ) -> Iterator[Any]:
        assert seconds > 0
        self.runs.append(transactions)
        self.seeds.append(seed)
        yield transactions, self._seconds(len(self.runs), transactions)

    def read_window(self, _load: object, finished: tuple[int, float]) -> Window:
        return window([1000] * finished[0], finished[1])

    def run_window(self, _load: object, _target: object, seconds: float, _seed: int) -> Window:
        self.runs.append(seconds)
        return window([1000], seconds)

    def tried(self, monkeypatch: pytest.MonkeyPatch, design: Design) -> Window:
        monkeypatch.setattr(pilot, "finished_transactions", self.finished_transactions)
        monkeypatch.setattr(pilot, "run_seconds", lambda finished: finished[1])
        monkeypatch.setattr(pilot, "read_window", self.read_window)
        monkeypatch.setattr(pilot, "run_window", self.run_window)
        return representative_run(cast("Any", self), cast("Any", None), design)


def steady(each_s: float, first_s: float = 0.0, in_session_s: float = 0.0) -> Callable[[int, int], float]:
    """Return the time of each transaction, with more for the first one of all, and for the first of each session."""
    return lambda run, transactions: transactions * each_s + in_session_s + (first_s if run == 1 else 0)


@pytest.mark.parametrize(
    ("seconds", "runs"),
    [
        (steady(0.00005, 0.003), [1, 20, 400, 6400]),
        (steady(0.01, 0.002), [1, 20]),
        (steady(0.1, 0.01), [1, 4]),
        (steady(0.3, 0.1), [1, 2]),
        (steady(2.0, 0.1), [1]),
        # Caches that are cold once, and the caches of each session.
        (steady(0.001, 0.5), [1, 2, 40, 340]),
        (steady(0.001, 0.0, 0.2), [1, 3, 60, 360, 720]),
    ],
)
def test_transactions_are_added_until_a_run_is_long_enough(
    monkeypatch: pytest.MonkeyPatch, seconds: Callable[[int, int], float], runs: list[int]
) -> None:
    load = PretendedLoad(seconds)
    found = load.tried(monkeypatch, Design())
    assert load.runs == pytest.approx(runs, rel=0.01)
    assert found.transactions == load.runs[-1]
    assert len(set(load.seeds)) == len(runs), "each run draws other keys"


def test_a_load_whose_first_transactions_fail_runs_for_a_second(monkeypatch: pytest.MonkeyPatch) -> None:
    load = PretendedLoad(lambda run, transactions: None if run == 2 else 0.001 * transactions)
    load.tried(monkeypatch, Design())
    assert load.runs == [1, 20, 1.0]


def test_an_error_of_the_load_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(_run: int, _transactions: int) -> float:
        raise TrialFailedError("syntax error")

    with pytest.raises(TrialFailedError):
        PretendedLoad(fails).tried(monkeypatch, Design())


@pytest.mark.parametrize(
    ("options", "seconds"),
    [
        ({"rate": 1000.0}, 1.0),
        ({"rate": 2.0}, 6.0),
        ({"clients": 50}, 1.0),
        ({"scripts": (replace(SCRIPT, weight=99), Script(name="tpcb-like", weight=1))}, 1.0),
    ],
)
def test_other_loads_run_for_a_time(monkeypatch: pytest.MonkeyPatch, options: dict[str, Any], seconds: float) -> None:
    load = PretendedLoad(steady(0.001), **options)
    load.tried(monkeypatch, Design())
    assert load.runs == [seconds]


def tried_on_arms(monkeypatch: pytest.MonkeyPatch, *errors: Exception | None) -> pilot.PilotResult:
    """Run the first load on arms where it fails with these errors."""
    arms = [
        SimpleNamespace(target=number, load_target=number, arm=SimpleNamespace(label=f"arm {number}"))
        for number in range(len(errors))
    ]
    load = SimpleNamespace(workload=WORKLOAD, longest_s=1.0)

    def run(_load: object, target: int, _design: object) -> Window:
        if (error := errors[target]) is not None:
            raise error
        return window([1000], 1.0)

    monkeypatch.setattr(pilot, "connect", nullcontext)
    monkeypatch.setattr(catalog, "rows_written", lambda _: 0)
    monkeypatch.setattr(pilot, "answers", lambda _: True)
    monkeypatch.setattr(pilot, "wrote_since", lambda *_: False)
    monkeypatch.setattr(pilot, "representative_run", run)
    return pilot.run_pilot(cast("Any", arms), cast("Any", [load] * len(errors)), Design())


FAILS, HANGS = TrialFailedError("no such function"), TrialHungError("it waits")


def test_a_load_that_fails_on_some_contenders_is_measured_on_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    assert tried_on_arms(monkeypatch, None, None, FAILS).slowest_latency_s > 0
    assert tried_on_arms(monkeypatch, None, FAILS, None).slowest_latency_s > 0


@pytest.mark.parametrize("errors", [(FAILS, None, None), (None, FAILS), (None, FAILS, FAILS), (None, None, HANGS)])
def test_a_load_that_fails_on_the_baseline_or_everywhere_else_is_not_measured(
    monkeypatch: pytest.MonkeyPatch, errors: tuple[Exception | None, ...]
) -> None:
    with pytest.raises(WorkloadError) as caught:
        tried_on_arms(monkeypatch, *errors)
    assert caught.value.slug == ("workload-hangs" if HANGS in errors else "workload-failed")


def test_a_warm_up_of_the_user_is_the_first_load(monkeypatch: pytest.MonkeyPatch) -> None:
    load = PretendedLoad(steady(0.001))
    load.tried(monkeypatch, Design(warm_up_s=7.0, warm_up_is_given=True))
    assert load.runs == [7.0]
