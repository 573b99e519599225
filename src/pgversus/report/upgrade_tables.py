"""The answer of an upgrade check as tables: a row for each statement, the statements left out, and notes on both."""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from pgversus.answers.answer import NOT_RESTORED, Severity, StudyAnswer
from pgversus.answers.findings import CLAIMS, Finding, LogRatio, SideEffect, StatementFinding, UpgradeAnswer
from pgversus.answers.plans import ComparedPlans
from pgversus.answers.upgrade import upgrade_answers
from pgversus.plans.sentences import headline, sentences
from pgversus.report.answer_table import AnswerTable
from pgversus.report.plans import override_text, statistics_note
from pgversus.report.sentences import interval_heading
from pgversus.report.why import why_of
from pgversus.statements.literals import LISTED
from pgversus.stats.confidence import ratio_bounds
from pgversus.study.study import ApplicationStatement
from pgversus.text.redaction import visible
from pgversus.text.translation import _, listed, ngettext, together, translate_stored
from pgversus.text.units import RatioTexts, percent, ratio_texts, shows_factors, significant

_LONGEST, _LONGEST_VALUES = 60, 30
_MOST_CHANGES = 3
"""Number of changes of a plan in a note."""
_ERROR = re.compile(r"ERROR: +(.*)")


def finding_tables(answer: StudyAnswer, most: int) -> list[AnswerTable]:
    """Return a table for each target, the most important statements first, and one of those that are left out.

    most: maximum number of rows of each. The notes state how plans have changed, why a confirmed slower statement is
    slower, and the measured effect of the settings that undo it. All in the current language.
    """
    heads = (_("statement"), _("finding"), _("share"), _("tps"), interval_heading(), _("plan"))
    tables = [
        AnswerTable(
            title=_("from {source} to {target}", source=one.source, target=one.target),
            heads=heads,
            rows=list(islice(_rows(one), most)),
            names=2,
            has_long_names=True,
            notes=list(islice(_notes(one), most)),
        )
        for one in upgrade_answers(answer)
    ]
    return [*tables, *_table_of_left_out(answer, most)]


def _table_of_left_out(answer: StudyAnswer, most: int) -> Iterator[AnswerTable]:
    """Yield a table of the statements that were not tried, the largest first; nothing without any."""
    statements, upgrades = answer.study.statements, upgrade_answers(answer)
    total_s = math.fsum(one.seconds for one in statements)
    left_out = sorted((one for one in statements if one.context is None), key=lambda one: -one.seconds)
    if left_out:
        yield AnswerTable(
            title=_("left out"),
            heads=(_("statement"), _("reason"), _("share"), _("generic plan")),
            rows=[
                (
                    visible(_described(one)),
                    visible(translate_stored(one.obstacle)),
                    percent(one.seconds / total_s) if total_s else "",
                    _generic_plan(one, upgrades),
                )
                for one in left_out[:most]
            ],
            names=2,
            has_long_names=True,
            notes=list(islice(_notes_on_generic_plans(left_out, upgrades), most)),
        )


def _generic_plan(left: ApplicationStatement, upgrades: Sequence[UpgradeAnswer]) -> str:
    """Return whether the generic plan of a statement has changed, and on which targets; empty if it is unknown."""
    known = {one.target: one.generic_plans[left.name] for one in upgrades if left.name in one.generic_plans}
    changed = [target for target, plans in known.items() if not plans.difference.is_same_plan]
    if changed:
        return _("changed") if len(upgrades) == 1 else _("changed on {targets}", targets=listed(changed))
    if len(known) == len(upgrades):
        return _("same")
    # The other targets reject the statement.
    return _("same on {targets}", targets=listed(known)) if known else ""


def _notes_on_generic_plans(
    left_out: Sequence[ApplicationStatement], upgrades: Sequence[UpgradeAnswer]
) -> Iterator[str]:
    for left in left_out:
        for one in upgrades:
            plans = one.generic_plans.get(left.name)
            if plans is not None and not plans.difference.is_same_plan:
                yield _(
                    "generic plan of {statement} on {target}: {changes}",
                    statement=visible(left.name),
                    target=one.target,
                    changes=_changes(plans),
                )


def _rows(upgrade: UpgradeAnswer) -> Iterator[tuple[str, ...]]:
    as_factors = any(_is_large(one.log_ratio) for one in upgrade.findings)
    for one in upgrade.findings:
        shown = _ratio(one.log_ratio, as_factors=as_factors)
        yield (
            visible(together(_described(one.statement), one.failure and f"({_first_error(one.failure)})")),
            _("{finding} (CHECK)", finding=_(one.finding)) if _needs_check(one) else _(one.finding),
            "" if one.share is None else percent(one.share),
            shown.value,
            shown.interval,
            _("changed") if one.has_changed_plan else "",
        )


def _needs_check(found: StatementFinding) -> bool:
    """Return whether a finding may be wrong: a table was restored in part, or the confirmation has a grave caveat."""
    return bool(found.not_restored) or _has_grave_caveats(found)


def _has_grave_caveats(found: StatementFinding) -> bool:
    """Return whether a grave caveat concerns the confirmation of a claim.

    Most rejected parts of a dump belong to tables that the statement does not read, if its plans are known.
    """
    again = found.confirmation
    if again is None or found.finding not in CLAIMS:
        return False
    caveats = (one for result in again.analysis.results for one in again.caveats_of(result.contender))
    without = NOT_RESTORED if found.not_restored is not None else ""
    return any(one.severity is Severity.GRAVE and one.slug != without for one in caveats)


def _notes(upgrade: UpgradeAnswer) -> Iterator[str]:
    for one in upgrade.findings:
        yield from _doubts(one)
    for one in upgrade.having(Finding.SLOWER):
        for why in () if one.confirmation is None else why_of(one.confirmation):
            if why.contender == upgrade.target:
                yield _("why ({context}): {claim}", context=visible(one.statement.name), claim=why.claim)
        if one.attribution is not None and one.side_effects is not None:
            settings = one.attribution.restoration
            total = upgrade.change_by_undo(one)
            effects = _side_effects(settings, one.side_effects, upgrade.shares)
            yield together(effects, "" if total is None else _total_change(settings, total, upgrade))
    for one in upgrade.findings:
        if one.finding is not Finding.SLOWER:
            # Those of confirmed slower statements are part of the reasons above.
            yield from _plan_notes(one)
    yield from dict.fromkeys(statistics_note(one) for found in upgrade.findings for one in found.unlike_statistics)
    for one in upgrade.findings:
        yield from _rolled_back(one)


def _rolled_back(found: StatementFinding) -> Iterator[str]:
    """Yield the functions of a query that may write."""
    if found.statement.volatile_functions:
        yield _(
            "{statement} calls {functions}, which may write: its transactions are rolled back",
            statement=visible(found.statement.name),
            functions=listed(map(visible, found.statement.volatile_functions)),
        )


def _doubts(found: StatementFinding) -> Iterator[str]:
    """Yield the reasons why the finding on a statement may not be that of the application."""
    name = visible(found.statement.name)
    if found.not_restored:
        yield _(
            "CHECK {statement}: a server rejected parts of its tables: {objects}",
            statement=name,
            objects=listed(map(visible, found.not_restored)),
        )
    if found.finds_nothing:
        yield _finds_nothing(found.statement)
    if found.statement.has_list_of_unknown_length:
        yield _(
            "{statement} has a list of unknown length: it is executed with {number} values",
            statement=name,
            number=LISTED,
        )
    if _has_grave_caveats(found) and found.confirmation is not None:
        yield _("CHECK {statement}: see the caveats in {folder}", statement=name, folder=found.confirmation.results)


def _finds_nothing(statement: ApplicationStatement) -> str:
    name, rows = visible(statement.name), statement.rows_per_call
    if rows is None:
        return _("{statement} finds no rows to write here: its values may be older than the data", statement=name)
    return _(
        "{statement} finds no rows here, but {rows} per call in the application", statement=name, rows=significant(rows)
    )


def _plan_notes(found: StatementFinding) -> Iterator[str]:
    """Yield how each plan of a statement has changed, and the settings that restore it, whose effect is unknown."""
    for one in found.changed:
        if not one.difference.is_same_plan:
            yield _("plan of {statement}: {changes}", statement=visible(found.statement.name), changes=_changes(one))


def _changes(one: ComparedPlans) -> str:
    """Return how a plan has changed, and the settings that restore it if they were searched for."""
    parts = [*(sentences(one.difference)[:_MOST_CHANGES] or [headline(one.difference)]), override_text(one)]
    return "; ".join(visible(part) for part in parts if part)


def _total_change(settings: str, total: float, upgrade: UpgradeAnswer) -> str:
    return _(
        "Altogether, {settings} changes the total time on {target} by about {change} of the total time on {source}.",
        settings=settings,
        change=percent(total, signed=True),
        target=upgrade.target,
        source=upgrade.source,
    )


def _side_effects(settings: str, effects: Sequence[SideEffect], shares: Mapping[str, float]) -> str:
    """Return the effect of settings on other statements. shares: in the total time, by name of the statement."""
    if not effects:
        return _("{settings} changes the plan of no other statement.", settings=settings)
    return ngettext(
        "{settings} also changes the plan of {number} other statement: {statements}.",
        "{settings} also changes the plans of {number} other statements: {statements}.",
        len(effects),
        settings=settings,
        statements=listed(_side_effect(one, shares.get(one.statement)) for one in effects),
    )


def _side_effect(one: SideEffect, share: float | None) -> str:
    facts = [] if share is None else [_("{share} of the load", share=percent(share))]
    shown = _ratio(one.log_ratio, as_factors=_is_large(one.log_ratio))
    if one.log_ratio is None:
        facts.append(_("not measured"))
    elif one.differs:
        facts.append(_("{change} tps, {interval}", change=shown.value, interval=shown.interval))
    else:
        facts.append(_("no difference found, {interval}", interval=shown.interval))
    return _("{statement} ({facts})", statement=visible(one.statement), facts="; ".join(facts))


def _is_large(log_ratio: LogRatio | None) -> bool:
    """Return whether a ratio is easier to read as a factor than as a percentage."""
    return log_ratio is not None and shows_factors(math.exp(log_ratio.point), None)


def _ratio(log_ratio: LogRatio | None, *, as_factors: bool) -> RatioTexts:
    if log_ratio is None:
        return RatioTexts("", "", "")
    return ratio_texts(math.exp(log_ratio.point), *ratio_bounds(log_ratio.interval), as_factors=as_factors)


def _first_error(failure: str) -> str:
    """Return the server's message in a failure, if there is one, otherwise its first line."""
    message = _ERROR.search(failure)
    return message[1] if message else failure.partition("\n")[0]


def _described(statement: ApplicationStatement) -> str:
    """Return the name and the beginning of the text of a statement, on one line."""
    if statement.is_planning:
        return _("planning of all statements")
    text = f"{statement.name}: {_shortened(' '.join(statement.text.split()), _LONGEST)}"
    if not statement.values:
        return text
    values = listed("NULL" if value is None else value for value in statement.values)
    return f"{text} [{_shortened(values, _LONGEST_VALUES)}]"


def _shortened(text: str, longest: int) -> str:
    return text if len(text) <= longest else f"{text[: longest - 3]}..."
