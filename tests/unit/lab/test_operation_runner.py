"""The order of copies, starts and operations, with fakes instead of servers."""

from types import SimpleNamespace
from typing import cast

import pytest

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import WorkloadError
from pgversus.lab.operation_runner import OperationRunner, OperationTrialRunner, Repetitions
from pgversus.study.design import Design
from pgversus.study.workload import Operation


def test_each_arm_runs_on_its_own_and_a_repetition_replaces_its_window() -> None:
    journal: list[str] = []
    windows = iter(range(4))

    def run(arm: int, _patience_s: float) -> int:
        journal.append(f"run {arm}")
        return next(windows)

    pretended = SimpleNamespace(run=run, end_all=lambda: journal.append("end"))
    trial_runner = OperationTrialRunner(cast("Repetitions", pretended), 60.0)
    for arm in (1, 0):
        trial_runner.start(arm)
    assert journal == []
    for _ in range(2):
        for arm in (1, 0):
            trial_runner.measure(arm, 1, "")
        found = [*trial_runner.collect(1), *trial_runner.collect(0)]
    trial_runner.stop_all()
    assert journal == [*["run 1", "run 0"] * 2, "end"]
    assert list(map(str, found)) == ["2", "3"]


def test_an_operation_on_missing_tables_of_pgbench_is_advised_to_create_them() -> None:
    def run(*_arguments: object, **_options: object) -> None:
        raise TrialFailedError('ERROR:  relation "pgbench_accounts" does not exist')

    servers = SimpleNamespace(servers=[SimpleNamespace(arm=SimpleNamespace(label="17.8", settings=()))])
    operations = [Operation(name="vacuum", steps=())]
    repetitions = cast("Repetitions", SimpleNamespace(run=run, servers=servers, operations=operations))
    first = OperationRunner(repetitions, Design(), patience_s=60.0)
    with pytest.raises(WorkloadError) as caught:
        first.try_out()
    assert "add -i" in caught.value.to_do
