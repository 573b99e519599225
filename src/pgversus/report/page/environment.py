"""On what it was measured: servers and how they were built, settings, what differs between the arms, the host."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.host_facts import host_facts
from pgversus.report.small_print import build_words
from pgversus.text.translation import tell, told_again


@dataclass(frozen=True, slots=True, kw_only=True)
class Differing:
    """Something in which arms differ besides what is compared."""

    place: str
    """The context; empty where it is so in all of them."""
    name: str
    values: tuple[tuple[str, str], ...]
    """Each arm's label with its value."""
    is_default: bool
    """Whether each merely has its own version's default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Rows of texts."""

    builds: list[tuple[str, str, str, str]]
    """An arm's label, what it is, its compiler's flags, the SHA-256 of what was fetched, or of the server program."""
    differences: list[Differing]
    settings: list[tuple[str, str, str, str]]
    """The context, an arm, a setting that the study makes, its value; no context where it is so in all of them."""
    host: list[tuple[str, str]]


def environment(answer: StudyAnswer) -> Environment:
    """Of all contexts, each row once."""
    builds = dict.fromkeys(row for one in answer.answers for row in _builds(one))
    differences = _by_place(answer.answers, _differences)
    settings = _by_place(answer.answers, _settings)
    return Environment(
        builds=list(builds),
        differences=sorted(
            (
                Differing(place=place, name=key[1], values=values, is_default=is_default)
                for place, key, (values, is_default) in differences
            ),
            key=lambda one: one.is_default,
        ),
        settings=[(place, *key, value) for place, key, value in settings],
        host=list(_host(answer.answers[0])) if answer.answers else [],
    )


Key = tuple[str, str]


def _by_place(
    answers: Sequence[Answer], rows: Callable[[Answer], Iterator[tuple[Key, Any]]]
) -> list[tuple[str, Key, Any]]:
    """Each row with its context, or without one where whatever has its key has its value."""
    found: dict[Key, dict[Any, str]] = {}
    for one in answers:
        for key, value in rows(one):
            found.setdefault(key, {}).setdefault(value, one.context.label)
    return [
        (place if len(values) > 1 else "", key, value)
        for key, values in found.items()
        for value, place in values.items()
    ]


def _builds(one: Answer) -> Iterator[tuple[str, str, str, str]]:
    for arm, facts in zip(one.comparison.arms, one.arms, strict=True):
        yield arm.label, build_words(facts), facts.flags, facts.sha256 or ""


def _differences(one: Answer) -> Iterator[tuple[Key, tuple[tuple[tuple[str, str], ...], bool]]]:
    labels = [arm.label for arm in one.comparison.arms]
    for found in one.differences:
        yield (found.kind, told_again(found.name)), (tuple(zip(labels, found.values, strict=True)), found.is_default)


def _settings(one: Answer) -> Iterator[tuple[Key, str]]:
    for arm in one.comparison.arms:
        for setting in arm.settings:
            yield (arm.label, setting.name), setting.value


def _host(one: Answer) -> Iterator[tuple[str, str]]:
    yield from ((name, text) for _, name, text in host_facts(one.host))
    yield tell("client"), one.client
