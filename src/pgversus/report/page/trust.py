"""Can I trust it? A/A comparisons, spread of blocks, dropped trials, and smallest detectable differences."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.methodology import phase_word, sensitivity
from pgversus.report.overview import RankedVerdict, shared_caveats
from pgversus.report.values import change_texts, uses_factors
from pgversus.report.verdicts import verdict_word
from pgversus.stats.confidence import DIFFERENT, Verdict
from pgversus.text.translation import _, listed, ngettext
from pgversus.text.units import percent, percent_above

MOST_ROWS = 200
"""Maximum number of rows of the noise table."""
_MOST_DROPS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """Evidence for and against the results."""

    same_arms: list[str]
    """Results of A/A comparisons; advice if there are none."""
    noise: list[tuple[str, ...]]
    """For each verdict: its label, the spread of its per-block ratios, the parts due to windows and to server starts,
    the smallest detectable difference, and the number of blocks; empty if unknown."""
    drops: list[str]
    caveats: list[str]


def trust(answer: StudyAnswer, placed: Sequence[RankedVerdict]) -> Trust:
    """Return the evidence of the whole study. placed: its verdicts in order of importance."""
    return Trust(
        same_arms=list(_same_arms(placed)),
        noise=[_noise(one) for one in placed[:MOST_ROWS]],
        drops=_drops(answer),
        caveats=shared_caveats(answer),
    )


def is_same_arm(answer: Answer, contender: int) -> bool:
    """Return whether a contender has the same server and work as the baseline, so that all differences are chance.

    Servers with different names are the same if their programs are identical.
    """
    one, other = answer.comparison.baseline, answer.comparison.arms[contender]
    sha256 = answer.arms[0].sha256
    is_same_server = one.server == other.server or (sha256 is not None and sha256 == answer.arms[contender].sha256)
    is_same_else = (one.settings, one.workload, one.dataset) == (other.settings, other.workload, other.dataset)
    return is_same_server and is_same_else


def _same_arms(placed: Sequence[RankedVerdict]) -> Iterator[str]:
    same = [one for one in placed if is_same_arm(one.answer, one.result.contender)]
    as_factors = uses_factors(one.answer for one in placed)
    yield from (_same_arm(one, as_factors=as_factors) for one in same)
    if placed and not same:
        yield _(
            "No server is compared with itself here (A/A). To see how much two identical servers differ on this host, "
            "name the same server twice: pgversus compare SERVER SERVER, with the same flags."
        )


def _same_arm(one: RankedVerdict, *, as_factors: bool) -> str:
    ratio, verdict = one.result.ratios.get(one.answer.analysis.metric), one.result.verdict
    if ratio is None or ratio.low is None or verdict is Verdict.INVALID:
        return _("A/A, {place}: no result.", place=one.label)
    shown = change_texts(ratio, as_factors=as_factors)
    values = {
        "place": one.label,
        "verdict": verdict_word(verdict),
        "change": shown.value,
        "interval": shown.interval,
    }
    if verdict in DIFFERENT:
        return _(
            "A/A, {place}: {change} {interval}: two identical servers were called different, which chance does in at "
            "most 1 of 20 studies. Do not trust these results without a repetition.",
            **values,
        )
    if verdict is Verdict.UNDECIDED:
        return _("A/A, {place}: {change} {interval}: {verdict}, so no difference was claimed.", **values)
    return _("A/A, {place}: {change} {interval}: {verdict}, as expected.", **values)


def _noise(one: RankedVerdict) -> tuple[str, ...]:
    found = sensitivity(one.answer, one.result)
    smallest = found.smallest_difference
    return (
        one.label,
        _spread(found.spread_of_blocks),
        _spread(found.spread_of_windows),
        _spread(found.spread_of_starts),
        "" if smallest is None else percent_above(smallest),
        str(one.result.blocks),
    )


def _spread(share: float | None) -> str:
    return "" if share is None else f"±{percent(share)}"


def _drops(answer: StudyAnswer) -> list[str]:
    found = [line for one in answer.answers for line in _drops_of(one)]
    rest = len(found) - _MOST_DROPS
    return found[:_MOST_DROPS] + ([_("{number} more", number=rest)] if rest > 0 else [])


def _drops_of(one: Answer) -> Iterator[str]:
    for block in one.blocks:
        for failure in block.failures:
            yield _(
                "{place}, block {block}: a trial of {arm} failed during {phase}: {words}",
                place=one.place,
                block=block.number,
                arm=one.comparison.arms[failure.arm].label,
                phase=phase_word(failure.phase),
                words=failure.message,
            )
    again = [block for block in one.blocks if block.repeated_rounds]
    if again:
        yield ngettext(
            "{place}: {number} round measured again after a disturbance (blocks {blocks})",
            "{place}: {number} rounds measured again after a disturbance (blocks {blocks})",
            sum(block.repeated_rounds for block in again),
            place=one.place,
            blocks=listed(str(block.number) for block in again),
        )
