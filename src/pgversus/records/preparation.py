"""What is known of a context once its arms are loaded and its load has been tried; caveats."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from pgversus.records.plans import CapturedPlans
from pgversus.study.design import Design
from pgversus.text.translation import N_, _


@dataclass(frozen=True, slots=True, kw_only=True)
class Caveat:
    """A reason to trust a result less, shown beside it."""

    slug: str
    """Stable name for programs, such as mixed-builds."""
    text: str
    """One sentence for people: what was seen, and on which arms."""
    arm: int | None = None
    """Index of the only contender it concerns; None when it concerns every verdict."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something in which the arms differ besides what the user asked to compare."""

    kind: str
    """setting, build, database or index."""
    name: str
    """The setting's or property's own name."""
    values: tuple[str, ...]
    """One value for each arm, in the order of the arms; an empty text where the arm lacks it."""
    is_default: bool
    """True when each arm merely has its version's own default."""


_LEAST_PATIENCE_S, _TIMES_AS_SLOW = 60.0, 20

_SHARE_OF_FIRST_LOAD = 4
# Of a slow arm a block holds two windows of three transactions, and no look is taken before the fourth block.
_LEAST_FIXED_PATIENCE_S = 15 * 60.0
# No budget ends a fixed number of blocks, so that it says little of how slow a transaction may be.

RUNNING_SERVER = "running server"
"""The origin of an arm that somebody else runs."""
_ORIGINS = {
    RUNNING_SERVER: N_("running server"),
    "bin directory": N_("bin directory"),
    "source": N_("source"),
}
"""In words; others are names."""


def origin_words(origin: str) -> str:
    """Where a server came from, as people are told it."""
    return _(_ORIGINS[origin]) if origin in _ORIGINS else origin


@dataclass(frozen=True, slots=True, kw_only=True)
class BuiltFrom:
    """What a build of ours was made from, and how."""

    source: str
    """In words: a tarball, a tree, a commit."""
    source_sha256: str
    checked: str | None
    """Against what the checksum of a tarball was held; None where none is published."""
    commit: str | None
    """In full; of a tree with changes, the commit that they were made on."""
    is_changed: bool
    """Whether the tree had changes that are in no commit."""
    options: tuple[str, ...]
    """As they stood behind the server's name: blocksize=16."""
    profile: str
    system: str
    """configure or meson."""
    diff_stat: str | None = None
    """What git says has changed since the baseline's commit; None where they are not of one repository."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmFacts:
    """What an arm turned out to be."""

    version: str
    """server_version as the server says it."""
    origin: str
    """wheel, zonky, bin directory, or running server."""
    compiler: str
    flags: str
    """CFLAGS; empty where the server does not tell."""
    sha256: str | None
    """Of the artifact that the build came from."""
    data: str = ""
    """Hash over names, rows and digests of all its tables: equal data have equal hashes, also days later."""
    compiled_in: Mapping[str, str] = field(default_factory=dict)
    """What the running server says of its build: sizes of blocks and segments, debug_assertions, CONFIGURE."""
    built_from: BuiltFrom | None = None
    """Of a build from source."""
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each table and index, as they were loaded."""


def first_patience_s(design: Design, contexts: int) -> float:
    """How long the first load is waited for beyond its length, of which nobody knows yet how slow it is.

    A quarter of the context's equal part of the budget: a transaction that takes longer leaves no time for an answer.
    """
    least_s = _LEAST_PATIENCE_S if design.fixed_blocks is None else _LEAST_FIXED_PATIENCE_S
    return min(design.budget_s, max(least_s, design.budget_s / contexts / _SHARE_OF_FIRST_LOAD))


@dataclass(frozen=True, slots=True, kw_only=True)
class Preparation:
    """The end of preparing a context: from here on nothing of it changes."""

    design: Design
    """With windows fitted to the load."""
    arms: tuple[ArmFacts, ...]
    differences: tuple[Difference, ...]
    writes: bool
    """Whether the first load changed rows, so that every block needs fresh data."""
    connect_allowance_s: int
    """Whole seconds by which each run of pgbench is longer, because its -T begins before its clients are connected."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients in the first load."""
    longest_transaction_s: float = 0.0
    """The slowest transaction of the first load on any arm."""
    plans: CapturedPlans | None = None
    """Kept in tables of their own; None where there are none."""
    not_explained: str = ""
    """Why there are none although they were asked for."""

    @property
    def patience_s(self) -> float:
        """Beyond its own length, how long a window is waited for before it is given up as one that hangs.

        Long enough for a window that is twenty times as slow as anything seen, and never the budget of all contexts.
        """
        seen_s = max(self.design.window_s, self.longest_transaction_s)
        return min(self.design.budget_s, max(_LEAST_PATIENCE_S, _TIMES_AS_SLOW * seen_s))
