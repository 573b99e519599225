"""Value objects to JSON and back: what was asked and found is read back as the same objects that were written.

All but secrets: they are hidden where something is written, and again where it is read, since earlier versions did not.
"""

from dataclasses import dataclass, replace
from typing import TypeVar

from pydantic import TypeAdapter

from pgversus.study.comparison import Comparison
from pgversus.study.hidden import code_without_secrets, message_without_secrets
from pgversus.study.hidden_documents import document_without_secrets
from pgversus.study.preparation import Preparation
from pgversus.study.study import Context, StudyFact


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextFact:
    """A context without its number."""

    levels: tuple[tuple[str, str], ...]
    comparison: Comparison


STUDY = TypeAdapter(StudyFact)
CONTEXT = TypeAdapter(ContextFact)
PREPARATION = TypeAdapter(Preparation)
_STUDY = "study"
T = TypeVar("T")


def fact_without_secrets(name: str, text: str) -> str:
    """The JSON of a fact of this name; but for what the study says of itself, the words in it may be of any program."""
    return document_without_secrets(text, code_without_secrets if name == _STUDY else message_without_secrets)


def study_without_secrets(study: StudyFact) -> StudyFact:
    """What is known of a study besides its contexts, as it is stored."""
    return _without_secrets(STUDY, study)


def context_without_secrets(context: Context) -> Context:
    """The same context as it is stored, apart from the URIs of its servers."""
    fact = ContextFact(levels=context.levels, comparison=context.comparison)
    hidden = _without_secrets(CONTEXT, fact)
    return context if hidden is fact else replace(context, levels=hidden.levels, comparison=hidden.comparison)


def _without_secrets(adapter: TypeAdapter[T], value: T) -> T:
    text = adapter.dump_json(value).decode()
    hidden = document_without_secrets(text)
    return value if hidden is text else adapter.validate_json(hidden)
