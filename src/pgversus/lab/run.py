"""Runs a study: opens it on its hosts, measures it, stores the results, and measures what follows from its verdicts.

Results of blocks are always read back from the results folder (answers/read.py), so that a report made years later
equals the one at the end of the run.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import asdict, dataclass
from functools import cache, partial
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

from pgversus.answers.read import state_so_far
from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress
from pgversus.engine.scheduler import run_parts
from pgversus.lab.attribution import Measure, attribute
from pgversus.lab.chosen_values import with_known_values
from pgversus.lab.confirmation import confirm
from pgversus.lab.results_writer import ResultsWriter
from pgversus.lab.resume import (
    EarlierResults,
    ResultsFolder,
    changed_servers,
    check_same_study,
    is_same_question,
    loaded_before,
    results_folder,
)
from pgversus.lab.resume_checks import check_same_builds
from pgversus.lab.side_effects import executed_on, measure_side_effects
from pgversus.lab.study_host import Capture, ExternalData, MeasurableStudy, Measuring
from pgversus.stats.confidence import check_precision
from pgversus.store.folder import NOT_ATTRIBUTED, holds_results
from pgversus.store.reading import StoredStudy, read_results
from pgversus.study.design import StopReason
from pgversus.study.needs import needs_of, parts_of
from pgversus.study.study import Invocation, Study, StudyKind
from pgversus.text.redaction import without_secrets
from pgversus.text.units import count, duration, size


class OpenStudy(Protocol):
    """Opens a study on the hosts that are to measure it."""

    def __call__(
        self, study: Study, progress: Progress, before: Mapping[str, Any] | None, results: Path
    ) -> AbstractContextManager[MeasurableStudy]:
        """Return the opened study, which is closed at the end; raise PgversusError if it cannot be measured.

        before: facts of the results in the folder `results`, which are resumed; None for a new study.
        """


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOptions:
    """Options of a run."""

    results: Path
    earlier: EarlierResults
    """Treatment of results that already exist in that folder."""
    keep_logs: bool
    """Whether pgbench's transaction logs are stored with the results."""
    plans: bool
    """Whether to capture plans and measure the effect of plan changes."""
    command: str = ""
    """The command line without secrets; empty when called from a program."""


def run_study(study: Study, options: RunOptions, open_it: OpenStudy, progress: Progress) -> StopReason:
    """Fetch, load, measure and store; return why it ended. Everything started is stopped and removed on exit.

    PgversusError of any kind if the run cannot begin; once blocks run, failures and Ctrl-C become part of the results.
    """
    with results_folder(options.results, options.earlier) as folder:
        earlier = folder.earlier
        if earlier is not None:
            study = with_known_values(study, earlier)
            if not study.skips_missing_settings:
                # Before anything is fetched. If settings may be missing, only the servers determine what remains.
                check_same_study(earlier, study, options.results)
        before = None if earlier is None else earlier.facts
        with open_it(study, progress, before, options.results) as opened:
            return _Run(opened, options, folder, progress).measure()


class _Run:
    """A study to be measured, with the studies that follow from its verdicts."""

    def __init__(self, opened: MeasurableStudy, options: RunOptions, folder: ResultsFolder, progress: Progress) -> None:
        self._opened = opened
        self._options = options
        self._folder = folder
        self._progress = progress
        self._facts = {**opened.facts, "asked": asdict(_invocation(opened.study, options))}
        self._external = ExternalData()
        self._was_interrupted = False

    def measure(self) -> StopReason:
        """Measure the study, then the studies that follow from its verdicts; return why measuring ended."""
        study, earlier, results = self._opened.study, self._folder.earlier, self._options.results
        for context in study.contexts:
            check_precision(context.comparison.design, study.verdicts)
        if earlier is not None:
            check_same_builds(earlier.facts, self._facts["builds"], results)
            check_same_study(earlier, study, results)
        for one in study.skipped:
            self._progress.say(f"skipped: {one.label} ({one.reason})")
        if study.kind is StudyKind.UPGRADE_CHECK and earlier is None:
            self._progress.say(_estimate(study))
        with ExitStack() as stack:
            stack.callback(self._keep_server_logs)
            begin = partial(_move_away, self._folder, self._progress)
            writer = ResultsWriter(study, results, earlier, self._facts, begin=begin, stack=stack)
            measuring = Measuring(
                study=study,
                capture=Capture.PLANS if self._options.plans else Capture.NONE,
                kept_logs=results / "transaction-logs" if self._options.keep_logs else None,
            )
            self._external = self._external_data(writer)
            stopped = self._measured(measuring, earlier, writer)
            if stopped is StopReason.INTERRUPTED:
                return stopped
            return self._follow_up(writer) or stopped

    def _external_data(self, writer: ResultsWriter) -> ExternalData:
        study, earlier = self._opened.study, self._folder.earlier
        # A comparison that cannot be resumed leaves nothing behind if it fails before its first block.
        can_resume = self._options.earlier is not EarlierResults.REFUSE
        note = writer.keep_loaded if can_resume else (lambda _: None)
        if earlier is None:
            return ExternalData(note_loaded=note)
        return ExternalData(
            loaded=loaded_before(earlier, study), changed=changed_servers(earlier, study), note_loaded=note
        )

    def _measured(self, measuring: Measuring, earlier: StoredStudy | None, writer: ResultsWriter) -> StopReason:
        """Measure a study to its end and store the results; return why it ended. All its servers are stopped on exit.

        earlier: results so far, which are resumed.
        """
        study = measuring.study
        with ExitStack() as stack:
            hosts = self._opened.hosts(measuring, self._external, writer, stack)
            states = _states(study, earlier)
            stopped = run_parts(
                _parts(study, states),
                hosts,
                seed=study.seed,
                budget_s=study.budget_s,
                progress=self._progress,
                keep=writer.keep,
                keep_preparation=writer.keep_preparation,
            )
            writer.end(stopped, states)
            return stopped

    def _follow_up(self, writer: ResultsWriter) -> StopReason | None:
        """Measure the studies that follow; return why the last one of an upgrade check ended, otherwise None."""
        study, results = self._opened.study, self._options.results
        measure_plans = None
        if self._options.plans:
            measure_plans = partial(self._measure_beneath, "attribution-", Capture.COUNTERFACTUAL)
        if study.kind is not StudyKind.UPGRADE_CHECK:
            if measure_plans is not None:
                writer.keep_fact(NOT_ATTRIBUTED, attribute(study, results, measure_plans, self._progress))
            return None
        capture = Capture.PLANS if self._options.plans else Capture.NONE
        again = partial(self._measure_beneath, "confirmation-", capture, measure_plans=measure_plans)
        alone = partial(self._measure_beneath, "side-effects-", Capture.NONE)
        try:
            stopped = confirm(study, results, again, self._progress)
            if stopped is StopReason.INTERRUPTED:
                return stopped
            return measure_side_effects(study, results, alone, self._progress) or stopped
        except KeyboardInterrupt:
            # The study that was being prepared has no results yet, but the others have.
            return StopReason.INTERRUPTED

    def _measure_beneath(
        self,
        log_prefix: str,
        capture: Capture,
        study: Study,
        results: Path,
        *,
        measure_plans: Measure | None = None,
    ) -> StopReason:
        """Measure a follow-up. Resume its results, unless the question is different, such as a different rewrite.

        measure_plans: measures the effect of plan changes; None to skip this.
        """
        is_other = holds_results(results) and not is_same_question(read_results(results), study)
        earlier = EarlierResults.MOVE_AWAY if is_other else EarlierResults.RESUME
        others = cache(partial(executed_on, self._options.results)) if capture is Capture.PLANS else None
        measuring = Measuring(study=study, capture=capture, others=others, log_prefix=log_prefix)
        with results_folder(results, earlier) as folder, ExitStack() as stack:
            begin = partial(_move_away, folder, self._progress)
            writer = ResultsWriter(study, results, folder.earlier, self._facts, begin=begin, stack=stack)
            stopped = self._measured(measuring, folder.earlier, writer)
            if measure_plans is not None and stopped is not StopReason.INTERRUPTED:
                note = self._note_interrupt
                missing = attribute(study, results, measure_plans, self._progress, note_interrupt=note)
                writer.keep_fact(NOT_ATTRIBUTED, missing)
            # After Ctrl-C nothing else may begin: further signals are ignored, so nothing could end it.
            return StopReason.INTERRUPTED if self._was_interrupted else stopped

    def _note_interrupt(self) -> None:
        self._was_interrupted = True

    def _keep_server_logs(self) -> None:
        if self._folder.is_ours:
            self._opened.keep_server_logs(self._options.results)


def _estimate(study: Study) -> str:
    """Return the disk space and the time that an upgrade check needs, which are known before it starts."""
    needs = needs_of(study)
    executed = {one.text for one in study.statements if one.context is not None and not one.is_planning}
    return (
        f"{count(len(executed), 'statement')}: about {size(needs.disk_bytes)} of disk space or more, "
        f"{duration(needs.preparation_s)} to load and to try them, {duration(needs.least_s)} or more for the "
        f"screening, then at most {duration(study.budget_s)} for the confirmation"
    )


def _states(study: Study, earlier: StoredStudy | None) -> list[ContextState]:
    """Return the current state of every context."""
    if earlier is None:
        return [ContextState(context, study.verdicts) for context in study.contexts]
    return [
        state_so_far(context, stored, study.verdicts, study.budget_s)
        for context, stored in zip(study.contexts, earlier.contexts, strict=True)
    ]


def _parts(study: Study, states: Sequence[ContextState]) -> list[list[ContextState]]:
    by_number = {state.context.number: state for state in states}
    return [[by_number[context.number] for context in part] for part in parts_of(study.contexts)]


def _invocation(study: Study, options: RunOptions) -> Invocation:
    return Invocation(
        program=f"pgversus {version('pgversus')}",
        command=options.command,
        file_name=study.file_name,
        file_text=without_secrets(study.file_text),
    )


def _move_away(folder: ResultsFolder, progress: Progress) -> None:
    if aside := folder.begin():
        progress.say(f"the earlier results are now in {aside}")
