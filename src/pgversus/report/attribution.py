"""The measured effect of a plan change, and of everything else, in sentences."""

from pgversus.report.sentences import metric_text, percent_of_confidence
from pgversus.stats.attribution import Attribution, BoundedValue
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.study.metrics import Metric
from pgversus.text.translation import N_, _, ngettext, together
from pgversus.text.units import latency, percent, ratio_texts

_REST = {
    Verdict.EQUIVALENT: N_("other changes make no difference that matters"),
    Verdict.UNDECIDED: N_("the effect of other changes is undecided"),
    Verdict.FASTER: N_("other changes make it faster"),
    Verdict.SLOWER: N_("other changes make it slower"),
    Verdict.INVALID: N_("the effect of other changes is unknown"),
}


def confirms(verdict: Verdict, found: Attribution) -> bool:
    """Return whether the total of this measurement certainly has the direction of the verdict."""
    return found.whole.low > 1 if verdict is Verdict.FASTER else found.whole.high < 1


def disagreement(verdict: Verdict, found: Attribution, *, as_factors: bool) -> str:
    """Return a sentence if the total of this measurement does not agree with the verdict; empty if it does."""
    if verdict not in DIFFERENT or confirms(verdict, found):
        return ""
    whole = _effect(found.whole, as_factors=as_factors)
    if found.whole.low <= 1 <= found.whole.high:
        return _(
            "This measurement alone does not confirm the verdict: its interval includes zero difference ({whole}).",
            whole=whole,
        )
    return _("CHECK: this measurement contradicts the verdict ({whole}).", whole=whole)


def effects_text(found: Attribution, *, as_factors: bool) -> str:
    """Return the effects, whose product is the total."""
    effects = {
        name: _effect(part, as_factors=as_factors)
        for name, part in (("whole", found.whole), ("plans", found.plans), ("rest", found.rest))
    }
    if as_factors:
        return ngettext(
            "Measured in {number} block: {whole} in total = {plans} from plans x {rest} from everything else.",
            "Measured in {number} blocks: {whole} in total = {plans} from plans x {rest} from everything else.",
            found.blocks,
            **effects,
        )
    return ngettext(
        "Speed measured in {number} block: {whole} in total, {plans} from plans and {rest} from everything else.",
        "Speed measured in {number} blocks: {whole} in total, {plans} from plans and {rest} from everything else.",
        found.blocks,
        **effects,
    )


def share_text(found: Attribution) -> str:
    """Return the share of the plans in the total."""
    if found.share is None:
        return _("The share due to plans cannot be determined.")
    return _(
        "Plans account for {share} of the change on the log scale ({confidence} CI {low} to {high}).",
        share=percent(found.share.value),
        low=percent(found.share.low),
        high=percent(found.share.high),
        confidence=percent_of_confidence(),
    )


def _share_of_time(found: Attribution) -> str:
    """Return the share of the plans in the time, if it differs from the one on the log scale; empty otherwise."""
    if found.share is None or found.share_of_time is None:
        return ""
    share = percent(found.share_of_time.value)
    if share == percent(found.share.value):
        return ""
    return _(
        "Of the time difference, plans account for {share}. This share depends on the order in which the two effects "
        "are applied (here plans last); the share on the log scale does not.",
        share=share,
    )


def seconds_text(metric: Metric, found: Attribution) -> str:
    """Return the time that plans, and all changes together, save or add, and the effect of everything else."""
    shown = {"plans": _saved(found.plans_s), "whole": _saved(found.whole_s), "rest": _(_REST[found.rest_verdict])}
    seconds = (
        _("Per transaction: {plans} due to plans, {whole} in total; {rest}.", **shown)
        if metric is Metric.TPS
        else _("{metric}: {plans} due to plans, {whole} in total; {rest}.", metric=metric_text(metric), **shown)
    )
    return together(seconds, _share_of_time(found))


def _effect(part: BoundedValue, *, as_factors: bool) -> str:
    """Return an effect on the speed with its interval: `11x [10x, 12x]`."""
    shown = ratio_texts(part.value, part.low, part.high, as_factors=as_factors)
    return f"{shown.value} {shown.interval}".strip()


def _saved(gained: BoundedValue) -> str:
    if gained.low <= 0 <= gained.high:
        return _("no certain change")
    seconds = latency(abs(gained.value))
    return _("{time} saved", time=seconds) if gained.value > 0 else _("{time} added", time=seconds)
