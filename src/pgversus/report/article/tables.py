"""Tables of an article: loads, operations, and the metric over numeric levels."""

from collections.abc import Iterator, Sequence

from pgversus.answers.answer import Answer
from pgversus.report.article.figures import (
    Case,
    Published,
    capped,
    interval_text,
    level,
    of_each_metric,
    published_columns,
    published_heads,
    ratio_cells,
    ratio_heads,
)
from pgversus.report.markdown import paragraph
from pgversus.report.published import agreement_text
from pgversus.report.sentences import interval_heading, metric_text
from pgversus.report.sweeps import Sweep
from pgversus.report.values import mean_text, value_text
from pgversus.stats.analysis import times_of
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.metrics import TAILS, Metric, Quantity, StepTime
from pgversus.text.translation import _
from pgversus.text.units import latency, significant


def pair_tables(case: Case, known: Published) -> Iterator[str]:
    """Yield throughput, mean latency and ratio; then the number of transactions and their latencies."""
    (one,) = case.answers
    ratios = ratio_heads(one.analysis.metric)
    heads = (_("server"), _("tps"), _("mean latency"), *ratios, *published_heads())
    rows = [
        (
            arm.label,
            mean_text(one, arm.index, Metric.TPS),
            mean_text(one, arm.index, Metric.LATENCY_MEAN),
            *ratio_cells(one, arm.index),
            *published_columns(known, one, arm.index),
        )
        for arm in one.comparison.arms
    ]
    yield capped(heads, rows, names=1)
    heads = (_("server"), _("transactions"), _("min"), *_tail_names(), _("max"))
    latencies = []
    for arm in one.comparison.arms:
        count, least, most, tails = _latencies(one, arm.index)
        latencies.append((arm.label, count, least, *tails, most))
    yield capped(heads, latencies, names=1)


def load_tables(case: Case, known: Published) -> Iterator[str]:
    """Yield count, throughput and latencies of each arm under each load; then ratios to the baseline."""
    factors = case.factors
    names = len(factors) + 1
    heads = (*factors, _("server"), _("transactions"), _("tps"), _("min"), _("max"), *_tail_names())
    yield capped(heads, list(_distributions(case)), names=names)
    for metric, answers in of_each_metric(case.answers).items():
        yield capped(
            (*factors, _("server"), _("tps"), *ratio_heads(metric), *published_heads()),
            list(_ratios(case, answers, known)),
            names=names,
        )


def _distributions(case: Case) -> Iterator[tuple[str, ...]]:
    for one in case.answers:
        for arm in one.comparison.arms:
            count, least, most, tails = _latencies(one, arm.index)
            tps = mean_text(one, arm.index, Metric.TPS)
            yield *_place(case, one), arm.label, count, tps, least, most, *tails


def _ratios(case: Case, answers: Sequence[Answer], known: Published) -> Iterator[tuple[str, ...]]:
    for one in answers:
        for arm in one.comparison.arms:
            tps, published = mean_text(one, arm.index, Metric.TPS), published_columns(known, one, arm.index)
            yield *_place(case, one), arm.label, tps, *ratio_cells(one, arm.index), *published


def _place(case: Case, one: Answer) -> list[str]:
    return [level(one, factor) for factor in case.factors]


def _tail_names() -> list[str]:
    return [_(metric.short) for metric in TAILS]


def _latencies(one: Answer, arm: int) -> tuple[str, str, str, list[str]]:
    """Return the transactions, the shortest and the longest latency, and the percentiles of the tail."""
    trials = [block.trials[arm] for block in one.blocks if block.has(arm)]
    least = [trial.latency_min_s for trial in trials if trial.latency_min_s is not None]
    count, most = str(sum(trial.transactions for trial in trials)), mean_text(one, arm, Metric.LATENCY_MAX)
    return count, latency(min(least)) if least else "", most, [mean_text(one, arm, metric) for metric in TAILS]


_MS = 1e3
_PERCENT = 100.0


def operation_tables(case: Case, known: Published) -> Iterator[str]:
    """Yield a table of means and one of minimums for each contender."""
    for label in dict.fromkeys(arm.label for one in case.answers for arm in one.comparison.contenders):
        pairs = [(one, arm) for one in case.answers for arm in one.comparison.contenders if arm.label == label]
        baselines = "/".join(dict.fromkeys(one.comparison.baseline.label for one, _unused in pairs))
        names = len(case.factors) + any(len(times_of(one.comparison)) > 1 for one, _unused in pairs)
        places = (*case.factors, *([_("step")] * (names - len(case.factors))))
        values = _("{server}, ms", server=baselines), _("{server}, ms", server=label)
        both = (*places, _("trials"), *values, _("difference, ms"), _("ratio"))
        yield paragraph(_("Mean, {contender} vs {baseline}:", contender=label, baseline=baselines))
        heads = (*both, interval_heading(), _("verdict"), _("published ratio"), _("agreement"))
        yield capped(heads, [row for one, arm in pairs for row in _means(case, one, arm, known)], names=names)
        yield paragraph(_("Minimum (without an interval):"))
        yield capped(both, [row for one, arm in pairs for row in _minimums(case, one, arm)], names=names)
    yield paragraph(
        _(
            "Values are geometric means over the blocks that include both servers. Their quotient is the ratio to "
            "which the interval and the verdict refer."
        )
    )


def _means(case: Case, one: Answer, arm: Arm, known: Published) -> Iterator[Sequence[str]]:
    for quantity in times_of(one.comparison):
        ratio = one.analysis.result_of(arm.index).ratios.get(quantity)
        is_whole = quantity is Metric.TIME
        _unused, _unused, verdict = ratio_cells(one, arm.index)
        published, agreement = _published(known, one, arm)
        means = one.analysis.result_of(arm.index).paired_values.get(quantity)
        yield (
            *_cells(case, one, arm, quantity, means),
            "" if ratio is None else f"{significant(_PERCENT * ratio.value)} %",
            interval_text(ratio, _PERCENT, " %"),
            *((verdict, published, agreement) if is_whole else ("", "", "")),
        )


def _minimums(case: Case, one: Answer, arm: Arm) -> Iterator[Sequence[str]]:
    for quantity in times_of(one.comparison):
        times = _times(one, quantity, arm.index)
        least = (min(old for old, _unused in times), min(new for _unused, new in times)) if times else None
        ratio_text = f"{significant(_PERCENT * least[1] / least[0])} %" if least else ""
        yield *_cells(case, one, arm, quantity, least), ratio_text


def _cells(case: Case, one: Answer, arm: Arm, quantity: Quantity, seconds: tuple[float, float] | None) -> Iterator[str]:
    """Yield the factors, the number of trials, the times of baseline and contender, and the difference."""
    yield from (level(one, factor) for factor in case.factors)
    if len(times_of(one.comparison)) > 1:
        yield quantity.step if isinstance(quantity, StepTime) else _("all steps")
    yield str(len(_times(one, quantity, arm.index)))
    if seconds is None:
        yield from ("", "", "")
        return
    old, new = (_MS * value for value in seconds)
    yield from (significant(old, 5), significant(new, 5), _signed(new - old))


def _signed(milliseconds: float) -> str:
    return f"{'-' if milliseconds < 0 else '+'}{significant(abs(milliseconds))}"


def _published(known: Published, one: Answer, arm: Arm) -> tuple[str, str]:
    """Return the published ratio with its figures, and the agreement."""
    row = known.get((one.context.label, arm.label))
    if row is None:
        return "", ""
    return f"{significant(_PERCENT * row.published)} % ({' / '.join(row.values)})", agreement_text(row)


def _times(one: Answer, quantity: Quantity, arm: int) -> list[tuple[float, float]]:
    """Return the times of baseline and contender for each block with both."""
    found = []
    for block in one.blocks:
        if block.has(BASELINE, arm):
            old, new = (block.trials[which].value(quantity) for which in (BASELINE, arm))
            if old is not None and new is not None:
                found.append((old, new))
    return found


def amount_tables(case: Case, known: Published) -> Iterator[str]:
    """Yield a table for each metric, then the ratios to the baseline."""
    yield from map(_over_amounts, case.sweeps)
    names = len(case.factors) + 1
    for metric, answers in of_each_metric(case.answers).items():
        heads = (*case.factors, _("level"), metric_text(metric), *ratio_heads(metric), *published_heads())
        rows = [
            (
                *(level(one, factor) for factor in case.factors),
                arm.label,
                mean_text(one, arm.index, metric),
                *ratio_cells(one, arm.index),
                *published_columns(known, one, arm.index),
            )
            for one in answers
            for arm in one.comparison.arms
        ]
        yield capped(heads, rows, names=names)


def _over_amounts(sweep: Sweep) -> str:
    """Return a table with a row for each level, in ascending order, and a column for each line of the chart."""
    metric = metric_text(sweep.metric)
    ats = {point.at: point.label for line in sweep.lines for point in line.points}
    values = [{point.at: value_text(sweep.metric, point.value) for point in line.points} for line in sweep.lines]
    columns = [f"{metric}, {line.name}" if line.name else metric for line in sweep.lines]
    rows = [(ats[at], *(column.get(at, "") for column in values)) for at in sorted(ats)]
    return capped((sweep.factor, *columns), rows, names=1)
