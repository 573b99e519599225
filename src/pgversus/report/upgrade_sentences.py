"""The answer of an upgrade check in sentences: one for each target, the coverage of the load, and the next step."""

import math
from collections.abc import Iterator, Mapping, Sequence

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.findings import CLAIMS, NEEDS_ATTENTION, Finding, LoadChange, StatementFinding, UpgradeAnswer
from pgversus.answers.upgrade import upgrade_answers
from pgversus.statements.statement import REJECTED
from pgversus.stats.confidence import ratio_bounds
from pgversus.study.design import StopReason
from pgversus.study.study import ApplicationStatement
from pgversus.text.translation import N_, _, listed, ngettext, together, translate_stored
from pgversus.text.units import changes, percent

_WORTH_SAYING = 0.001
"""Share of the load."""
_NOT_REACHED = N_("not reached")
_NOT_MEASURED = N_("no result")
_FAILING = N_("execution fails")
_FULL_STATISTICS = N_(
    "It was measured with full statistics, which take longer to read than those of ANALYZE, and may change the ratio."
)


def upgrade_sentences(answer: StudyAnswer) -> list[str]:
    """Return the answer for each target, how much of the load was executed, why the rest was not, and what to do."""
    full_statistics = any(one.comparison.dataset.full_statistics for one in answer.answers)
    targets = [_target_sentence(one, full_statistics=full_statistics) for one in upgrade_answers(answer)]
    return [*targets, *([_coverage(answer)] if answer.study.statements else []), *_next_step(answer)]


def _target_sentence(upgrade: UpgradeAnswer, *, full_statistics: bool) -> str:
    """Return the answer for one target. full_statistics: whether the statistics are those of every row."""
    attention = upgrade.having(*NEEDS_ATTENTION)
    counts = [
        _("{count} {finding}", count=_count([one.statement for one in upgrade.having(kind)]), finding=_(kind))
        for kind in NEEDS_ATTENTION
        if upgrade.having(kind)
    ]
    needs = (
        ngettext(
            "{number} statement needs attention ({counts}).",
            "{number} statements need attention ({counts}).",
            _count([one.statement for one in attention]),
            counts=listed(counts),
        )
        if attention
        else _("No statement needs attention.")
    )
    checked = math.fsum(one.share or 0.0 for one in upgrade.findings)
    load = _load_sentence(upgrade.load, checked, source=upgrade.source, target=upgrade.target)
    planning = _planning_sentence(upgrade.planning)
    return together(load, planning, _(_FULL_STATISTICS) if planning and full_statistics else "", needs)


def _load_sentence(load: LoadChange | None, checked: float, **names: str) -> str:
    """Return the change in the total time of the application. checked: share of all statements of the check."""
    if load is None:
        return _("{target} compared with {source}.", **names)
    shown = changes(load.ratio, load.low, load.high)
    bounds = {"low": shown.low, "high": shown.high}
    if checked - load.share >= _WORTH_SAYING:
        return _(
            "Total time on {target}, as the client sees it: {change} compared with {source} (between {low} and "
            "{high}), without the statements that fail, find no rows or were not measured ({share} of the load).",
            change=shown.value,
            share=percent(checked - load.share),
            **bounds,
            **names,
        )
    return _(
        "Total time on {target}, as the client sees it: {change} compared with {source} (between {low} and {high}).",
        change=shown.value,
        **bounds,
        **names,
    )


def _planning_sentence(planning: StatementFinding | None) -> str:
    """Return the change in the time that planning all statements takes; empty if it is unknown."""
    if planning is None or planning.log_ratio is None:
        return ""
    slowest, fastest = ratio_bounds(planning.log_ratio.interval)
    if slowest is None or fastest is None:
        return ""
    shown = changes(math.exp(-planning.log_ratio.point), 1 / fastest, 1 / slowest)
    bounds = {"low": shown.low, "high": shown.high}
    if planning.finding not in CLAIMS:
        return _("No difference found in planning time (between {low} and {high}).", **bounds)
    return _(
        "Planning time: {change} (between {low} and {high}).",
        change=shown.value,
        **bounds,
    )


def _coverage(answer: StudyAnswer) -> str:
    """Return the share of the load that was checked, and the reasons why the rest was not."""
    statements = [one for one in answer.study.statements if not one.is_planning]
    total_s = math.fsum(one.seconds for one in statements)
    reasons_of = _reasons_by_context(answer)
    left_out = {one.name: _reason(one) or reasons_of.get(one.context, _NOT_REACHED) for one in statements}
    executed = [one for one in statements if not left_out[one.name]]
    text = ngettext(
        "{executed} of {number} statement was checked",
        "{executed} of {number} statements were checked",
        _count(statements),
        executed=_count(executed),
    )
    if total_s:
        text = _("{executed}, {share} of the load", executed=text, share=_share(executed, total_s))
    reasons = listed(_reasons([one for one in statements if left_out[one.name]], left_out, total_s))
    return _("{executed}. Left out: {reasons}.", executed=text, reasons=reasons) if reasons else f"{text}."


def _reason(left: ApplicationStatement) -> str:
    """Return why a statement is left out, without the server's message; empty if it is not."""
    return REJECTED if left.obstacle.startswith(f"{REJECTED}: ") else left.obstacle


def _count(statements: Sequence[ApplicationStatement]) -> int:
    """Return the number of statements; one with several classes of values counts once."""
    return len({one.text for one in statements})


def _reasons_by_context(answer: StudyAnswer) -> dict[int | None, str]:
    """Return why each context that was tried has no ratio on any target; an empty text if it has one."""
    found: dict[int | None, str] = {}
    for upgrade in upgrade_answers(answer):
        for one in upgrade.findings:
            if one.log_ratio is not None or one.finding is Finding.OTHER_ROWS:
                reason = ""
            elif one.finding is Finding.FAILS:
                reason = _FAILING
            else:
                reason = _NOT_MEASURED if one.failure else _NOT_REACHED
            number = one.statement.context
            found[number] = "" if reason == "" else found.get(number, reason)
    # Nothing is found if nothing was measured.
    return {one.context.number: _NOT_MEASURED for one in answer.unanswered if one.failed} | found


def _reasons(statements: Sequence[ApplicationStatement], left_out: Mapping[str, str], total_s: float) -> Iterator[str]:
    """Yield each reason why statements are left out, with their number and share. left_out: reasons by name."""
    for reason in dict.fromkeys(left_out[one.name] for one in statements):
        those = [one for one in statements if left_out[one.name] == reason]
        text = ngettext("{number} statement", "{number} statements", _count(those))
        if total_s:
            text = _("{first}, {second}", first=text, second=_share(those, total_s))
        yield _("{statements} ({reason})", statements=text, reason=translate_stored(reason))


def _next_step(answer: StudyAnswer) -> Iterator[str]:
    """Yield how to measure what is not confirmed or not reached."""
    again = answer.confirmation
    if any(one.having(Finding.LIKELY_SLOWER, Finding.LIKELY_FASTER) for one in upgrade_answers(answer)):
        if again is None or again.stopped is StopReason.INTERRUPTED:
            yield _("To confirm the likely findings, run the same command again.")
        elif again.stopped is StopReason.BUDGET:
            yield _("To confirm the likely findings, run the same command with a larger --budget.")
    if not all(one.failed for one in answer.unanswered):
        if answer.stopped is StopReason.BUDGET:
            yield _("Run the same command with a larger --budget to resume.")
        elif answer.stopped is StopReason.INTERRUPTED:
            yield _("Run the same command again to resume.")


def _share(statements: Sequence[ApplicationStatement], total_s: float) -> str:
    return percent(math.fsum(one.seconds for one in statements) / total_s)
