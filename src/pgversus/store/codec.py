"""Value objects to JSON and back: what was asked and found is read back as the same objects that were written."""

from dataclasses import dataclass

from pydantic import TypeAdapter

from pgversus.study.comparison import Comparison
from pgversus.study.preparation import Preparation
from pgversus.study.study import StudyFact


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFact:
    """A context without its number."""

    levels: tuple[tuple[str, str], ...]
    comparison: Comparison


STUDY = TypeAdapter(StudyFact)
CONTEXT = TypeAdapter(ContextFact)
PREPARATION = TypeAdapter(Preparation)
