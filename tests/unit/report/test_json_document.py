import json
from dataclasses import replace
from typing import Any

import pytest

from pgversus.report.json_document import SCHEMA, document, json_pieces, study_document
from pgversus.report.sentences import answer_sentences
from pgversus.study.metrics import Metric
from pgversus.study.study import StudyKind
from tests.builders import study_answer
from tests.unit.report.cases import CASES

REQUIRED = {
    "workload",
    "metric",
    "baseline",
    "contender",
    "verdict",
    "ratio",
    "low",
    "high",
    "confidence",
    "blocks",
    "seconds_measured",
    "caveats",
}


def read_back(case: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(document(CASES[case]()), allow_nan=False))
    return found


@pytest.mark.parametrize("case", CASES)
def test_the_document_is_json_without_nan_and_survives_a_round_trip(case: str) -> None:
    assert read_back(case) == document(CASES[case]())


@pytest.mark.parametrize("case", CASES)
def test_every_verdict_has_the_keys_that_programs_rely_on(case: str) -> None:
    found = read_back(case)
    assert found["schema"] == SCHEMA == "pgversus.answer/1"
    assert len(found["verdicts"]) == len(found["arms"]) - 1
    for verdict in found["verdicts"]:
        assert set(verdict) >= REQUIRED
        assert isinstance(verdict["caveats"], list)


@pytest.mark.parametrize("case", CASES)
def test_the_document_contains_the_sentences_of_the_terminal(case: str) -> None:
    assert read_back(case)["answer"] == answer_sentences(CASES[case]())


@pytest.mark.parametrize("case", CASES)
def test_bounds_are_both_present_or_both_null_and_enclose_the_ratio(case: str) -> None:
    for verdict in read_back(case)["verdicts"]:
        low, ratio, high = verdict["low"], verdict["ratio"], verdict["high"]
        assert (low is None) == (high is None)
        if low is not None:
            assert low <= ratio <= high


def test_a_verdict_contains_the_numbers_of_the_analysis() -> None:
    answer = CASES["faster"]()
    (verdict,) = read_back("faster")["verdicts"]
    ratio = answer.analysis.result_of(1).ratios[Metric.TPS]
    assert (verdict["ratio"], verdict["low"], verdict["high"]) == (ratio.value, ratio.low, ratio.high)
    assert verdict["verdict"] == "faster"
    assert verdict["metric"] == "tps"
    assert (verdict["baseline"], verdict["contender"]) == ("16.12", "17.8")
    assert verdict["workload"] == "select-only"
    assert verdict["confidence"] == 0.95
    assert verdict["blocks"] == 6
    assert verdict["seconds_measured"] == pytest.approx(answer.analysis.result_of(1).seconds_measured)


def test_without_blocks_all_numbers_are_null() -> None:
    (verdict,) = read_back("interrupted")["verdicts"]
    assert [verdict[key] for key in ("ratio", "low", "high", "confidence")] == [None] * 4
    assert verdict["verdict"] == "undecided"
    assert verdict["blocks"] == 0
    assert verdict["caveats"] == ["interrupted"]


def test_a_caveat_of_one_contender_does_not_apply_to_the_other() -> None:
    found = read_back("invalid")
    assert [verdict["caveats"] for verdict in found["verdicts"]] == [["failed-trials"], []]
    assert [verdict["verdict"] for verdict in found["verdicts"]] == ["invalid", "slower"]
    assert found["caveats"][0]["arm"] == "17.8"


def test_arms_have_a_role_and_metrics_with_units() -> None:
    arms = read_back("faster")["arms"]
    assert [arm["role"] for arm in arms] == ["baseline", "contender"]
    assert [arm["label"] for arm in arms] == ["16.12", "17.8"]
    assert arms[0]["cflags"] is None
    assert arms[1]["cflags"] == "-O2"
    assert arms[0]["metrics"]["tps"]["unit"] == "1/s"
    assert arms[0]["metrics"]["latency_max_s"]["low"] is None
    assert arms[0]["metrics"]["tps"]["value"] == pytest.approx(1000, rel=0.01)


def test_the_workload_can_be_reproduced_from_the_document() -> None:
    workload = read_back("tail_latency")["workload"]
    assert workload["scripts"] == [
        {"name": "lag.sql", "weight": 2, "builtin": False, "text": "SELECT 1;\n"},
        {"name": "tpcb-like", "weight": None, "builtin": True, "text": None},
    ]
    assert (workload["clients"], workload["threads"], workload["rate"]) == (8, 2, 50.0)
    assert workload["query_mode"] == "prepared"
    assert workload["variables"] == {"rows": "1000"}


def test_an_operation_can_be_reproduced_from_the_document() -> None:
    found = read_back("steps")
    assert found["workload"] == {
        "name": "VACUUM pgbench_accounts, pg_dump",
        "steps": [
            {"name": "VACUUM pgbench_accounts", "sql": "VACUUM pgbench_accounts;", "command": None},
            {"name": "pg_dump", "sql": None, "command": ["pg_dump", "-f", "db.sql"]},
        ],
        "verify": [],
    }
    assert found["dataset"]["prepare"] == [{"path": "/studies/dirty.sql", "sha256": "0"}]
    assert found["dataset"]["variables"] == {"dead": "70"}


def test_an_operation_has_only_its_time_and_that_of_each_step() -> None:
    found = read_back("steps")
    assert [list(arm["metrics"]) for arm in found["arms"]] == [["time_s"], ["time_s"]]
    assert found["arms"][0]["metrics"]["time_s"]["value"] == pytest.approx(2.3, rel=0.01)
    assert found["arms"][0]["steps"]["pg_dump"]["value"] == pytest.approx(0.4, rel=0.01)
    (verdict,) = found["verdicts"]
    assert list(verdict["ratios"]) == ["time_s"]
    assert verdict["step_ratios"]["VACUUM pgbench_accounts"]["value"] == pytest.approx(0.75 / 1.9, rel=0.01)
    assert "steps" not in read_back("operation")["arms"][0]
    assert "steps" not in read_back("faster")["arms"][0]


def comparison_document(*cases: str) -> dict[str, Any]:
    """Return the document of `compare`: one context, or none yet, without a title."""
    whole = study_answer([CASES[case]() for case in cases])
    metadata = replace(whole.study, title="", contexts=1, kind=StudyKind.COMPARISON)
    found: dict[str, Any] = json.loads("".join(json_pieces(study_document(replace(whole, study=metadata)))))
    return found


def test_a_comparison_has_the_form_of_a_study_with_its_own_kind_and_sentences() -> None:
    found = comparison_document("faster")
    (context,) = found["contexts"]
    assert (found["schema"], found["kind"]) == ("pgversus.study/1", "comparison")
    assert found["answer"] == context["answer"] == answer_sentences(CASES["faster"]())
    assert [{key: value for key, value in one.items() if key != "context"} for one in found["verdicts"]] == context[
        "verdicts"
    ]


def test_a_comparison_without_blocks_has_no_context() -> None:
    found = comparison_document()
    assert (found["kind"], found["contexts"], found["verdicts"]) == ("comparison", [], [])


def test_a_study_file_of_one_context_is_a_study() -> None:
    assert json.loads("".join(json_pieces(study_document(study_answer([CASES["faster"]()])))))["kind"] == "study"
