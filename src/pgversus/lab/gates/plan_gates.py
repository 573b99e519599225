"""What plans say against a comparison: other answers, other plans under load, or that nobody could see them."""

from collections.abc import Iterator

from pgversus.lab.explaining.comparing import other_rows
from pgversus.records.plans import CapturedPlans
from pgversus.records.preparation import Caveat
from pgversus.study.comparison import Comparison
from pgversus.text.translation import tell


def plan_caveats(comparison: Comparison, plans: CapturedPlans | None, not_explained: str) -> Iterator[Caveat]:
    """The gravest first. plans: as captured; not_explained: why there are none although they were asked for."""
    if not_explained:
        text = tell("the plans were not captured: {words}", words=not_explained)
        yield Caveat(slug="plans-not-captured", text=text)
    if plans is None:
        return
    labels = [arm.label for arm in comparison.arms]
    for arm in comparison.contenders:
        if statements := other_rows(plans, arm.index):
            yield Caveat(
                slug="other-rows",
                arm=arm.index,
                text=tell(
                    "{contender} returns other rows than {baseline}, so that the two do not do the same work: "
                    "{statements}",
                    contender=arm.label,
                    baseline=labels[0],
                    statements="; ".join(statements),
                ),
            )
    for arm, sampled in zip(comparison.arms, plans.sampled, strict=bool(plans.sampled)):
        if sampled.failure:
            text = tell("plans of {arm} were not sampled under load: {words}", arm=arm.label, words=sampled.failure)
            yield Caveat(slug="plans-not-sampled", arm=arm.index, text=text)
        elif sampled.others:
            yield Caveat(
                slug="other-plans-under-load",
                arm=arm.index,
                text=tell(
                    "{others} of {plans} plans of {arm} that were sampled under load are none of those that were "
                    "captured",
                    others=sampled.others,
                    plans=sampled.told,
                    arm=arm.label,
                ),
            )
