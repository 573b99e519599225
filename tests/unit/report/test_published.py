"""Published ratios are compared only with measured ratios of the same context."""

import pytest

from pgversus.answers.answer import Answer
from pgversus.errors import StudyError
from pgversus.report.published import Replication, published_cells, published_ratios
from pgversus.study.metrics import Metric
from pgversus.study.published import read_figures
from tests.builders import answer, study_answer
from tests.unit.report.cases import CASES, noisy, steady


def held_against(one: Answer, base: float, other: float, extra: str = "clients", value: str = "4") -> list[Replication]:
    figures = f"workload,{extra},level,tps\nw1,{value},16.12,{base}\nw1,{value},17.8,{other}\n"
    return [row.replication for row in published_ratios(study_answer([one], published=figures))]


@pytest.mark.parametrize(
    ("measured", "published", "expected"),
    [
        (1.1, 1.1, Replication.REPLICATED),
        (1.1, 2.0, Replication.SAME_DIRECTION),
        (1.1, 0.9, Replication.NOT_REPLICATED),
        (1.0, 1.01, Replication.REPLICATED),
        (1.0, 1.5, Replication.NOT_REPLICATED),
        (0.5, 0.4, Replication.SAME_DIRECTION),
        (1.0, 1.0, Replication.REPLICATED),
        (1.1, 1.0, Replication.NOT_REPLICATED),
        (0.9, 1.0, Replication.NOT_REPLICATED),
    ],
)
def test_a_published_ratio_is_classified_against_a_decided_one(
    measured: float, published: float, expected: Replication
) -> None:
    assert held_against(answer(steady(measured)), 100, 100 * published) == [expected]


def test_an_undecided_result_replicates_nothing() -> None:
    assert held_against(answer(noisy(0.2)), 100, 105) == [Replication.OPEN]
    assert held_against(answer(noisy(0.2)), 100, 1000) == [Replication.NOT_REPLICATED]


def test_figures_of_another_context_are_not_shown() -> None:
    assert held_against(CASES["faster"](), 100, 110, value="24") == []
    assert held_against(CASES["faster"](), 100, 110, extra="cache", value="cold") == []
    assert held_against(CASES["faster"](), 100, 110, extra="cache", value="warm") == [Replication.REPLICATED]


def test_figures_of_another_data_size_are_shown_and_those_of_the_same_size_preferred() -> None:
    assert held_against(CASES["faster"](), 100, 110, extra="scale", value="50") == [Replication.REPLICATED]
    # The measured scale is 1.
    figures = "workload,scale,level,tps\nw1,50,16.12,100\nw1,50,17.8,50\nw1,1,16.12,100\nw1,1,17.8,110\n"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=figures))
    assert row.published == pytest.approx(1.1)
    assert row.at == ""


def test_a_ratio_of_another_data_size_is_labelled_and_never_mixes_two_sizes() -> None:
    only_half = "workload,scale,level,tps\nw1,50,16.12,100\nw1,500,17.8,50\n"
    assert published_ratios(study_answer([CASES["faster"]()], published=only_half)) == []
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=only_half + "w1,500,16.12,40\n"))
    assert row.published == pytest.approx(1.25)
    assert "+25.0 % (40 / 50 at scale 500)" in published_cells(row)


def test_a_published_ratio_of_tps_is_compared_with_tps_under_a_verdict_on_latency() -> None:
    one = CASES["tail_latency"]()
    assert one.analysis.metric is Metric.LATENCY_P95
    measured = one.analysis.results[0].ratios[Metric.TPS]
    assert measured.low is not None
    assert measured.value < 1
    assert held_against(one, 100, 100 * measured.value, value="8") == [Replication.REPLICATED]


def test_a_study_without_figures_has_no_rows() -> None:
    assert published_ratios(study_answer([CASES["faster"]()])) == []


@pytest.mark.parametrize(
    "text",
    [
        "",
        "level\n17\n",
        "level,tps\n17,fast\n",
        "level,tps\n17,-1\n",
        "level,tps\n17,inf\n",
        "level,tps\n17\n",
        "level,tps\n17,1,2\n",
        "a,tps\nx,1\n",
        "level,tps\r16,1\r17,2\r",
        'level,tps\n16,"1\n17,2\n',
        f'level,tps\n16,"{"1" * 200_000}',
    ],
)
def test_invalid_figures_are_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_figures(text)
    assert caught.value.slug == "study-bad-figures"


def test_published_times_of_an_operation_are_compared_with_measured_ones() -> None:
    figures = "load,level,time_s\nc4,15.10,100\nc4,16.6,39.5\nc5,15.10,100\nc5,16.6,80\n"
    (row,) = published_ratios(study_answer([CASES["operation"]()], published=figures))
    assert row.published == pytest.approx(0.395)
    assert row.replication is Replication.REPLICATED
    assert published_ratios(study_answer([CASES["faster"]()], published=figures.replace("15.10", "16.12"))) == []
