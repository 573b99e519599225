"""The answer in sentences: the verdict, its certainty, and the next step."""

import math

from pgversus.answers.answer import OTHER_ROWS, Answer, Unanswered
from pgversus.report.caveats import caveat_text
from pgversus.stats.analysis import ContenderResult, blocks_needed
from pgversus.stats.confidence import CONFIDENCE, Verdict
from pgversus.study.design import MOST_BLOCKS, StopReason
from pgversus.study.metrics import Metric, transactions_for_quantile
from pgversus.text.translation import N_, _, ngettext, together
from pgversus.text.units import FACTOR_FROM, duration, percent, percent_above, ratio_texts, significant

_TOO_NOISY = 3
# Multiple of the budget above which a quieter host is suggested instead of more time.


def metric_text(metric: Metric) -> str:
    """Return the name of a metric in the current language."""
    return _(metric.label)


def answer_sentences(answer: Answer) -> list[str]:
    """Return the sentences on each contender, in order."""
    return [contender_sentence(answer, result) for result in answer.analysis.results]


def contender_sentence(answer: Answer, result: ContenderResult) -> str:
    """Return the verdict on one contender with its interval, and what to do next."""
    body = _BODIES[result.verdict](answer, result)
    # A contender that returns different rows does different work, which matters more than speed.
    others = [
        _("{caveat}.", caveat=caveat_text(one)) for one in answer.caveats_of(result.contender) if one.slug == OTHER_ROWS
    ]
    check = _("CHECK the caveats below.") if answer.needs_check(result) else ""
    return together(*others, check, body)


def unanswered_text(one: Unanswered) -> str:
    """Return why a context has no measurements."""
    return not_begun(one.stopped) if one.failure is None else one.failure


def not_begun(stopped: StopReason) -> str:
    """Return why a context was not reached. stopped: how its study ended."""
    return _(_NOT_BEGUN[stopped])


_NOT_BEGUN = {
    StopReason.INTERRUPTED: N_("not started: interrupted"),
    StopReason.BUDGET: N_("not started: the budget was used up"),
    StopReason.BLOCKS: N_("not started"),
    StopReason.DECIDED: N_("not started"),
    StopReason.FAILED: N_("not started"),
}


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


def _changed(answer: Answer, result: ContenderResult) -> str:
    ratio, names = result.ratios[answer.comparison.design.metric], _names(answer, result)
    shown = ratio_texts(ratio.value, ratio.low, ratio.high)
    if not shown.interval:
        return _(_OF_OPEN_SIZE[result.verdict], **names)
    size = _(_OF_KNOWN_SIZE[result.verdict], change=shown.value, low=shown.low, high=shown.high, **names)
    return together(size, _size_is_open(answer, result))


def _size_is_open(answer: Answer, result: ContenderResult) -> str:
    """Return a sentence if the direction is certain but the interval reaches into the margin; otherwise empty."""
    log, design = result.log_ratio, answer.comparison.design
    ratio = result.ratios[design.metric]
    if log is None or ratio.low is None or ratio.high is None:
        return ""
    nearest = min(abs(math.log(ratio.low)), abs(math.log(ratio.high)))
    if nearest < design.log_margin:
        return _(
            "The direction is certain, but the size may be below the margin of {margin}.", margin=percent(design.margin)
        )
    return ""


def _equivalent(answer: Answer, result: ContenderResult) -> str:
    design = answer.comparison.design
    ratio = result.ratios[design.metric]
    shown = ratio_texts(ratio.value, ratio.low, ratio.high)
    return _(
        "No difference that matters between {contender} and {baseline}: {metric} {low} to {high}, within ±{margin} "
        "({confidence} CI). {effort}.",
        low=shown.low,
        high=shown.high,
        margin=percent(design.margin),
        **_names(answer, result),
    )


def _undecided(answer: Answer, result: ContenderResult) -> str:
    names = _names(answer, result)
    ratio = result.ratios.get(answer.comparison.design.metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return together(_("Undecided: {contender} vs {baseline}.", **names), _too_few(answer, result))
    shown = ratio_texts(ratio.value, ratio.low, ratio.high)
    if not shown.interval:
        body = _("Undecided: {contender} vs {baseline}. The size of the difference is unknown. {effort}.", **names)
    else:
        body = _(
            "Undecided: {contender} vs {baseline}, {metric} {low} to {high} ({confidence} CI). If there is a "
            "difference, it is below {furthest}. {effort}.",
            low=shown.low,
            high=shown.high,
            furthest=_furthest(ratio.low, ratio.high),
            **names,
        )
    return together(body, _next_step(answer, result))


def _furthest(low: float, high: float) -> str:
    """Return the largest difference that the interval includes."""
    factor = max(high, 1 / low)
    if factor >= FACTOR_FROM:
        return _("a factor of {factor}", factor=significant(factor))
    return percent_above(max(1 - low, high - 1))


def _too_few(answer: Answer, result: ContenderResult) -> str:
    """Return why there is no interval: too few blocks for a check, or too few transactions for a percentile."""
    q = answer.comparison.design.metric.quantile
    ended = _(_ENDED[answer.stopped], effort=effort(answer, result))
    if q is not None and result.blocks >= answer.rule.first_look:
        longer = _LONGER_OF_FILE if answer.is_from_file else _LONGER_OF_FLAGS
        return _(longer, ended=ended, percentile=f"p{100 * q:g}", needed=transactions_for_quantile(q))
    needed = answer.rule.first_look
    if not answer.blocks:
        return _("{ended}. The first check needs {needed} blocks.", ended=ended, needed=needed)
    return _(
        "{ended}. The first check needs {needed} blocks (about {duration}).",
        ended=ended,
        needed=needed,
        duration=duration(needed * _seconds_of_a_block(answer)),
    )


_LONGER_OF_FILE = N_(
    "{ended}. An interval for {percentile} needs {needed} transactions of each arm in every block. Use more clients "
    "or longer windows."
)
_LONGER_OF_FLAGS = N_(
    "{ended}. An interval for {percentile} needs {needed} transactions of each arm in every block. Use more clients "
    "or a longer --window."
)
_ENDED = {
    StopReason.INTERRUPTED: N_("Interrupted after {effort}"),
    StopReason.BUDGET: N_("The budget was used up after {effort}"),
    StopReason.BLOCKS: N_("The block limit was reached after {effort}"),
    StopReason.FAILED: N_("Stopped by failing trials after {effort}"),
    StopReason.DECIDED: N_("Stopped after {effort}"),
}


def _next_step(answer: Answer, result: ContenderResult) -> str:
    """Return how much more time a verdict needs, or that more time will not suffice."""
    design = answer.comparison.design
    needed = blocks_needed(result, answer.comparison, answer.rule)
    if answer.stopped is StopReason.INTERRUPTED or design.stopping_rule.looks_once:
        return ""
    each = _seconds_of_a_block(answer)
    if needed is None or (needed - result.blocks) * each > _TOO_NOISY * design.budget_s:
        return _(_NOISY_OF_FILE if answer.is_from_file else _NOISY_OF_FLAGS, margin=percent(design.margin))
    if answer.is_from_file and max(needed, result.blocks + 1) > design.max_blocks:
        return _(
            "A verdict needs about {needed} blocks, but this study ends after {most}.",
            needed=max(needed, result.blocks + 1),
            most=design.max_blocks,
        )
    more = max(1, needed - result.blocks) * each
    flags = f"--budget {_minutes(answer.study_wall_s + more)}m"
    if needed >= design.max_blocks and not answer.is_from_file:
        flags = f"--max-blocks {min(MOST_BLOCKS, math.ceil(1.2 * needed))} {flags}"
    return _("A verdict needs about {duration} more. Run again with {flags}.", duration=duration(more), flags=flags)


_NOISY_OF_FILE = N_("This host is currently too noisy for ±{margin}. Stop other jobs or use a quieter machine.")
_NOISY_OF_FLAGS = N_(
    "This host is currently too noisy for ±{margin}. Stop other jobs, use a quieter machine, or widen --margin."
)


def _seconds_of_a_block(answer: Answer) -> float:
    return answer.wall_s / max(1, len(answer.blocks))


def _invalid(answer: Answer, result: ContenderResult) -> str:
    return _(
        "Invalid: {contender} vs {baseline}. There is no result because trials failed repeatedly. See the caveats for "
        "the cause.",
        **_names(answer, result),
    )


def _minutes(seconds: float) -> int:
    return math.ceil(seconds * 1.2 / 60)


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


def next_step(answer: Answer, result: ContenderResult) -> str:
    """Return a sentence on the next step; empty for an undecided verdict whose own sentence includes it."""
    if result.verdict is Verdict.INVALID:
        return _("Next: fix the cause of the failed trials (see the caveats), then run the same command again.")
    if answer.needs_check(result):
        return _("Next: fix the problems in the caveats, then measure again. Until then, the result may be misleading.")
    if result.verdict is not Verdict.UNDECIDED:
        return _("Next: no further measurement is needed.")
    if answer.stopped is StopReason.INTERRUPTED:
        # A study can be resumed; a comparison of the command line starts again.
        again = _("Next: run the same command again to resume.")
        return again if answer.is_from_file else _("Next: run the comparison again without interrupting it.")
    if answer.comparison.design.stopping_rule.looks_once:
        return _(
            "Next: run it again with more blocks, or with a wider margin if such a small difference does not matter."
        )
    return ""
