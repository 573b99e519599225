"""Tables of loads: two arms as one case, several arms or loads as such studies are written up."""

from collections.abc import Iterator, Sequence

from pgversus.report.answer import Answer
from pgversus.report.article.cases import Case, level
from pgversus.report.article.figures import (
    Published,
    capped,
    of_each_metric,
    published_beside,
    published_heads,
    ratio_cells,
    ratio_heads,
)
from pgversus.study.metrics import Metric
from pgversus.text.translation import tell
from pgversus.text.units import latency, significant


def pair_tables(case: Case, known: Published) -> Iterator[str]:
    """Throughput, mean latency and ratio; then how many transactions and how long they took."""
    (one,) = case.answers
    ratios = ratio_heads(one.analysis.metric)
    heads = (tell("server"), tell("tps"), tell("average latency"), *ratios, *published_heads())
    rows = [
        (
            arm.label,
            _value(one, arm.index, Metric.TPS),
            _value(one, arm.index, Metric.LATENCY_MEAN),
            *ratio_cells(one, arm.index),
            *published_beside(known, one, arm.index),
        )
        for arm in one.comparison.arms
    ]
    yield capped(heads, rows, names=1)
    heads = (tell("server"), tell("transactions"), tell("min"), tell("p95"), tell("p99"), tell("max"))
    yield capped(heads, [(arm.label, *_latencies(one, arm.index)) for arm in one.comparison.arms], names=1)


def load_tables(case: Case, known: Published) -> Iterator[str]:
    """Count, throughput and latencies of each arm under each load; then ratios to the baseline."""
    factors = case.factors
    names = len(factors) + 1
    heads = (*factors, tell("server"), tell("transactions"), tell("tps"), tell("min"), tell("max"))
    heads = (*heads, tell("p95"), tell("p99"))
    yield capped(heads, list(_distributions(case)), names=names)
    for metric, answers in of_each_metric(case.answers).items():
        yield capped(
            (*factors, tell("server"), tell("tps"), *ratio_heads(metric), *published_heads()),
            list(_ratios(case, answers, known)),
            names=names,
        )


def _distributions(case: Case) -> Iterator[tuple[str, ...]]:
    for one in case.answers:
        for arm in one.comparison.arms:
            count, least, p95, p99, most = _latencies(one, arm.index)
            tps = _value(one, arm.index, Metric.TPS)
            yield *_place(case, one), arm.label, count, tps, least, most, p95, p99


def _ratios(case: Case, answers: Sequence[Answer], known: Published) -> Iterator[tuple[str, ...]]:
    for one in answers:
        for arm in one.comparison.arms:
            tps, published = _value(one, arm.index, Metric.TPS), published_beside(known, one, arm.index)
            yield *_place(case, one), arm.label, tps, *ratio_cells(one, arm.index), *published


def _place(case: Case, one: Answer) -> list[str]:
    return [level(one, factor) for factor in case.factors]


def _value(one: Answer, arm: int, metric: Metric) -> str:
    found = one.analysis.levels[arm].get(metric)
    if found is None:
        return ""
    return significant(found.value, 4) if metric is Metric.TPS else latency(found.value)


def _latencies(one: Answer, arm: int) -> tuple[str, str, str, str, str]:
    """Transactions, then the shortest, p95, p99 and the longest."""
    trials = [block.trials[arm] for block in one.blocks if block.has(arm)]
    least = [trial.latency_min_s for trial in trials if trial.latency_min_s is not None]
    p95, p99, most = (
        _value(one, arm, metric) for metric in (Metric.LATENCY_P95, Metric.LATENCY_P99, Metric.LATENCY_MAX)
    )
    return str(sum(trial.transactions for trial in trials)), latency(min(least)) if least else "", p95, p99, most
