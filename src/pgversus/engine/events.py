"""Events that the hosts of a study report: plain data, which other hosts send over a network."""

from dataclasses import dataclass

from pgversus.errors import PgversusError
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextPrepared:
    """A host can measure a context from now on, or has found out why it cannot."""

    host: str
    context: int
    """Its number."""
    found: Preparation | PgversusError


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockMeasured:
    """A host has measured a block, which is stored before it is used."""

    host: str
    context: int
    block: Block


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFinished:
    """A host has finished its task."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostJoined:
    """A host has become free for its first task."""

    host: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostLost:
    """A host will not finish its task, and its preparations are lost."""

    host: str


Event = ContextPrepared | BlockMeasured | TaskFinished | HostJoined | HostLost
