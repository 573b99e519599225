"""What every report shows: one object, computed once; a renderer adds nothing to it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pgversus.records.preparation import ArmFacts, Caveat, Difference
from pgversus.records.trials import Block, LatencyHistogram
from pgversus.report.plans import PlansAnswer
from pgversus.stats.analysis import Analysis
from pgversus.stats.attribution import Attribution
from pgversus.stats.confidence import LookRule
from pgversus.study.comparison import Comparison
from pgversus.study.design import StopReason
from pgversus.study.study import Context, Invocation, StudyMetadata


@dataclass(frozen=True, slots=True, kw_only=True)
class AttributionResult:
    """What the plans of a contender account for, or why nobody has measured it."""

    recall: str
    """What brings the baseline's plans back: settings, or the name of a script; empty where it was not measured."""
    found: Attribution | None
    failure: str
    """Why there is nothing found; empty where there is."""
    wall_s: float
    results: str = ""
    """The results folder of its own; empty where nothing was measured."""
    needs_check: bool = False
    """Whether a caveat of its own says that its numbers may mean something else than they seem to."""


def _no_plans() -> None:
    """Of a comparison whose plans were not captured."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The end of one comparison."""

    context: Context
    comparison: Comparison
    """With the design that was run, windows fitted."""
    arms: tuple[ArmFacts, ...]
    analysis: Analysis
    rule: LookRule
    caveats: tuple[Caveat, ...]
    differences: tuple[Difference, ...]
    stopped: StopReason
    failure: str | None
    """Why the last run could not go on with it; None where it could."""
    failed_trials: int
    blocks: tuple[Block, ...]
    """What it all rests on."""
    wall_s: float
    """Of all blocks, with restarts and warm-up."""
    study_wall_s: float
    """The same of all contexts of its study, which share the budget."""
    is_from_file: bool
    """Whether a study file asks for it, so that its design has no flags but the budget, and cannot change."""
    client: str
    """The pgbench that put the load on."""
    host: Mapping[str, Any]
    results: str
    """The results folder."""
    plans: Callable[[], PlansAnswer | None] = _no_plans
    """What differs in the plans, held against each other when first asked for; None where none were captured."""
    latencies: Callable[[], Mapping[int, LatencyHistogram]] = dict
    """By arm, over all its blocks; read when first asked for."""
    attributed: Mapping[int, AttributionResult] = field(default_factory=dict)
    """By contender, where its plans have changed and can be brought back."""
    days: tuple[str, str] | None = None
    """Of its first and its last block, UTC, ISO 8601; None where nobody has noted them, or without a block."""

    @property
    def window_counts(self) -> set[int]:
        """The numbers of windows that trials had; empty for older results, where all had those of the design."""
        return {trial.window_count for block in self.blocks for trial in block.trials.values() if trial.window_count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A context of which nothing was measured."""

    context: Context
    failed: bool
    """True when it cannot be measured; False when its turn has not come."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAnswer:
    """The end of a study, or how it stands: one answer for each context that was measured."""

    study: StudyMetadata
    answers: tuple[Answer, ...]
    unanswered: tuple[Unanswered, ...]
    stopped: StopReason
    results: str
    """The results folder."""
    asked: Invocation = field(default_factory=Invocation)
    """How it was asked for."""
    builds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By the server's name: origin, version, and hashes of what was fetched and of the server program."""
