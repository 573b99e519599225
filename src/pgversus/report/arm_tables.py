"""Tables with the values of every arm: tps and latencies, times of operations, sizes of relations."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.preparation import RUNNING_SERVER
from pgversus.report.values import mean_text
from pgversus.stats.analysis import times_of
from pgversus.study.comparison import BASELINE, Arm
from pgversus.study.metrics import TAILS, Metric, Quantity, StepTime
from pgversus.text.translation import N_
from pgversus.text.units import latency, significant, size, whole

_SHOWN_LATENCIES = (Metric.LATENCY_MEAN, *TAILS, Metric.LATENCY_MAX)
HEADS = (N_("transactions"), Metric.TPS.label, N_("min"), *(metric.short for metric in _SHOWN_LATENCIES))
"""The columns after the context and the arm; untranslated."""


def arm_value_rows(answer: StudyAnswer) -> list[tuple[str, ...]]:
    """Return a row for each arm of each context with a load, in the order of the study: context, arm, then HEADS.

    Every number is already text, empty if missing.
    """
    return [_arm_values(one, arm) for one in _of_loads(answer) for arm in one.comparison.arms]


def _of_loads(answer: StudyAnswer) -> list[Answer]:
    return [one for one in answer.answers if not one.comparison.workload.runs_once]


def _arm_values(one: Answer, arm: Arm) -> tuple[str, ...]:
    trials = [block.trials[arm.index] for block in one.blocks if block.has(arm.index)]
    least = [trial.latency_min_s for trial in trials if trial.latency_min_s is not None]
    return (
        one.context.label,
        arm.label,
        whole(sum(trial.transactions for trial in trials)),
        mean_text(one, arm.index, Metric.TPS),
        latency(min(least)) if least else "",
        *(mean_text(one, arm.index, metric) for metric in _SHOWN_LATENCIES),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TpsTable:
    """tps of all levels side by side, with a column for each workload, as is usual in articles."""

    workloads: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """The other levels, the arm, then its tps under each workload; empty if not measured."""


def tps_table(answer: StudyAnswer) -> TpsTable | None:
    """Return the table of tps; None for a study with a single workload."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in _of_loads(answer):
        levels = dict(one.context.levels)
        workload = levels.pop("workload", "")
        place = " ".join(f"{factor}={level}" for factor, level in levels.items())
        for arm in one.comparison.arms:
            cells.setdefault((place, arm.label), {})[workload] = mean_text(one, arm.index, Metric.TPS)
    workloads = tuple(dict.fromkeys(workload for row in cells.values() for workload in row))
    if len(workloads) < 2:  # noqa: PLR2004 - see above
        return None
    rows = ((place, arm, *(row.get(name, "") for name in workloads)) for (place, arm), row in cells.items())
    places = list(dict.fromkeys(place for place, _unused in cells))
    return TpsTable(workloads=workloads, rows=tuple(sorted(rows, key=lambda row: places.index(row[0]))))


TIME_HEADS = (N_("trials"), N_("mean"), N_("min"), N_("difference"), N_("ratio"))
TIMES_NOTE = N_(
    "times: means are geometric, over all blocks of an arm; differences and ratios use only the blocks that include "
    "both arms"
)
"""Both are untranslated."""


def time_rows(answer: StudyAnswer) -> list[tuple[str, ...]]:
    """Return a row for each arm of each context with an operation, then for each of several steps.

    A row contains the context, the arm (followed by the step), then TIME_HEADS. Every number is already text, empty if
    missing. The difference and the quotient of the means are relative to the baseline, over the blocks with both arms.
    """
    operations = [one for one in answer.answers if one.comparison.workload.runs_once]
    return [row for one in operations for quantity in times_of(one.comparison) for row in _rows(one, quantity)]


def _rows(one: Answer, quantity: Quantity) -> Iterator[tuple[str, ...]]:
    for arm in one.comparison.arms:
        times = _times(one, quantity, arm.index)
        yield (
            one.context.label,
            f"{arm.label}, {quantity.step}" if isinstance(quantity, StepTime) else arm.label,
            str(len(times)),
            mean_text(one, arm.index, quantity),
            latency(min(times)) if times else "",
            *(("", "") if arm.index == BASELINE else _against(one, quantity, arm.index)),
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

    arms: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    """A relation, then its size on each arm; empty if missing."""


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
                arms=labels,
                rows=tuple(
                    (name.removeprefix("public."), *(_shown(other.get(name)) for other in sizes)) for name in names
                ),
            )
    return list(found.values())


def _differs(base: int, other: int | None) -> bool:
    return other is not None and abs(other - base) > _WORTH_SHOWING * base


def _shown(found: int | None) -> str:
    return "" if found is None else size(found)
