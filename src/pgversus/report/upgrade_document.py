"""The answer of an upgrade check as a document of lists, dicts and numbers."""

import math
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from pgversus.answers.answer import StudyAnswer
from pgversus.answers.findings import LogRatio, SideEffect, StatementFinding, UpgradeAnswer
from pgversus.answers.plans import ComparedPlans
from pgversus.answers.upgrade import upgrade_answers
from pgversus.plans.sentences import headline, sentences
from pgversus.stats.confidence import ratio_bounds
from pgversus.study.study import ApplicationStatement
from pgversus.text.translation import Language, use_language


def upgrade_document(answer: StudyAnswer) -> list[dict[str, Any]]:
    """Return the answer for each target as lists, dicts and numbers; shares and ratios as fractions."""
    return [
        {
            "source": one.source,
            "target": one.target,
            "load": None if one.load is None else asdict(one.load),
            "statements": [_document(found, one) for found in one.findings],
            "left_out": [
                _left_out_document(left, one.generic_plans.get(left.name))
                for left in answer.study.statements
                if left.context is None
            ],
        }
        for one in upgrade_answers(answer)
    ]


def _document(found: StatementFinding, upgrade: UpgradeAnswer) -> dict[str, Any]:
    return {
        "statement": asdict(found.statement),
        "finding": found.finding.value,
        "share": found.share,
        **_bounded(found.log_ratio),
        "has_changed_plan": found.has_changed_plan,
        "plan_changes": [_plan_document(one) for one in found.changed],
        "undone_by": _undo(found, upgrade),
        "failure": found.failure or None,
        "unlike_statistics": sorted({table for one in found.unlike_statistics for table in one.tables}),
        "not_restored": None if found.not_restored is None else list(found.not_restored),
        "finds_nothing": found.finds_nothing,
        "has_list_of_unknown_length": found.statement.has_list_of_unknown_length,
    }


def _left_out_document(left: ApplicationStatement, plans: ComparedPlans | None) -> dict[str, Any]:
    """Return a statement that was not executed. plans: its generic plans; None if they are unknown."""
    return {
        **asdict(left),
        "has_changed_plan": None if plans is None else not plans.difference.is_same_plan,
        "plan_changes": [] if plans is None or plans.difference.is_same_plan else [_plan_document(plans)],
    }


def _plan_document(one: ComparedPlans) -> dict[str, Any]:
    """Return how a plan has changed, and the settings that restore it, in English."""
    restored = one.undone_by
    with use_language(Language.ENGLISH):
        return {
            "headline": headline(one.difference),
            "sentences": sentences(one.difference),
            "restored_by": None if restored is None else dict(restored.candidate.settings),
        }


def _undo(finding: StatementFinding, upgrade: UpgradeAnswer) -> dict[str, Any] | None:
    """Return the restoration of plans, with the effects of plans and of other changes as factors; None if unknown."""
    attributed = finding.attribution
    if attributed is None or attributed.found is None:
        return None
    found, effects = attributed.found, finding.side_effects
    return {
        "settings": attributed.restoration,
        "plans": asdict(found.plans),
        "rest": asdict(found.rest),
        "side_effects": None if effects is None else [_effect_document(one, upgrade.shares) for one in effects],
        "change_of_total_time": upgrade.change_by_undo(finding),
    }


def _effect_document(one: SideEffect, shares: Mapping[str, float]) -> dict[str, Any]:
    share = shares.get(one.statement)
    return {"statement": one.statement, "share": share, "differs": one.differs, **_bounded(one.log_ratio)}


def _bounded(ratio: LogRatio | None) -> dict[str, float | None]:
    """Return a ratio and its bounds; None if it is unknown or unbounded."""
    low, high = (None, None) if ratio is None else ratio_bounds(ratio.interval)
    return {"ratio": None if ratio is None else math.exp(ratio.point), "low": low, "high": high}
