"""Levels that are amounts: how a metric varies over them, as lines and as a map of two factors.

Every renderer shows these texts, and charts are drawn from them; a map is painted by its ratios where there are
colours.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.overview import MARKS
from pgversus.report.sentences import metric_words
from pgversus.stats.analysis import Plateau, plateau
from pgversus.stats.confidence import Verdict
from pgversus.study.build_options import USUAL_BLOCK_SIZE
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.metrics import Metric
from pgversus.study.servers import Release, ServerName, SourceBuild
from pgversus.study.workload import Operation
from pgversus.text.translation import _, listed, together
from pgversus.text.units import change, change_interval

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
    return words if metric is Metric.TPS else _("{metric} (s)", metric=words)


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
        return _("block size"), _block_sizes(comparison.arms)
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


def plateau_sentences(answer: StudyAnswer) -> list[str]:
    """One for each context whose compared levels are amounts, in the order of the study."""
    return [sentence for one in answer.answers if (sentence := plateau_sentence(one))]


def plateau_sentence(one: Answer) -> str:
    """`512MB to 2GB cannot be told apart; 1GB is the best of them.`; empty where levels are no amounts."""
    _unused, amounts = amounts_of(one.comparison)
    if len(amounts) < FEWEST_LEVELS:
        return ""
    ascending = sorted(amounts, key=lambda arm: amounts[arm][0])
    known = [arm for arm in ascending if _is_claimed(one, arm)]
    found = plateau(one.blocks, one.analysis.metric, one.rule, known)
    if found is None:
        return ""
    label = {arm: amounts[arm][1] for arm in ascending}
    told = together(_found(found, known, label), _left_out([label[arm] for arm in ascending if arm not in known]))
    return _("{place}: {sentence}", place=one.context.label, sentence=told) if one.context.label else told


def _is_claimed(one: Answer, arm: int) -> bool:
    """Whether anything is said of an arm: of an invalid one nothing is, and of one without trials nothing is known."""
    is_invalid = arm > 0 and one.analysis.result_of(arm).verdict is Verdict.INVALID
    return not is_invalid and one.analysis.metric in one.analysis.levels[arm]


def _found(found: Plateau, known: list[int], label: dict[int, str]) -> str:
    values = {"best": label[found.best], "first": label[found.first], "last": label[found.last]}
    if found.first == found.last:
        return _("{best} is the best and differs significantly from its neighbours.", **values)
    if (found.first, found.last) == (known[0], known[-1]):
        return _("No level differs significantly from the best, {best}.", **values)
    return _("{first} to {last} do not differ significantly; {best} is the best of them.", **values)


def _left_out(labels: list[str]) -> str:
    return _("No result for {levels}.", levels=listed(labels)) if labels else ""


_FEWEST_FACTORS, _FEWEST_COLUMNS = 2, 2
_MOST_COLUMNS = 12
# More do not fit beside one another.


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """One verdict."""

    text: str
    """The change, with the mark of a verdict that claims none; empty without a ratio."""
    change: str
    """The change alone."""
    interval: str
    heat: float
    """ln of how many times as fast the contender is: above 0 it is faster; 0 without a ratio."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """One contender in all contexts."""

    title: str
    """`18.0 against 15.14, dead to the right`."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    """What else is fixed, and a cell for each column; None where nothing was measured."""


def heat_maps(answer: StudyAnswer) -> list[HeatMap]:
    """One for each contender of a study whose contexts differ in factors; empty where there is nothing to spread out.

    To the right goes the factor with the most levels, of several the last.
    """
    levels: dict[str, dict[str, None]] = {}
    for one in answer.answers:
        for factor, level in one.context.levels:
            levels.setdefault(factor, {})[level] = None
    is_operation = any(one.analysis.metric is Metric.TIME for one in answer.answers)
    if len(levels) < _FEWEST_FACTORS and not is_operation:
        # One row: the table of verdicts says the same.
        return []
    widest = max(levels, key=lambda factor: (len(levels[factor]), list(levels).index(factor)), default=None)
    if widest is None or not _FEWEST_COLUMNS <= len(levels[widest]) <= _MOST_COLUMNS:
        return []
    columns = tuple(levels[widest])
    pairs = dict.fromkeys(
        (one.comparison.baseline.label, arm.label) for one in answer.answers for arm in one.comparison.contenders
    )
    return [
        HeatMap(
            title=_(
                "{contender} vs {baseline}, by {factor} (columns)",
                contender=contender,
                baseline=baseline,
                factor=widest,
            ),
            columns=columns,
            rows=_rows(answer.answers, baseline, contender, widest, columns),
        )
        for baseline, contender in pairs
    ]


def heat_colour(cell: HeatCell) -> str:
    """`#rrggbb` for a difference that is sure, greener the faster and redder the slower; empty for any other."""
    if cell.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    # From twice as fast on, or half as fast, the colour is full.
    pale = round(220 * (1 - min(1.0, abs(cell.heat) / math.log(2))))
    return f"#{pale:02x}dc{pale:02x}" if cell.heat > 0 else f"#dc{pale:02x}{pale:02x}"


def _rows(
    answers: Sequence[Answer], baseline: str, contender: str, widest: str, columns: Sequence[str]
) -> tuple[tuple[str, tuple[HeatCell | None, ...]], ...]:
    cells: dict[str, dict[str, HeatCell]] = {}
    for one in answers:
        fixed = dict(one.context.levels)
        column = fixed.pop(widest, "")
        place = " ".join(f"{factor}={level}" for factor, level in fixed.items())
        for result in one.analysis.results:
            labels = (one.comparison.baseline.label, one.comparison.arms[result.contender].label)
            if labels == (baseline, contender):
                cells.setdefault(place, {})[column] = _cell(one, result.contender)
    return tuple((place, tuple(row.get(column) for column in columns)) for place, row in cells.items())


def _cell(one: Answer, contender: int) -> HeatCell:
    result, metric = one.analysis.result_of(contender), one.analysis.metric
    ratio = result.ratios.get(metric)
    if ratio is None:
        return HeatCell(text=MARKS.get(result.verdict, ""), change="", interval="", heat=0.0, verdict=result.verdict)
    mark = MARKS.get(result.verdict, "")
    log = math.log(ratio.value)
    return HeatCell(
        text=f"{mark} {change(ratio.value)}".strip(),
        change=change(ratio.value),
        interval=change_interval(ratio.low, ratio.high),
        heat=log if metric.more_is_better else -log,
        verdict=result.verdict,
    )
