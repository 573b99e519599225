"""The answer to a comparison in sentences: each verdict, its certainty, and the next step."""

import math
from collections.abc import Sequence

from pgversus.answers.answer import OTHER_ORDER, OTHER_ROWS, Answer, Unanswered
from pgversus.report.advice import misses_precision, seconds_of_a_block, unfinished_groups
from pgversus.report.caveats import caveat_text
from pgversus.report.size import open_size, size_advice
from pgversus.report.values import change_texts, uses_factors
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import CONFIDENCE, Verdict
from pgversus.study.design import StopReason
from pgversus.study.metrics import Metric
from pgversus.text.translation import N_, _, listed, ngettext, together
from pgversus.text.units import duration, has_bounds, percent, percent_above, significant


def metric_text(metric: Metric) -> str:
    """Return the name of a metric in the current language."""
    return _(metric.label)


def answer_sentences(answer: Answer) -> list[str]:
    """Return the sentence on each contender, in order, and the advice on undecided verdicts, once for all of them."""
    results = answer.analysis.results
    as_factors = uses_factors([answer])
    sentences = [contender_sentence(answer, result, as_factors=as_factors) for result in results]
    judged = [(answer, result) for result in results]
    groups = unfinished_groups(judged)
    # A group of one is the sentence on its contender.
    steps = [group.advice if len(group.judged) == 1 else together(group.count, group.advice) for group in groups]
    advice = [text for text in (size_advice(judged), *steps) if text]
    return [together(*sentences, *advice)] if len(sentences) == 1 else [*sentences, *advice]


def contender_sentence(answer: Answer, result: ContenderResult, *, as_factors: bool) -> str:
    """Return the verdict on one contender with its interval."""
    body = _BODIES[result.verdict](answer, result, as_factors=as_factors)
    # A contender that returns different rows does different work, which matters more than speed.
    others = [
        _("{caveat}.", caveat=caveat_text(one))
        for one in answer.caveats_of(result.contender)
        if one.slug in (OTHER_ROWS, OTHER_ORDER)
    ]
    check = _("CHECK the caveats below.") if answer.needs_check(result) else ""
    return together(*others, check, body)


def unanswered_text(one: Unanswered) -> str:
    """Return why a context has no measurements."""
    return not_begun(one.stopped) if one.failure is None else one.failure


def not_begun(stopped: StopReason) -> str:
    """Return why a context was not reached. stopped: how its study ended."""
    match stopped:
        case StopReason.INTERRUPTED:
            return _("not started: interrupted")
        case StopReason.BUDGET:
            return _("not started: no budget left")
        case _:
            return _("not started")


def effort(answer: Answer, result: ContenderResult) -> str:
    """Return `14 blocks, 10 min 16 s`."""
    return ngettext(
        "{number} block, {duration}", "{number} blocks, {duration}", result.blocks, duration=duration(answer.wall_s)
    )


def _names(answer: Answer, result: ContenderResult) -> dict[str, str]:
    """Return the values that nearly every sentence contains, by placeholder."""
    comparison = answer.comparison
    return {
        "contender": comparison.arms[result.contender].label,
        "baseline": comparison.baseline.label,
        "metric": metric_text(comparison.design.metric),
        "confidence": percent_of_confidence(),
        "effort": effort(answer, result),
    }


_OF_OPEN_SIZE = {
    Verdict.FASTER: N_(
        "{contender} is faster than {baseline} ({confidence} confidence). The size of the difference is unknown. "
        "{effort}."
    ),
    Verdict.SLOWER: N_(
        "{contender} is slower than {baseline} ({confidence} confidence). The size of the difference is unknown. "
        "{effort}."
    ),
}
_OF_KNOWN_SIZE = {
    Verdict.FASTER: N_(
        "{contender} is faster than {baseline}: {change} {metric} ({confidence} CI {low} to {high}). {effort}."
    ),
    Verdict.SLOWER: N_(
        "{contender} is slower than {baseline}: {change} {metric} ({confidence} CI {low} to {high}). {effort}."
    ),
}


def _changed(answer: Answer, result: ContenderResult, *, as_factors: bool) -> str:
    ratio, names = result.ratios[answer.comparison.design.metric], _names(answer, result)
    shown = change_texts(ratio, as_factors=as_factors)
    if not shown.interval:
        return together(_(_OF_OPEN_SIZE[result.verdict], **names), _missed_precision(answer, result))
    size = _(_OF_KNOWN_SIZE[result.verdict], change=shown.value, low=shown.low, high=shown.high, **names)
    return together(size, open_size(answer, result), _missed_precision(answer, result))


def _missed_precision(answer: Answer, result: ContenderResult) -> str:
    """Return a sentence on a missed precision, with the width of the interval; empty if reached or not set."""
    precision, half = answer.comparison.design.precision, result.interval.half_width
    if precision is None or not misses_precision(answer, result):
        return ""
    if not has_bounds(math.exp(-half), math.exp(half)):
        return _("The precision of ±{precision} was not reached.", precision=percent(precision))
    return _(
        "The precision of ±{precision} was not reached: the interval is ±{reached}.",
        precision=percent(precision),
        reached=percent_above(math.expm1(half)),
    )


def _equivalent(answer: Answer, result: ContenderResult, *, as_factors: bool) -> str:
    design = answer.comparison.design
    shown = change_texts(result.ratios[design.metric], as_factors=as_factors)
    body = _(
        "No difference that matters between {contender} and {baseline}: {metric} {low} to {high} ({confidence} CI), "
        "within the margin of ±{margin}. {effort}.",
        low=shown.low,
        high=shown.high,
        margin=percent(design.margin),
        **_names(answer, result),
    )
    return together(body, _missed_precision(answer, result))


def _undecided(answer: Answer, result: ContenderResult, *, as_factors: bool) -> str:
    names = _names(answer, result)
    ratio = result.ratios.get(answer.comparison.design.metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return together(_("Undecided: {contender} vs {baseline}.", **names), _too_few(answer, result))
    shown = change_texts(ratio, as_factors=as_factors)
    if not shown.interval:
        body = _("Undecided: {contender} vs {baseline}. The size of the difference is unknown. {effort}.", **names)
    else:
        body = _(
            "Undecided: {contender} vs {baseline}, {metric} {low} to {high} ({confidence} CI). If there is a "
            "difference, it is below {furthest}. {effort}.",
            low=shown.low,
            high=shown.high,
            furthest=_furthest(ratio.low, ratio.high, as_factors=as_factors),
            **names,
        )
    return together(body, _missed_precision(answer, result))


def _furthest(low: float, high: float, *, as_factors: bool) -> str:
    """Return the largest difference that the interval includes."""
    if as_factors:
        return _("a factor of {factor}", factor=significant(max(high, 1 / low)))
    return percent_above(max(1 - low, high - 1))


def _too_few(answer: Answer, result: ContenderResult) -> str:
    """Return why the measurement ended before there was an interval, and when the first check is due."""
    ended, needed = _(_ENDED[answer.stopped], effort=effort(answer, result)), answer.rule.first_look
    if result.blocks >= needed:
        return _("{ended}.", ended=ended)
    if not answer.blocks:
        return _("{ended}. The first check needs {needed} blocks.", ended=ended, needed=needed)
    return _(
        "{ended}. The first check needs {needed} blocks (about {duration}).",
        ended=ended,
        needed=needed,
        duration=duration(needed * seconds_of_a_block(answer)),
    )


_ENDED = {
    StopReason.INTERRUPTED: N_("Interrupted after {effort}"),
    StopReason.BUDGET: N_("Stopped by the budget after {effort}"),
    StopReason.BLOCKS: N_("The block limit was reached after {effort}"),
    StopReason.FAILED: N_("Stopped after {effort} because trials failed"),
    StopReason.DECIDED: N_("Stopped after {effort}"),
    StopReason.PRECISE: N_("Stopped after {effort}"),
}


def _invalid(answer: Answer, result: ContenderResult, *, as_factors: bool) -> str:  # noqa: ARG001 - as the others
    return _(
        "Invalid: {contender} vs {baseline}. There is no result because trials failed repeatedly. See the caveats for "
        "the cause.",
        **_names(answer, result),
    )


def percent_of_confidence() -> str:
    """Return `95 %`."""
    return f"{100 * CONFIDENCE:.0f} %"


def interval_heading() -> str:
    """Return the heading of a column of intervals: `95 % CI`."""
    return _("{confidence} CI", confidence=percent_of_confidence())


_BODIES = {
    Verdict.FASTER: _changed,
    Verdict.SLOWER: _changed,
    Verdict.EQUIVALENT: _equivalent,
    Verdict.UNDECIDED: _undecided,
    Verdict.INVALID: _invalid,
}


_MOST_PLACES = 6


def shortened(places: Sequence[str], most: int = _MOST_PLACES) -> str:
    """Return a list of contexts or verdicts, limited to the first ones."""
    shown, rest = listed(places[:most]), len(places) - most
    return _("{first} and {rest} more", first=shown, rest=rest) if rest > 0 else shown
