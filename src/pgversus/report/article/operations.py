"""Times of what is done once to a state: mean and minimum of each cell, the difference, the ratio in percent."""

from collections.abc import Callable, Iterator, Sequence
from math import fsum

from pgversus.report.answer import Answer
from pgversus.report.article.cases import Case, level
from pgversus.report.article.figures import Published, capped, interval_text, ratio_cells
from pgversus.report.markdown import paragraph
from pgversus.report.published import replication_word
from pgversus.report.sentences import percent_of_confidence
from pgversus.stats.analysis import quantities_of
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.metrics import Metric, Quantity, StepTime
from pgversus.text.translation import tell
from pgversus.text.units import significant

_MS = 1e3
_PERCENT = 100.0


def operation_tables(case: Case, known: Published) -> Iterator[str]:
    """For each contender a table of means and one of minimums."""
    for label in dict.fromkeys(arm.label for one in case.answers for arm in one.comparison.contenders):
        pairs = [(one, arm) for one in case.answers for arm in one.comparison.contenders if arm.label == label]
        baselines = "/".join(dict.fromkeys(one.comparison.baseline.label for one, _ in pairs))
        names = len(case.factors) + any(len(_quantities(one)) > 1 for one, _ in pairs)
        places = (*case.factors, *([tell("step")] * (names - len(case.factors))))
        values = tell("{server}, ms", server=baselines), tell("{server}, ms", server=label)
        both = (*places, tell("trials"), *values, tell("difference, ms"), tell("ratio"))
        yield paragraph(tell("Mean, {contender} against {baseline}:", contender=label, baseline=baselines))
        heads = (*both, percent_of_confidence(), tell("verdict"), tell("published ratio"), tell("replication"))
        yield capped(heads, [row for one, arm in pairs for row in _means(case, one, arm, known)], names=names)
        yield paragraph(tell("Minimum, of which no interval is promised:"))
        yield capped(both, [row for one, arm in pairs for row in _minimums(case, one, arm)], names=names)
    yield paragraph(
        tell(
            "Means and differences are arithmetic, of the blocks that hold both servers; the ratio beside a mean is "
            "the mean of the blocks' ratios, which the interval and the verdict belong to."
        )
    )


def _means(case: Case, one: Answer, arm: Arm, known: Published) -> Iterator[Sequence[str]]:
    for quantity in _quantities(one):
        ratio = one.analysis.result_of(arm.index).ratios.get(quantity)
        is_whole = quantity is Metric.TIME
        _, _, verdict = ratio_cells(one, arm.index)
        published, replicated = _published(known, one, arm)
        yield (
            *_cells(case, one, arm, quantity, _mean),
            "" if ratio is None else f"{significant(_PERCENT * ratio.value)} %",
            interval_text(ratio, _PERCENT, " %"),
            *((verdict, published, replicated) if is_whole else ("", "", "")),
        )


def _minimums(case: Case, one: Answer, arm: Arm) -> Iterator[Sequence[str]]:
    for quantity in _quantities(one):
        times = _times(one, quantity, arm.index)
        ratio = min(new for _, new in times) / min(old for old, _ in times) if times else None
        ratio_words = "" if ratio is None else f"{significant(_PERCENT * ratio)} %"
        yield *_cells(case, one, arm, quantity, min), ratio_words


def _cells(
    case: Case, one: Answer, arm: Arm, quantity: Quantity, of_many: Callable[[Sequence[float]], float]
) -> Iterator[str]:
    """Where, how many trials, the time on the baseline and on the contender, and the difference."""
    yield from (level(one, factor) for factor in case.factors)
    if len(_quantities(one)) > 1:
        yield quantity.step if isinstance(quantity, StepTime) else tell("all steps")
    times = _times(one, quantity, arm.index)
    yield str(len(times))
    if not times:
        yield from ("", "", "")
        return
    old, new = (_MS * of_many([pair[side] for pair in times]) for side in (0, 1))
    yield from (significant(old, 5), significant(new, 5), _signed(new - old))


def _signed(milliseconds: float) -> str:
    return f"{'-' if milliseconds < 0 else '+'}{significant(abs(milliseconds))}"


def _published(known: Published, one: Answer, arm: Arm) -> tuple[str, str]:
    """The published ratio with its figures, and whether it was replicated."""
    row = known.get((one.context.label, arm.label))
    if row is None:
        return "", ""
    return f"{significant(_PERCENT * row.published)} % ({' / '.join(row.levels)})", replication_word(row.replication)


def _quantities(one: Answer) -> list[Quantity]:
    steps = [quantity for quantity in quantities_of(one.comparison) if isinstance(quantity, StepTime)]
    return [Metric.TIME, *steps]


def _times(one: Answer, quantity: Quantity, arm: int) -> list[tuple[float, float]]:
    """Of baseline and contender, for each block that tells it of both."""
    found = []
    for block in one.blocks:
        if block.has(BASELINE, arm):
            old, new = (block.trials[which].value(quantity) for which in (BASELINE, arm))
            if old is not None and new is not None:
                found.append((old, new))
    return found


def _mean(values: Sequence[float]) -> float:
    return fsum(values) / len(values)
