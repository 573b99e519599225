"""What a run writes to its results folder, and when."""

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
from pgversus.store.reading import StoredStudy
from pgversus.store.writing import Results
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study
from pgversus.text.redaction import message_without_secrets

_AS_IT_IS = "surrogateescape"
# Of bytes that are no UTF-8.
_LARGEST_ENTRY = 10_000_000
# Bytes: more than any statement of a person, and as much as may be held in memory.


class ResultsWriter:
    """Writes what happens to the results folder, whose file is made when there is something to keep."""

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
        """facts: what this run is carried out with. stack: closes the file at its end.

        begin: called before a new file is made, so that a run with nothing to keep puts nothing aside.
        """
        self._study = study
        self._folder = folder
        self._earlier = earlier
        self._begins = begin
        self._stack = stack
        # Until it has ended otherwise; nobody will be there to say so after kill -9.
        self._facts = {"ended": StopReason.INTERRUPTED.value, "not_prepared": {}, **facts}
        self._results: Results | None = None
        self._loaded = set(labels_of_loaded(earlier)) if earlier is not None else set()

    def keep_loaded(self, server: RunningServer) -> None:
        """That a server of somebody else holds the study's data: from now on they cannot be loaded again."""
        self._loaded.add(label_of_running(server))
        self._open().add_fact(LOADED, sorted(self._loaded))

    def keep_fact(self, name: str, value: Any) -> None:
        """Something else that was found."""
        self._open().add_fact(name, value)

    def keep_preparation(self, state: ContextState) -> None:
        """What was found while a context was prepared."""
        self._open().add_preparation(state.context.number, state.preparation, state.failure)

    def keep(self, state: ContextState, block: Block) -> None:
        """A block, before anything else is done with it."""
        self._open().add_block(state.context.number, block)

    def end(self, stopped: StopReason, states: Sequence[ContextState]) -> None:
        """Why it ended, and why contexts could not be prepared in it."""
        words = {str(state.context.number): state.failure for state in states if state.failure is not None}
        self._open().add_fact("not_prepared", words)
        self._open().add_fact("ended", stopped.value)

    def _open(self) -> Results:
        if self._results is None:
            self._results = self._begin() if self._earlier is None else self._go_on(self._earlier)
            self._stack.callback(self._results.close)
        return self._results

    def _begin(self) -> Results:
        # Before the first block: what is asked, on what, in which order (the seed); nothing rests on memory.
        hidden = without_secrets(self._study)
        self._begins()
        return Results.begin(self._folder, hidden.fact, hidden.contexts, self._facts)

    def _go_on(self, earlier: StoredStudy) -> Results:
        results = Results(self._folder)
        if earlier.study != study_without_secrets(self._study.fact):
            # Its words, and what is of interest in it: of its contexts nothing has changed.
            results.add_study(self._study.fact)
        for name, value in self._facts.items():
            results.add_fact(name, value)
        return results


def keep_server_logs(directory: RunDirectory, results: Path) -> None:
    """What the servers said, beside the results, abridged: the run's own directory goes with the run."""
    # A server of somebody else has no log here, and a full disk is no reason to lose the answer.
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
    """The entries of a server's log: lines that begin with a tab belong to the one before, as those of a statement."""
    entry: list[str] = []
    size = 0
    for line in log:
        if entry and (not line.startswith(b"\t") or size > _LARGEST_ENTRY):
            yield "".join(entry)
            entry, size = [], 0
        entry.append(line.decode(errors=_AS_IT_IS))
        size += len(line)
    yield "".join(entry)
