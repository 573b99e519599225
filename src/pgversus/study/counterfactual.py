"""The comparison that tells what a changed plan accounts for: the contender once more, with the baseline's plans.

Three arms under the same load: the contender with the old plans, the baseline, the contender as it was. From the first
to the third the plans alone differ, from the first to the second everything but the plans.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.workload import PgbenchWorkload, Script

OLD_PLANS, BASELINE_AGAIN, CONTENDER_AGAIN = 0, 1, 2
"""Its arms. The contender with the baseline's plans is what both others are held against."""
MOST_BLOCKS = 8
"""And one look at the end: what is sought is how much, and not only on which side (docs/statistics.md)."""
ARMS, _ARMS_BEFORE = 3, 2
_ROUNDS_OF_QUAD = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanRestoration:
    """What makes a contender plan as the baseline does."""

    settings: tuple[Setting, ...] = ()
    rewrite: Script | None = None
    """The workload in other words, which ask for the same."""

    @property
    def words(self) -> str:
        """`enable_hashjoin = off, enable_mergejoin = off`, or the name of the script."""
        if self.rewrite is not None:
            return self.rewrite.name
        return ", ".join(f"{setting.name} = {setting.value}" for setting in self.settings)


def counterfactual_study(
    study: Study,
    context: Context,
    design: Design,
    contender: int,
    recall: PlanRestoration,
    *,
    blocks: int,
    rounds: int | None = None,
) -> Study:
    """The study of one context that measures a contender, the baseline, and the contender with the baseline's plans.

    design: as it was run, with its windows fitted. Their length stays. rounds: of each block; if None, a third fewer
    than in the design, so that a block of three arms takes about as long as one of two did.
    """
    comparison = context.comparison
    old, new = comparison.baseline, comparison.arms[contender]
    workload = new.workload
    assert isinstance(workload, PgbenchWorkload)  # noqa: S101 - an operation has no plans
    if recall.rewrite is not None:
        workload = replace(workload, scripts=(recall.rewrite,), rewrite=None)
    own = {setting.name: setting for setting in (*new.settings, *recall.settings)}
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
    recalled = tuple(setting.name for setting in recall.settings) + (("workload",) if recall.rewrite else ())
    asked = Comparison(
        arms=arms,
        factors=tuple(dict.fromkeys((*comparison.factors, *recalled))),
        design=replace(
            design,
            fixed_blocks=blocks,
            window_is_given=True,
            rounds=_rounds(design.rounds) if rounds is None else rounds,
            rounds_are_given=True,
        ),
        cache=comparison.cache,
    )
    return replace(
        study,
        name=f"{study.name}: what the plans of {new.label} account for",
        title=f"What the plans of {new.label} account for",
        question=f"What is the part of its plans in the difference between {old.label} and {new.label}?",
        contexts=(Context(number=1, levels=context.levels, comparison=asked),),
        seed=design.seed,
        budget_s=design.budget_s,
        published=None,
        skipped=(),
        metrics=(),
    )


def settings_together(found: Mapping[int, tuple[tuple[str, str], ...]]) -> tuple[Setting, ...] | None:
    """Those of every statement at once; None where two statements would have one setting otherwise.

    found: by statement the settings that bring its plan back.
    """
    together: dict[str, str] = {}
    for settings in found.values():
        for name, value in settings:
            if together.setdefault(name, value) != value:
                return None
    return tuple(Setting(name=name, value=value) for name, value in together.items())


def _rounds(before: int) -> int:
    """An even number, so that each has its mirror; of a single quad one round in a random order is left."""
    return 2 * round(before * _ARMS_BEFORE / ARMS / 2) if before > _ROUNDS_OF_QUAD else 1
