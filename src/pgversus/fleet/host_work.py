"""The tasks of a host, executed on it one at a time: opening a study, preparing its contexts, measuring blocks.

Everything runs in the worker's process and ends with it: servers stop when their watchdogs lose it (host/guard.py).
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from distributed import get_worker
from filelock import Timeout

from pgversus.engine.block_runner import run_start
from pgversus.engine.hosts import prepare_together
from pgversus.engine.progress import Progress
from pgversus.errors import HostError, PgversusError, StudyError
from pgversus.fleet.load_work import LoadWork
from pgversus.fleet.messages import (
    Begin,
    Close,
    Done,
    Failed,
    LoadOpened,
    Measure,
    NotOpen,
    Open,
    Opened,
    OpenLoad,
    Prepare,
    Reply,
    SendLoad,
    Task,
    Versions,
    decoded_task,
    encoded,
    versions_here,
)
from pgversus.fleet.setup_files import with_texts, without_texts
from pgversus.host.directories import open_cache
from pgversus.host.identity import ServerUser, server_user
from pgversus.host.noise import speed_noise
from pgversus.host.permissions import private_lock
from pgversus.lab.study_host import ExternalData, HostOptions, Measuring, StudyHost, open_study_host
from pgversus.postgres.client import fixed_client
from pgversus.records.plans import CapturedStatement
from pgversus.study.host_access import host_access_of
from pgversus.study.study import Study
from pgversus.text.redaction import message_without_secrets
from pgversus.text.units import percent

if TYPE_CHECKING:
    from pgversus.engine.events import Event
    from pgversus.lab.testbed import PostgresTestbed

NEWS = "pgversus"
"""The topic of lines of text from hosts."""
_LOCK_FILE = "fleet.lock"
_ENDS_S = 45.0
# Time for a worker whose program was killed to end its window and its servers, and to unlock the host: Dask waits for
# up to 30 s.
_ABANDONED_S = 600.0
# Time without a task from the driver of a run after which another run may use the host.


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerOptions:
    """Options of the worker of a host."""

    name: str
    run_as: str | None
    """The user of the servers; None for the usual one."""
    trust: bool
    """Whether studies may use more of the host than managed servers."""


class HostWork:
    """The studies that a worker has opened, and its current task."""

    def __init__(self, options: WorkerOptions) -> None:
        self._options = options
        self._progress = HostProgress(options.name)
        self._one_at_a_time = threading.Lock()
        self._of_run = ExitStack()
        self._of_study = ExitStack()
        self._run = ""
        self._host: StudyHost | None = None
        self._load: LoadWork | None = None
        self._number = 0
        self._testbed: PostgresTestbed | None = None
        self._part: frozenset[int] = frozenset()
        self._files: Mapping[str, str] = {}
        self._used = 0.0
        # When it last had a task.

    def reply_to(self, task: bytes) -> Reply:
        """Do a task and return the reply, which may be an error."""
        with self._one_at_a_time:
            try:
                # Another version of pgversus may have sent a task that cannot be decoded here.
                return self._reply_to(decoded_task(task))
            except PgversusError as error:
                return Failed(error=error)
            except Exception as error:  # noqa: BLE001 - the driver must learn of it, or it would try for ever
                return Failed(error=_unexpected(error))
            finally:
                self._used = time.monotonic()

    def _reply_to(self, task: Task) -> Reply:
        match task:
            case Open():
                return self._open(task)
            case Begin():
                return self._begin(task)
            case Prepare():
                return self._prepare(task)
            case Measure():
                return self._measure(task)
            case OpenLoad() | SendLoad():
                return self._reply_to_load(task)
            case Close():
                return self._close(task)

    def _reply_to_load(self, task: OpenLoad | SendLoad) -> Reply:
        if isinstance(task, OpenLoad):
            return self._open_load(task)
        return NotOpen() if self._load is None or task.run != self._run else self._load.send(task)

    def close(self) -> None:
        """Stop all servers and remove their data."""
        self._of_study.close()
        self._of_run.close()
        self._run, self._host, self._load, self._testbed = "", None, None, None

    def _begin_run(self, run: str, versions: Versions, most_noise: float | None) -> ServerUser:
        """End an earlier run and return the user for a new one; PgversusError if this host may not take part."""
        if self._run and run != self._run and time.monotonic() - self._used < _ABANDONED_S:
            raise _busy(self._run)
        self.close()
        _check_versions(versions)
        if most_noise is not None:
            _check_noise(most_noise)
        return server_user(self._options.run_as)

    def _open_load(self, task: OpenLoad) -> Reply:
        user = self._begin_run(task.run, task.versions, task.most_noise)
        self._check_trust(task.study)
        with ExitStack() as stack:
            _lock_host(stack)
            load = LoadWork(user, stack)
            load.check(task.study, task.client)
            self._run, self._load = task.run, load
            self._of_run = stack.pop_all()
        return LoadOpened()

    def _open(self, task: Open) -> Reply:
        user = self._begin_run(task.run, task.versions, task.most_noise)
        study = self._with_files(task.study, task.files)
        self._check_trust(study)
        options = HostOptions(
            user=user, client=fixed_client(user), sample_plans=task.sample_plans, check_rows=task.check_rows
        )
        with ExitStack() as stack:
            _lock_host(stack)
            opening = open_study_host(study, self._progress, task.before, Path(self._options.name), options=options)
            self._host = stack.enter_context(opening)
            self._run = task.run
            self._of_run = stack.pop_all()
        contexts = tuple(without_texts(one, self._files) for one in self._host.study.contexts)
        return Opened(study=replace(self._host.study, contexts=contexts), facts=self._host.facts)

    def _begin(self, task: Begin) -> Reply:
        if self._host is None or task.run != self._run:
            return NotOpen()
        self._of_study.close()
        self._testbed, self._part = None, frozenset()
        measuring = Measuring(
            study=self._with_files(task.study, self._files),
            capture=task.capture,
            others=_by_arm(task.others),
            log_prefix=task.log_prefix,
        )
        self._testbed = self._host.testbed(measuring, ExternalData(), self._of_study)
        self._number = task.number
        return Done()

    def _prepare(self, task: Prepare) -> Reply:
        if self._testbed is None or (task.run, task.number) != (self._run, self._number):
            return NotOpen()
        part = frozenset(context.number for context in task.part)
        if part != self._part:
            self._testbed.begin_part([with_texts(one, self._files) for one in task.part])
            self._part = part
        contexts = [(with_texts(one, self._files), known) for one, known in task.contexts]
        return Done(events=tuple(prepare_together(self._testbed, contexts, self._options.name)))

    def _measure(self, task: Measure) -> Reply:
        if self._testbed is None or (task.run, task.number) != (self._run, self._number):
            return NotOpen()
        events: list[Event] = []
        try:
            measured = run_start(
                task.orders, self._testbed, time.monotonic, self._progress, task.left_s, self._options.name
            )
            with closing(measured):
                events.extend(measured)
        except PgversusError as error:
            # Blocks measured before the error are not lost.
            return Failed(error=error, events=events)
        return Done(events=events)

    def _close(self, task: Close) -> Reply:
        if task.run == self._run:
            self.close()
        return Done()

    def _check_trust(self, study: Study) -> None:
        if not self._options.trust:
            _check_access(study)

    def _with_files(self, study: Study, files: Mapping[str, str]) -> Study:
        self._files = files
        return replace(study, contexts=tuple(with_texts(one, files) for one in study.contexts))


class HostProgress(Progress):
    """Sends the events of a host to the driver, never inside a window."""

    def __init__(self, host: str) -> None:
        self._host = host

    def say(self, line: str) -> None:
        """Send a line of text."""
        # Outside of a task, or while the connection is lost, the driver cannot receive it.
        with suppress(ValueError, OSError):
            get_worker().log_event(NEWS, f"{self._host}: {line}")


_work: HostWork | None = None


def begin_work(options: WorkerOptions) -> HostWork:
    """Make this process a host of a fleet."""
    global _work  # noqa: PLW0603 - Dask calls a function of a module, which has nothing else to find its state by
    _work = HostWork(options)
    return _work


def reply_to(task: bytes) -> bytes:
    """Do a task on this host, as sent by the driver, and return the reply."""
    assert _work is not None  # noqa: S101 - a worker of pgversus begins its work before it connects
    return encoded(_work.reply_to(task))


def _by_arm(others: tuple[tuple[CapturedStatement, ...], ...]) -> Callable[[int], Sequence[CapturedStatement]] | None:
    return others.__getitem__ if others else None


def _lock_host(stack: ExitStack) -> None:
    """Lock the host until the stack ends; HostError if another worker has locked it, and does not end."""
    lock = private_lock(open_cache().root / _LOCK_FILE)
    try:
        stack.enter_context(lock.acquire(timeout=_ENDS_S))
    except Timeout as error:
        raise _busy(lock.lock_file) from error


def _busy(owner: str) -> HostError:
    return HostError(
        "this host is already in use by another run or worker",
        slug="fleet-host-busy",
        where="pgversus fleet worker",
        found=owner,
        expected="one worker on each host, and one run at a time",
        to_do="wait for the other run, or stop it",
    )


def _unexpected(error: Exception) -> HostError:
    return HostError(
        "a task failed unexpectedly",
        slug="fleet-task-failed",
        where="pgversus fleet worker",
        found=message_without_secrets(f"{type(error).__name__}: {error}"),
        expected="a completed task",
        to_do="check the installation of pgversus on this host; otherwise report this as a bug in pgversus",
    )


def _check_versions(versions: Versions) -> None:
    here = versions_here()
    if versions != here:
        raise HostError(
            "the driver and this host run different versions",
            slug="fleet-versions",
            where="pgversus fleet worker",
            found=str(here),
            expected=str(versions),
            to_do="install the same versions of pgversus, Python and distributed on both",
        )


def _check_noise(most: float) -> None:
    found = speed_noise()
    if found > most:
        raise HostError(
            "the speed of this host varies too much",
            slug="fleet-noisy-host",
            where="pgversus fleet worker",
            found=f"ratios of identical windows of 50 ms vary by {percent(found)} (standard deviation)",
            expected=f"at most {percent(most)} (--max-noise)",
            to_do="stop other programs on this host and start its worker again, or allow more noise",
        )


def _check_access(study: Study) -> None:
    """Raise StudyError if a study uses more of the host than its owner has allowed."""
    texts = {
        file.path: file.text or ""
        for context in study.contexts
        for arm in context.comparison.arms
        for file in (*arm.dataset.setup_files, *arm.dataset.prepare)
    }
    access = host_access_of(study, texts, ())
    if not access.is_none:
        raise StudyError(
            "this study requires more access than servers that pgversus starts itself",
            slug="fleet-not-trusted",
            where="pgversus fleet worker",
            found="\n".join(access.lines),
            expected="the consent of the owner of this host",
            to_do="review the study and its files; to allow the access, start the worker with --trust",
        )
