"""The captured plans of each arm of a context, and the settings that may restore one."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import combinations

from pgversus.text.redaction import code_without_secrets
from pgversus.text.translation import _

_ON, _OFF = "on", "off"
_SWITCH = "enable_"
_MEMORY = {"hash_mem_multiplier": 1.0, "work_mem": 64.0}
"""What bounds the memory of an operator, with the least value that it may have."""
_LESS, _MORE = (0.9, 0.8, 0.7, 0.6, 0.5, 0.25), (1.1, 1.25, 1.5, 2.0, 4.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannerSetting:
    """One, as a session has it."""

    value: str
    default: str
    """Compiled in."""
    is_switch: bool
    """On or off."""


class OverrideReason(StrEnum):
    """Why something is tried."""

    NEW_SWITCH = "new switch"
    """The baseline's version does not have it."""
    CHANGED_DEFAULT = "changed default"
    """Its default is another one there."""
    OTHER_VALUE = "other value"
    """It is set otherwise there."""
    SWITCH = "switch"
    """It forbids a kind of operator, in whatever version."""
    MEMORY = "memory"
    """It bounds memory, of which another version needs more or less for the same rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """Settings that are tried together."""

    why: OverrideReason
    settings: tuple[tuple[str, str], ...]

    @property
    def words(self) -> str:
        """`enable_hashjoin = off, enable_mergejoin = off`."""
        return ", ".join(f"{name} = {value}" for name, value in self.settings)


class RemainingDifference(StrEnum):
    """What may be left of a difference when an old plan is back."""

    SORTS = "sorts"
    """Of rows that are in order anyway."""
    BATCHES = "batches"
    """It spills as it did, in other portions."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanOverride:
    """What brings an old plan back."""

    candidate: Candidate
    but_for: RemainingDifference | None = None
    """What still tells it from the old plan; None where nothing does."""


def candidates(baseline: Mapping[str, PlannerSetting], contender: Mapping[str, PlannerSetting]) -> Iterator[Candidate]:
    """What to try on the contender: its new switches, then what is set otherwise, then switches, one and two at once.

    Both: settings by name, as a session of the load has them.
    """
    for name, found in contender.items():
        if name not in baseline and found.is_switch and found.value == _ON:
            yield Candidate(why=OverrideReason.NEW_SWITCH, settings=((name, _OFF),))
    for name, found in contender.items():
        before = baseline.get(name)
        if before is not None and before.value != found.value:
            why = OverrideReason.CHANGED_DEFAULT if before.default != found.default else OverrideReason.OTHER_VALUE
            yield Candidate(why=why, settings=((name, before.value),))
    switches = [
        (name, _OFF)
        for name, found in contender.items()
        if name in baseline and name.startswith(_SWITCH) and found.is_switch and found.value == _ON
    ]
    for number in (1, 2):
        yield from (Candidate(why=OverrideReason.SWITCH, settings=some) for some in combinations(switches, number))


def memory_candidates(contender: Mapping[str, PlannerSetting], *, is_less: bool) -> Iterator[Candidate]:
    """Bounds of memory that are a little lower and then much, or higher: hashes alone first, then everything."""
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
class Statement:
    """One of a script."""

    script: str
    number: int
    """In its script, from 1."""
    text: str
    """With its variables filled."""
    template: str | None = None
    """As pgbench prepares it, with $1 and so on in the place of variables; None where it is not prepared."""
    parameters: tuple[str, ...] = ()
    """What $1 and so on stand for."""

    @property
    def words(self) -> str:
        """Which one it is, and what it says, on one line without passwords."""
        return _(
            "{script}, statement {number}: {text}",
            script=self.script,
            number=self.number,
            text=" ".join(code_without_secrets(self.text).split()),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Explained:
    """One statement, as EXPLAIN's JSON tells it."""

    planned: str
    """Without running it."""
    run: str
    """With ANALYZE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RowsDigest:
    """What a statement returned, whatever the order of its rows."""

    rows: int
    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedStatement:
    """One statement on one server."""

    statement: Statement
    explained: Explained | None
    """None for one that has no plan: SET, CREATE and their like."""
    rows: RowsDigest | None
    """None where it returns nothing to compare, or nobody asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Captured:
    """All of a workload on one server."""

    statements: tuple[CapturedStatement, ...]
    statistics: Mapping[str, str]
    """By table a hash over what ANALYZE has found."""
    settings: Mapping[str, PlannerSetting]
    """What decides how statements are planned, as a session of the load has it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledPlans:
    """What auto_explain told of one arm's statements while its load ran."""

    told: int
    others: int
    """Those whose operators are in no plan that was captured."""
    example: str | None = None
    """The JSON of one of these."""
    failure: str = ""
    """Why nothing was told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CapturedPlans:
    """All of a context, whose arms were sent the same statements."""

    arms: tuple[Captured, ...]
    """The baseline first."""
    undone_by: tuple[tuple[PlanOverride | None, ...], ...]
    """For each contender, for each statement, the settings with which it is planned or goes as on the baseline."""
    is_searched: bool = True
    """Whether such settings were looked for."""
    sampled: tuple[SampledPlans, ...] = ()
    """Of each arm, where that was asked for."""
