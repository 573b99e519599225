"""What common methods claim, and the order and the records of the benchmark that compares them with pgversus."""

from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from benchmarks import real_methods
from benchmarks.common_methods import METHODS, Speed
from benchmarks.real_methods import CELLS, Cell, Result
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
    assert method.claim(A, B, speeds([100], [100.9])[0]).verdict == "no claim"
    assert method.claim(A, B, speeds([100], [101.1])[0]).verdict == "faster"
    assert method.claim(A, B, speeds([100], [98.9])[0]).verdict == "slower"


def test_several_runs_measure_all_of_a_before_all_of_b() -> None:
    speed, order = speeds([100, 101, 99, 100, 102], [110, 111, 109, 112, 110])
    claim = METHODS["five runs, t test"].claim(A, B, speed)
    assert (claim.verdict, order) == ("faster", ["a"] * 5 + ["b"] * 5)
    assert claim.ratio == pytest.approx(1.1, abs=0.01)


def test_benchstat_claims_nothing_for_values_that_overlap() -> None:
    method = METHODS["benchstat"]
    a = [100.0 + i for i in range(10)]
    assert method.claim(A, B, speeds(a, [value + 0.5 for value in a])[0]).verdict == "no claim"
    assert method.claim(A, B, speeds(a, [value / 2 for value in a])[0]).verdict == "slower"


def result(cell: Cell, **others: float) -> Result:
    values = {"verdict": "slower", "ratio": 0.97, "wall_s": 60.0, **others}
    return Result(load=cell.load, effect=cell.effect, method=cell.method, seed=1, **values)  # type: ignore[arg-type]


def test_every_comparison_is_made_once_before_any_is_made_twice() -> None:
    results: list[Result] = []
    for seed in range(2 * len(CELLS)):
        results.append(result(real_methods._next(CELLS, results, seed)))
    assert set(Counter((one.load, one.effect, one.method) for one in results).values()) == {2}


def test_results_are_read_back_and_intervals_that_include_the_truth_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    cell = next(cell for cell in CELLS if cell.method == "pgversus" and cell.effect == 0.03)
    intervals = iter([(0.96, 0.98), (0.98, 0.99), (0.9, 0.95)])

    def measured(cell: Cell, seed: int, budget: str) -> Result:
        del seed, budget
        low, high = next(intervals)
        return result(cell, low=low, high=high)

    monkeypatch.setattr(real_methods, "_result", measured)
    monkeypatch.setattr(real_methods, "CELLS", (cell,))
    moments = iter([0.0, 1.0, 2.0, 4000.0, 5000.0, 5001.0, 9000.0])
    monkeypatch.setattr(real_methods, "time", SimpleNamespace(monotonic=lambda: next(moments)))
    monkeypatch.setattr("sys.argv", ["real_methods", "--results", str(tmp_path / "results.jsonl")])
    real_methods.main()
    assert len((tmp_path / "results.jsonl").read_text().splitlines()) == 2
    real_methods.main()
    (row,) = capsys.readouterr().out.splitlines()[-1:]
    assert row.split() == ["tps", "pgversus", "+3", "%", "3", "100.0", "100.0", "33.3", "60"]
