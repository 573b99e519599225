"""Measurement of a context, a load or an operation: tried once, then measured by a trial runner for the engine."""

from dataclasses import dataclass
from typing import Protocol

from pgversus.engine.testbed import TrialRunner
from pgversus.lab.acting_settings import Settings
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Preparation
from pgversus.study.design import Design


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstRun:
    """The results of running the workload once on every arm."""

    design: Design
    """Fitted to the workload and final."""
    settings: tuple[Settings, ...]
    """For each arm, as in a session of the workload."""
    writes: bool
    """Whether any arm's rows were changed."""
    connect_allowance_s: int = 0
    """Whole seconds added to each run of pgbench, because its -T begins before its clients are connected."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients."""
    longest_transaction_s: float
    """The slowest transaction of any arm, or the slowest operation."""
    plans: CapturedPlans | None = None
    """None for an operation, or if not requested."""
    not_explained: str = ""
    """Why requested plans are missing."""
    unchecked_settings: str = ""
    """Why the requested settings could not be checked during a script; empty if they were."""


class WorkloadRunner(Protocol):
    """One context's workload on its servers."""

    def try_out(self) -> FirstRun:
        """Run the workload on every arm and discard the numbers; raise WorkloadError if it cannot run on one."""

    def trial_runner(self, preparation: Preparation) -> TrialRunner:
        """Return the trial runner of the prepared context for the engine."""
