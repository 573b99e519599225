"""Levels that are amounts: how a metric goes over them, as lines with their intervals. What charts are drawn from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.sentences import metric_words
from pgversus.study.build_options import USUAL_BLOCK_SIZE
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.metrics import Metric
from pgversus.study.servers import Release, ServerName, SourceBuild
from pgversus.study.workload import Operation
from pgversus.text.translation import tell

FEWEST_LEVELS = 3
"""Two make no line: the table says it."""
_AMOUNT = re.compile(r"\s*(\d{1,18}(?:\.\d{1,18})?)\s*+(B|kB|MB|GB|TB|us|ms|s|min|h|d)?\s*")
_UNITS = {
    "B": 1.0,
    "kB": 1024.0,
    "MB": 1024.0**2,
    "GB": 1024.0**3,
    "TB": 1024.0**4,
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """A metric on one arm."""

    at: float
    """The amount that its level is: bytes, seconds, or a plain number."""
    label: str
    """The level as people write it."""
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One context."""

    name: str
    """What is fixed in it and differs between the lines; empty for the only line."""
    points: tuple[Point, ...]
    """In ascending order of their amounts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """One chart."""

    title: str
    """The workload, where there are several."""
    factor: str
    """What goes to the right, in words."""
    metric: Metric
    lines: tuple[Line, ...]


def sweeps(answer: StudyAnswer) -> list[Sweep]:
    """One for each workload whose compared levels are three or more amounts; empty where none are."""
    found: dict[tuple[str, str, Metric], list[Line]] = {}
    for one in answer.answers:
        factor, amounts = amounts_of(one.comparison)
        if len(amounts) >= FEWEST_LEVELS:
            levels = dict(one.context.levels)
            title = levels.pop("workload", "")
            name = " ".join(f"{factor}={level}" for factor, level in levels.items())
            for metric in _metrics(one):
                points = tuple(sorted(_points(one, metric, amounts), key=lambda point: point.at))
                if points:
                    found.setdefault((title, factor, metric), []).append(Line(name=name, points=points))
    return [
        Sweep(title=title, factor=factor, metric=metric, lines=tuple(lines))
        for (title, factor, metric), lines in found.items()
    ]


def metric_axis(metric: Metric) -> str:
    """How its axis is called, with the unit."""
    words = metric_words(metric)
    return words if metric is Metric.TPS else tell("{metric} (s)", metric=words)


def _metrics(one: Answer) -> tuple[Metric, ...]:
    is_load = not isinstance(one.comparison.workload, Operation)
    also = (Metric.TPS,) if is_load and one.analysis.metric is not Metric.TPS else ()
    return (one.analysis.metric, *also)


def _points(one: Answer, metric: Metric, amounts: Mapping[int, tuple[float, str]]) -> Iterator[Point]:
    for arm, (at, label) in amounts.items():
        level = one.analysis.levels[arm].get(metric)
        if level is not None:
            yield Point(at=at, label=label, value=level.value, low=level.low, high=level.high)


def amounts_of(comparison: Comparison) -> tuple[str, dict[int, tuple[float, str]]]:
    """What is compared, in words, and each arm's level of it, by arm; nothing where they are no amounts."""
    if len(comparison.factors) != 1:
        return "", {}
    (factor,) = comparison.factors
    if factor == "server":
        return tell("block size"), _block_sizes(comparison.arms)
    found = {}
    for arm in comparison.arms:
        text = next((setting.value for setting in arm.settings if setting.name == factor), "")
        match = _AMOUNT.fullmatch(text)
        if match is None:
            return "", {}
        found[arm.index] = float(match[1]) * _UNITS.get(match[2] or "", 1.0), text
    return factor, found


def _block_sizes(arms: Sequence[Arm]) -> dict[int, tuple[float, str]]:
    """Of servers of which each has another and which are alike in all else; nothing of others."""
    builds = [_as_build(arm.server) for arm in arms]
    sizes = {index: one.options.block_size_kb for index, one in enumerate(builds) if one is not None}
    alike = {replace(one, options=replace(one.options, block_size_kb=USUAL_BLOCK_SIZE)) for one in builds if one}
    if None in builds or len(alike) != 1 or len(set(sizes.values())) != len(arms):
        return {}
    return {index: (1024.0 * kb, f"{kb} kB") for index, kb in sizes.items()}


def _as_build(server: ServerName) -> SourceBuild | None:
    """A release beside builds is built too; None for what is told apart by more than its blocks."""
    if isinstance(server, Release):
        return SourceBuild(source=server)
    return server if isinstance(server, SourceBuild) else None
