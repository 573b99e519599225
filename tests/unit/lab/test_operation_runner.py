"""The order of copies, starts and operations, with fakes instead of servers."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import WorkloadError
from pgversus.lab.operation_runner import OperationRunner, OperationTrialRunner, Repetitions
from pgversus.study.design import Design
from pgversus.study.workload import Operation


class Pretended:
    """Repetitions that record what is done."""

    def __init__(self, *, fit_together: bool, failing: int | None = None) -> None:
        self.servers = SimpleNamespace(fit_together=fit_together)
        self.journal: list[str] = []
        self.failing = failing
        self._ready: set[int] = set()

    def prepare(self, arm: int) -> None:
        if arm in self._ready:
            return
        self.journal.append(f"start {arm}")
        if arm == self.failing:
            raise TrialFailedError("no")
        self._ready.add(arm)

    def run(self, arm: int, _patience_s: float) -> Any:
        self.prepare(arm)
        self.journal.append(f"run {arm}")
        self._ready.remove(arm)

    def end_all(self) -> None:
        self.journal.append("end")


def runner(pretended: Pretended) -> OperationTrialRunner:
    return OperationTrialRunner(cast("Repetitions", pretended), 60.0)


def one_block(trial_runner: OperationTrialRunner, *orders: tuple[int, ...]) -> None:
    """Run a block; further orders are repetitions."""
    for arm in orders[0]:
        trial_runner.start(arm)
    for order in orders:
        for arm in order:
            trial_runner.measure(arm, 1, "")
        for arm in order:
            trial_runner.collect(arm)
    trial_runner.stop_all()


def test_all_servers_start_before_the_first_operation_even_for_a_repetition() -> None:
    pretended = Pretended(fit_together=True)
    one_block(runner(pretended), (1, 0), (1, 0))
    assert pretended.journal == [*["start 1", "start 0", "run 1", "run 0"] * 2, "end"]


def test_without_room_for_all_copies_each_server_starts_when_its_turn_comes() -> None:
    pretended = Pretended(fit_together=False)
    one_block(runner(pretended), (1, 0))
    assert pretended.journal == ["start 1", "run 1", "start 0", "run 0", "end"]


def test_a_server_that_fails_to_start_for_a_repetition_fails_in_its_own_turn() -> None:
    pretended = Pretended(fit_together=True)
    trial_runner = runner(pretended)
    for arm in (1, 0):
        trial_runner.start(arm)
    for arm in (1, 0):
        trial_runner.measure(arm, 1, "")
    pretended.failing = 0
    trial_runner.measure(1, 1, "")
    with pytest.raises(TrialFailedError):
        trial_runner.measure(0, 1, "")


def test_an_operation_on_missing_tables_of_pgbench_is_advised_to_create_them() -> None:
    def run(*_arguments: object, **_options: object) -> None:
        raise TrialFailedError('ERROR:  relation "pgbench_accounts" does not exist')

    servers = SimpleNamespace(servers=[SimpleNamespace(arm=SimpleNamespace(label="17.8"))])
    operations = [Operation(name="vacuum", steps=())]
    repetitions = cast("Repetitions", SimpleNamespace(run=run, servers=servers, operations=operations))
    first = OperationRunner(repetitions, Design(), patience_s=60.0)
    with pytest.raises(WorkloadError) as caught:
        first.try_out()
    assert "add -i" in caught.value.to_do
