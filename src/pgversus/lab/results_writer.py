"""The contents of a results folder, and when a run writes them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import IO, Any

from pgversus.engine.context_state import ContextState
from pgversus.host.commands import Output
from pgversus.host.permissions import open_private
from pgversus.host.run_directory import RunDirectory
from pgversus.lab.resume import LOADED, labels_of_loaded, without_secrets
from pgversus.postgres.labels import label_of_running
from pgversus.records.trials import Block
from pgversus.store.codec import study_without_secrets
from pgversus.store.folder import holds_results
from pgversus.store.leases import Lease, Outcome
from pgversus.store.reading import StoredStudy
from pgversus.store.writing import Results
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study
from pgversus.text.redaction import message_without_secrets

_AS_IT_IS = "surrogateescape"
# For bytes that are not valid UTF-8.
_LARGEST_ENTRY = 10_000_000
# Bytes: more than any statement written by hand, and small enough to hold in memory.


class ResultsWriter:
    """Writes the results of a run; creates the file when there is something to store."""

    def __init__(
        self,
        study: Study,
        folder: Path,
        earlier: StoredStudy | None,
        facts: Mapping[str, Any],
        *,
        begin: Callable[[], None],
        stack: ExitStack,
    ) -> None:
        """facts: environment and options of this run. stack: closes the file at its end.

        begin: called before a new file is created, so that a run without results does not move earlier ones away.
        """
        self._study = study
        self._folder = folder
        self._earlier = earlier
        self._begins = begin
        self._stack = stack
        # The default until the run ends: kill -9 leaves no chance to record it.
        interrupted = StopReason.INTERRUPTED.value
        self._facts = {"ended": interrupted, "not_prepared": {}, **facts, "budget_s": study.budget_s}
        self._results: Results | None = None
        self._loaded = set(labels_of_loaded(earlier)) if earlier is not None else set()
        self._attempts = dict(earlier.attempts) if earlier is not None else {}

    def keep_loaded(self, server: RunningServer) -> None:
        """Record that an external server holds the study's data: they cannot be loaded again."""
        self._loaded.add(label_of_running(server))
        self._open().add_fact(LOADED, sorted(self._loaded))

    def keep_fact(self, name: str, value: Any) -> None:
        """Record another fact."""
        self._open().add_fact(name, value)

    def keep_preparation(self, state: ContextState) -> None:
        """Store the preparation of a context."""
        self._open().add_preparation(state.context.number, state.preparation, state.failure)

    def keep(self, state: ContextState, block: Block) -> None:
        """Store a block, before it is used."""
        self._open().add_block(state.context.number, block)

    def grant_lease(self, context: int, block: int, host: str) -> Lease:
        """Record that a host may measure a block, before its task is sent."""
        attempt = self._attempts.get((context, block), 0) + 1
        self._attempts[context, block] = attempt
        lease = Lease(context=context, block=block, attempt=attempt)
        self._open().add_lease(lease, host)
        return lease

    def end_lease(self, lease: Lease, outcome: Outcome) -> None:
        """Record how a lease ended."""
        self._open().end_lease(lease, outcome)

    def keep_unused(self, lease: Lease, block: Block) -> None:
        """Store a measured block that does not count."""
        self._open().add_unused(lease, block)

    def end(self, stopped: StopReason, states: Sequence[ContextState]) -> None:
        """Record why the run ended, and why contexts could not be prepared."""
        words = {str(state.context.number): state.failure for state in states if state.failure is not None}
        self._open().add_fact("not_prepared", words)
        self._open().add_fact("ended", stopped.value)

    def _open(self) -> Results:
        if self._results is None:
            self._results = self._begin() if self._earlier is None else Results(self._folder)
            self._stack.callback(self._results.close)
            if self._earlier is not None:
                self._update(self._results, self._earlier)
        return self._results

    def _begin(self) -> Results:
        # Store question, environment and order (the seed) before the first block, so that a resumed run has them.
        hidden = without_secrets(self._study)
        self._begins()
        return Results.begin(self._folder, hidden.metadata, hidden.contexts, self._facts)

    def _update(self, results: Results, earlier: StoredStudy) -> None:
        if earlier.study != study_without_secrets(self._study.metadata):
            # Its texts and quantities of interest may have changed; its contexts have not.
            results.add_study(self._study.metadata)
        for name, value in self._facts.items():
            results.add_fact(name, value)


def keep_server_logs(directory: RunDirectory, results: Path) -> None:
    """Append the servers' logs to the results, abridged and redacted: the run's own directory is temporary."""
    # An external server has no log here, and the results are kept even if the disk is full.
    with suppress(OSError):
        for log in directory.server_logs():
            if holds_results(results):
                output = Output(is_abridged=True)
                with log.open("rb") as words:
                    for entry in _entries(words):
                        output.add(message_without_secrets(entry).encode(errors=_AS_IT_IS))
                with open_private(results / log.name, "a") as kept:
                    kept.write(bytes(output))


def _entries(log: IO[bytes]) -> Iterator[str]:
    """Yield the entries of a server log: lines that begin with a tab continue the previous one, as in statements."""
    entry: list[str] = []
    size = 0
    for line in log:
        if entry and (not line.startswith(b"\t") or size > _LARGEST_ENTRY):
            yield "".join(entry)
            entry, size = [], 0
        entry.append(line.decode(errors=_AS_IT_IS))
        size += len(line)
    yield "".join(entry)
