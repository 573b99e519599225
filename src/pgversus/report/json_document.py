"""The JSON document of a result: everything in an answer, for programs.

It is versioned, and keys are only ever added. It is written piece by piece, so that the document of a large study is
never in memory as a whole.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

from pydantic_core import to_json, to_jsonable_python

from pgversus.answers.answer import Answer, AttributionResult, Caveat, StudyAnswer
from pgversus.answers.validity import validity
from pgversus.report.caveats import caveat_text
from pgversus.report.methodology import sensitivity
from pgversus.report.plans import plans_document
from pgversus.report.published import PublishedRatio, published_ratios
from pgversus.report.sentences import answer_sentences, unanswered_text
from pgversus.report.study_answer import study_sentences
from pgversus.report.upgrade_document import upgrade_document
from pgversus.report.values import dropped_trials
from pgversus.report.verdicts import VerdictOn, verdict_on
from pgversus.report.why import attribution_failure
from pgversus.stats.analysis import ContenderResult, Estimate
from pgversus.stats.attribution import BoundedValue
from pgversus.stats.confidence import CONFIDENCE
from pgversus.study.counters import COUNTERS, recorded_name, unit_of
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.study.study import StudyKind
from pgversus.study.workload import Operation, PgbenchWorkload, Workload
from pgversus.text.translation import Language, use_language

_STEP = "  "


def json_pieces(document: Mapping[str, Any]) -> Iterator[str]:
    """Yield the JSON text of the document in pieces, in ASCII, with a line feed at the end.

    A value that is an iterator becomes an array; each of its items is created, written and released.
    """
    separator = "{"
    for name, value in document.items():
        yield f"{separator}\n{_STEP}{_text(name, 1)}: "
        if isinstance(value, Iterator):
            yield from _array(value)
        else:
            yield _text(value, 1)
        separator = ","
    yield "\n}\n"


def _array(items: Iterator[Any]) -> Iterator[str]:
    separator = "["
    for item in items:
        yield f"{separator}\n{_STEP * 2}{_text(item, 2)}"
        separator = ","
    yield "[]" if separator == "[" else f"\n{_STEP}]"


def _text(value: Any, depth: int) -> str:
    # json.dumps takes several times as long, because it indents in Python.
    text = to_json(value, indent=len(_STEP), ensure_ascii=True, inf_nan_mode="null").decode()
    # These line feeds are indentation only: JSON escapes those in strings.
    return text.replace("\n", f"\n{_STEP * depth}")


SCHEMA = "pgversus.answer/1"
_OF_VERDICT = tuple(field.name for field in fields(VerdictOn) if field.name != "context")
# Verdicts within a context do not repeat the context; in the list of the whole study, it is their first key.


@use_language(Language.ENGLISH)
def document(answer: Answer) -> dict[str, Any]:
    """Return the answer as lists, dicts and numbers, in base units and English; None for missing numbers."""
    comparison, plans = answer.comparison, answer.plans()
    return {
        "schema": SCHEMA,
        "answer": answer_sentences(answer),
        "verdicts": verdict_documents(answer),
        "arms": [_arm(answer, index) for index in range(len(comparison.arms))],
        "plans": None if plans is None else plans_document(plans),
        "caveats": [_caveat(answer, caveat) for caveat in answer.caveats],
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


@use_language(Language.ENGLISH)
def verdict_documents(answer: Answer) -> list[dict[str, Any]]:
    """Return the verdict on each contender, as in the document."""
    return [_verdict(answer, result) for result in answer.analysis.results]


def _verdict(answer: Answer, result: ContenderResult) -> dict[str, Any]:
    row = verdict_on(answer, result)
    return {
        **{name: getattr(row, name) for name in _OF_VERDICT},
        "verdict": row.verdict.value,
        "validity": validity(answer, result).value,
        "caveats": list(row.caveats),
        "values": _paired_values(result, answer.analysis.metric),
        "ratios": _estimates(result.ratios),
        **_steps("step_ratios", result.ratios),
        "counter_ratios": {
            name: {"value": found.value, "low": found.low, "high": found.high, "sure": found.is_sure, "blocks": found.n}
            for name, found in result.counters.items()
        },
        "counters_on_one_side": {
            name: {"baseline": found.baseline, "contender": found.contender, "sure": found.is_sure, "blocks": found.n}
            for name, found in result.one_sided.items()
        },
        **asdict(sensitivity(answer, result)),
        "dropped_trials": dropped_trials(answer, result),
        "attribution": _attribution(answer.attributions.get(result.contender)),
    }


def _paired_values(result: ContenderResult, metric: Metric) -> dict[str, float] | None:
    """Return the values of both arms, whose quotient is the ratio; None without them."""
    values = result.paired_values.get(metric)
    return None if values is None else {"baseline": values[0], "contender": values[1]}


def _attribution(attributed: AttributionResult | None) -> dict[str, Any] | None:
    """Return the effect of changed plans, as factors and in seconds per transaction; None without an attribution."""
    if attributed is None:
        return None
    found = attributed.found
    names = ("whole", "plans", "rest", "whole_s", "plans_s", "rest_s")
    return {
        "plans_recalled_by": attributed.restoration or None,
        **({} if found is None else {name: asdict(getattr(found, name)) for name in names}),
        "share_of_plans": None if found is None else _bounded(found.share),
        "share_of_time": None if found is None else _bounded(found.share_of_time),
        "rest_verdict": None if found is None else found.rest_verdict.value,
        "blocks": attributed.blocks if found is None else found.blocks,
        "wall_s": attributed.wall_s,
        "results": attributed.results or None,
        "needs_check": attributed.needs_check,
        "not_measured": attribution_failure(attributed) or None,
    }


def _bounded(value: BoundedValue | None) -> dict[str, float] | None:
    return None if value is None else asdict(value)


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
        "compiled_in": dict(facts.compiled_in),
        "built_from": None if facts.built_from is None else asdict(facts.built_from),
        "relation_bytes": dict(facts.sizes),
        "settings": {setting.name: setting.value for setting in arm.settings},
        "workload": _workload(arm.workload),
        "dataset": _dataset(arm.dataset),
        "metrics": _estimates(answer.analysis.arm_values[index], with_units=True),
        **_steps("steps", answer.analysis.arm_values[index]),
        "counters": {
            name: {
                "value": value,
                "unit": unit_of(name).value,
                "per_transaction": COUNTERS[recorded_name(name)].per_transaction and not arm.workload.runs_once,
            }
            for name, value in answer.analysis.counters[index].items()
        },
    }


def _estimates(estimates: Mapping[Quantity, Estimate], *, with_units: bool = False) -> dict[str, Any]:
    return {
        metric.value: {**_estimate(estimate), **({"unit": metric.unit} if with_units else {})}
        for metric, estimate in estimates.items()
        if isinstance(metric, Metric)
    }


def _steps(key: str, estimates: Mapping[Quantity, Estimate]) -> dict[str, Any]:
    """Return ratios or seconds for each step of an operation that has several."""
    found = {
        quantity.step: _estimate(estimate) for quantity, estimate in estimates.items() if isinstance(quantity, StepTime)
    }
    return {key: found} if found else {}


def _estimate(estimate: Estimate) -> dict[str, Any]:
    return {
        "value": estimate.value,
        "low": estimate.low,
        "high": estimate.high,
        "confidence": CONFIDENCE,
        "blocks": estimate.n,
    }


def _caveat(answer: Answer, caveat: Caveat) -> dict[str, Any]:
    arm = None if caveat.arm is None else answer.comparison.arms[caveat.arm].label
    return {
        "slug": caveat.slug,
        "severity": caveat.severity.value,
        "text": caveat_text(caveat),
        "arm": arm,
        "values": to_jsonable_python(caveat.values),
    }


def _workload(workload: Workload) -> dict[str, Any]:
    match workload:
        case Operation(steps=steps):
            return {
                "name": workload.name,
                "steps": [
                    {"name": step.name, "sql": step.sql, "command": list(step.program) or None} for step in steps
                ],
                "verify": list(workload.verify),
            }
        case PgbenchWorkload(rewrite=rewrite):
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
                "rewrite": None if rewrite is None else {"name": rewrite.name, "text": rewrite.text},
            }


def _dataset(dataset: Dataset) -> dict[str, Any]:
    return {
        "restore": None if dataset.restore is None else asdict(dataset.restore),
        "pgbench_scale": dataset.pgbench_scale,
        "setup": _files(dataset.setup_files),
        "prepare": _files(dataset.prepare),
        "variables": dict(dataset.variables),
    }


def _files(files: Sequence[SetupFile]) -> list[dict[str, str]]:
    return [{"path": file.path, "sha256": file.sha256} for file in files]


def _design(answer: Answer) -> dict[str, Any]:
    design = answer.comparison.design
    return {
        "metric": design.metric.value,
        "margin": design.margin,
        "precision": design.precision,
        "window_s": design.window_s,
        "window_kind": design.window_kind.value,
        "window_transactions": design.window_transactions,
        "windows_per_block": design.rounds,
        "windows_of_blocks": sorted(answer.window_counts),
        "warm_up_s": design.warm_up_s,
        "client_processors": list(design.client_processors),
        "server_processors": list(design.server_processors),
        "budget_s": design.budget_s,
        "max_blocks": design.max_blocks,
        "fixed_blocks": design.fixed_blocks,
        "seed": design.seed,
    }


STUDY_SCHEMA = "pgversus.study/1"


def study_document(answer: StudyAnswer) -> dict[str, Any]:
    """Return a study or a comparison as lists, dicts and numbers, in base units; None for missing numbers.

    `verdicts` and `contexts` may have thousands of items: they are iterators that create each item on demand.
    Sentences are in English.
    """
    with use_language(Language.ENGLISH):
        sentences = study_sentences(answer)
        not_measured = [
            {"context": one.context.label, "failed": one.failed, "words": unanswered_text(one)}
            for one in answer.unanswered
        ]
    return {
        "schema": STUDY_SCHEMA,
        "kind": answer.study.kind.value,
        "study": answer.study.name,
        "title": answer.study.title,
        "question": answer.study.question,
        "answer": sentences,
        **({"upgrades": upgrade_document(answer)} if answer.study.kind is StudyKind.UPGRADE_CHECK else {}),
        "verdicts": _verdicts(answer),
        "verdicts_sharing_the_error": answer.study.verdicts,
        "not_measured": not_measured,
        "contexts": _contexts(answer),
        "left_out": [asdict(one) for one in answer.study.skipped],
        "published": [_published(row) for row in published_ratios(answer)],
        "stopped": answer.stopped.value,
        "seed": answer.study.seed,
        "results": answer.results,
    }


def _published(row: PublishedRatio) -> dict[str, Any]:
    measured = row.measured
    return {
        "context": row.context,
        "contender": row.contender,
        "published_ratio": row.published,
        "ratio": measured.value if measured else None,
        "low": measured.low if measured else None,
        "high": measured.high if measured else None,
        "agreement": row.agreement.value,
        "different_conditions": [asdict(one) for one in row.different],
        "confounded": row.confounded or None,
    }


def _verdicts(answer: StudyAnswer) -> Iterator[dict[str, Any]]:
    for one in answer.answers:
        for verdict in verdict_documents(one):
            yield {"context": one.context.label, **verdict}


def _contexts(answer: StudyAnswer) -> Iterator[dict[str, Any]]:
    for one in answer.answers:
        yield {"context": one.context.label, "levels": dict(one.context.levels), **document(one)}
