"""The captured plans of each arm of a context, and settings that may restore one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from pgversus.text.redaction import code_without_secrets

_ON, _OFF = "on", "off"
_SWITCH = "enable_"
_MEMORY = {"hash_mem_multiplier": 1.0, "work_mem": 64.0}
"""Settings that limit the memory of an operator, with their minimum."""
_LESS, _MORE = (0.9, 0.8, 0.7, 0.6, 0.5, 0.25), (1.1, 1.25, 1.5, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSetting:
    """One setting, as in a session."""

    value: str
    default: str
    """The compiled-in default."""
    is_switch: bool
    """Whether its values are on and off."""


class OverrideReason(StrEnum):
    """Why a candidate is tried."""

    NEW_SWITCH = "new switch"
    """The baseline's version does not have it."""
    CHANGED_DEFAULT = "changed default"
    """The baseline has its default, which is different."""
    OTHER_VALUE = "other value"
    """The value is different on the baseline."""
    SWITCH = "switch"
    """It disables a kind of operator, in any version."""
    MEMORY = "memory"
    """It limits memory, and only one of the arms spilled with it, or in more batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Settings that are tried together."""

    why: OverrideReason
    settings: tuple[tuple[str, str], ...]

    @property
    def text(self) -> str:
        """The settings as text: `enable_hashjoin = off, enable_mergejoin = off`."""
        return ", ".join(f"{name} = {value}" for name, value in self.settings)


class RemainingDifference(StrEnum):
    """Differences that may remain when an old plan is restored."""

    SORTS = "sorts"
    """A sort of rows that are already sorted."""
    BATCHES = "batches"
    """It spills as before, with a different number of batches."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOverride:
    """Settings that restore an old plan."""

    candidate: Candidate
    but_for: RemainingDifference | None = None
    """The remaining difference from the old plan; None if the plan is the old one."""
    also_changes: tuple[str, ...] | None = None
    """Scripts of an upgrade check whose plans these settings change as well; None if unknown."""


def candidates(baseline: Mapping[str, PlannerSetting], contender: Mapping[str, PlannerSetting]) -> Iterator[Candidate]:
    """Yield candidates for the contender: new switches, then settings that differ, then one or two switches.

    Both arguments: settings by name, as in a session of the load.
    """
    for name, found in contender.items():
        if name not in baseline and found.is_switch and found.value == _ON:
            yield Candidate(why=OverrideReason.NEW_SWITCH, settings=((name, _OFF),))
    for name, found in contender.items():
        before = baseline.get(name)
        if before is not None and before.value != found.value:
            is_default = before.value == before.default != found.default
            why = OverrideReason.CHANGED_DEFAULT if is_default else OverrideReason.OTHER_VALUE
            yield Candidate(why=why, settings=((name, before.value),))
    switches = [
        (name, _OFF)
        for name, found in contender.items()
        if name in baseline and name.startswith(_SWITCH) and found.is_switch and found.value == _ON
    ]
    for number in (1, 2):
        yield from (Candidate(why=OverrideReason.SWITCH, settings=some) for some in combinations(switches, number))


def memory_candidates(contender: Mapping[str, PlannerSetting], *, is_less: bool) -> Iterator[Candidate]:
    """Yield memory limits at growing distance, lower or higher: for hashes alone first, then for everything."""
    for name, least in _MEMORY.items():
        found = contender.get(name)
        if found is None:
            continue
        for factor in _LESS if is_less else _MORE:
            value = float(found.value) * factor
            if value >= least:
                shown = f"{value:g}" if least == 1 else str(round(value))
                yield Candidate(why=OverrideReason.MEMORY, settings=((name, shown),))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatementName:
    """The parts by which a reader recognizes a statement; report/plans.py words them."""

    script: str = ""
    """Empty for a plan from a file."""
    number: int
    """In its script, or of the plan in its file, from 1."""
    text: str
    """On one line and without passwords; empty if unknown."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statement:
    """One statement of a script."""

    script: str
    number: int
    """In its script, from 1."""
    text: str
    """With the values of its variables."""
    template: str | None = None
    """Text that the load prepares, with $1 and so on; None if it is not prepared."""
    parameters: tuple[str | None, ...] = ()
    """The values of $1 and so on; None is NULL."""

    @property
    def is_generic(self) -> bool:
        """Whether the values of its parameters are unknown, so that it has only a generic plan."""
        return self.template is not None and not self.parameters

    @property
    def name(self) -> StatementName:
        """The name of the statement."""
        text = " ".join(code_without_secrets(self.text).split())
        return StatementName(script=self.script, number=self.number, text=text)

    @property
    def description(self) -> str:
        """The name for an error message, in English."""
        return f"{self.script}, statement {self.number}: {self.name.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One statement in the JSON format of EXPLAIN."""

    planned: str
    """Without running the statement."""
    run: str
    """With ANALYZE."""
    more_runs: tuple[str, ...] = ()
    """Further executions: a difference in time counts only if it is larger than the spread of these."""


class UncertaintyKind(StrEnum):
    """Why a statement may return different rows from the same data."""

    VOLATILE = "volatile"
    """A volatile function."""
    CLOCK = "clock"
    """The time of execution."""
    SERVER = "server"
    """A catalog, a system column, or a function of the server itself."""
    SAMPLE = "sample"
    """TABLESAMPLE."""
    LIMIT = "limit"
    """A LIMIT without ORDER BY."""
    LIMIT_WITH_TIES = "limit with ties"
    """A LIMIT with an ORDER BY that is not proven to be total."""
    INNER_LIMIT = "inner limit"
    """The same in a subquery or a view."""
    DISTINCT_ON = "distinct on"
    """DISTINCT ON with an order that is not proven to be total."""
    WINDOW_TIES = "window ties"
    """A window function that depends on the order of rows with equal keys."""
    AGGREGATE_ORDER = "aggregate order"
    """An aggregate that keeps the order of its input, without ORDER BY."""
    FLOAT = "float"
    """A sum of floating-point numbers, which depends on their order."""
    EARLIER = "earlier"
    """Values that an earlier statement of the same transaction has written, and that may differ."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Uncertainty:
    """One reason why a statement may return different rows from the same data."""

    kind: UncertaintyKind
    name: str = ""
    """The function, or the clause: `random()`, `LIMIT 10`; empty if the kind says it all."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDigest:
    """Digest of the rows that a statement returned or wrote."""

    rows: int
    digest: str | None
    """Regardless of their order; None if only their number can be compared."""
    in_order: str | None = None
    """In their order; None if the statement is not proven to order them totally, and in older results."""
    uncertainties: tuple[Uncertainty, ...] = ()
    """Why the rows may be different the next time; empty in older results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedStatement:
    """One statement on one server."""

    statement: Statement
    explained: Explained | None
    """None for a statement without a plan, such as SET or CREATE."""
    rows: RowsDigest | None
    """None if it returns nothing to compare, or if not requested."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """All captured statements of a workload on one server."""

    statements: tuple[CapturedStatement, ...]
    statistics: Mapping[str, str]
    """Hash of the statistics from ANALYZE, by table."""
    settings: Mapping[str, PlannerSetting]
    """Planner settings, as in a session of the load."""
    index_keys: Mapping[str, tuple[str, ...]]
    """The keys of each index by its name, as in an ORDER BY that a forward scan fulfills; empty in older results."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPlans:
    """Plans of one arm's statements that auto_explain logged under load."""

    told: int
    """Number of plans in the log."""
    others: int
    """Plans whose operators match no captured plan."""
    example: str | None = None
    """The JSON of one of these."""
    failure: str = ""
    """Why nothing was logged."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedPlans:
    """All plans of a context, whose arms were sent the same statements."""

    arms: tuple[Captured, ...]
    """The baseline first."""
    undone_by: tuple[tuple[PlanOverride | None, ...], ...]
    """For each contender and statement, the settings that restore the baseline's plan or its execution."""
    is_searched: bool = True
    """Whether such settings were searched for."""
    sampled: tuple[SampledPlans, ...] = ()
    """For each arm; empty if not requested."""
