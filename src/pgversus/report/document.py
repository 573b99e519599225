"""The JSON document: everything that an answer holds, for machines. Versioned; keys are only ever added."""

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

from pgversus.report.answer import Answer
from pgversus.report.sentences import answer_sentences
from pgversus.report.verdicts import VerdictOn, verdict_on
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.study.counters import COUNTERS
from pgversus.study.dataset import Dataset
from pgversus.study.metrics import Metric
from pgversus.study.workload import PgbenchWorkload

SCHEMA = "pgversus.answer/1"
_OF_VERDICT = tuple(field.name for field in fields(VerdictOn) if field.name != "context")
# A document of one comparison has no context; that of a study names it first.


def document(answer: Answer) -> dict[str, Any]:
    """The answer as plain lists, dicts and numbers, in base units; null where there is no number."""
    comparison = answer.comparison
    return {
        "schema": SCHEMA,
        "answer": answer_sentences(answer),
        "verdicts": verdict_documents(answer),
        "arms": [_arm(answer, index) for index in range(len(comparison.arms))],
        "caveats": [_caveat(answer, index) for index in range(len(answer.caveats))],
        "differences": [
            {"kind": d.kind, "name": d.name, "values": list(d.values), "is_default": d.is_default}
            for d in answer.differences
        ],
        "factors": list(comparison.factors),
        "workload": _workload(comparison.workload),
        "dataset": _dataset(comparison.dataset),
        "design": _design(answer),
        "stopped": answer.stopped.value,
        "blocks_run": len(answer.blocks),
        "repeated_rounds": sum(block.repeated_rounds for block in answer.blocks),
        "failed_trials": answer.failed_trials,
        "wall_s": answer.wall_s,
        "client": answer.client,
        "host": dict(answer.host),
        "results": answer.results,
    }


def verdict_documents(answer: Answer) -> list[dict[str, Any]]:
    """The verdict on each contender, as in the document."""
    return [_verdict(answer, result) for result in answer.analysis.results]


def _verdict(answer: Answer, result: ContenderResult) -> dict[str, Any]:
    row = verdict_on(answer, result)
    return {
        **{name: getattr(row, name) for name in _OF_VERDICT},
        "verdict": row.verdict.value,
        "caveats": list(row.caveats),
        "ratios": _estimates(result.ratios),
        "counter_ratios": {
            name: {"value": found.value, "low": found.low, "high": found.high, "sure": found.is_sure, "blocks": found.n}
            for name, found in result.counters.items()
        },
        "counters_on_one_side": {
            name: {"baseline": found.baseline, "contender": found.contender, "sure": found.is_sure, "blocks": found.n}
            for name, found in result.one_sided.items()
        },
    }


def _arm(answer: Answer, index: int) -> dict[str, Any]:
    arm, facts = answer.comparison.arms[index], answer.arms[index]
    return {
        "label": arm.label,
        "role": "baseline" if index == 0 else "contender",
        "version": facts.version,
        "origin": facts.origin,
        "compiler": facts.compiler,
        "cflags": facts.flags or None,
        "sha256": facts.sha256,
        "settings": {setting.name: setting.value for setting in arm.settings},
        "workload": _workload(arm.workload),
        "dataset": _dataset(arm.dataset),
        "metrics": _estimates(answer.analysis.levels[index], with_units=True),
        "counters": {
            name: {"value": value, "unit": COUNTERS[name].unit.value, "per_transaction": COUNTERS[name].per_transaction}
            for name, value in answer.analysis.counters[index].items()
        },
    }


def _estimates(estimates: Mapping[Metric, Estimate], *, with_units: bool = False) -> dict[str, Any]:
    return {
        metric.value: {
            "value": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "confidence": estimate.confidence,
            "blocks": estimate.n,
            **({"unit": metric.unit} if with_units else {}),
        }
        for metric, estimate in estimates.items()
    }


def _caveat(answer: Answer, index: int) -> dict[str, Any]:
    caveat = answer.caveats[index]
    arm = None if caveat.arm is None else answer.comparison.arms[caveat.arm].label
    return {"slug": caveat.slug, "text": caveat.text, "arm": arm}


def _workload(workload: PgbenchWorkload) -> dict[str, Any]:
    return {
        "name": workload.name,
        "scripts": [
            {"name": script.name, "weight": script.weight, "builtin": script.is_builtin, "text": script.text}
            for script in workload.scripts
        ],
        "clients": workload.clients,
        "threads": workload.threads,
        "query_mode": workload.query_mode.value,
        "variables": dict(workload.variables),
        "rate": workload.rate,
    }


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "pgbench_scale": dataset.pgbench_scale,
        "setup": [{"path": file.path, "sha256": file.sha256} for file in dataset.setup_files],
    }


def _design(answer: Answer) -> dict[str, Any]:
    design = answer.comparison.design
    return {
        "metric": design.metric.value,
        "margin": design.margin,
        "window_s": design.window_s,
        "windows_per_block": design.rounds,
        "warm_up_s": design.warm_up_s,
        "budget_s": design.budget_s,
        "max_blocks": design.max_blocks,
        "fixed_blocks": design.fixed_blocks,
        "seed": design.seed,
    }
