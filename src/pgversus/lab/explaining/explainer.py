"""The plans of all arms of a context, on their own servers: captured, held against each other, and brought back."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from pgversus.engine.progress import Progress, Silence
from pgversus.errors import HostError, PgversusError
from pgversus.lab.explaining.capture import capture
from pgversus.lab.explaining.comparing import refuse_not_recalled, refuse_other_statements
from pgversus.lab.explaining.sampling import sampled
from pgversus.lab.explaining.statements import statements_of
from pgversus.lab.explaining.undoing import undoings
from pgversus.lab.measuring.arms import ArmServer
from pgversus.lab.measuring.load import Load
from pgversus.lab.measuring.pilot import PilotResult
from pgversus.postgres.client import Client
from pgversus.records.plans import Captured, CapturedPlans, Undoing
from pgversus.study.comparison import Comparison
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.translation import later

_ASKING = later("asking {arm} for its plans: statement {number} of {total}")
_SEARCHING = later("looking for settings that bring the old plans back on {arm}: statement {number} of {total}")
_SAMPLING = later("running the load once more on every arm, to see its plans")


@dataclass(frozen=True, slots=True, kw_only=True)
class Explainer:
    """How plans are asked for."""

    client: Client
    """The pgbench that tells what a workload sends."""
    scratch: Path
    """For scripts as they are told."""
    with_rows: bool
    """Whether what statements return is compared as well."""
    searches: bool = True
    """Whether settings are looked for that bring the baseline's plans back."""
    samples: bool = False
    """Whether the load is run once more, to see that the plans under it are those that were captured."""
    progress: Progress = field(default_factory=Silence)
    """Is told which statement is explained on which arm."""

    def explain(self, servers: Sequence[ArmServer], comparison: Comparison) -> CapturedPlans:
        """The plans of every arm, whose servers are started; PgversusError where they cannot be had or compared.

        comparison: what the arms are sent; contexts that share servers differ in it. What is compared is not changed
        in the search for an old plan. What is written is rolled back.
        """
        captured = []
        # One after the other, so that each has the host for itself.
        for server, arm in zip(servers, comparison.arms, strict=True):
            assert isinstance(arm.workload, PgbenchWorkload)  # noqa: S101 - an operation has no plans to compare
            statements = statements_of(arm.workload, self.client, server.target, self.scratch)
            begin = partial(self._tell, _ASKING, arm.label, len(statements))
            captured.append(capture(arm.label, server.target, statements, with_rows=self.with_rows, begin=begin))
        refuse_other_statements([arm.label for arm in comparison.arms], captured)
        undone_by = [
            self._undone(server, captured[0], found, comparison.factors)
            for server, found in zip(servers[1:], captured[1:], strict=True)
        ]
        return CapturedPlans(arms=tuple(captured), undone_by=tuple(undone_by), is_searched=self.searches)

    def _undone(
        self, server: ArmServer, baseline: Captured, found: Captured, factors: Sequence[str]
    ) -> tuple[Undoing | None, ...]:
        if not self.searches:
            return (None,) * len(found.statements)
        begin = partial(self._tell, _SEARCHING, server.arm.label, len(found.statements))
        return tuple(undoings(server.target, baseline, found, factors, begin=begin))

    def _tell(self, sentence: str, arm: str, total: int, number: int) -> None:
        self.progress.at(sentence, arm=arm, number=number, total=total)


def explained_or_why_not(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[Load],
    pilot: PilotResult,
    *,
    comparison: Comparison,
) -> tuple[CapturedPlans | None, str]:
    """The plans, or in words why there are none: what is measured does not hang on them. HostError ends the run."""
    try:
        plans = explainer.explain(servers, comparison)
    except HostError:
        raise
    except PgversusError as error:
        return None, f"{error.what} ({error.where}): {error.found}"
    if not explainer.samples:
        return plans, ""
    explainer.progress.at(_SAMPLING)
    return replace(plans, sampled=sampled(servers, loads, pilot, plans)), ""


def explained_counterfactual(
    explainer: Explainer,
    servers: Sequence[ArmServer],
    loads: Sequence[Load],  # noqa: ARG001 - what it is asked with is the same for all
    pilot: PilotResult,  # noqa: ARG001 - the same
    *,
    comparison: Comparison,
) -> tuple[CapturedPlans, str]:
    """The plans of a contender with the baseline's plans, the baseline, and the contender; nothing is searched.

    WorkloadError where the first two do not have the same plans: measuring them would tell nothing.
    """
    plans = replace(explainer, searches=False).explain(servers, comparison)
    refuse_not_recalled([arm.label for arm in comparison.arms], plans)
    return plans, ""
