"""In which language people are told things.

Sentences stand in the code in English, whole and with named places, and are looked up when they are told. Which
language that is belongs to the report that is made, not to each function that words it: it is set once around them.
JSON, CSV, names of verdicts and caveats for programs are never translated.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache, reduce
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files


class Language(StrEnum):
    """Those that there are."""

    ENGLISH = "en"
    JAPANESE = "ja"


_ENGLISH = NullTranslations()
_SPOKEN: ContextVar[tuple[Language, NullTranslations]] = ContextVar("spoken", default=(Language.ENGLISH, _ENGLISH))


@contextmanager
def speaking(language: Language, catalog: NullTranslations | None = None) -> Iterator[None]:
    """Tell everything in this language meanwhile; in English where nobody said.

    catalog: in place of the language's own.
    """
    before = _SPOKEN.set((language, catalog or _catalog(language)))
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def spoken() -> Language:
    """The language of now."""
    return _SPOKEN.get()[0]


def tell(sentence: str, /, **values: object) -> str:
    """A sentence in the language of now, with these values in its places."""
    return _SPOKEN.get()[1].gettext(sentence).format(**values)


def tell_number(one: str, many: str, /, number: int, **values: object) -> str:
    """The same of a number of things, which stands in the place {number}: one sentence for 1, another for all else."""
    return _SPOKEN.get()[1].ngettext(one, many, number).format(number=number, **values)


def told_again(stored: str) -> str:
    """A sentence without places that was stored in English, in the language of now; any other text as it is."""
    return _SPOKEN.get()[1].gettext(stored) if stored else ""


def later(sentence: str) -> str:
    """The sentence itself, to be told later: so constants are found by who collects sentences."""
    return sentence


def listed(parts: Iterable[str]) -> str:
    """Told parts of one sentence, one after another; empty for none."""
    return _joined(later("{first}, {second}"), parts)


def both(parts: Iterable[str]) -> str:
    """The same of things that are meant together."""
    return _joined(later("{first} and {second}"), parts)


def either(parts: Iterable[str]) -> str:
    """The same of things of which one holds at a time."""
    return _joined(later("{first} or {second}"), parts)


def together(*sentences: str) -> str:
    """Told sentences as one paragraph, without those that are empty."""
    return _joined(later("{first} {second}"), filter(None, sentences))


def _joined(joint: str, parts: Iterable[str]) -> str:
    first, *others = tuple(parts) or ("",)
    return reduce(lambda left, right: tell(joint, first=left, second=right), others, first)


@cache
def _catalog(language: Language) -> NullTranslations:
    if language is Language.ENGLISH:
        return _ENGLISH
    with files("pgversus").joinpath("locale", language.value, "LC_MESSAGES", "pgversus.mo").open("rb") as file:
        return GNUTranslations(file)
