"""What common methods claim, and the order and the records of the benchmark that compares them with pgversus."""

import json
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks import real_methods
from benchmarks.common_methods import METHODS, Speed, shared_runs
from benchmarks.real_methods import CELLS, Cell, Result, Task
from pgversus.postgres.server import Server

A, B = cast("Server", "a"), cast("Server", "b")


def speeds(a: list[float], b: list[float]) -> tuple[Speed, list[str]]:
    """Return a speed that takes its values from these lists, and the servers in the order in which they ran."""
    order: list[str] = []
    left = {"a": iter(a), "b": iter(b)}

    def speed(server: Server, seconds: float) -> float:
        del seconds
        order.append(str(server))
        return next(left[str(server)])

    return speed, order


def test_one_run_claims_any_difference_of_more_than_one_percent() -> None:
    method = METHODS["one run"]
    for b, verdict in ((100.9, "no claim"), (101.1, "faster"), (98.9, "slower")):
        assert method.claim([100] * 10, [b] * 10, may_merge=True).verdict == verdict


def test_all_runs_of_a_come_before_those_of_b() -> None:
    speed, order = speeds([100] * 10, [110] * 10)
    assert shared_runs(A, B, speed) == ([100] * 10, [110] * 10)
    assert order == ["a"] * 10 + ["b"] * 10


def test_neighboring_runs_are_merged_and_those_of_an_operation_are_left_out() -> None:
    a, b = [100, 102, 101, 99, 99, 100, 101, 101, 99, 101], [110, 112, 111, 109, 109, 110, 111, 111, 109, 111]
    claim = METHODS["five runs, t test"].claim(a, b, may_merge=True)
    assert claim.verdict == "faster"
    assert claim.ratio == pytest.approx(1.1, abs=0.01)
    one = METHODS["one run"]
    assert one.claim([100] * 10, [100] * 9 + [200], may_merge=True).ratio == pytest.approx(1.1)
    assert one.claim([100] * 10, [100] * 9 + [200], may_merge=False).ratio == 1


def test_benchstat_claims_nothing_for_values_that_overlap() -> None:
    method = METHODS["benchstat"]
    a = [100.0 + i for i in range(10)]
    assert method.claim(a, [value + 0.5 for value in a], may_merge=True).verdict == "no claim"
    assert method.claim(a, [value / 2 for value in a], may_merge=True).verdict == "slower"


def result(cell: Cell, **others: float) -> Result:
    values = {"verdict": "slower", "ratio": 0.97, "wall_s": 60.0, **others}
    return Result(load=cell.load, effect=cell.effect, method=cell.method, seed=1, **values)  # type: ignore[arg-type]


def test_no_difference_is_measured_as_often_as_all_differences_and_common_methods_less_often() -> None:
    queue = real_methods._Queue([])
    # The least number of tasks after which each has run as often as its weight says.
    tasks = [queue.take()[1] for _ in range(72)]
    counts = Counter((task.load, task.by_pgversus, task.effect > 0) for task in tasks)
    assert {counts[load, True, differs] for load in real_methods.LOADS for differs in (True, False)} == {9}
    assert {counts[load, False, differs] for load in real_methods.LOADS for differs in (True, False)} == {3}


@pytest.mark.parametrize("load", ["tps", "p95 at a rate"])
@pytest.mark.parametrize(
    ("effect", "servers", "levels"), [(0.0, ["17.8", "17.8"], "{rounds}"), (0.1, ["17.8"], "{rounds},{more}")]
)
def test_servers_or_levels_are_compared_but_never_equal_levels(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, load: str, effect: float, servers: list[str], levels: str
) -> None:
    found: list[list[str]] = []

    def pgversus(arguments: list[str], _folder: object) -> str:
        found.append(arguments)
        return json.dumps({"contexts": [{"verdicts": [{"verdict": "slower", "ratio": 0.9, "low": None, "high": 1.0}]}]})

    monkeypatch.setattr(real_methods, "pgversus", pgversus)
    task = Task(load=load, effect=effect, by_pgversus=True)
    real_methods._by_pgversus(task, tmp_path, 1, "60s")
    ((command, *arguments),) = found
    rounds, more = real_methods._levels(task)
    assert command == "compare"
    assert [one for one in arguments if one == "17.8"] == servers
    assert f"my.rounds={levels.format(rounds=rounds, more=more)}" in arguments


def test_the_queue_continues_where_the_results_end() -> None:
    done = [result(cell) for cell in CELLS if cell.load == "tps" and cell.method == "pgversus"]
    seed, task = real_methods._Queue(done).take()
    assert seed == 2
    assert (task.load, task.by_pgversus) != ("tps", True) or not task.effect


def test_results_are_read_back_and_intervals_that_include_the_truth_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = next(cell for cell in CELLS if cell.method == "pgversus" and cell.effect == 0.03)
    intervals = iter([(0.96, 0.98), (0.98, 0.99), (0.9, 0.95)])

    def measured(task: Task, seed: int, budget: str) -> list[Result]:
        del task, seed, budget
        low, high = next(intervals)
        return [result(cell, low=low, high=high)]

    monkeypatch.setattr(real_methods, "_measured", measured)
    monkeypatch.setattr(real_methods, "CELLS", (cell,))
    moments = iter([0.0, 1.0, 2.0, 4000.0, 5000.0, 5001.0, 9000.0])
    monkeypatch.setattr(real_methods, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr("sys.argv", ["real_methods", "--results", str(tmp_path / "results.jsonl")])
    real_methods.main()
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2
    real_methods.main()
    (row,) = capsys.readouterr().out.splitlines()[-1:]
    assert row.split() == ["tps", "pgversus", "+3", "%", "3", "3", "3", "0", "1", "60", "60"]
