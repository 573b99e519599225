"""Numeric levels: a metric as lines over them, and as a map of two factors.

Every renderer shows these texts, and charts are drawn from them. If colors are available, a map is colored by ratio.
"""

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.sentences import metric_text
from pgversus.report.values import change_texts, uses_factors
from pgversus.report.verdicts import MARKS
from pgversus.stats.analysis import Plateau, plateau
from pgversus.stats.confidence import Verdict
from pgversus.study.build_options import USUAL_BLOCK_SIZE
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.metrics import Metric
from pgversus.study.servers import Release, ServerName, SourceBuild
from pgversus.text.translation import _, listed, together
from pgversus.text.units import percent

FEWEST_LEVELS = 3
"""For two levels the table suffices."""
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
    """The value of a metric on one arm."""

    at: float
    """The numeric value of its level, in bytes or seconds, or dimensionless."""
    label: str
    """The level as written in the study."""
    value: float
    low: float | None
    high: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """The points of one context."""

    name: str
    """Levels that distinguish the lines; empty for a single line."""
    points: tuple[Point, ...]
    """In ascending order of `at`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweep:
    """The lines of one chart."""

    title: str
    """The workload, if there are several."""
    factor: str
    """Title of the horizontal axis."""
    metric: Metric
    lines: tuple[Line, ...]


def sweeps(answer: StudyAnswer) -> list[Sweep]:
    """Return a sweep for each workload with three or more compared numeric levels."""
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
    """Return the title of a metric's axis, with the unit."""
    words = metric_text(metric)
    return words if metric is Metric.TPS else _("{metric} (s)", metric=words)


def _metrics(one: Answer) -> tuple[Metric, ...]:
    return tuple(dict.fromkeys((one.analysis.metric, one.comparison.workload.main_metric)))


def _points(one: Answer, metric: Metric, amounts: Mapping[int, tuple[float, str]]) -> Iterator[Point]:
    for arm, (at, label) in amounts.items():
        found = one.analysis.arm_values[arm].get(metric)
        if found is not None:
            yield Point(at=at, label=label, value=found.value, low=found.low, high=found.high)


def amounts_of(comparison: Comparison) -> tuple[str, dict[int, tuple[float, str]]]:
    """Return the compared factor, and value and text of its level by arm; empty if levels are not numeric.

    Of arms with the same level (A/A), only the first is included.
    """
    if len(comparison.factors) != 1:
        return "", {}
    (factor,) = comparison.factors
    arms = _without_repeats(comparison.arms)
    if factor == "server":
        return _("block size"), _block_sizes(arms)
    found, units = {}, set()
    for arm in arms:
        text = next((setting.value for setting in arm.settings if setting.name == factor), "")
        match = _AMOUNT.fullmatch(text)
        if match is None:
            return "", {}
        amount = float(match[1]) * _UNITS.get(match[2] or "", 1.0)
        found[arm.index] = amount, text
        if amount:
            units.add(match[2] is None)
    # The unit of a number without one depends on the setting.
    return (factor, found) if len(units) == 1 else ("", {})


def _without_repeats(arms: Sequence[Arm]) -> list[Arm]:
    return [
        arm
        for arm in arms
        if not any((one.server, one.settings) == (arm.server, arm.settings) for one in arms[: arm.index])
    ]


def _block_sizes(arms: Sequence[Arm]) -> dict[int, tuple[float, str]]:
    """Return block size and text by arm, if all servers have different block sizes and nothing else differs."""
    builds = {arm.index: _as_build(arm.server) for arm in arms}
    sizes = {index: one.options.block_size_kb for index, one in builds.items() if one is not None}
    alike = {
        replace(one, options=replace(one.options, block_size_kb=USUAL_BLOCK_SIZE)) for one in builds.values() if one
    }
    if len(sizes) < len(arms) or len(alike) != 1 or len(set(sizes.values())) != len(arms):
        return {}
    return {index: (1024.0 * kb, f"{kb} kB") for index, kb in sizes.items()}


def _as_build(server: ServerName) -> SourceBuild | None:
    """Return a server as a build from source, since releases compared with builds are built too; None for others."""
    if isinstance(server, Release):
        return SourceBuild(source=server)
    return server if isinstance(server, SourceBuild) else None


def plateau_sentences(answer: StudyAnswer) -> list[str]:
    """Return a sentence for each context with numeric levels, in the order of the study."""
    return [sentence for one in answer.answers if (sentence := plateau_sentence(one))]


def plateau_sentence(one: Answer) -> str:
    """Return a sentence on the best levels, as far as the intervals show them; empty for non-numeric levels."""
    _unused, amounts = amounts_of(one.comparison)
    if len(amounts) < FEWEST_LEVELS:
        return ""
    ascending = sorted(amounts, key=lambda arm: amounts[arm][0])
    known = [arm for arm in ascending if _is_claimed(one, arm)]
    design = one.comparison.design
    found = plateau(one.blocks, one.analysis.metric, one.rule, known, design.log_margin)
    if found is None:
        return ""
    label = {arm: amounts[arm][1] for arm in ascending}
    sentence = together(
        _found(found, known, label, percent(design.margin)),
        _left_out([label[arm] for arm in ascending if arm not in known]),
    )
    return _("{place}: {sentence}", place=one.context.label, sentence=sentence) if one.context.label else sentence


def _is_claimed(one: Answer, arm: int) -> bool:
    """Return whether an arm has a result: it is not invalid and has trials."""
    is_invalid = arm > 0 and one.analysis.result_of(arm).verdict is Verdict.INVALID
    return not is_invalid and one.analysis.metric in one.analysis.arm_values[arm]


def _found(found: Plateau, known: list[int], label: dict[int, str], margin: str) -> str:
    best = label[found.best]
    if len(known) == 1:
        return ""
    if found.arms == (found.best,):
        return _("{best} is the best: every other level is worse by more than {margin}.", best=best, margin=margin)
    if len(found.arms) == len(known):
        return _(
            "No level has been shown to be more than {margin} worse than {best}, the best on average.",
            best=best,
            margin=margin,
        )
    return _(
        "{levels} are the best: unlike all other levels, none of them has been shown to be more than {margin} worse "
        "than {best}, the best on average.",
        levels=listed(_runs(found.arms, known, label)),
        best=best,
        margin=margin,
    )


def _runs(arms: Sequence[int], known: list[int], label: dict[int, str]) -> Iterator[str]:
    """Yield these levels, three or more neighbors as a range: `4MB`, `64MB to 1GB`."""
    for is_in, group in groupby(known, key=lambda arm: arm in arms):
        run = [label[arm] for arm in group]
        if is_in and len(run) >= FEWEST_LEVELS:
            yield _("{first} to {last}", first=run[0], last=run[-1])
        elif is_in:
            yield from run


def _left_out(labels: list[str]) -> str:
    return _("No result for {levels}.", levels=listed(labels)) if labels else ""


_FEWEST_FACTORS, _FEWEST_COLUMNS = 2, 2
_MOST_COLUMNS = 12
# As many as fit side by side.
_MOST_MAPPED = 1000
"""Maximum number of verdicts."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatCell:
    """The cell of one verdict."""

    text: str
    """The change, with a mark if none is claimed; empty without a ratio."""
    change: str
    """The change without the mark."""
    interval: str
    heat: float
    """ln of the contender's relative speed: positive if faster; 0 without a ratio."""
    verdict: Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class HeatMap:
    """The verdicts on one contender in all contexts."""

    title: str
    """`18.0 vs 15.14, by dead (columns)`."""
    columns: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]
    """The other levels, and a cell for each column; None if not measured."""


def heat_maps(answer: StudyAnswer) -> list[HeatMap]:
    """Return a map for each contender of a study whose contexts differ in enough factors; none with too many verdicts.

    Columns are the levels of the factor with the most levels; the last one if there are several.
    """
    if sum(len(one.analysis.results) for one in answer.answers) > _MOST_MAPPED:
        return []
    levels: dict[str, dict[str, None]] = {}
    for one in answer.answers:
        for factor, level in one.context.levels:
            levels.setdefault(factor, {})[level] = None
    is_operation = any(one.analysis.metric is Metric.TIME for one in answer.answers)
    if len(levels) < _FEWEST_FACTORS and not is_operation:
        # A map with one row would repeat the table of verdicts.
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


def heat_color(cell: HeatCell) -> str:
    """Return `#rrggbb` for a significant difference, green for faster and red for slower; otherwise empty."""
    if cell.verdict not in (Verdict.FASTER, Verdict.SLOWER):
        return ""
    # Full color at twice or half the speed.
    pale = round(220 * (1 - min(1.0, abs(cell.heat) / math.log(2))))
    return f"#{pale:02x}dc{pale:02x}" if cell.heat > 0 else f"#dc{pale:02x}{pale:02x}"


def _rows(
    answers: Sequence[Answer], baseline: str, contender: str, widest: str, columns: Sequence[str]
) -> tuple[tuple[str, tuple[HeatCell | None, ...]], ...]:
    cells: dict[str, dict[str, HeatCell]] = {}
    as_factors = uses_factors(answers)
    for one in answers:
        fixed = dict(one.context.levels)
        column = fixed.pop(widest, "")
        place = " ".join(f"{factor}={level}" for factor, level in fixed.items())
        for result in one.analysis.results:
            labels = (one.comparison.baseline.label, one.comparison.arms[result.contender].label)
            if labels == (baseline, contender):
                cells.setdefault(place, {})[column] = _cell(one, result.contender, as_factors=as_factors)
    return tuple((place, tuple(row.get(column) for column in columns)) for place, row in cells.items())


def _cell(one: Answer, contender: int, *, as_factors: bool) -> HeatCell:
    result, metric = one.analysis.result_of(contender), one.analysis.metric
    ratio, mark = result.ratios.get(metric), MARKS.get(result.verdict, "")
    log = 0.0 if ratio is None else math.log(ratio.value)
    shown = change_texts(ratio, as_factors=as_factors)
    return HeatCell(
        text=f"{mark} {shown.value}".strip(),
        change=shown.value,
        interval=shown.interval,
        heat=log if metric.more_is_better else -log,
        verdict=result.verdict,
    )
