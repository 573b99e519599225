"""The answer in words: the verdict first, how sure, and what to do next."""

import math

from pgversus.report.answer import Answer
from pgversus.report.units import (
    FACTOR_FROM,
    change,
    change_interval,
    count,
    duration,
    percent,
    percent_above,
    significant,
)
from pgversus.stats.analysis import ContenderResult, blocks_needed
from pgversus.stats.confidence import CONFIDENCE
from pgversus.stats.verdict import Verdict
from pgversus.study.caveats import Caveat
from pgversus.study.design import MOST_BLOCKS, StopReason
from pgversus.study.metrics import Metric, transactions_for_quantile

METRIC_WORDS = {
    Metric.TPS: "tps",
    Metric.LATENCY_MEAN: "mean latency",
    Metric.LATENCY_P50: "p50 latency",
    Metric.LATENCY_P95: "p95 latency",
    Metric.LATENCY_P99: "p99 latency",
    Metric.LATENCY_MAX: "max latency",
    Metric.TIME: "time",
}
_OTHER_ROWS = "other-rows"
# Reasons that put CHECK: before the sentence, because the number may mean something else than it seems to.
_GRAVE = frozenset(
    {
        "not-gone-on",
        _OTHER_ROWS,
        "mixed-builds",
        "unequal-databases",
        "unequal-settings",
        "unequal-indexes",
        "failed-trials",
        "worn-data",
        "late-writes",
        "client-bound",
        "rate-not-reached",
        "cache-not-cold",
        "drift",
        "memory-pressure",
    }
)
_TOO_NOISY = 3
# Times the budget: from there on more time is no advice, a quieter host is.


def answer_sentences(answer: Answer) -> list[str]:
    """One sentence for each contender, in order."""
    return [contender_sentence(answer, result) for result in answer.analysis.results]


def contender_sentence(answer: Answer, result: ContenderResult) -> str:
    """What is known of one contender, with its interval, and what to do next."""
    body = _BODIES[result.verdict](answer, result)
    # Whose rows are others does other work: that comes before any speed.
    others = "".join(f"{one.text}. " for one in caveats_of(answer, result.contender) if one.slug == _OTHER_ROWS)
    return f"{others}{'CHECK the caveats below. ' if needs_check(answer, result) else ''}{body}"


def needs_check(answer: Answer, result: ContenderResult) -> bool:
    """Whether a caveat says that the number may mean something else than it seems to."""
    is_grave = any(caveat.slug in _GRAVE for caveat in caveats_of(answer, result.contender))
    return is_grave and result.verdict is not Verdict.INVALID


def caveats_of(answer: Answer, contender: int) -> tuple[Caveat, ...]:
    """The caveats that concern the verdict on one contender."""
    return tuple(caveat for caveat in answer.caveats if caveat.arm in (None, contender))


def effort(answer: Answer, result: ContenderResult) -> str:
    """`14 blocks, 10 min 16 s`."""
    return f"{count(result.blocks, 'block')}, {duration(answer.wall_s)}"


def _changed(answer: Answer, result: ContenderResult) -> str:
    design, contender = answer.comparison.design, answer.comparison.arms[result.contender]
    ratio = result.ratios[design.metric]
    bounds = change_interval(ratio.low, ratio.high).strip("[]").replace(", ", " and ")
    side = f"{contender.label} is {result.verdict} than {answer.comparison.baseline.label}"
    if not bounds:
        return f"{side} ({percent_of_confidence()}); of the size nothing can be said. {effort(answer, result)}."
    size = (
        f"{side}: {change(ratio.value)} {METRIC_WORDS[design.metric]} "
        f"(between {bounds}, {percent_of_confidence()}). {effort(answer, result)}."
    )
    return size + _size_is_open(answer, result)


def _size_is_open(answer: Answer, result: ContenderResult) -> str:
    """That the sign is sure and the size is not: said when the interval reaches into the margin or is wide."""
    log, design = result.log_ratio, answer.comparison.design
    ratio = result.ratios[design.metric]
    if log is None or ratio.low is None or ratio.high is None:
        return ""
    nearest = min(abs(math.log(ratio.low)), abs(math.log(ratio.high)))
    if nearest < design.log_margin:
        return f" The sign is sure; the size may be below your {percent(design.margin)}."
    return ""


def _equivalent(answer: Answer, result: ContenderResult) -> str:
    design = answer.comparison.design
    ratio = result.ratios[design.metric]
    bounds = change_interval(ratio.low, ratio.high).strip("[]").replace(", ", " to ")
    return (
        f"No difference that matters between {answer.comparison.arms[result.contender].label} and "
        f"{answer.comparison.baseline.label}: {METRIC_WORDS[design.metric]} {bounds}, inside "
        f"±{percent(design.margin)} ({percent_of_confidence()}). {effort(answer, result)}."
    )


def _undecided(answer: Answer, result: ContenderResult) -> str:
    design = answer.comparison.design
    pair = f"{answer.comparison.arms[result.contender].label} against {answer.comparison.baseline.label}"
    ratio = result.ratios.get(design.metric)
    if ratio is None or ratio.low is None or ratio.high is None:
        return f"Not decided: {pair}. {_too_few(answer, result)}"
    bounds = change_interval(ratio.low, ratio.high).strip("[]").replace(", ", " to ")
    if not bounds:
        return f"Not decided: {pair}; of the size nothing can be said. {effort(answer, result)}. " + _what_next(
            answer, result
        )
    return (
        f"Not decided: {pair}, {METRIC_WORDS[design.metric]} {bounds} ({percent_of_confidence()}). "
        f"If there is a difference, it is below {_furthest(ratio.low, ratio.high)}. {effort(answer, result)}. "
        f"{_what_next(answer, result)}"
    ).strip()


def _furthest(low: float, high: float) -> str:
    """The largest difference that the interval leaves open."""
    factor = max(high, 1 / low)
    if factor >= FACTOR_FROM:
        return f"a factor of {significant(factor)}"
    return percent_above(max(1 - low, high - 1))


def _too_few(answer: Answer, result: ContenderResult) -> str:
    """Why there is no interval: too few blocks for a look, or too few transactions for a percentile."""
    q = answer.comparison.design.metric.quantile
    reason = _REASONS[answer.stopped]
    if q is not None and result.blocks >= answer.rule.first_look:
        needed = transactions_for_quantile(q)
        windows = "longer windows" if answer.is_from_file else "a longer --window"
        return (
            f"{reason} after {effort(answer, result)}. An interval of a p{100 * q:g} needs {needed} transactions "
            f"of each arm in every block: more clients, or {windows}."
        )
    needed = answer.rule.first_look
    about = f" (about {duration(needed * _seconds_of_a_block(answer))})" if answer.blocks else ""
    return f"{reason} after {effort(answer, result)}, and the first look is after {needed} blocks{about}."


_REASONS = {
    StopReason.INTERRUPTED: "Interrupted",
    StopReason.BUDGET: "The budget ended",
    StopReason.BLOCKS: "The blocks ended",
    StopReason.FAILED: "Trials kept failing",
    StopReason.DECIDED: "Nothing more was asked",
}


def _what_next(answer: Answer, result: ContenderResult) -> str:
    """How much more time would decide it, or that time alone will not."""
    design = answer.comparison.design
    needed = blocks_needed(result, answer.comparison, answer.rule)
    if answer.stopped is StopReason.INTERRUPTED or design.fixed_blocks is not None:
        return ""
    each = _seconds_of_a_block(answer)
    if needed is None or (needed - result.blocks) * each > _TOO_NOISY * design.budget_s:
        ways = "stop other jobs or use a quieter machine"
        if not answer.is_from_file:
            ways = "stop other jobs, use a quieter machine, or ask for less with --margin"
        return f"This host is too noisy now for ±{percent(design.margin)}: {ways}."
    if answer.is_from_file and max(needed, result.blocks + 1) > design.max_blocks:
        return (
            f"An answer needs about {max(needed, result.blocks + 1)} blocks; this study ends after {design.max_blocks}."
        )
    more = max(1, needed - result.blocks) * each
    flags = f"--budget {_minutes(answer.study_wall_s + more)}m"
    if needed >= design.max_blocks and not answer.is_from_file:
        flags = f"--max-blocks {min(MOST_BLOCKS, math.ceil(1.2 * needed))} {flags}"
    return f"An answer needs about {duration(more)} more: repeat with {flags}."


def _seconds_of_a_block(answer: Answer) -> float:
    return answer.wall_s / max(1, len(answer.blocks))


def _invalid(answer: Answer, result: ContenderResult) -> str:
    pair = f"{answer.comparison.arms[result.contender].label} against {answer.comparison.baseline.label}"
    return f"Invalid: {pair}. Trials failed again and again, so nothing is claimed; the caveats say why."


def _minutes(seconds: float) -> int:
    return math.ceil(seconds * 1.2 / 60)


def percent_of_confidence() -> str:
    """`95 %`."""
    return f"{100 * CONFIDENCE:.0f} %"


_BODIES = {
    Verdict.FASTER: _changed,
    Verdict.SLOWER: _changed,
    Verdict.EQUIVALENT: _equivalent,
    Verdict.UNDECIDED: _undecided,
    Verdict.INVALID: _invalid,
}
