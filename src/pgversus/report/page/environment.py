"""Environment and method: servers, their builds, settings, differences, the host, how to reproduce the results."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.methodology import build_text, host_facts, restarts
from pgversus.report.sentences import shortened
from pgversus.report.windows import windows_text
from pgversus.study.workload import Script
from pgversus.text.translation import N_, _, either, ngettext, shortened_list, translate_stored
from pgversus.text.units import percent


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmDifference:
    """A difference between arms other than the compared one."""

    place: str
    """The contexts; empty if the difference applies to all of them."""
    name: str
    values: tuple[tuple[str, str], ...]
    """Label and value of each arm."""
    is_default: bool
    """Whether each value is merely the default of its version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Rows of text."""

    builds: list[tuple[str, str, str, str]]
    """Arm label, build, compiler flags, and SHA-256 of the fetched archive or the server program."""
    differences: list[ArmDifference]
    settings: list[tuple[str, str, str, str]]
    """Contexts, arm, setting made by the study, and value; the contexts are empty if the value applies to all."""
    host: list[tuple[str, str]]


def environment(answer: StudyAnswer) -> Environment:
    """Return the environment of all contexts, each row once."""
    builds = dict.fromkeys(row for one in answer.answers for row in _builds(one))
    differences = _by_place(answer.answers, _differences)
    settings = _by_place(answer.answers, _settings)
    return Environment(
        builds=list(builds),
        differences=sorted(
            (
                ArmDifference(place=place, name=key[1], values=values, is_default=is_default)
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
    """Return each row with its contexts, empty if it applies to all of them."""
    found: dict[Key, dict[Any, dict[str, None]]] = {}
    for one in answers:
        for key, value in rows(one):
            found.setdefault(key, {}).setdefault(value, {})[one.context.label] = None
    return [
        ("" if len(places) == len(answers) else shortened(list(places)), key, value)
        for key, values in found.items()
        for value, places in values.items()
    ]


def _builds(one: Answer) -> Iterator[tuple[str, str, str, str]]:
    for arm, facts in zip(one.comparison.arms, one.arms, strict=True):
        yield arm.label, build_text(facts), facts.flags, facts.sha256 or ""


def _differences(one: Answer) -> Iterator[tuple[Key, tuple[tuple[tuple[str, str], ...], bool]]]:
    labels = [arm.label for arm in one.comparison.arms]
    for found in one.differences:
        yield (
            (found.kind, translate_stored(found.name)),
            (tuple(zip(labels, found.values, strict=True)), found.is_default),
        )


def _settings(one: Answer) -> Iterator[tuple[Key, str]]:
    for arm in one.comparison.arms:
        for setting in arm.settings:
            yield (arm.label, setting.name), setting.value


def _host(one: Answer) -> Iterator[tuple[str, str]]:
    yield from ((name, text) for _unused, name, text in host_facts(one.host))
    yield _("client"), one.client


def method(answer: StudyAnswer) -> list[str]:
    """Return paragraphs on the method; empty if nothing was measured."""
    if not answer.answers:
        return []
    loads = [one for one in answer.answers if not one.comparison.workload.runs_once]
    return [
        _(_BLOCK_OF_OURS if restarts(answer.answers) else _BLOCK_OF_OTHERS),
        *([_windows(loads)] if loads else []),
        *([_(_OPERATION)] if len(loads) < len(answer.answers) else []),
        _(_RATIO),
        _looks(answer),
        _(
            _VERDICTS,
            margin=shortened_list((f"±{percent(one.comparison.design.margin)}" for one in answer.answers), either),
        ),
    ]


_BLOCK_OF_OURS = N_(
    "A block is the unit of evidence. In each block, every arm is started on a fresh copy of the same data and "
    "measured within a short time, in random order. Drift on the host affects all arms of a block alike and cancels "
    "out in their ratio."
)
_BLOCK_OF_OTHERS = N_(
    "A block is the unit of evidence. In each block, every arm is measured within a short time, in random order. "
    "Drift on the host affects all arms of a block alike and cancels out in their ratio. External servers "
    "are neither restarted nor given fresh data, so the chance effects of a single start are present in all "
    "blocks."
)
_OPERATION = N_("In each block, every arm performs the operation once. The client measures the time.")
_RATIO = N_(
    "The ratio is the geometric mean of the per-block ratios (contender / baseline). Its interval is a Student's t "
    "interval over blocks, on the log scale."
)
_VERDICTS = N_(
    "faster, slower: the interval excludes zero difference, so the direction is known. equivalent: the whole "
    "interval lies within the margin of {margin}, which was set in advance. undecided: neither is known; the interval "
    "shows how large a difference is still possible. invalid: trials failed repeatedly, so there is no result."
)


def _windows(loads: Sequence[Answer]) -> str:
    return _(
        "In each block, every arm is measured in {windows} after a warm-up. The windows of the arms alternate in an "
        "order that cancels a steady drift. Windows that follow the same server start share its chance effects, so "
        "they are combined into one value.",
        windows=windows_text(loads),
    )


def _looks(answer: StudyAnswer) -> str:
    rules = [one.comparison.design.stopping_rule for one in answer.answers]
    precision = next((one.comparison.design.precision for one in answer.answers), None)
    if precision is not None:
        return ngettext(
            "The result is checked after each block, and measuring stops as soon as the interval is ±{precision} or "
            "narrower, whatever the verdict. The size of the difference is therefore not overestimated. The chance "
            "that the interval misses the true value is at most 1 in 20, over all checks.",
            "The results are checked after each block, and each contender is measured until its interval is "
            "±{precision} or narrower, whatever the verdict. The sizes of differences are therefore not overestimated. "
            "The chance that any interval misses the true value is at most 1 in 20, over all checks and all {number} "
            "verdicts.",
            answer.study.verdicts,
            precision=percent(precision),
        )
    if not all(rule.looks_once for rule in rules):
        return ngettext(
            "The result is checked after each block, and measuring stops as soon as the verdict is known. The chance "
            "that the interval misses the true value is at most 1 in 20, over all checks.",
            "The results are checked after each block, and each contender is measured until its verdict is known. "
            "The chance that any interval misses the true value is at most 1 in 20, over all checks and all {number} "
            "verdicts.",
            answer.study.verdicts,
        )
    return ngettext(
        "The result is checked once, after {blocks} blocks. The chance that the interval misses the true value is at "
        "most 1 in 20.",
        "The results are checked once, after {blocks} blocks. The chance that any interval misses the true value is "
        "at most 1 in 20, over all {number} verdicts.",
        answer.study.verdicts,
        blocks=shortened_list((str(number) for number in sorted({rule.last_look for rule in rules})), either),
    )


def hashes(answer: StudyAnswer) -> list[tuple[str, str]]:
    """Return the files that load and prepare the data, then the servers by name, each with its SHA-256.

    The SHA-256 of a server is that of the fetched archive or of the server program.
    """
    datasets = [arm.dataset for one in answer.answers for arm in one.comparison.arms]
    files = {(file.path, file.sha256) for one in datasets for file in (*one.setup_files, *one.prepare)}
    return [*sorted(files), *((name, _hash(facts)) for name, facts in sorted(answer.builds.items()))]


def _hash(facts: Any) -> str:
    return str(facts.get("artifact_sha256") or facts.get("postgres_sha256") or "")


def scripts(answer: StudyAnswer) -> list[Script]:
    """Return every script of every load once, without built-in ones, whose text is not available."""
    workloads = (arm.workload for one in answer.answers for arm in one.comparison.arms)
    found = (script for workload in workloads for script in workload.scripts if script.text)
    return list({(script.name, script.text): script for script in found}.values())
