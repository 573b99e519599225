"""The metric over levels that are amounts: block sizes, buffers, limits; a column for all else that is varied."""

from collections.abc import Iterator

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
from pgversus.report.quantities import level_text
from pgversus.report.sentences import metric_words
from pgversus.report.sweeps import Sweep
from pgversus.text.translation import tell


def amount_tables(case: Case, known: Published) -> Iterator[str]:
    """A table for each metric, then the ratios to the baseline."""
    yield from map(_over_amounts, case.sweeps)
    names = len(case.factors) + 1
    for metric, answers in of_each_metric(case.answers).items():
        heads = (*case.factors, tell("level"), metric_words(metric), *ratio_heads(metric), *published_heads())
        rows = [
            (
                *(level(one, factor) for factor in case.factors),
                arm.label,
                level_text(metric, found.value) if (found := one.analysis.levels[arm.index].get(metric)) else "",
                *ratio_cells(one, arm.index),
                *published_beside(known, one, arm.index),
            )
            for one in answers
            for arm in one.comparison.arms
        ]
        yield capped(heads, rows, names=names)


def _over_amounts(sweep: Sweep) -> str:
    """A row for each level, in ascending order, and a column for each line of the chart."""
    metric = metric_words(sweep.metric)
    ats = {point.at: point.label for line in sweep.lines for point in line.points}
    values = [{point.at: level_text(sweep.metric, point.value) for point in line.points} for line in sweep.lines]
    columns = [f"{metric}, {line.name}" if line.name else metric for line in sweep.lines]
    rows = [(ats[at], *(column.get(at, "") for column in values)) for at in sorted(ats)]
    return capped((sweep.factor, *columns), rows, names=1)
