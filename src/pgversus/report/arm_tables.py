"""Tables with the values of every arm: tps and latencies, times of operations, sizes of relations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.preparation import RUNNING_SERVER
from pgversus.stats.analysis import times_of
from pgversus.study.comparison import BASELINE
from pgversus.study.metrics import TAILS, Metric, Quantity, StepTime
from pgversus.text.translation import N_
from pgversus.text.units import latency, significant, size, whole

_SHOWN_LATENCIES = (Metric.LATENCY_MEAN, *TAILS, Metric.LATENCY_MAX)
HEADS = (N_("transactions"), Metric.TPS.label, N_("min"), *(metric.short for metric in _SHOWN_LATENCIES))
"""Untranslated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArmValuesRow:
    """The values of one arm; every number is already text, empty if missing."""

    context: str
    arm: str
    cells: tuple[str, ...]
    """In the order of HEADS."""


def arm_value_rows(answer: StudyAnswer) -> list[ArmValuesRow]:
    """Return a row for each arm of each context with a load, in the order of the study."""
    return [_arm_value_row(one, arm) for one in _of_loads(answer) for arm in range(len(one.comparison.arms))]


def _of_loads(answer: StudyAnswer) -> list[Answer]:
    return [one for one in answer.answers if not one.comparison.workload.runs_once]


def _arm_value_row(one: Answer, arm: int) -> ArmValuesRow:
    trials = [block.trials[arm] for block in one.blocks if block.has(arm)]
    values = one.analysis.arm_values[arm]
    least = [trial.latency_min_s for trial in trials if trial.latency_min_s is not None]
    tps = values.get(Metric.TPS)
    shown = [latency(found.value) if (found := values.get(metric)) else "" for metric in _SHOWN_LATENCIES]
    return ArmValuesRow(
        context=one.context.label,
        arm=one.comparison.arms[arm].label,
        cells=(
            whole(sum(trial.transactions for trial in trials)),
            significant(tps.value, 4) if tps else "",
            latency(min(least)) if least else "",
            *shown,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TpsTable:
    """tps of all levels side by side, with a column for each workload, as is usual in articles."""

    workloads: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    """The other levels, the arm, and its tps under each workload; empty if not measured."""


def tps_table(answer: StudyAnswer) -> TpsTable | None:
    """Return the table of tps; None for a study with a single workload."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in _of_loads(answer):
        levels = dict(one.context.levels)
        workload = levels.pop("workload", "")
        place = " ".join(f"{factor}={level}" for factor, level in levels.items())
        for arm in one.comparison.arms:
            tps = one.analysis.arm_values[arm.index].get(Metric.TPS)
            cells.setdefault((place, arm.label), {})[workload] = significant(tps.value, 4) if tps else ""
    workloads = tuple(dict.fromkeys(workload for row in cells.values() for workload in row))
    if len(workloads) < 2:  # noqa: PLR2004 - see above
        return None
    rows = ((place, arm, tuple(row.get(name, "") for name in workloads)) for (place, arm), row in cells.items())
    places = list(dict.fromkeys(place for place, _unused in cells))
    return TpsTable(workloads=workloads, rows=tuple(sorted(rows, key=lambda row: places.index(row[0]))))


TIME_HEADS = (N_("trials"), N_("mean"), N_("min"), N_("difference"), N_("ratio"))
TIMES_NOTE = N_(
    "times: means are geometric, over all blocks of an arm; differences and ratios use only the blocks that include "
    "both arms"
)
"""Both are untranslated."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TimeRow:
    """The times of one arm, or of one step on it; every number is already text, empty if missing."""

    context: str
    arm: str
    """Followed by the step, if the row is for a step."""
    cells: tuple[str, ...]
    """In the order of TIME_HEADS. The difference of the means and their quotient are relative to the baseline, over
    the blocks with both arms."""


def time_rows(answer: StudyAnswer) -> list[TimeRow]:
    """Return a row for each arm of each context with an operation, then for each of several steps."""
    operations = [one for one in answer.answers if one.comparison.workload.runs_once]
    return [row for one in operations for quantity in times_of(one.comparison) for row in _rows(one, quantity)]


def _rows(one: Answer, quantity: Quantity) -> Iterator[TimeRow]:
    for arm in one.comparison.arms:
        times, mean = _times(one, quantity, arm.index), one.analysis.arm_values[arm.index].get(quantity)
        yield TimeRow(
            context=one.context.label,
            arm=f"{arm.label}, {quantity.step}" if isinstance(quantity, StepTime) else arm.label,
            cells=(
                str(len(times)),
                latency(mean.value) if mean else "",
                latency(min(times)) if times else "",
                *(("", "") if arm.index == BASELINE else _against(one, quantity, arm.index)),
            ),
        )


def _times(one: Answer, quantity: Quantity, arm: int) -> list[float]:
    """Return the times of an arm, one per block."""
    found = (block.trials[arm].value(quantity) for block in one.blocks if block.has(arm))
    return [time for time in found if time is not None]


def _against(one: Answer, quantity: Quantity, arm: int) -> tuple[str, str]:
    """Return difference and ratio relative to the baseline."""
    result = one.analysis.result_of(arm)
    values, ratio = result.paired_values.get(quantity), result.ratios.get(quantity)
    if values is None or ratio is None:
        return "", ""
    seconds = values[1] - values[0]
    return f"{'-' if seconds < 0 else '+'}{latency(abs(seconds))}", significant(ratio.value)


_MOST_SHOWN = 20
"""Maximum number of relations, the largest first."""
_WORTH_SHOWING = 0.005
"""Smallest relative difference in size that is shown: single pages vary with each load."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SizeTable:
    """The sizes of the same relations on each arm; every number is already text."""

    context: str
    """The first context with these data; empty for a single context."""
    arms: tuple[str, ...]
    rows: tuple[tuple[str, tuple[str, ...]], ...]
    """A relation, and its size on each arm; empty if missing."""


def size_tables(answers: Sequence[Answer]) -> list[SizeTable]:
    """Return a table for each set of arms and data whose relations differ in size."""
    found: dict[object, SizeTable] = {}
    for one in answers:
        sizes = [facts.sizes for facts in one.arms if facts.origin != RUNNING_SERVER]
        if len(sizes) < len(one.arms):
            # The contents of an external server do not depend on its build.
            continue
        names = [name for name in sizes[0] if any(_differs(sizes[0][name], other.get(name)) for other in sizes[1:])]
        largest = set(sorted(names, key=lambda name: -sizes[0][name])[:_MOST_SHOWN])
        names = [name for name in names if name in largest]
        labels = tuple(arm.label for arm in one.comparison.arms)
        key = (labels, tuple(tuple(other.get(name) for other in sizes) for name in names))
        if names and key not in found:
            found[key] = SizeTable(
                context=one.context.label,
                arms=labels,
                rows=tuple((_short(name), tuple(_shown(other.get(name)) for other in sizes)) for name in names),
            )
    return list(found.values())


def _differs(base: int, other: int | None) -> bool:
    return other is not None and abs(other - base) > _WORTH_SHOWING * base


def _short(name: str) -> str:
    return name.removeprefix("public.")


def _shown(found: int | None) -> str:
    return "" if found is None else size(found)
