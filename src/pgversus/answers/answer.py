"""The answer to a study as data, computed once: the input of every report."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from pgversus.answers.plans import PlansAnswer
from pgversus.records.preparation import ArmFacts, Difference
from pgversus.records.trials import Block, LatencyHistogram
from pgversus.stats.analysis import Analysis, ContenderResult
from pgversus.stats.attribution import Attribution
from pgversus.stats.confidence import LookRule, Verdict
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.design import StopReason
from pgversus.study.study import Context, Invocation, StudyMetadata


class Severity(StrEnum):
    """Effect of a caveat on a verdict, the gravest first."""

    GRAVE = "grave"
    """The number may be misleading: CHECK is put before the sentence."""
    CAUTION = "caution"
    """The measurement was disturbed, so the verdict is not called valid."""
    NOTE = "note"
    """Worth knowing."""


OTHER_ROWS, OTHER_ORDER = "other-rows", "other-order"
"""The slugs of the gravest caveats: a contender that returns different rows does different work."""
NOT_RESTORED = "not-restored"
"""The slug of the caveat about parts of a dump that a server rejected."""
_SEVERITIES = {
    Severity.GRAVE: frozenset(
        {
            "not-resumed",
            "hosts-disagree",
            OTHER_ROWS,
            OTHER_ORDER,
            "mixed-builds",
            NOT_RESTORED,
            "unequal-databases",
            "unequal-settings",
            "unequal-indexes",
            "failed-trials",
            "latency-without-failed",
            "worn-data",
            "late-writes",
            "client-bound",
            "rate-not-reached",
            "cache-not-cold",
            "no-autovacuum-ran",
            "no-checkpoint-ran",
            "drift",
            "memory-pressure",
        }
    ),
    Severity.CAUTION: frozenset(
        {
            "disturbed-windows",
            "host-disturbed",
            "host-stolen",
            "disk-disturbed",
            "throttled",
            "few-transactions",
            "other-plans-under-load",
            "not-restarted",
            "settings-not-checked",
            "unequal-tables",
        }
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveat:
    """A reason to trust a result less, shown next to it (report/caveats.py has the sentences)."""

    slug: str
    """Stable name for programs, such as mixed-builds."""
    arm: int | None = None
    """Index of the only contender it concerns; None if it concerns every verdict."""
    values: Mapping[str, Any] = field(default_factory=dict)
    """The observation and its arms: the values of the sentence, in base units."""

    @property
    def severity(self) -> Severity:
        """Effect on the verdicts that it concerns."""
        return next((one for one, slugs in _SEVERITIES.items() if self.slug in slugs), Severity.NOTE)

    @property
    def rank(self) -> int:
        """Position of its severity, 0 for the gravest."""
        return list(Severity).index(self.severity)


def about(slug: str, arm: Arm, **values: object) -> Caveat:
    """Return a caveat about one arm; if it is the baseline, it concerns every verdict."""
    return Caveat(slug=slug, arm=arm.index or None, values={"arm": arm.label, **values})


def between(slug: str, comparison: Comparison, contender: Arm, **values: object) -> Caveat:
    """Return a caveat about a contender and the baseline."""
    labels = {"baseline": comparison.baseline.label, "contender": contender.label}
    return Caveat(slug=slug, arm=contender.index, values={**labels, **values})


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionResult:
    """The effect of a contender's plans, or why it is unknown."""

    restoration: str = ""
    """Settings that restore the baseline's plans, or the name of a script; empty if not measured."""
    found: Attribution | None = None
    failure: str = ""
    """The error, in English; empty without one, although there may be too few blocks for a result."""
    wall_s: float = 0.0
    blocks: int | None = None
    """None if unknown."""
    stopped: StopReason | None = None
    """Reason why the attribution's own study ended; None if unknown."""
    results: str = ""
    """The attribution's own results folder; empty if not measured."""
    needs_check: bool = False
    """Whether one of its own caveats says that its numbers may be misleading."""
    is_but_for_sorts: bool = False
    """Whether the restored plans differ from the baseline's in sorts."""


def _no_plans() -> None:
    """Return None, for a comparison whose plans were not captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The results of one comparison."""

    context: Context
    comparison: Comparison
    """With the design as run, after fitting windows."""
    arms: tuple[ArmFacts, ...]
    analysis: Analysis
    rule: LookRule
    caveats: tuple[Caveat, ...]
    differences: tuple[Difference, ...]
    stopped: StopReason
    failure: str | None
    """Why the last run could not continue this context; None if it could."""
    failed_trials: int
    blocks: tuple[Block, ...]
    """The measurements."""
    wall_s: float
    """Duration of all blocks, with restarts and warm-up."""
    study_wall_s: float
    """Duration of all contexts of the study, which share the budget."""
    is_from_file: bool
    """Whether it comes from a study file, whose design is fixed except for the budget."""
    client: str
    """The pgbench that generated the load."""
    host: Mapping[str, Any]
    results: str
    """The results folder."""
    plans: Callable[[], PlansAnswer | None] = _no_plans
    """Returns the compared plans, computed on first use; None if none were captured."""
    latencies: Callable[[], Mapping[int, Sequence[LatencyHistogram]]] = dict
    """Returns the latencies of each block by arm; read on first use."""
    attributions: Mapping[int, AttributionResult] = field(default_factory=dict)
    """By contender, if its plans have changed and can be restored."""
    days: tuple[str, str] | None = None
    """Days of the first and last block, UTC, ISO 8601; None if not recorded, or without blocks."""

    @property
    def window_counts(self) -> set[int]:
        """Numbers of windows per trial; the design's number for older results, which did not record it."""
        counts = {trial.window_count for block in self.blocks for trial in block.trials.values() if trial.window_count}
        return counts or {self.comparison.design.rounds}

    @property
    def place(self) -> str:
        """The context's label, or the workload of the only context of a study."""
        return self.context.label or self.comparison.workload.name

    def caveats_of(self, contender: int) -> tuple[Caveat, ...]:
        """Return the caveats that concern the verdict on one contender."""
        return tuple(caveat for caveat in self.caveats if caveat.arm in (None, contender))

    def needs_check(self, result: ContenderResult) -> bool:
        """Return whether the result may be misleading, according to its caveats."""
        is_grave = any(one.severity is Severity.GRAVE for one in self.caveats_of(result.contender))
        return is_grave and result.verdict is not Verdict.INVALID


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A context without measurements."""

    context: Context
    failure: str | None
    """Why it could not be measured; None if it was not reached."""
    stopped: StopReason
    """Reason why the study ended."""

    @property
    def failed(self) -> bool:
        """Whether it could not be measured, as opposed to not being reached."""
        return self.failure is not None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class StudyAnswer:
    """The final or interim results of a study: one answer per measured context."""

    study: StudyMetadata
    answers: tuple[Answer, ...]
    unanswered: tuple[Unanswered, ...]
    stopped: StopReason
    results: str
    """The results folder."""
    invocation: Invocation = field(default_factory=Invocation)
    """The command, program and study file that produced it."""
    builds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By server name: origin, version, and hashes of the fetched archive and of the server program."""
    confirmation: "StudyAnswer | None" = None
    """For an upgrade check: the findings of its screening, measured again; None if nothing was measured again."""
    side_effects: Mapping[tuple[int, int], "StudyAnswer"] = field(default_factory=dict)
    """For a confirmation, by context and contender: effects of the settings that undo it on other statements."""

    @property
    def is_comparison(self) -> bool:
        """Whether it is one comparison from the command line."""
        return self.study.kind.has_one_context
