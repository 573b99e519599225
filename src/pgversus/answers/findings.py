"""Findings of an upgrade check as data: the effect on each statement of an application, and on its whole load."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from pgversus.answers.answer import Answer, AttributionResult
from pgversus.answers.plans import ComparedPlans, UnlikeStatistics
from pgversus.stats.confidence import Interval, Verdict
from pgversus.study.study import ApplicationStatement
from pgversus.text.translation import N_


class Finding(StrEnum):
    """Effect of an upgrade on a statement, the most important first."""

    OTHER_ROWS = N_("different rows")
    FAILS = N_("fails")
    SLOWER = N_("slower")
    """Confirmed in fresh blocks, like FASTER."""
    LIKELY_SLOWER = N_("likely slower")
    """Found by the screening and not confirmed, like LIKELY_FASTER."""
    CHANGED_PLAN = N_("changed plan")
    """A different plan; no difference in speed was found."""
    NOT_MEASURED = N_("not measured")
    NO_DIFFERENCE = N_("no difference found")
    """The interval shows how large a difference may be."""
    EQUIVALENT = N_("equivalent")
    """Confirmed in fresh blocks: the difference is smaller than the margin."""
    LIKELY_FASTER = N_("likely faster")
    FASTER = N_("faster")


NEEDS_ATTENTION = (Finding.OTHER_ROWS, Finding.FAILS, Finding.SLOWER, Finding.LIKELY_SLOWER)
CLAIMS = (Finding.SLOWER, Finding.LIKELY_SLOWER, Finding.FASTER, Finding.LIKELY_FASTER)
OPEN = (Finding.LIKELY_SLOWER, Finding.LIKELY_FASTER, Finding.NOT_MEASURED)


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRatio:
    """A log ratio of throughput with its interval."""

    point: float
    interval: Interval


@dataclass(frozen=True, slots=True, kw_only=True)
class SideEffect:
    """Effect of settings that undo a slower statement on another one, whose plan they change as well."""

    statement: str
    """Its name."""
    log_ratio: LogRatio | None = None
    """With these settings / without, in throughput; None if it was not measured."""
    differs: bool = False
    """Whether the statement differs, by the rule with which a screening selects statements."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementFinding:
    """Effect of an upgrade to one target on one statement."""

    statement: ApplicationStatement
    finding: Finding
    share: float | None
    """Share of the total time of all statements; None if the sources have no times, and for planning."""
    log_ratio: LogRatio | None = None
    """Target / source in throughput; None if it was not measured."""
    changed: tuple[ComparedPlans, ...] = ()
    """Its plans that changed; without any, those that are executed differently."""
    confirmation: Answer | None = None
    """Its confirmation; None if it was not measured again."""
    attribution: AttributionResult | None = None
    """The effect of its plans, and the settings that restore them; None if not measured in time."""
    side_effects: tuple[SideEffect, ...] | None = None
    """Effects of these settings on each other statement whose plan they change; None if unknown."""
    failure: str = ""
    """Why it was not measured; empty if it was."""
    unlike_statistics: tuple[UnlikeStatistics, ...] = ()
    """Statistics that differ from those of the source, if its plans changed: they may be the reason."""
    not_restored: tuple[str, ...] | None = ()
    """Parts of the tables in its plans, such as indexes, that a server rejected; None if its plans are unknown."""
    finds_nothing: bool = False
    """Whether it finds no rows on the source, although it does in the application or, if that is unknown, writes."""

    def is_confirmed_slower(self, target: str) -> bool:
        """Return whether its confirmation found it slower on the target with this label, whatever else was found."""
        if self.confirmation is None:
            return False
        arms, results = self.confirmation.comparison.arms, self.confirmation.analysis.results
        return any(one.verdict is Verdict.SLOWER and arms[one.contender].label == target for one in results)

    @property
    def has_changed_plan(self) -> bool:
        """Whether a plan is different, not only its execution."""
        return any(not one.difference.is_same_plan for one in self.changed)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadChange:
    """The total time of the measured statements that find rows on the target, divided by that on the source."""

    ratio: float
    low: float
    high: float
    """Bounds that hold jointly for all statements."""
    share: float
    """Share of these statements in the total time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UpgradeAnswer:
    """The answer for one target."""

    source: str
    target: str
    findings: tuple[StatementFinding, ...]
    """The most important first, then by share."""
    load: LoadChange | None
    """None without times in the sources, or without a measured statement."""
    generic_plans: Mapping[str, ComparedPlans] = field(default_factory=dict)
    """Generic plans of statements that were not executed because their values are unknown, by name."""

    @property
    def planning(self) -> StatementFinding | None:
        """The finding on the planning of all statements; None if that is not part of the check."""
        return next((one for one in self.findings if one.statement.is_planning), None)

    @property
    def shares(self) -> Mapping[str, float]:
        """Shares of the statements in the total time on the source, by name; only those whose time is known."""
        return {
            one.statement.name: one.share for one in self.findings if one.share is not None and one.statement.seconds
        }

    def change_by_undo(self, found: StatementFinding) -> float | None:
        """Return how the settings that undo a slower statement change the total time, with all side effects.

        In shares of the total time on the source: -0.1 means that a tenth of it is saved. None if an effect or the
        time of a statement is unknown, or a statement finds no rows here. Side effects that do not differ count as
        none.
        """
        attribution = None if found.attribution is None else found.attribution.found
        if attribution is None or found.side_effects is None:
            return None
        # The factor by which the settings change the time of each statement on the target.
        factors = {found.statement.name: attribution.plans.value}
        for effect in found.side_effects:
            if effect.log_ratio is None:
                return None
            factors[effect.statement] = math.exp(-effect.log_ratio.point) if effect.differs else 1.0
        shares = self.shares
        times = {
            one.statement.name: shares[one.statement.name] * math.exp(-one.log_ratio.point)
            for one in self.findings
            if one.statement.name in shares and one.log_ratio is not None and not one.finds_nothing
        }
        if not factors.keys() <= times.keys():
            return None
        return math.fsum(times[name] * (factor - 1) for name, factor in factors.items())

    def having(self, *findings: Finding) -> tuple[StatementFinding, ...]:
        """Return the statements of the application with one of these findings."""
        return tuple(one for one in self.findings if one.finding in findings and not one.statement.is_planning)
