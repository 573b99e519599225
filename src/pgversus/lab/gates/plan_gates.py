"""What plans say against a comparison: other answers, other plans under load, or that nobody could see them."""

from collections.abc import Iterator

from pgversus.lab.explaining.comparing import other_rows
from pgversus.study.captured import CapturedPlans
from pgversus.study.caveats import Caveat
from pgversus.study.comparison import Comparison


def plan_caveats(comparison: Comparison, plans: CapturedPlans | None, not_explained: str) -> Iterator[Caveat]:
    """The gravest first. plans: as captured; not_explained: why there are none although they were asked for."""
    if not_explained:
        yield Caveat(slug="plans-not-captured", text=f"the plans were not captured: {not_explained}")
    if plans is None:
        return
    labels = [arm.label for arm in comparison.arms]
    for arm in comparison.contenders:
        if statements := other_rows(plans, arm.index):
            yield Caveat(
                slug="other-rows",
                arm=arm.index,
                text=f"{arm.label} returns other rows than {labels[0]}, so that the two do not do the same work: "
                f"{'; '.join(statements)}",
            )
    for arm, sampled in zip(comparison.arms, plans.sampled, strict=bool(plans.sampled)):
        if sampled.failure:
            text = f"plans of {arm.label} were not sampled under load: {sampled.failure}"
            yield Caveat(slug="plans-not-sampled", arm=arm.index, text=text)
        elif sampled.others:
            yield Caveat(
                slug="other-plans-under-load",
                arm=arm.index,
                text=f"{sampled.others} of {sampled.told} plans of {arm.label} that were sampled under load are none "
                "of those that were captured",
            )
