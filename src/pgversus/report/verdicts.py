"""A verdict as plain fields, for documents and Python, and as the texts of a table row."""

from dataclasses import dataclass

from pgversus.answers.answer import Answer
from pgversus.report.sentences import metric_text
from pgversus.report.values import change_texts, value_text
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.confidence import CONFIDENCE, Verdict
from pgversus.text.translation import N_, _

_WORDS = {
    Verdict.FASTER: N_("faster"),
    Verdict.SLOWER: N_("slower"),
    Verdict.EQUIVALENT: N_("equivalent"),
    Verdict.UNDECIDED: N_("undecided"),
    Verdict.INVALID: N_("invalid"),
}


def verdict_word(verdict: Verdict) -> str:
    """Return a verdict in the current language; programs use its value."""
    return _(_WORDS[verdict])


def verdict_in_table(one: Answer, result: ContenderResult) -> str:
    """Return a verdict for a row with the values of both arms, marked if the ratio is not the quotient of these.

    The value of the baseline is over all its blocks, the ratio over those that hold both arms.
    """
    word = verdict_word(result.verdict)
    if result.blocks in (0, len(one.blocks)):
        return word
    return _("{verdict} ({blocks} of {every} blocks)", verdict=word, blocks=result.blocks, every=len(one.blocks))


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictOn:
    """The verdict on one contender in one context."""

    context: str
    """`workload=cte_in load=c4`; empty if the study has only one context."""
    workload: str
    """The contender's workload, and the baseline's unless workloads are compared."""
    metric: str
    """With its unit: tps, latency_p95_s."""
    baseline: str
    contender: str
    verdict: Verdict
    ratio: float | None
    """Contender / baseline; None until a block has both arms, and for an invalid contender."""
    low: float | None
    """Bounds of the interval, which holds jointly for all verdicts of the study; None without an interval."""
    high: float | None
    confidence: float | None
    """Joint confidence of all verdicts of the study; None without a ratio."""
    margin: float
    """The smallest difference that matters, as a share."""
    blocks: int
    seconds_measured: float
    """Duration of load on both arms, in the blocks used."""
    caveats: tuple[str, ...]
    """Slugs, each once, explained in docs/messages.md."""


def verdict_on(answer: Answer, result: ContenderResult) -> VerdictOn:
    """Return the verdict on the contender of a result."""
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
        confidence=CONFIDENCE if ratio else None,
        margin=comparison.design.margin,
        blocks=result.blocks,
        seconds_measured=result.seconds_measured,
        # Caveats of the baseline and the contender can have the same slug.
        caveats=tuple(dict.fromkeys(caveat.slug for caveat in answer.caveats_of(result.contender))),
    )


SIGNS = {
    Verdict.FASTER: "▲",
    Verdict.SLOWER: "▼",
    Verdict.EQUIVALENT: "=",
    Verdict.UNDECIDED: "?",
    Verdict.INVALID: "!",
}
"""Symbol of each verdict, so that color never carries information alone."""
MARKS = {verdict: SIGNS[verdict] for verdict in (Verdict.EQUIVALENT, Verdict.UNDECIDED, Verdict.INVALID)}
"""Shown instead of a change if none is claimed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictRow:
    """One verdict as shown; every number is already text."""

    context: str
    levels: tuple[tuple[str, str], ...]
    """Factors with the levels of the context."""
    baseline: str
    contender: str
    metric: str
    baseline_text: str
    contender_text: str
    change: str
    """Empty without a ratio."""
    interval: str
    verdict: Verdict
    word: str
    blocks: str
    check: str
    """CHECK if a caveat says that the number may be misleading; otherwise empty."""

    @property
    def claim(self) -> str:
        """The change, or the mark of a verdict that does not claim one."""
        return MARKS.get(self.verdict) or self.change


def verdict_row(answer: Answer, result: ContenderResult, *, as_factors: bool) -> VerdictRow:
    """Return the row of the contender of a result, in the current language."""
    found, metric = verdict_on(answer, result), answer.analysis.metric
    values = result.paired_values.get(metric)
    baseline_text, contender_text = (value_text(metric, value) for value in values) if values else ("", "")
    shown = change_texts(result.ratios.get(metric), as_factors=as_factors)
    return VerdictRow(
        context=found.context,
        levels=answer.context.levels,
        baseline=found.baseline,
        contender=found.contender,
        metric=metric_text(metric),
        baseline_text=baseline_text,
        contender_text=contender_text,
        change=shown.value,
        interval=shown.interval,
        verdict=found.verdict,
        word=verdict_word(found.verdict),
        blocks=str(found.blocks),
        check=_("CHECK") if answer.needs_check(result) else "",
    )
