"""The answer in words: the verdict first, how sure, and what to do next."""

import math

from pgversus.report.answer import Answer
from pgversus.report.units import change, change_interval, duration, percent
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import CONFIDENCE
from pgversus.stats.forecast import blocks_to_decide, blocks_to_resolve
from pgversus.stats.verdict import Verdict
from pgversus.study.caveats import Caveat
from pgversus.study.design import StopReason
from pgversus.study.metrics import Metric

METRIC_WORDS = {
    Metric.TPS: "tps",
    Metric.LATENCY_MEAN: "mean latency",
    Metric.LATENCY_P50: "p50 latency",
    Metric.LATENCY_P95: "p95 latency",
    Metric.LATENCY_P99: "p99 latency",
    Metric.LATENCY_MAX: "max latency",
}
# Reasons that put CHECK: before the sentence, because the number may mean something else than it seems to.
_GRAVE = frozenset({"mixed-builds", "unequal-settings", "unequal-indexes", "failed-trials", "worn-data", "late-writes"})
_TOO_NOISY = 3
# Times the budget: from there on more time is no advice, a quieter host is.


def answer_sentences(answer: Answer) -> list[str]:
    """One sentence for each contender, in order."""
    return [contender_sentence(answer, result) for result in answer.analysis.results]


def contender_sentence(answer: Answer, result: ContenderResult) -> str:
    """What is known of one contender, with its interval, and what to do next."""
    body = _BODIES[result.verdict](answer, result)
    is_grave = any(caveat.slug in _GRAVE for caveat in caveats_of(answer, result.contender))
    check = "CHECK the caveats below. " if is_grave and result.verdict is not Verdict.INVALID else ""
    return f"{check}{body}"


def caveats_of(answer: Answer, contender: int) -> tuple[Caveat, ...]:
    """The caveats that concern the verdict on one contender."""
    return tuple(caveat for caveat in answer.caveats if caveat.arm in (None, contender))


def effort(answer: Answer, result: ContenderResult) -> str:
    """`14 blocks, 10 min 16 s`."""
    blocks = f"{result.blocks} block{'' if result.blocks == 1 else 's'}"
    return f"{blocks}, {duration(answer.wall_s)}"


def _changed(answer: Answer, result: ContenderResult) -> str:
    design, contender = answer.comparison.design, answer.comparison.arms[result.contender]
    ratio = result.ratios[design.metric]
    bounds = change_interval(ratio.low, ratio.high).strip("[]").replace(", ", " and ")
    size = (
        f"{contender.label} is {result.verdict} than {answer.comparison.baseline.label}: "
        f"{change(ratio.value)} {METRIC_WORDS[design.metric]} "
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
    furthest = max(abs(ratio.low - 1), abs(ratio.high - 1))
    return (
        f"Not decided: {pair}, {METRIC_WORDS[design.metric]} {bounds} ({percent_of_confidence()}). "
        f"Any difference is below {percent(furthest)}. {effort(answer, result)}. {_what_next(answer, result)}"
    ).strip()


def _too_few(answer: Answer, result: ContenderResult) -> str:
    reasons = {
        StopReason.INTERRUPTED: "Interrupted",
        StopReason.BUDGET: "The budget ended",
        StopReason.BLOCKS: "The blocks ended",
        StopReason.FAILED: "Trials kept failing",
        StopReason.DECIDED: "Nothing more was asked",
    }
    needed = answer.rule.first_look
    each = answer.wall_s / max(1, answer.blocks_run)
    return (
        f"{reasons[answer.stopped]} after {effort(answer, result)}, and the first look is after {needed} blocks"
        f"{f' (about {duration(needed * each)})' if answer.blocks_run else ''}."
    )


def _what_next(answer: Answer, result: ContenderResult) -> str:
    """How much more time would decide it, or that time alone will not."""
    log, design = result.log_ratio, answer.comparison.design
    if log is None or answer.stopped is StopReason.INTERRUPTED or design.fixed_blocks is not None:
        return ""
    each = answer.wall_s / max(1, answer.blocks_run)
    needed = blocks_to_decide(log, answer.rule, design.log_margin)
    resolved = blocks_to_resolve(log, answer.rule, design.log_margin)
    best = min((n for n in (needed, resolved) if n is not None), default=None)
    if best is None or (best - log.n) * each > _TOO_NOISY * design.budget_s:
        return (
            f"This host is too noisy now for ±{percent(design.margin)}: stop other jobs, use a quieter machine, "
            "or ask for less with --margin."
        )
    more = max(1, best - log.n) * each
    return f"An answer needs about {duration(more)} more: repeat with --budget {_minutes(answer.wall_s + more)}m."


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
