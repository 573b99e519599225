"""`--lang`: in which language an answer is shown; without it that of the locale."""

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

import click

from pgversus.text.translation import Language

Command = TypeVar("Command", bound=Callable[..., Any])
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""In the order in which the C library asks them for the language of messages."""


def language_option(function: Command) -> Command:
    """Add `--lang` to a command, which gets it as `language`."""
    return click.option(
        "--lang",
        "language",
        type=click.Choice([language.value for language in Language]),
        callback=_chosen,
        help="Language of what people read.  [default: that of the locale]",
    )(function)


def _chosen(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Language:
    return Language(value) if value is not None else locale_language(os.environ)


def locale_language(environment: Mapping[str, str]) -> Language:
    """The locale's, where there are sentences in it; else English."""
    text = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
    code = text.partition("_")[0].partition(".")[0].lower()
    return next((language for language in Language if language.value == code), Language.ENGLISH)
