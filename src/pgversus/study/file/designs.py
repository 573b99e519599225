"""The design of a study, and what it is for each kind of load."""

from collections.abc import Iterable, Mapping
from dataclasses import replace

from pgversus.errors import StudyError
from pgversus.study.choices import DesignChoices, design_of, refuse_two_designs
from pgversus.study.design import Design
from pgversus.study.file import schema
from pgversus.study.file.problems import Problems
from pgversus.study.file.quantities import quantity
from pgversus.study.file.workloads import NamedLoad
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.quantities import parse_duration, parse_share, parse_whole_seconds


def choices_of(table: schema.Design | None, problems: Problems, *, seed: int) -> DesignChoices:
    """What the file chooses of its design. seed: where the file has none."""
    table = table or schema.Design()
    choices = DesignChoices(
        metric=JUDGED_BY_NAME[table.metric] if table.metric else None,
        margin=quantity(("design", "margin"), table.margin, parse_share, problems),
        budget_s=quantity(("design", "budget"), table.budget, parse_duration, problems),
        max_blocks=table.max_blocks,
        fixed_blocks=table.blocks,
        window_s=quantity(("design", "window"), table.window, parse_whole_seconds, problems),
        rounds=table.windows,
        warm_up_s=quantity(("design", "warm_up"), table.warm_up, parse_whole_seconds, problems),
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


def designs_for(loads: Iterable[NamedLoad], choices: DesignChoices, problems: Problems) -> Mapping[str, Design]:
    """A design for each load by its name; those of open loops are left out when they cannot be had."""
    loads = list(loads)
    kinds: dict[bool, Design] = {}
    for is_open_loop in sorted({load.rate is not None for load in loads}):
        with problems.catch(
            ("design", "metric"), to_do="leave metric out (under a rate p95 latency is judged), or leave rate out"
        ):
            kinds[is_open_loop] = design_of(choices, is_open_loop=is_open_loop)
    kind_of = {load.name: kinds.get(load.rate is not None) for load in loads}
    return {load.name: _of_load(design, load) for load in loads if (design := kind_of[load.name])}


def _of_load(design: Design, load: NamedLoad) -> Design:
    if load.window_s is None:
        return design
    return replace(design, window_s=load.window_s, window_is_given=True)
