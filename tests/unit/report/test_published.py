"""A published ratio is compared with the measured one only under the published conditions."""

import math
from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer
from pgversus.report.markdown import markdown
from pgversus.report.published import (
    DifferentCondition,
    PublishedAgreement,
    PublishedRatio,
    agreement,
    agreement_notes,
    agreement_text,
    agreement_word,
    published_cells,
    published_ratios,
)
from pgversus.stats.analysis import Estimate
from pgversus.study.dataset import Dataset, setup_file
from pgversus.study.metrics import Metric
from pgversus.study.settings import Setting
from pgversus.study.workload import PgbenchWorkload
from tests.builders import answer, study_answer
from tests.unit.report.cases import CASES, noisy, steady

AGREES, DISAGREES, OPEN = PublishedAgreement.AGREES, PublishedAgreement.DISAGREES, PublishedAgreement.OPEN
MARGIN = 0.02


def compared(one: Answer, base: float, other: float, **conditions: str) -> PublishedRatio:
    """Return the row of a verdict on 17.8 against 16.12, with figures of these conditions besides its own."""
    stated = {"workload": "w1", "scale": "1", "clients": "4", "level": "16.12", **conditions}
    contender = {**stated, "level": "17.8"}
    lines = (",".join((*row.values(), f"{tps:.9g}")) for row, tps in ((stated, base), (contender, other)))
    figures = "\n".join((",".join((*stated, "tps")), *lines))
    (row,) = published_ratios(study_answer([one], published=figures))
    return row


def measured(low: float | None, high: float | None) -> Estimate:
    value = 1.0 if low is None or high is None else math.sqrt(low * high)
    return replace(CASES["faster"]().analysis.results[0].ratios[Metric.TPS], value=value, low=low, high=high)


@pytest.mark.parametrize(
    ("low", "high", "published", "expected"),
    [
        # No interval, or one that says nothing.
        (None, None, 1.1, OPEN),
        (1e-9, 1e9, 1.1, OPEN),
        # A difference.
        (1.08, 1.12, 1.1, AGREES),
        (1.08, 1.12, 1.08, AGREES),
        (1.08, 1.12, 1.12, AGREES),
        (1.08, 1.12, 1.2, DISAGREES),
        (1.08, 1.12, 1.01, DISAGREES),
        (1.08, 1.12, 0.9, DISAGREES),
        (0.88, 0.92, 0.9, AGREES),
        (0.88, 0.92, 1.1, DISAGREES),
        (1.005, 1.2, 1.1, AGREES),
        (1.005, 1.2, 1.0, DISAGREES),
        # Undecided.
        (0.9, 1.2, 1.1, OPEN),
        (0.9, 1.2, 1.0, OPEN),
        (0.9, 1.2, 10.0, DISAGREES),
        (0.9, 1.2, 0.5, DISAGREES),
        # Equivalent.
        (0.99, 1.01, 1.005, AGREES),
        (0.995, 1.005, 1.015, AGREES),
        (1.005, 1.015, 0.985, AGREES),
        (0.99, 1.01, 1.03, DISAGREES),
        (0.99, 1.01, 0.97, DISAGREES),
    ],
)
def test_an_interval_agrees_disagrees_or_cannot_tell(
    low: float | None, high: float | None, published: float, expected: PublishedAgreement
) -> None:
    assert agreement(measured(low, high), published, MARGIN) is expected


def test_without_a_measurement_agreement_is_open() -> None:
    assert agreement(None, 1.1, MARGIN) is OPEN
    rows = published_ratios(
        study_answer([CASES["invalid"]()], published="scale,clients,level,tps\n1,4,16.12,1\n1,4,17.8,2\n")
    )
    assert [(row.agreement, agreement_text(row)) for row in rows] == [(OPEN, "cannot tell: no interval")]


def test_equal_conditions_are_compared() -> None:
    row = compared(CASES["faster"](), 100, 110)
    assert (row.agreement, row.different, agreement_text(row)) == (AGREES, (), "agrees")
    assert compared(answer(steady(1.1)), 100, 90).agreement is DISAGREES
    assert agreement_text(compared(answer(noisy(0.2)), 100, 105)).startswith("cannot tell: the interval includes both")


@pytest.mark.parametrize(
    ("conditions", "text"),
    [
        ({"scale": "50"}, "scale 1 here, 50 published"),
        ({"scale": ""}, "scale 1 here, not published"),
        ({"clients": "24"}, "clients 4 here, 24 published"),
        ({"clients": ""}, "clients 4 here, not published"),
        ({"threads": "8"}, "threads 1 here, 8 published"),
        ({"cache": "cold"}, "cache warm here, cold published"),
        ({"work_mem": "4MB"}, "work_mem 4MB published, unknown here"),
        ({"scale": "50", "clients": "24"}, "scale 1 here, 50 published; clients 4 here, 24 published"),
    ],
)
def test_a_different_or_unknown_condition_is_named_and_decides_nothing(conditions: dict[str, str], text: str) -> None:
    row = compared(CASES["faster"](), 100, 110, **conditions)
    assert row.agreement is OPEN
    assert agreement_text(row) == f"cannot tell: {text}"


@pytest.mark.parametrize(
    "conditions", [{"cache": "warm"}, {"threads": "1"}, {"cache": ""}, {"load": "c4", "clients": ""}]
)
def test_a_condition_that_is_met_or_not_required_changes_nothing(conditions: dict[str, str]) -> None:
    assert compared(CASES["faster"](), 100, 110, **conditions).agreement is AGREES


def test_data_from_files_must_be_the_published_data() -> None:
    one = CASES["faster"]()
    data = Dataset(setup_files=(setup_file("/made/up/rows.sql", b"SELECT 1"),))
    arms = tuple(replace(arm, dataset=data) for arm in one.comparison.arms)
    one = replace(one, comparison=replace(one.comparison, arms=arms))
    assert agreement_text(compared(one, 100, 110, scale="")) == "cannot tell: data rows.sql here, not published"
    assert compared(one, 100, 110, scale="", data="rows.sql").agreement is AGREES
    assert compared(one, 100, 110, scale="", data="other.sql").agreement is OPEN


def test_settings_of_the_arms_are_conditions() -> None:
    one = CASES["faster"]()
    arms = tuple(replace(arm, settings=(Setting(name="work_mem", value="64MB"),)) for arm in one.comparison.arms)
    one = replace(one, comparison=replace(one.comparison, arms=arms))
    assert compared(one, 100, 110, work_mem="64MB").agreement is AGREES
    assert agreement_text(compared(one, 100, 110, work_mem="4MB")) == "cannot tell: work_mem 64MB here, 4MB published"


def test_variables_of_a_load_are_conditions() -> None:
    one = CASES["faster"]()
    load = one.comparison.workload
    assert isinstance(load, PgbenchWorkload)
    load = replace(load, variables=(("rows", "1000"),))
    arms = tuple(replace(arm, workload=load) for arm in one.comparison.arms)
    one = replace(one, comparison=replace(one.comparison, arms=arms))
    assert compared(one, 100, 110, rows="1000").agreement is AGREES
    assert agreement_text(compared(one, 100, 110, rows="5")) == "cannot tell: rows 1000 here, 5 published"


def test_a_factor_of_the_study_must_be_published() -> None:
    study = study_answer([CASES["faster"]()], published="scale,clients,level,tps\n1,4,16.12,100\n1,4,17.8,110\n")
    (one,) = study.answers
    context = replace(one.context, levels=(*one.context.levels, ("rows", "spread")))
    (row,) = published_ratios(replace(study, answers=(replace(one, context=context),)))
    assert row.different == (DifferentCondition(name="rows", measured="spread", published=""),)


def test_figures_of_another_minor_version_are_shown_but_not_compared() -> None:
    figures = "scale,clients,level,tps\n1,4,16.10,100\n1,4,17.4,120\n"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=figures))
    text = "version 16.12 here, 16.10 published; version 17.8 here, 17.4 published"
    assert agreement_text(row) == f"cannot tell: {text}"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=figures + "1,4,16.12,100\n1,4,17.8,110\n"))
    assert row.agreement is AGREES
    assert row.published == pytest.approx(1.1)
    other_major = figures.replace("17.4", "18.0")
    assert published_ratios(study_answer([CASES["faster"]()], published=other_major)) == []
    one = CASES["faster"]()
    arms = (one.arms[0], replace(one.arms[1], version="17.10 (Debian 17.10-1)"))
    row = compared(replace(one, arms=arms), 100, 110)
    assert agreement_text(row) == "cannot tell: version 17.10 here, 17.8 published"


def test_arms_of_one_major_version_are_not_compared_with_a_figure_and_itself() -> None:
    one = CASES["faster"]()
    arms = tuple(replace(arm, version=f"17.{arm_number}") for arm_number, arm in enumerate(one.arms))
    assert published_ratios(study_answer([replace(one, arms=arms)], published="level,tps\n17.4,100\n")) == []


def test_a_level_that_is_not_a_version_needs_the_version_of_its_figure() -> None:
    one = CASES["faster"]()
    arms = tuple(replace(arm, label=f"work_mem={arm.index}MB") for arm in one.comparison.arms)
    facts = tuple(replace(arm, version="17.8") for arm in one.arms)
    one = replace(one, arms=facts, comparison=replace(one.comparison, arms=arms, factors=("work_mem",)))
    for version, text in (("17.8", "agrees"), ("17.4", "17.4 published"), ("", "not published")):
        figures = "scale,clients,version,level,tps\n1,4,V,work_mem=0MB,100\n1,4,V,work_mem=1MB,110\n".replace(
            "V", version
        )
        (row,) = published_ratios(study_answer([one], published=figures))
        expected = text if text == "agrees" else f"cannot tell: version 17.8 here, {text}"
        assert agreement_text(row) == expected


@pytest.mark.parametrize(
    ("reason", "mark"), [("yes", "(confounded)"), ("twice the rows on 16", "(confounded: twice the rows on 16)")]
)
def test_a_confounded_figure_is_marked_next_to_every_agreement(reason: str, mark: str) -> None:
    one = CASES["faster"]()
    assert agreement_text(compared(one, 100, 110, confounded=reason)) == f"agrees {mark}"
    assert agreement_text(compared(one, 100, 90, confounded=reason)) == f"disagrees {mark}"
    row = compared(one, 100, 110, scale="50", confounded=reason)
    assert agreement_text(row) == f"cannot tell: scale 1 here, 50 published {mark}"
    assert agreement_word(row) == "cannot tell (confounded)"


def test_one_confounded_arm_marks_the_ratio() -> None:
    figures = "scale,clients,level,tps,confounded\n1,4,16.12,100,\n1,4,17.8,110,other host\n"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=figures))
    assert agreement_text(row) == "agrees (confounded: other host)"


def test_notes_give_each_reason_once_with_its_rows() -> None:
    rows = [
        replace(compared(CASES["faster"](), 100, 110, scale="50", confounded="other host"), context=f"w{number}")
        for number in (1, 2)
    ]
    assert agreement_notes(rows) == [
        "cannot tell: scale 1 here, 50 published [w1 17.8, w2 17.8]",
        "confounded: other host [w1 17.8, w2 17.8]",
    ]
    assert agreement_notes([compared(CASES["faster"](), 100, 110)]) == []


def test_figures_with_the_fewest_different_conditions_are_preferred_and_never_mixed() -> None:
    head, half = "workload,clients,scale,level,tps\n", "w1,4,50,16.12,100\nw1,4,500,17.8,50\n"
    assert published_ratios(study_answer([CASES["faster"]()], published=head + half)) == []
    whole = half + "w1,4,500,16.12,40\n"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=head + whole))
    assert row.published == pytest.approx(1.25)
    assert "+25.0 % (40 / 50)" in published_cells([row])[0]
    assert agreement_text(row) == "cannot tell: scale 1 here, 500 published"
    own = "w1,4,1,16.12,100\nw1,4,1,17.8,110\n"
    (row,) = published_ratios(study_answer([CASES["faster"]()], published=head + whole + own))
    assert row.agreement is AGREES
    assert row.published == pytest.approx(1.1)


def test_figures_of_other_workloads_do_not_fit() -> None:
    figures = "workload,scale,clients,level,tps\nother,1,4,16.12,100\nother,1,4,17.8,110\n"
    study = study_answer([CASES["faster"]()], published=figures)
    assert published_ratios(study) == []
    assert "No published values for these contexts." in markdown(study, with_published=True)


def test_a_published_ratio_of_tps_is_compared_with_tps_under_a_verdict_on_latency() -> None:
    one = CASES["tail_latency"]()
    assert one.analysis.metric is Metric.LATENCY_P95
    found = one.analysis.results[0].ratios[Metric.TPS]
    assert found.low is not None
    assert found.value < 1
    load = one.comparison.workload
    row = compared(one, 100, 100 * found.value, clients=str(load.clients), threads=str(load.threads))
    assert row.different == ()
    assert row.agreement is agreement(found, found.value, one.comparison.design.margin)


def test_a_study_without_figures_has_no_rows() -> None:
    assert published_ratios(study_answer([CASES["faster"]()])) == []


def test_published_times_of_an_operation_are_compared_with_measured_ones() -> None:
    figures = "load,scale,level,time_s\nc4,10,15.10,100\nc4,10,16.6,39.5\nc5,10,15.10,100\nc5,10,16.6,80\n"
    (row,) = published_ratios(study_answer([CASES["operation"]()], published=figures))
    assert row.published == pytest.approx(0.395)
    assert row.agreement is AGREES
    assert published_ratios(study_answer([CASES["faster"]()], published=figures.replace("15.10", "16.12"))) == []
