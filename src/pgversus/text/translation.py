"""Translation: gettext's `_`, `N_` and `ngettext`, with values inserted at named places.

The code contains whole sentences in English, which are translated when they are shown. The language belongs to the
report that is rendered, not to each function that writes a part of it, so it is set once around the rendering. JSON,
CSV, and the names of verdicts and caveats for programs are never translated.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from functools import cache, reduce
from gettext import GNUTranslations, NullTranslations
from importlib.resources import files
from string import Formatter


class Language(StrEnum):
    """A language that reports can be shown in."""

    ENGLISH = "en"
    JAPANESE = "ja"


_UNSPACED = frozenset({Language.JAPANESE})
"""Languages that write no spaces between words."""
_TIGHT = re.compile(r"[\u3001\u3002\u300c\u300d\uff08\uff09]")
"""Comma, full stop, quotation marks and parentheses of full width, which include their space."""
_WIDE = re.compile(r"[\u3005-\u3007\u3041-\u30ff\u3400-\u9fff]")
_MOST_LISTED = 8
_ENGLISH = NullTranslations()
_SPOKEN: ContextVar[tuple[Language, NullTranslations]] = ContextVar("spoken", default=(Language.ENGLISH, _ENGLISH))


@contextmanager
def use_language(language: Language, catalog: NullTranslations | None = None) -> Iterator[None]:
    """Translate into this language within the block; elsewhere, everything is in English.

    catalog: used instead of the language's own.
    """
    before = _SPOKEN.set((language, catalog or _catalog(language)))
    try:
        yield
    finally:
        _SPOKEN.reset(before)


def language_in_use() -> Language:
    """Return the current language."""
    return _SPOKEN.get()[0]


def _(sentence: str, /, **values: object) -> str:
    """Return the sentence in the current language, with these values in its named places."""
    return _with_values(_SPOKEN.get()[1].gettext(sentence), values)


def ngettext(one: str, many: str, /, number: int, **values: object) -> str:
    """Return the singular or plural sentence for a number, which is inserted at {number}."""
    return _with_values(_SPOKEN.get()[1].ngettext(one, many, number), {**values, "number": number})


def _with_values(sentence: str, values: Mapping[str, object]) -> str:
    return _spaced(sentence, values) if language_in_use() in _UNSPACED else sentence.format(**values)


def _spaced(sentence: str, values: Mapping[str, object]) -> str:
    """Insert values into a Japanese sentence, in which spaces only separate Latin letters or digits from other text."""
    text = ""
    for literal, name, _format, _conversion in Formatter().parse(sentence):
        between = literal[1:] if literal.startswith(" ") and _is_tight(text[-1:], literal[1:2]) else literal
        text += between
        if name is not None:
            value = str(values[name])
            if between.endswith(" ") and _is_tight(text[-2:-1], value[:1]):
                text = text[:-1]
            text += value
    return text


def _is_tight(left: str, right: str) -> bool:
    """Return whether these characters have no space between them."""
    has_brackets = bool(_TIGHT.fullmatch(left) or _TIGHT.fullmatch(right))
    return has_brackets or bool(_WIDE.fullmatch(left) and _WIDE.fullmatch(right))


def thousands_separator() -> str:
    """Return the thousands separator of the current language."""
    return _("1 000").strip("01")


def translate_stored(stored: str) -> str:
    """Translate a sentence without places that was stored in English; return any other text unchanged."""
    return _SPOKEN.get()[1].gettext(stored) if stored else ""


def N_(sentence: str) -> str:  # noqa: N802 - gettext's own name
    """Mark a constant for translation and return it unchanged; `_` translates it where it is shown."""
    return sentence


def listed(parts: Iterable[str]) -> str:
    """Join translated parts as a list: `a, b, c`; empty for none."""
    return _joined(N_("{first}, {second}"), parts)


def shortened_list(texts: Iterable[str], joined: Callable[[Iterable[str]], str] = listed) -> str:
    """Return the distinct texts in order, limited to the first ones."""
    different = list(dict.fromkeys(texts))
    first, rest = joined(different[:_MOST_LISTED]), len(different) - _MOST_LISTED
    return _("{first} and {rest} more", first=first, rest=rest) if rest > 0 else first


def both(parts: Iterable[str]) -> str:
    """Join translated parts by `and`."""
    return _joined(N_("{first} and {second}"), parts)


def either(parts: Iterable[str]) -> str:
    """Join translated parts by `or`."""
    return _joined(N_("{first} or {second}"), parts)


def together(*sentences: str) -> str:
    """Join translated sentences into one paragraph, without the empty ones."""
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
