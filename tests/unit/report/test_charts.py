"""Charts as data: their content, colors that all readers can distinguish, and labelled axes."""

import math
import re
from dataclasses import replace
from typing import Any

import pytest

from pgversus.report.charts.chart import chart_name, log_ticks, plain, quoted, ratio_domain, ratio_labels, ratio_ticks
from pgversus.report.charts.curves import latency_chart, run_order, sweep_chart
from pgversus.report.charts.export import study_charts
from pgversus.report.charts.theme import _LIGHT_AND_DARK, SERIES, print_theme
from pgversus.report.charts.verdicts import forests, heat_chart
from pgversus.report.overview import worst_first
from pgversus.report.sweeps import Line, Point, Sweep, heat_maps
from pgversus.report.verdicts import SIGNS
from pgversus.stats.confidence import Verdict
from pgversus.study.metrics import Metric
from tests.builders import answer, comparison, rate_block, study_answer
from tests.unit.report import cases
from tests.unit.report.richest import whole_studies
from tests.unit.report.test_page import with_latencies

THEMES = (0, 1)
"""Indices of the light and the dark theme."""


def luminance(color: str) -> float:
    """Return the relative luminance of WCAG 2."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of WCAG 2, from 1 to 21."""
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("theme", THEMES)
def test_texts_are_readable_and_marks_are_visible(theme: int) -> None:
    colors = {name: pair[theme] for name, pair in _LIGHT_AND_DARK.items()}
    for ground in ("bg", "panel"):
        assert contrast(colors["fg"], colors[ground]) >= 7
        assert contrast(colors["muted"], colors[ground]) >= 4.5
    for verdict in Verdict:
        for ground in (colors["bg"], colors[f"{verdict.value}-tint"]):
            assert contrast(colors[verdict.value], ground) >= 4.5, verdict
    for number in range(1, len(SERIES) + 1):
        assert contrast(colors[f"s{number}"], colors["bg"]) >= 3
    assert contrast(colors["fg"], colors["mark"]) >= 4.5


def test_every_verdict_has_its_own_sign() -> None:
    assert len(set(SIGNS.values())) == len(Verdict)


def test_a_picture_has_colors_instead_of_their_names() -> None:
    assert print_theme({"a": ["var(--s1)", {"b": "transparent"}], "c": 1, "d": "x"}) == {
        "a": [_LIGHT_AND_DARK["s1"][0], {"b": "#ffffff"}],
        "c": 1,
        "d": "x",
    }


@pytest.mark.parametrize(
    ("points", "bounds", "margin"),
    [
        ([1.01], [0.99, 1.03], 0.02),
        ([16.0, 0.5], [14.0, 18.0, 0.4, 0.6], 0.02),
        ([1.0], [1e-30, 1e30], 0.1),
        ([], [], 0.02),
        ([1e-4, 1e4], [None], 0.0),
    ],
)
def test_an_axis_of_ratios_includes_all_points_a_ratio_of_one_and_the_margin(
    points: list[float], bounds: list[float | None], margin: float
) -> None:
    low, high = ratio_domain(points, bounds, margin)
    assert low < min([*points, 1 / (1 + margin)])
    assert high > max([*points, 1 + margin])
    ticks = ratio_ticks((low, high))
    assert any(math.isclose(tick, 1.0) for tick in ticks)
    assert 1 <= len(ticks) <= 9
    assert all(low <= tick <= high for tick in ticks)
    assert ratio_labels(ticks).count("?") == len(ticks)


def test_an_interval_of_few_blocks_does_not_flatten_the_others() -> None:
    low, high = ratio_domain([1.1, 1.2], [1e-9, 1e9], 0.02)
    assert high / low < 200


@pytest.mark.parametrize(("low", "high"), [(42.0, 62.0), (1.0, 100.0), (0.001, 5000.0), (9.99, 10.01), (3.0, 14.0)])
def test_an_axis_has_a_few_round_labels(low: float, high: float) -> None:
    ticks = log_ticks(low, high)
    assert 2 <= len(ticks) <= 12
    assert ticks == sorted(ticks)
    assert all(low <= tick <= high for tick in ticks)


def test_a_forest_plot_lists_the_worst_verdict_first() -> None:
    names = ("equivalent", "faster", "undecided", "slower_by_half", "faster_of_open_size")
    whole = study_answer([cases.CASES[name]() for name in names])
    (chart,) = forests(whole)
    verdicts = [one.result.verdict for one in worst_first(whole)]
    assert verdicts == ["slower", "undecided", "faster", "faster", "equivalent"]
    assert [row[1] for row in chart.rows] == verdicts
    # The smallest effect among the faster ones.
    assert [row[0] for row in chart.rows][2].startswith("workload=w5")


def test_a_verdict_without_a_ratio_is_in_no_forest_plot() -> None:
    assert forests(study_answer([cases.interrupted()])) == []
    assert forests(study_answer([])) == []


def test_metrics_of_different_directions_have_separate_forest_plots() -> None:
    names = {chart.name for chart in forests(study_answer([cases.faster(), cases.tail_latency()]))}
    assert names == {"forest-tps", "forest-latency_p95_s"}


def test_failed_trials_are_shown_in_run_order_without_a_number() -> None:
    chart = run_order(cases.invalid())
    assert chart is not None
    failed = [row for row in chart.rows if row[2].startswith("failed: ")]
    assert len(failed) == 5
    assert {row[3] for row in failed} == {""}


@pytest.mark.parametrize("blocks", [0, 1])
def test_fewer_than_two_blocks_have_no_chart_of_run_order(blocks: int) -> None:
    assert run_order(answer(cases.steady(1.1, blocks=blocks))) is None


def test_more_arms_than_can_be_distinguished_are_not_drawn() -> None:
    labels = [f"arm {number}" for number in range(9)]
    one = answer([rate_block(n, *range(100, 109)) for n in (1, 2, 3)], comparison(labels))
    assert run_order(one) is None
    assert latency_chart(with_latencies(one)) is None


def test_a_percentile_is_drawn_only_with_transactions_beyond_it() -> None:
    one = with_latencies(answer(cases.steady(1.1, blocks=2)))
    chart = latency_chart(one)
    assert chart is not None
    # 2,000 transactions per arm: 10 are beyond p99.5, and 2 beyond p99.9.
    assert chart.heads[-1] == "p99.5"
    assert latency_chart(replace(one, latencies=dict)) is None


def test_percentiles_of_the_tables_have_intervals_in_the_table_of_the_chart() -> None:
    chart = latency_chart(with_latencies(answer(cases.steady(1.1, blocks=8))))
    assert chart is not None
    for row in chart.rows:
        cells = zip(chart.heads, row, strict=True)
        assert [head for head, cell in cells if "[" in cell] == ["p50", "p95", "p99"]


def test_a_heat_map_shows_certain_differences_in_color_and_others_in_gray() -> None:
    parts = [cases.faster(), cases.undecided(), cases.slower_by_half(), cases.equivalent()]
    whole = study_answer(parts)
    placed = [
        replace(one, context=replace(one.context, levels=(("a", str(n // 2)), ("b", str(n % 2)))))
        for n, one in enumerate(whole.answers)
    ]
    (found,) = heat_maps(replace(whole, answers=tuple(placed)))
    chart = heat_chart(found, 1)
    cells: dict[tuple[str, str], Any] = {
        (row["row"], row["column"]): row for row in chart.specification["data"]["values"]
    }
    assert [cells["a=0", "0"][key] for key in ("way", "sure")] == ["faster", True]
    assert [cells["a=1", "0"][key] for key in ("way", "sure")] == ["slower", True]
    assert [cells["a=0", "1"][key] for key in ("strength", "sure")] == [0.0, False]
    # Less than half of the speed has the strongest color.
    assert cells["a=1", "0"]["strength"] > cells["a=0", "0"]["strength"] > 0
    assert [cells[key]["words"][0] for key in sorted(cells)] == ["▲", "?", "▼", "="]


def test_names_of_charts_are_valid_file_names() -> None:
    assert chart_name("trials", "../../etc", "", "a b") == "trials-.._.._etc-a_b"
    assert plain("a\\nb") == "a/nb"
    assert quoted('"\x1b') == '"\\"\\\\x1b"'


def drawn_intervals(part: Any) -> list[tuple[float, float]]:
    """Return the intervals in the data of a specification."""
    if isinstance(part, list):
        return [found for one in part for found in drawn_intervals(one)]
    if not isinstance(part, dict):
        return []
    own = [(part["low"], part["high"])] if part.get("low") is not None and part.get("high") is not None else []
    return own + [found for one in part.values() for found in drawn_intervals(one)]


@pytest.mark.slow
def test_the_table_of_a_chart_has_every_interval_that_the_chart_draws() -> None:
    charts = [chart for study in whole_studies() for chart in study_charts(study)]
    with_intervals = [chart for chart in charts if drawn_intervals(chart.specification)]
    assert {chart.name.split("-")[0] for chart in with_intervals} == {"forest", "levels"}
    for chart in with_intervals:
        intervals = {cell for row in chart.rows for cell in row if re.search(r"\[[^,]+, [^,]+\]$", cell)}
        assert len(intervals) >= len(set(drawn_intervals(chart.specification))), chart.name


def test_the_table_of_levels_has_values_with_intervals_where_they_are_valid() -> None:
    points = (
        Point(at=1.0, label="1MB", value=1204.0, low=1190.4, high=1219.0),
        Point(at=2.0, label="2MB", value=1000.0, low=None, high=None),
    )
    line = Line(name="", points=points)
    chart = sweep_chart(Sweep(title="", factor="work_mem", metric=Metric.TPS, lines=(line,)), 1)
    assert chart.rows == (("", "1 204 [1 190, 1 219]", "1 000"),)
