"""A study: a question and all its contexts. A comparison of two servers is the smallest study.

A context fixes every factor except the compared one, whose levels are the arms of one comparison. Each context has its
own blocks and its own decision.
"""

from dataclasses import dataclass
from enum import StrEnum

from pgversus.statements.literals import LIST_MARK
from pgversus.statements.statement import ValueClass
from pgversus.study.build_options import USUAL_MANNER, BuildManner
from pgversus.study.comparison import Comparison
from pgversus.study.servers import ServerName


class StudyKind(StrEnum):
    """The kinds of studies."""

    COMPARISON = "comparison"
    """One comparison, from the command line."""
    STUDY = "study"
    """One or more comparisons, from a study file."""
    UPGRADE_CHECK = "upgrade check"
    """A comparison of versions for each statement of an application."""
    TIMELINE = "timeline"
    """One comparison of consecutive versions, from the command line."""

    @property
    def has_one_context(self) -> bool:
        """Whether a study of this kind is a single comparison."""
        return self in (StudyKind.COMPARISON, StudyKind.TIMELINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """The command line, and the study file that it named."""

    program: str = ""
    """pgversus and its version; empty in results from versions that did not store it."""
    command: str = ""
    """The command line as typed, without passwords; empty when called from a program."""
    file_name: str = ""
    """Name of the study file; empty without one."""
    file_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One comparison of a study, and its position in the study's matrix."""

    number: int
    """Counted from 1 in the order of the study; unchanged when a study is resumed."""
    levels: tuple[tuple[str, str], ...]
    """(factor, level) pairs of the factors that are fixed here; empty if only the compared factor varies."""
    comparison: Comparison
    share: float = 1.0
    """Its share of the load of an application, which decides who gets time if the budget does not suffice for all."""

    @property
    def label(self) -> str:
        """`workload=cte_in load=c4`; empty for the only context of a study."""
        return " ".join(f"{factor}={level}" for factor, level in self.levels)

    def located(self, text: str) -> str:
        """Return the text with the label of this context appended."""
        return f"{text} ({self.label})" if self.label else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A treatment or a setting omitted because a server does not support it and the study allows that."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ApplicationStatement:
    """A subject of an upgrade check: a statement of the application, or the time to plan all of them."""

    name: str
    text: str
    """With $1, $2 and so on in place of constants and parameters, if the source stores it in this form."""
    context: int | None
    """Number of the context that measures it; None if it is left out."""
    calls: int
    """Number of executions in the source."""
    seconds: float
    """Total execution time in the source."""
    obstacle: str
    """The reason why it is left out; empty if it is not."""
    values: tuple[str | None, ...] = ()
    """Values of its parameters with which it is executed; empty if they are unknown or may be secrets."""
    value_class: ValueClass | None = None
    """The class of these values if statistics suggested them; None for values of the application."""
    needs_values: bool = False
    """Whether its values are still unknown; they are chosen once the data is loaded."""
    is_planning: bool = False
    """Whether it is the planning of all statements."""
    volatile_functions: tuple[str, ...] = ()
    """Functions that a query calls and that may write, so that it is rolled back like a statement that writes."""
    rows_per_call: float | None = None
    """Mean number of rows that an execution returns or changes in the source; None if unknown."""

    @property
    def has_list_of_unknown_length(self) -> bool:
        """Whether it is executed with a list whose length is not that of the application."""
        return self.value_class is not None and LIST_MARK in self.text


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMetadata:
    """The properties of a study that are stored and shown in addition to its contexts."""

    name: str
    title: str
    question: str
    seed: int
    verdicts: int
    """Number of verdicts of all contexts, reached or not. They share an error rate."""
    contexts: int
    """Number of contexts."""
    kind: StudyKind = StudyKind.STUDY
    published: str | None = None
    metrics: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()
    statements: tuple[ApplicationStatement, ...] = ()
    """Statements of an upgrade check."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """A complete study, expanded and checked; only its servers and their settings are looked up later."""

    name: str
    """Name for folders and messages: the name of the file or bundled study, with the profile."""
    title: str
    question: str
    contexts: tuple[Context, ...]
    seed: int
    """Seed for everything random in all contexts."""
    budget_s: float
    """Wall-clock budget for the blocks of all contexts together, in seconds."""
    kind: StudyKind = StudyKind.STUDY
    skips_missing_settings: bool = False
    """Whether to skip treatments with a setting that a server lacks, instead of raising an error."""
    carried_settings: frozenset[str] = frozenset()
    """Names of settings from the user's own server. The study's servers need not have them."""
    published: str | None = None
    """The text of the published figures of this study (study/published.py)."""
    skipped: tuple[Skipped, ...] = ()
    metrics: tuple[str, ...] = ()
    """Metrics and counters to show in addition to the metric of the verdict; empty for the default."""
    build_manner: BuildManner = USUAL_MANNER
    """Options of builds from source."""
    file_name: str = ""
    """Name of the study file; empty without one."""
    file_text: str = ""
    statements: tuple[ApplicationStatement, ...] = ()
    """Statements of an upgrade check, largest total time first."""

    @property
    def verdicts(self) -> int:
        """The number of verdicts of the study, which share an error rate."""
        return sum(len(context.comparison.contenders) for context in self.contexts)

    @property
    def metadata(self) -> StudyMetadata:
        """The metadata of the study, without its contexts."""
        return StudyMetadata(
            name=self.name,
            title=self.title,
            question=self.question,
            seed=self.seed,
            verdicts=self.verdicts,
            contexts=len(self.contexts),
            kind=self.kind,
            published=self.published,
            metrics=self.metrics,
            skipped=self.skipped,
            statements=self.statements,
        )

    @property
    def servers(self) -> list[ServerName]:
        """Every compared server, without duplicates."""
        return list(dict.fromkeys(arm.server for context in self.contexts for arm in context.comparison.arms))

    @property
    def treatments(self) -> int:
        """The number of combinations of levels."""
        return sum(len(context.comparison.arms) for context in self.contexts)
