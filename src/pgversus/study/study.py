"""A study: a question and all its contexts. One comparison of two servers is the smallest study there is.

A context holds every factor but the compared one fixed; in it the levels of the compared factor are the arms of one
comparison. Contexts are decided one by one, each by blocks of its own.
"""

from dataclasses import dataclass

from pgversus.study.build_options import USUAL_MANNER, BuildManner
from pgversus.study.comparison import Comparison
from pgversus.study.servers import ServerName


@dataclass(frozen=True, slots=True, kw_only=True)
class Invocation:
    """What was typed, and the file that it named."""

    program: str = ""
    """pgversus and its version; empty in results from before it was kept."""
    command: str = ""
    """As typed into a shell, without passwords; empty where a program asked."""
    file_name: str = ""
    """Of the study file; empty where there was none."""
    file_text: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One comparison of a study, and where in the study's matrix it stands."""

    number: int
    """From 1, in the order of the study; it stays the same when a study is resumed."""
    levels: tuple[tuple[str, str], ...]
    """Factor and level for each factor that is fixed here; empty where nothing but the compared factor varies."""
    comparison: Comparison

    @property
    def label(self) -> str:
        """`workload=cte_in load=c4`; empty for the only context of its study."""
        return " ".join(f"{factor}={level}" for factor, level in self.levels)

    def located(self, text: str) -> str:
        """The text, and for which context of the study it holds."""
        return f"{text} ({self.label})" if self.label else text


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """A treatment that is left out because a server cannot have it, and the study allows that."""

    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyMetadata:
    """What is kept and shown of a study besides its contexts."""

    name: str
    title: str
    question: str
    seed: int
    verdicts: int
    """Of all contexts, answered or not: they share one error."""
    contexts: int
    """How many there are."""
    published: str | None = None
    metrics: tuple[str, ...] = ()
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Study:
    """Everything that is asked, expanded and checked; nothing is looked up any more but servers and their settings."""

    name: str
    """For folders and messages: of the file or the bundled study, with the profile."""
    title: str
    question: str
    contexts: tuple[Context, ...]
    seed: int
    """Of everything random in all contexts."""
    budget_s: float
    """Wall-clock seconds for the blocks of all contexts together."""
    skips_missing_settings: bool = False
    """Whether a setting that a server lacks leaves its treatment out, instead of being an error."""
    published: str | None = None
    """The text of the published figures that belong to this study (study/published.py)."""
    skipped: tuple[Skipped, ...] = ()
    metrics: tuple[str, ...] = ()
    """Metrics and counters of interest besides the metric that is judged; empty for the usual ones."""
    build_manner: BuildManner = USUAL_MANNER
    """In which servers are built that are built from source."""
    file_name: str = ""
    """Of the study file that asks for it; empty where there is none."""
    file_text: str = ""

    @property
    def verdicts(self) -> int:
        """How many verdicts the study gives: they share one error."""
        return sum(len(context.comparison.contenders) for context in self.contexts)

    @property
    def fact(self) -> StudyMetadata:
        """What is known of it without its contexts."""
        return StudyMetadata(
            name=self.name,
            title=self.title,
            question=self.question,
            seed=self.seed,
            verdicts=self.verdicts,
            contexts=len(self.contexts),
            published=self.published,
            metrics=self.metrics,
            skipped=self.skipped,
        )

    @property
    def servers(self) -> list[ServerName]:
        """Every server that is compared, once."""
        return list(dict.fromkeys(arm.server for context in self.contexts for arm in context.comparison.arms))

    @property
    def treatments(self) -> int:
        """How many combinations of levels it has."""
        return sum(len(context.comparison.arms) for context in self.contexts)
