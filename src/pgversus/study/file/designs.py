"""The design of a study, and what it is for operations and for each kind of load."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from pgversus.errors import StudyError
from pgversus.study.choices import DesignChoices, design_of, refuse_two_designs, with_window
from pgversus.study.design import Design
from pgversus.study.file import schema
from pgversus.study.file.problems import Problems
from pgversus.study.file.quantities import quantity
from pgversus.study.file.workloads import NamedLoad, NamedWorkload
from pgversus.study.metrics import JUDGED_BY_NAME, Metric
from pgversus.text.units import parse_duration, parse_pin, parse_share, parse_whole_seconds, parse_window


def choices_of(table: schema.Design | None, problems: Problems, *, seed: int) -> DesignChoices:
    """What the file chooses of its design. seed: where the file has none."""
    table = table or schema.Design()
    choices = DesignChoices(
        metric=JUDGED_BY_NAME[table.metric] if table.metric else None,
        margin=quantity(("design", "margin"), table.margin, parse_share, problems),
        budget_s=quantity(("design", "budget"), table.budget, parse_duration, problems),
        max_blocks=table.max_blocks,
        fixed_blocks=table.blocks,
        window=quantity(("design", "window"), table.window, parse_window, problems),
        rounds=table.windows,
        warm_up_s=quantity(("design", "warm_up"), table.warm_up, parse_whole_seconds, problems),
        pin=quantity(("design", "pin"), table.pin, parse_pin, problems),
        seed=seed if table.seed is None else table.seed,
    )
    try:
        refuse_two_designs(choices)
    except StudyError as error:
        error.what = "blocks fixes the number of blocks, so there is nothing to limit"
        error.found = "blocks with budget or max_blocks"
        error.to_do = "leave blocks out to stop when the answer is known"
        problems.add(("design", "blocks"), error)
        return replace(choices, fixed_blocks=None)
    return choices


@dataclass(frozen=True, slots=True, kw_only=True)
class Designs:
    """The design of every context."""

    of_loads: Mapping[str, Design]
    """By the name of the load."""
    of_operations: Design | None
    """None where there is no operation."""

    def of(self, workload: NamedWorkload, load: NamedLoad) -> Design:
        """That of a context with this workload under this load."""
        if workload.operation is not None and self.of_operations is not None:
            return self.of_operations
        return self.of_loads[load.name]


def designs_for(
    workloads: Iterable[NamedWorkload], loads: Iterable[NamedLoad], choices: DesignChoices, problems: Problems
) -> Designs:
    """The designs of these workloads under these loads; one that cannot be had is left out and is a problem."""
    kinds = {workload.operation is not None for workload in workloads if not workload.is_broken}
    # Where no workload is whole, the metric tells what they were meant to be.
    kinds = kinds or {choices.metric is Metric.TIME}
    return Designs(
        of_operations=_of_operations(choices, problems) if True in kinds else None,
        of_loads=_of_loads(list(loads), choices, problems) if False in kinds else {},
    )


def _of_operations(choices: DesignChoices, problems: Problems) -> Design | None:
    for key, value in (("window", choices.window), ("windows", choices.rounds), ("warm_up", choices.warm_up_s)):
        if value is not None:
            problems.add(
                ("design", key),
                StudyError(
                    "an operation runs once in each block, on a fresh copy: it has neither windows nor a warm-up",
                    slug="study-windows-of-operation",
                    found=key,
                    expected="nothing of windows where a workload is an operation",
                    to_do=f"leave {key} out; loads may have a window of their own in [load]",
                ),
            )
    with problems.catch(("design", "metric"), to_do="leave metric out: of an operation its time is judged"):
        return design_of(replace(choices, window=None, rounds=None, warm_up_s=None), is_operation=True)
    return None


def _of_loads(loads: Sequence[NamedLoad], choices: DesignChoices, problems: Problems) -> Mapping[str, Design]:
    to_do = "leave metric out (under a rate p95 latency is judged), or leave rate out"
    if choices.metric is Metric.TIME:
        to_do = "leave metric out: of a load tps is judged, under a rate p95 latency"
    kinds: dict[bool, Design] = {}
    for is_open_loop in sorted({load.rate is not None for load in loads}):
        with problems.catch(("design", "metric"), to_do=to_do):
            kinds[is_open_loop] = design_of(choices, is_open_loop=is_open_loop)
    kind_of = {load.name: kinds.get(load.rate is not None) for load in loads}
    return {load.name: _of_load(design, load) for load in loads if (design := kind_of[load.name])}


def _of_load(design: Design, load: NamedLoad) -> Design:
    return design if load.window is None else with_window(design, load.window)
