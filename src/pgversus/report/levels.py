"""Every arm under a load in absolute numbers: count, tps, and latencies from the shortest to the longest."""

from dataclasses import dataclass

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.study.metrics import Metric
from pgversus.study.workload import Operation
from pgversus.text.translation import later
from pgversus.text.units import latency, significant

HEADS = (later("transactions"), "tps", later("min"), later("mean"), "p95", "p99", later("max"))
"""To be told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelRow:
    """One arm; every number is text already, empty where there is none."""

    context: str
    arm: str
    cells: tuple[str, ...]
    """In the order of HEADS."""


def level_rows(answer: StudyAnswer) -> list[LevelRow]:
    """A row for each arm of each context that was measured under a load, in the order of the study."""
    return [_row(one, arm) for one in _of_loads(answer) for arm in range(len(one.comparison.arms))]


def _of_loads(answer: StudyAnswer) -> list[Answer]:
    return [one for one in answer.answers if not isinstance(one.comparison.workload, Operation)]


def _row(one: Answer, arm: int) -> LevelRow:
    trials = [block.trials[arm] for block in one.blocks if block.has(arm)]
    levels = one.analysis.levels[arm]
    least = [trial.latency_min_s for trial in trials if trial.latency_min_s is not None]
    tps = levels.get(Metric.TPS)
    latencies = (Metric.LATENCY_MEAN, Metric.LATENCY_P95, Metric.LATENCY_P99, Metric.LATENCY_MAX)
    shown = [latency(found.value) if (found := levels.get(metric)) else "" for metric in latencies]
    return LevelRow(
        context=one.context.label,
        arm=one.comparison.arms[arm].label,
        cells=(
            str(sum(trial.transactions for trial in trials)),
            significant(tps.value, 4) if tps else "",
            latency(min(least)) if least else "",
            *shown,
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class TpsTable:
    """tps of each level beside that of the others: a column for each workload, as such studies are written up."""

    workloads: tuple[str, ...]
    rows: tuple[tuple[str, str, tuple[str, ...]], ...]
    """What else is fixed, the arm, and its tps under each workload; empty where it was not measured."""


def tps_table(answer: StudyAnswer) -> TpsTable | None:
    """None for a study that has no second workload beside which to put the first."""
    cells: dict[tuple[str, str], dict[str, str]] = {}
    for one in _of_loads(answer):
        levels = dict(one.context.levels)
        workload = levels.pop("workload", "")
        place = " ".join(f"{factor}={level}" for factor, level in levels.items())
        for arm in one.comparison.arms:
            tps = one.analysis.levels[arm.index].get(Metric.TPS)
            cells.setdefault((place, arm.label), {})[workload] = significant(tps.value, 4) if tps else ""
    workloads = tuple(dict.fromkeys(workload for row in cells.values() for workload in row))
    if len(workloads) < 2:  # noqa: PLR2004 - see above
        return None
    rows = ((place, arm, tuple(row.get(name, "") for name in workloads)) for (place, arm), row in cells.items())
    places = list(dict.fromkeys(place for place, _ in cells))
    return TpsTable(workloads=workloads, rows=tuple(sorted(rows, key=lambda row: places.index(row[0]))))
