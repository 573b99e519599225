"""The remarks and the records of the benchmark that compares upgrade checks with pgbench."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

from benchmarks.real_statements import Speeds, Truth, _remark, _stored, _truth

SPEEDS = Speeds(key="k", name="a", versions=("15", "18"), turn=0, tps=(100.0, 50.0))


def found(finding: str, *, low: float | None = 0.5, is_planning: bool = False) -> dict[str, Any]:
    statement = {"name": "a", "is_planning": is_planning}
    return {"statement": statement, "finding": finding, "ratio": 0.6, "low": low, "high": 0.7}


def truth(ratio: float, error: float = 0.01) -> Truth:
    return Truth(point=math.log(ratio), error=error)


@pytest.mark.parametrize(
    ("finding", "ratio", "remark"),
    [
        ("slower", 0.5, ""),
        ("likely slower", 0.97, ""),
        ("slower", 1.2, "WRONG"),
        ("faster", 0.8, "WRONG"),
        # Equal, within 2 %.
        ("faster", 1.005, "WRONG"),
        ("no difference found", 0.995, ""),
        ("no difference found", 0.95, "small"),
        ("no difference found", 1.05, "small"),
        ("no difference found", 0.8, "MISSED"),
        ("changed plan", 1.3, "MISSED"),
    ],
)
def test_a_finding_is_judged_by_the_interval_of_the_truth(finding: str, ratio: float, remark: str) -> None:
    assert _remark(truth(ratio), found(finding)) == remark


def test_an_uncertain_truth_contradicts_nothing() -> None:
    assert _remark(truth(1.2, error=0.5), found("slower")) == "not confirmed"
    assert _remark(truth(1.2, error=0.5), found("faster")) == "not confirmed"
    assert _remark(truth(0.8, error=0.5), found("no difference found")) == ""


def test_a_finding_without_an_interval_is_remarked() -> None:
    assert _remark(truth(0.5), found("fails", low=None)) == "NO INTERVAL"
    assert _remark(None, found("slower")) == "NO TRUTH"
    assert _remark(None, found("slower", is_planning=True)) == "without truth"


def test_the_truth_has_an_interval_over_its_turns() -> None:
    one = _truth([0.1, 0.2, 0.3, 0.2, 0.1, 0.3])
    assert one.point == pytest.approx(0.2)
    # t with five degrees of freedom.
    assert one.error == pytest.approx(2.571 * 0.0894 / math.sqrt(6), rel=1e-2)
    assert one.reversed() == Truth(point=-one.point, error=one.error)


def test_an_incomplete_last_line_is_not_read(tmp_path: Path) -> None:
    line = json.dumps(asdict(SPEEDS))
    file = tmp_path / "truth.jsonl"
    file.write_text(f"{line}\n{line[:20]}")
    assert list(_stored(file)) == [SPEEDS]
    assert list(_stored(tmp_path / "nothing")) == []
