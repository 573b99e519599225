"""The comparison that measures the effect of a changed plan: the contender again, with the baseline's plans.

Three arms run under the same load: the contender with the old plans, the baseline, and the unmodified contender. The
first and the third differ only in their plans, the first and the second in everything except their plans.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import PurePath

from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study, StudyKind
from pgversus.study.workload import Script, loads_of

OLD_PLANS, BASELINE_AGAIN, CONTENDER_AGAIN = 0, 1, 2
"""Indexes of the arms. The contender with the baseline's plans is the arm that the other two are compared with."""
MOST_BLOCKS = 8
"""Analyzed once at the end, because the aim is an estimate, not only a direction (docs/statistics.md)."""
ARMS, _ARMS_BEFORE = 3, 2
_ROUNDS_OF_QUAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRestoration:
    """Changes that make a contender use the baseline's plans."""

    settings: tuple[Setting, ...] = ()
    rewrite: Script | None = None
    """An equivalent script with different SQL."""

    @property
    def text(self) -> str:
        """`enable_hashjoin = off, enable_mergejoin = off`, or the name of the script without folders."""
        if self.rewrite is not None:
            return PurePath(self.rewrite.name).name
        return ", ".join(f"{setting.name} = {setting.value}" for setting in self.settings)


def counterfactual_study(
    study: Study,
    context: Context,
    design: Design,
    contender: int,
    restoration: PlanRestoration,
    *,
    blocks: int,
    rounds: int,
) -> Study:
    """Return the study of one context with three arms: contender, baseline, and contender with the baseline's plans.

    design: the design that was run, with fitted windows, whose length is kept. rounds: rounds per block.
    """
    comparison = context.comparison
    old, new = comparison.baseline, comparison.arms[contender]
    (workload,) = loads_of([new.workload])
    if restoration.rewrite is not None:
        workload = replace(workload, scripts=(restoration.rewrite,), rewrite=None)
    own = {setting.name: setting for setting in (*new.settings, *restoration.settings)}
    arms = (
        replace(
            new,
            index=OLD_PLANS,
            label=f"{new.label} with the plans of {old.label}",
            settings=tuple(own.values()),
            workload=workload,
        ),
        replace(old, index=BASELINE_AGAIN),
        replace(new, index=CONTENDER_AGAIN),
    )
    restored = tuple(setting.name for setting in restoration.settings) + (("workload",) if restoration.rewrite else ())
    restored_comparison = Comparison(
        arms=arms,
        factors=tuple(dict.fromkeys((*comparison.factors, *restored))),
        design=replace(
            design,
            fixed_blocks=blocks,
            precision=None,
            window_is_given=True,
            rounds=rounds,
            rounds_are_given=True,
        ),
        cache=comparison.cache,
    )
    return replace(
        study,
        name=f"{study.name}: effect of the plans of {new.label}",
        title=f"Effect of the plans of {new.label}",
        question=f"How much of the difference between {old.label} and {new.label} is due to changed plans?",
        contexts=(Context(number=1, levels=context.levels, comparison=restored_comparison),),
        seed=design.seed,
        budget_s=design.budget_s,
        published=None,
        skipped=(),
        metrics=(),
        # The arms are not consecutive versions.
        kind=StudyKind.COMPARISON if study.kind is StudyKind.TIMELINE else study.kind,
    )


def settings_together(found: Iterable[tuple[tuple[str, str], ...]]) -> tuple[Setting, ...] | None:
    """Return the settings of all statements combined; None if two statements need different values of one setting.

    found: the settings that restore the plan of each statement.
    """
    together: dict[str, str] = {}
    for settings in found:
        for name, value in settings:
            if together.setdefault(name, value) != value:
                return None
    return tuple(Setting(name=name, value=value) for name, value in together.items())


def rounds_of_three(before: int, *, most: float = math.inf) -> int:
    """Return the number of rounds for which a block of three arms takes no longer than one of two arms with `before`.

    The number is even, so that each round has its mirror, or 1, in random order, for a single quad. most: the number
    of rounds that takes as long according to earlier measurements.
    """
    if before <= _ROUNDS_OF_QUAD:
        return 1
    return max(2, 2 * min(round(before * _ARMS_BEFORE / ARMS / 2), math.floor(min(most, before) / 2)))
