import pytest

from pgversus.errors import StudyError
from pgversus.study.choices import DesignChoices, design_of
from pgversus.study.design import Design
from pgversus.study.metrics import JUDGED_OF_LOAD, Metric


def test_without_choices_it_is_the_usual_design() -> None:
    assert design_of(DesignChoices(seed=3), is_open_loop=False) == Design(seed=3)


def test_an_open_loop_is_judged_by_its_tail_and_never_by_tps() -> None:
    design = design_of(DesignChoices(seed=1), is_open_loop=True)
    assert (design.metric, design.margin) == (Metric.LATENCY_P95, 0.05)
    with pytest.raises(StudyError) as caught:
        design_of(DesignChoices(seed=1, metric=Metric.TPS), is_open_loop=True)
    assert caught.value.slug == "study-rate-and-tps"


@pytest.mark.parametrize("metric", JUDGED_OF_LOAD)
def test_what_was_chosen_holds(metric: Metric) -> None:
    choices = DesignChoices(
        seed=1, metric=metric, margin=0.1, budget_s=60.0, max_blocks=9, window_s=3.0, rounds=5, warm_up_s=7.0
    )
    assert design_of(choices, is_open_loop=False) == Design(
        seed=1,
        metric=metric,
        margin=0.1,
        budget_s=60.0,
        max_blocks=9,
        window_s=3.0,
        window_is_given=True,
        rounds=5,
        rounds_are_given=True,
        warm_up_s=7.0,
    )


@pytest.mark.parametrize(("budget_s", "max_blocks"), [(60.0, None), (None, 9), (60.0, 9)])
def test_a_fixed_number_of_blocks_is_not_limited(budget_s: float | None, max_blocks: int | None) -> None:
    assert design_of(DesignChoices(seed=1, fixed_blocks=5), is_open_loop=False).fixed_blocks == 5
    choices = DesignChoices(seed=1, fixed_blocks=5, budget_s=budget_s, max_blocks=max_blocks)
    with pytest.raises(StudyError) as caught:
        design_of(choices, is_open_loop=False)
    assert caught.value.slug == "study-two-designs"
