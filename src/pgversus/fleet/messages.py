"""Messages between the driver of a study and the hosts of its fleet, as bytes that Dask forwards unread."""

import pickle
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

from pgversus.engine.events import Event
from pgversus.engine.hosts import KnownContext
from pgversus.engine.testbed import BlockOrder
from pgversus.errors import PgversusError
from pgversus.lab.study_host import Capture
from pgversus.records.plans import CapturedStatement
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.workload import PgbenchWorkload
from pgversus.workload.aligned_run import AlignedWindow


@dataclass(frozen=True, slots=True, kw_only=True)
class Versions:
    """The programs that must be the same on the driver and on every host."""

    pgversus: str
    python: str
    """Its major and minor version."""
    distributed: str


def versions_here() -> Versions:
    """Return the versions of this process."""
    major, minor, _ = platform.python_version_tuple()
    return Versions(pgversus=version("pgversus"), python=f"{major}.{minor}", distributed=version("distributed"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Open a study: fetch or build its servers."""

    run: str
    """The name of the run; a resumed run has the same name."""
    versions: Versions
    study: Study
    files: Mapping[str, str]
    """The texts of its setup files, by path."""
    before: Mapping[str, Any] | None
    """Facts that must be the same on this host: of the earlier results, or of the first host; None for a new study."""
    most_noise: float | None = None
    """The most that the speed of this host may vary, as in host/noise.py; None if it does not matter."""
    sample_plans: bool
    check_rows: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """A host has opened a study."""

    study: Study
    """With the values and settings that servers and data allow."""
    facts: Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Begin:
    """Begin to measure a study: that of the run, or one that follows from it."""

    run: str
    number: int
    """Number of the study in the run, from 1."""
    study: Study
    capture: Capture
    others: tuple[tuple[CapturedStatement, ...], ...]
    """The other statements of an application, by arm; empty if they do not matter."""
    log_prefix: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepare:
    """Prepare contexts of the study that was begun last."""

    run: str
    number: int
    part: Sequence[Context]
    """The contexts whose data may be kept."""
    contexts: Sequence[KnownContext]


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """Measure blocks of the study that was begun last."""

    run: str
    number: int
    orders: Sequence[BlockOrder]
    left_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Close:
    """Stop all servers of a run that has ended, and remove their data."""

    run: str


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenLoad:
    """Get ready to send load to the external servers of a study."""

    run: str
    versions: Versions
    study: Study
    client: Mapping[str, Any]
    """The properties of the driver's pgbench, which must be the same."""
    most_noise: float | None = None
    """As in Open."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadOpened:
    """A host is ready to send load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SendLoad:
    """Send load to an external server now, until the end of a window."""

    run: str
    workload: PgbenchWorkload
    """The part of this host."""
    uri: str
    """Without a password: each host has its own."""
    settings: tuple[Setting, ...]
    seed: int
    begin_s: float
    """The begin of the window, in seconds since 1970 by the clock of this host."""
    end_s: float
    connect_allowance_s: int
    longest_s: float
    """As in PgbenchLoad."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sent:
    """A host has sent its load, or its load has failed."""

    found: AlignedWindow | None = None
    failure: str = ""


Task = Open | Begin | Prepare | Measure | OpenLoad | SendLoad | Close


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """A host has finished a task."""

    events: Sequence[Event] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class NotOpen:
    """A host does not know the study: it was restarted, or has opened another one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """A host cannot do the task."""

    error: PgversusError
    events: Sequence[Event] = ()
    """The events before the error."""


Reply = Opened | Done | LoadOpened | Sent | NotOpen | Failed


def encoded(message: Task | Reply) -> bytes:
    """Return a message as bytes."""
    return pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)


def decoded_task(data: bytes) -> Task:
    """Return a task. Its sender may run programs on this host in any case."""
    found = pickle.loads(data)  # noqa: S301 - see above
    assert isinstance(found, Task)  # noqa: S101 - the versions are the same
    return found


def decoded_reply(data: bytes) -> Reply:
    """Return the reply of a host, which the driver trusts as the hosts trust the driver."""
    found = pickle.loads(data)  # noqa: S301 - see above
    assert isinstance(found, Reply)  # noqa: S101 - the versions are the same
    return found
