"""The properties of a context once its arms are loaded and its load has been tried."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from pgversus.records.plans import CapturedPlans
from pgversus.study.design import Design
from pgversus.text.translation import N_, _


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """A difference between the arms besides the requested one."""

    kind: str
    """setting, build, database, index or table."""
    name: str
    """The name of the setting or property."""
    values: tuple[str, ...]
    """One value for each arm, in order (rows of a table); an empty text if the arm lacks it."""
    is_default: bool
    """True if each arm merely has its version's own default."""


_BLOCK_SIZE = re.compile(r"[1-9][0-9]{0,8}")
_LEAST_PATIENCE_S, _TIMES_AS_SLOW = 60.0, 20

_SHARE_OF_FIRST_LOAD = 4
# A block has two windows of three transactions of a slow arm, and the first look is after the fourth block.
_LEAST_FIXED_PATIENCE_S = 15 * 60.0
# No budget ends a fixed number of blocks, so the budget hardly limits how slow a transaction may be.

RUNNING_SERVER = "running server"
"""The origin of an external server."""
_ORIGINS = {
    RUNNING_SERVER: N_("external server"),
    "bin directory": N_("bin directory"),
    "source": N_("source"),
}
"""Origins with a text of their own; other origins are names."""


def origin_text(origin: str) -> str:
    """Return the origin of a server as shown to people."""
    return _(_ORIGINS[origin]) if origin in _ORIGINS else origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildRecord:
    """The inputs of a managed build."""

    source: str
    """Text that names the source: a tarball, a tree, a commit."""
    source_sha256: str
    checked: str | None
    """The source of the checksum that a tarball was verified against; None if none is published."""
    commit: str | None
    """Full hash; for a changed tree, the commit that the changes are based on."""
    is_changed: bool
    """Whether the tree had uncommitted changes."""
    options: tuple[str, ...]
    """Build options, in the form that follows the server's name: blocksize=16."""
    profile: str
    system: str
    """configure or meson."""
    diff_stat: str | None = None
    """Output of git diff --stat since the baseline's commit; None if they are from different repositories."""


DATABASE_SETTINGS, DATABASE_LOCALE = "settings of the database", "locale of the database"
"""Items of a dump that are no objects."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreProblem:
    """A part of a dump that a server did not accept."""

    item: str
    """The object, or the line of a dump in plain text."""
    message: str
    """The server's message."""
    is_setting: bool
    """Whether it is only a setting that the server does not know, which a newer pg_dump writes into every dump."""
    table: str | None = ""
    """The table of which it is a part (an index, a constraint, the rows), without its schema.

    Empty if it is not a part of a table; None if that is unknown.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """The properties of an arm."""

    version: str
    """server_version as the server reports it."""
    origin: str
    """wheel, zonky, source, bin directory, or running server."""
    compiler: str
    flags: str
    """CFLAGS; empty if the server does not report them."""
    sha256: str | None
    """SHA-256 of the artifact that the build came from."""
    data: str = ""
    """Hash of names, rows and digests of all its tables: equal data have equal hashes, even days later."""
    compiled_in: Mapping[str, str] = field(default_factory=dict)
    """Build properties that the running server reports: block and segment sizes, debug_assertions, CONFIGURE."""
    built_from: BuildRecord | None = None
    """For a build from source."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each table and index after loading."""
    not_restored: tuple[RestoreProblem, ...] = ()
    """Parts of a dump that the server rejected."""

    @property
    def block_bytes(self) -> int | None:
        """Size of its blocks of data; None for older results that did not record it."""
        found = self.compiled_in.get("block_size", "")
        return int(found) if _BLOCK_SIZE.fullmatch(found) else None


def first_patience_s(design: Design, contexts: int) -> float:
    """Return how long to wait for the first load beyond its length; its speed is still unknown.

    A quarter of the context's equal part of the budget: a slower transaction would leave no time for an answer.
    """
    least_s = _LEAST_FIXED_PATIENCE_S if design.stopping_rule.looks_once else _LEAST_PATIENCE_S
    return min(design.budget_s, max(least_s, design.budget_s / contexts / _SHARE_OF_FIRST_LOAD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The properties of a context at the end of its preparation, which are final."""

    design: Design
    """With windows fitted to the load."""
    arms: tuple[ArmFacts, ...]
    differences: tuple[Difference, ...]
    writes: bool
    """Whether the first load changed rows, so that every block needs fresh data."""
    connect_allowance_s: int
    """Whole seconds added to each run of pgbench, because its -T begins before its clients are connected."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients in the first load."""
    longest_transaction_s: float = 0.0
    """The slowest transaction of the first load on any arm."""
    plans: CapturedPlans | None = None
    """Stored in separate tables; None without any."""
    not_explained: str = ""
    """Why requested plans are missing."""
    unchecked_settings: str = ""
    """Why the requested settings could not be checked during a script; empty if they were."""

    @property
    def patience_s(self) -> float:
        """Seconds to wait for a window beyond its length before treating it as hanging.

        Long enough for a window twenty times as slow as anything observed, but never more than the whole budget.
        """
        seen_s = max(self.design.window_s, self.longest_transaction_s)
        return min(self.design.budget_s, max(_LEAST_PATIENCE_S, _TIMES_AS_SLOW * seen_s))
