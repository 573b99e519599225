"""On what it was measured: servers and how they were built, settings, what differs between the arms, the host."""

from collections.abc import Iterator
from dataclasses import dataclass

from pgversus.language import tell
from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.small_print import build_words
from pgversus.report.units import size


@dataclass(frozen=True, slots=True, kw_only=True)
class Environment:
    """Tables whose rows are texts."""

    builds: list[tuple[str, str, str, str]]
    """An arm's label, what it is, its compiler's flags, the SHA-256 of its server program."""
    differences: list[tuple[str, str, str, tuple[tuple[str, str], ...], bool]]
    """Where, its kind, its name, each arm with its value, and whether each merely has its version's default."""
    settings: list[tuple[str, str, str]]
    """Where and of which arm, a setting that the study makes, its value."""
    host: list[tuple[str, str]]


def environment(answer: StudyAnswer) -> Environment:
    """Of all contexts, each row once."""
    builds = dict.fromkeys(row for one in answer.answers for row in _builds(one))
    differences = dict.fromkeys(row for one in answer.answers for row in _differences(one))
    settings = dict.fromkeys(row for one in answer.answers for row in _settings(one))
    return Environment(
        builds=list(builds),
        differences=sorted(differences, key=lambda row: row[4]),
        settings=list(settings),
        host=list(_host(answer.answers[0])) if answer.answers else [],
    )


def _builds(one: Answer) -> Iterator[tuple[str, str, str, str]]:
    for arm, facts in zip(one.comparison.arms, one.arms, strict=True):
        yield arm.label, build_words(facts), facts.flags, facts.sha256 or ""


def _differences(one: Answer) -> Iterator[tuple[str, str, str, tuple[tuple[str, str], ...], bool]]:
    labels = [arm.label for arm in one.comparison.arms]
    for found in one.differences:
        yield "", found.kind, found.name, tuple(zip(labels, found.values, strict=True)), found.is_default


def _settings(one: Answer) -> Iterator[tuple[str, str, str]]:
    for arm in one.comparison.arms:
        for setting in arm.settings:
            yield arm.label, setting.name, setting.value


def _host(one: Answer) -> Iterator[tuple[str, str]]:
    host = one.host
    names = {
        "cpu_model": tell("processor"),
        "cpus_usable": tell("processors"),
        "kernel": tell("kernel"),
        "libc": tell("C library"),
        "file_system": tell("file system"),
        "mount_options": tell("mount options"),
        "transparent_hugepage": tell("transparent huge pages"),
        "governor": tell("frequency governor"),
        "load_average_1min": tell("load when it began"),
    }
    if memory := host.get("memory_bytes"):
        yield tell("memory"), size(memory)
    for key, name in names.items():
        value = host.get(key)
        if value not in (None, ""):
            yield name, f"{value:.2f}" if isinstance(value, float) else str(value)
    yield tell("client"), one.client
