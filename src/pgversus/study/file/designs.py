"""The design of a study, and what it is for each kind of load."""

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from pgversus.errors import StudyError
from pgversus.study.choices import DesignChoices, design_of, refuse_two_designs
from pgversus.study.design import Design
from pgversus.study.file import schema
from pgversus.study.file.problems import Problems
from pgversus.study.file.workloads import NamedLoad
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.quantities import parse_duration, parse_share, parse_whole_seconds


def choices_of(table: schema.Design | None, problems: Problems, *, seed: int) -> DesignChoices:
    """What the file chooses of its design. seed: where the file has none."""
    table = table or schema.Design()
    choices = DesignChoices(
        metric=JUDGED_BY_NAME[table.metric] if table.metric else None,
        margin=_quantity("margin", table.margin, parse_share, problems),
        budget_s=_quantity("budget", table.budget, parse_duration, problems),
        max_blocks=table.max_blocks,
        fixed_blocks=table.blocks,
        window_s=_quantity("window", table.window, parse_whole_seconds, problems),
        rounds=table.windows,
        warm_up_s=_quantity("warm_up", table.warm_up, parse_whole_seconds, problems),
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


def designs_for(loads: Iterable[NamedLoad], choices: DesignChoices, problems: Problems) -> Mapping[bool, Design]:
    """One design for closed loops (False) and one for open loops (True), as far as there are such loads."""
    designs: dict[bool, Design] = {}
    for is_open_loop in sorted({load.rate is not None for load in loads}):
        with problems.catch(
            ("design", "metric"), to_do="leave metric out (under a rate p95 latency is judged), or leave rate out"
        ):
            designs[is_open_loop] = design_of(choices, is_open_loop=is_open_loop)
    return designs


def _quantity(key: str, text: str | None, parse: Callable[[str, str], float], problems: Problems) -> float | None:
    if text is None:
        return None
    try:
        return parse(text, key)
    except StudyError as error:
        # The parser speaks of flags: `budget 15m` there is `budget = "15m"` here.
        error.to_do = re.sub(rf"{key} (\S+)", rf'{key} = "\1"', error.to_do)
        problems.add(("design", key), error)
        return None
