from typing import Any

import pytest

from pgversus.errors import StudyError
from pgversus.study.design import Design, DesignChoices, WindowKind, design_of
from pgversus.study.metrics import JUDGED, Metric
from pgversus.text.units import WindowLength

THREE_SECONDS = WindowLength(seconds=3.0)


def test_without_choices_the_design_is_the_default() -> None:
    assert design_of(DesignChoices(seed=3), is_open_loop=False) == Design(seed=3)


def test_an_open_loop_is_compared_by_tail_latency_not_tps() -> None:
    design = design_of(DesignChoices(seed=1), is_open_loop=True)
    assert (design.metric, design.margin) == (Metric.LATENCY_P95, 0.05)
    with pytest.raises(StudyError) as caught:
        design_of(DesignChoices(seed=1, metric=Metric.TPS), is_open_loop=True)
    assert caught.value.slug == "study-rate-and-tps"


@pytest.mark.parametrize("metric", [metric for metric in JUDGED if metric is not Metric.TIME])
def test_choices_override_defaults(metric: Metric) -> None:
    choices = DesignChoices(
        seed=1, metric=metric, margin=0.1, budget_s=60.0, max_blocks=9, window=THREE_SECONDS, rounds=5, warm_up_s=7.0
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
        warm_up_is_given=True,
    )


@pytest.mark.parametrize(
    "others", [{"budget_s": 60.0}, {"max_blocks": 9}, {"budget_s": 60.0, "max_blocks": 9}, {"precision": 0.03}]
)
def test_a_fixed_number_of_blocks_excludes_limits_and_a_precision(others: dict[str, Any]) -> None:
    assert design_of(DesignChoices(seed=1, fixed_blocks=5), is_open_loop=False).fixed_blocks == 5
    choices = DesignChoices(seed=1, fixed_blocks=5, **others)
    with pytest.raises(StudyError) as caught:
        design_of(choices, is_open_loop=False)
    assert caught.value.slug == "study-two-designs"


def test_an_operation_is_compared_by_time_and_runs_once_per_block() -> None:
    design = design_of(DesignChoices(seed=1, budget_s=60.0), is_operation=True)
    assert (design.metric, design.margin, design.rounds, design.warm_up_s) == (Metric.TIME, 0.05, 1, 0.0)


@pytest.mark.parametrize("metric", [metric for metric in JUDGED if metric is not Metric.TIME])
def test_an_operation_rejects_load_metrics(metric: Metric) -> None:
    with pytest.raises(StudyError) as caught:
        design_of(DesignChoices(seed=1, metric=metric), is_operation=True)
    assert caught.value.slug == "study-metric-of-other-kind"


def test_a_load_rejects_the_time_metric() -> None:
    with pytest.raises(StudyError) as caught:
        design_of(DesignChoices(seed=1, metric=Metric.TIME))
    assert (caught.value.slug, caught.value.where) == ("study-metric-of-other-kind", "--metric time")


@pytest.mark.parametrize(
    ("choices", "flags"),
    [
        (DesignChoices(seed=1, window=THREE_SECONDS), "--window"),
        (DesignChoices(seed=1, rounds=2, warm_up_s=1.0), "--windows, --warmup"),
    ],
)
def test_an_operation_rejects_windows_and_warm_up(choices: DesignChoices, flags: str) -> None:
    with pytest.raises(StudyError) as caught:
        design_of(choices, is_operation=True)
    assert (caught.value.slug, caught.value.where) == ("study-windows-of-operation", flags)


@pytest.mark.parametrize(
    ("length", "kind", "seconds", "transactions"),
    [
        (WindowLength(seconds=2.0), WindowKind.RUN, 2.0, None),
        (WindowLength(seconds=0.05), WindowKind.SLICE, 0.05, None),
        (WindowLength(transactions=20), WindowKind.TRANSACTIONS, 1.0, 20),
    ],
)
def test_the_window_length_determines_its_kind(
    length: WindowLength, kind: WindowKind, seconds: float, transactions: int | None
) -> None:
    design = design_of(DesignChoices(seed=1, window=length))
    found = (design.window_kind, design.window_s, design.window_transactions, design.window_is_given)
    assert found == (kind, seconds, transactions, True)
