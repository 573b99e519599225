"""A verdict in plain fields: what tables, documents and Python are given of it."""

from dataclasses import dataclass

from pgversus.report.answer import Answer
from pgversus.report.sentences import caveats_of
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import Verdict
from pgversus.text.translation import N_, _

_WORDS = {
    Verdict.FASTER: N_("faster"),
    Verdict.SLOWER: N_("slower"),
    Verdict.EQUIVALENT: N_("equivalent"),
    Verdict.UNDECIDED: N_("undecided"),
    Verdict.INVALID: N_("invalid"),
}


def verdict_word(verdict: Verdict) -> str:
    """A verdict as people are told it; programs get its value."""
    return _(_WORDS[verdict])


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOn:
    """The verdict on one contender in one context."""

    context: str
    """`workload=cte_in load=c4`; empty where the study has one context."""
    workload: str
    """The contender's; the baseline's is the same unless workloads are what is compared."""
    metric: str
    """With its unit: tps, latency_p95_s."""
    baseline: str
    contender: str
    verdict: Verdict
    ratio: float | None
    """Contender / baseline; None while no block holds both, and for an invalid contender."""
    low: float | None
    """Bounds of the interval in which all verdicts of the study hold together; None where none is promised."""
    high: float | None
    confidence: float | None
    """Of all verdicts of the study together; None without a ratio."""
    margin: float
    """The smallest difference that matters, as a share."""
    blocks: int
    seconds_measured: float
    """Load of both arms in the blocks that count."""
    caveats: tuple[str, ...]
    """Slugs, each once, explained in docs/messages.md."""


def verdict_on(answer: Answer, result: ContenderResult) -> VerdictOn:
    """The verdict of one of its results."""
    comparison = answer.comparison
    contender, ratio = comparison.arms[result.contender], result.ratios.get(answer.analysis.metric)
    return VerdictOn(
        context=answer.context.label,
        workload=contender.workload.name,
        metric=answer.analysis.metric.value,
        baseline=comparison.baseline.label,
        contender=contender.label,
        verdict=result.verdict,
        ratio=ratio.value if ratio else None,
        low=ratio.low if ratio else None,
        high=ratio.high if ratio else None,
        confidence=ratio.confidence if ratio else None,
        margin=comparison.design.margin,
        blocks=result.blocks,
        seconds_measured=result.seconds_measured,
        # One of the baseline and one of the contender may have the same slug.
        caveats=tuple(dict.fromkeys(caveat.slug for caveat in caveats_of(answer, result.contender))),
    )
