"""Translation: gettext's `_`, `N_` and `ngettext`, with values put into named places.

Sentences stand in the code in English, whole, and are looked up when they are shown. The language belongs to the report
that is rendered, not to each function that words a part of it: it is set once around the rendering. JSON, CSV, and the
names of verdicts and caveats for programs are never translated.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache, reduce
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files


class Language(StrEnum):
    """A language that reports can be shown in."""

    ENGLISH = "en"
    JAPANESE = "ja"


_ENGLISH = NullTranslations()
_SPOKEN: ContextVar[tuple[Language, NullTranslations]] = ContextVar("spoken", default=(Language.ENGLISH, _ENGLISH))


@contextmanager
def use_language(language: Language, catalog: NullTranslations | None = None) -> Iterator[None]:
    """Translate into this language meanwhile; without it, everything is in English.

    catalog: used instead of the language's own.
    """
    before = _SPOKEN.set((language, catalog or _catalog(language)))
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def language_in_use() -> Language:
    """Return the language that is set now."""
    return _SPOKEN.get()[0]


def _(sentence: str, /, **values: object) -> str:
    """Return the sentence in the current language, with these values in its named places."""
    return _SPOKEN.get()[1].gettext(sentence).format(**values)


def ngettext(one: str, many: str, /, number: int, **values: object) -> str:
    """Return the sentence for this number of things, which fills the place {number}."""
    return _SPOKEN.get()[1].ngettext(one, many, number).format(number=number, **values)


def thousands_separator() -> str:
    """Return what separates thousands in the current language."""
    return _("1 000").strip("01")


def translate_stored(stored: str) -> str:
    """Return a sentence without places that was stored in English in the current language; any other text unchanged."""
    return _SPOKEN.get()[1].gettext(stored) if stored else ""


def N_(sentence: str) -> str:  # noqa: N802 - gettext's own name
    """Mark a constant for translation and return it unchanged; `_` translates it where it is shown."""
    return sentence


def listed(parts: Iterable[str]) -> str:
    """Join translated parts as a list: `a, b, c`; empty for none."""
    return _joined(N_("{first}, {second}"), parts)


def both(parts: Iterable[str]) -> str:
    """Join translated parts by `and`."""
    return _joined(N_("{first} and {second}"), parts)


def either(parts: Iterable[str]) -> str:
    """Join translated parts by `or`."""
    return _joined(N_("{first} or {second}"), parts)


def together(*sentences: str) -> str:
    """Join translated sentences to one paragraph, without the empty ones."""
    return _joined(N_("{first} {second}"), filter(None, sentences))


def _joined(joint: str, parts: Iterable[str]) -> str:
    first, *others = tuple(parts) or ("",)
    return reduce(lambda left, right: _(joint, first=left, second=right), others, first)


@cache
def _catalog(language: Language) -> NullTranslations:
    if language is Language.ENGLISH:
        return _ENGLISH
    with files("pgversus").joinpath("locale", language.value, "LC_MESSAGES", "pgversus.mo").open("rb") as file:
        return GNUTranslations(file)
