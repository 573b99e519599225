"""What a workload sends and how each arm of a context plans it: EXPLAIN's JSON, kept as the server wrote it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pgversus.study.planner_switches import PlannerSetting, Undoing
from pgversus.text.redaction import code_without_secrets
from pgversus.text.translation import tell


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
        return tell(
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
    undone_by: tuple[tuple[Undoing | None, ...], ...]
    """For each contender, for each statement, the settings with which it is planned or goes as on the baseline."""
    is_searched: bool = True
    """Whether such settings were looked for."""
    sampled: tuple[SampledPlans, ...] = ()
    """Of each arm, where that was asked for."""
