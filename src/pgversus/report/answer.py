"""Input of every report: one object, computed once; renderers add nothing to it."""

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
    """The effect of a contender's plans, or why it was not measured."""

    recall: str
    """Settings that restore the baseline's plans, or the name of a script; empty if not measured."""
    found: Attribution | None
    failure: str
    """Why there is no attribution; empty if there is one."""
    wall_s: float
    results: str = ""
    """The attribution's own results folder; empty if not measured."""
    needs_check: bool = False
    """Whether one of its own caveats says that its numbers may be misleading."""


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
    """Why the last run could not continue it; None if it could."""
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
    latencies: Callable[[], Mapping[int, LatencyHistogram]] = dict
    """Returns latencies by arm, over all its blocks; read on first use."""
    attributed: Mapping[int, AttributionResult] = field(default_factory=dict)
    """By contender, if its plans have changed and can be restored."""
    days: tuple[str, str] | None = None
    """Days of the first and last block, UTC, ISO 8601; None if not recorded, or without blocks."""

    @property
    def window_counts(self) -> set[int]:
        """Numbers of windows per trial; empty for older results, whose trials all have the design's number."""
        return {trial.window_count for block in self.blocks for trial in block.trials.values() if trial.window_count}


@dataclass(frozen=True, slots=True, kw_only=True)
class Unanswered:
    """A context without measurements."""

    context: Context
    failed: bool
    """True if it could not be measured; False if it was not reached."""
    words: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyAnswer:
    """The final or interim results of a study: one answer per measured context."""

    study: StudyMetadata
    answers: tuple[Answer, ...]
    unanswered: tuple[Unanswered, ...]
    stopped: StopReason
    results: str
    """The results folder."""
    asked: Invocation = field(default_factory=Invocation)
    """The command, program and study file that produced it."""
    builds: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    """By server name: origin, version, and hashes of the fetched archive and of the server program."""
