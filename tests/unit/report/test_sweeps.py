"""Levels that are amounts become lines ordered by amount, and lines become pictures."""

from collections.abc import Sequence
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.charts.export import Picture, pictures
from pgversus.report.sweeps import Sweep, metric_axis, plateau_sentence, sweeps
from pgversus.stats.confidence import Verdict
from pgversus.study.build_options import BuildOptions
from pgversus.study.comparison import Comparison
from pgversus.study.metrics import Metric
from pgversus.study.servers import LocalPath, Release, RunningServer, ServerName, SourceBuild
from pgversus.study.settings import Setting
from tests.builders import answer, comparison, judged_by, latency_block, open_loop, rate_block, study_answer
from tests.unit.report.cases import steady

SIZES = (32, 4, 8)
HOSTILE = "<b>&\"'</svg>\x1b[31m"


def built(*sizes: int) -> list[ServerName]:
    source = Release(major=17, minor=8)
    return [SourceBuild(source=source, options=BuildOptions(block_size_kb=kb)) for kb in sizes]


def measured(requested: Comparison, *, missing: int | None = None) -> Answer:
    """Return an answer with 1000, 1100, ... transactions per second, by arm."""
    rates = [None if arm.index == missing else 1000.0 + 100 * arm.index for arm in requested.arms]
    return answer([rate_block(n, *(rate and rate + n for rate in rates)) for n in range(1, 7)], requested)


def by_server(servers: Sequence[ServerName]) -> Comparison:
    requested = comparison([f"arm {number}" for number in range(len(servers))])
    arms = (replace(arm, server=server) for arm, server in zip(requested.arms, servers, strict=True))
    return replace(requested, arms=tuple(arms))


def by_setting(*values: str, name: str = "work_mem") -> Comparison:
    requested = by_server([Release(major=17, minor=8)] * len(values))
    arms = (
        replace(arm, settings=(Setting(name="jit", value="off"), Setting(name=name, value=value)))
        for arm, value in zip(requested.arms, values, strict=True)
    )
    return replace(requested, arms=tuple(arms), factors=(name,))


def placed(*answers: Answer, levels: Sequence[dict[str, str]]) -> StudyAnswer:
    whole = study_answer(answers)
    return replace(
        whole,
        answers=tuple(
            replace(one, context=replace(one.context, levels=tuple(of.items())))
            for one, of in zip(whole.answers, levels, strict=True)
        ),
    )


def only(*answers: Answer) -> Sweep:
    (found,) = sweeps(placed(*answers, levels=[{"load": f"c{number}"} for number, _ in enumerate(answers)]))
    return found


def test_block_sizes_are_drawn_as_a_line_in_ascending_order() -> None:
    found = only(measured(by_server(built(*SIZES))))
    assert (found.title, found.factor, found.metric) == ("", "block size", Metric.TPS)
    (line,) = found.lines
    assert line.name == "load=c0"
    assert [(point.at, point.label) for point in line.points] == [
        (4096.0, "4 kB"),
        (8192.0, "8 kB"),
        (32768.0, "32 kB"),
    ]
    assert [round(point.value, -1) for point in line.points] == [1100, 1200, 1000]
    assert all(
        point.low is not None and point.high is not None and point.low <= point.value <= point.high
        for point in line.points
    )


def test_a_server_without_options_has_the_default_block_size() -> None:
    (line,) = only(measured(by_server([Release(major=17, minor=8), *built(16, 4)]))).lines
    assert [point.label for point in line.points] == ["4 kB", "8 kB", "16 kB"]


@pytest.mark.parametrize(
    ("values", "order"),
    [
        (("64MB", "1GB", "4096kB"), ["4096kB", "64MB", "1GB"]),
        (("100", "20", "3.5"), ["3.5", "20", "100"]),
        (("1min", "500ms", "1h"), ["500ms", "1min", "1h"]),
        (("1min", "0", "1h"), ["0", "1min", "1h"]),
    ],
)
def test_amounts_are_ordered_by_value_and_not_alphabetically(values: tuple[str, ...], order: list[str]) -> None:
    found = only(measured(by_setting(*values)))
    assert found.factor == "work_mem"
    assert [point.label for point in found.lines[0].points] == order


@pytest.mark.parametrize(
    "requested",
    [
        by_server(built(4, 8)),
        by_server(built(4, 8, 8)),
        by_server([*built(8, 16), Release(major=17, minor=8)]),
        by_server([*built(4, 16), LocalPath(path="/opt/bin")]),
        by_server([*built(4, 16), RunningServer(uri="postgresql:///x")]),
        by_setting("1MB", "2MB"),
        by_setting("1MB", "2MB", "off"),
        by_setting("1MB", "2MB", "-1"),
        by_setting("4MB", "65536", "1GB"),
        by_setting("1MB", "2MB", "3 furlongs"),
        replace(by_setting("1", "2", "3"), factors=("another",)),
        replace(by_server(built(*SIZES)), factors=("server", "work_mem")),
        replace(by_server(built(*SIZES)), factors=()),
    ],
)
def test_levels_without_amounts_or_too_few_levels_are_not_drawn_as_a_line(requested: Comparison) -> None:
    assert sweeps(study_answer([measured(requested)])) == []


@pytest.mark.parametrize(
    ("requested", "order"),
    [
        (by_server(built(8, 8, 4, 32)), ["4 kB", "8 kB", "32 kB"]),
        (by_setting("2MB", "2MB", "1MB", "4MB"), ["1MB", "2MB", "4MB"]),
    ],
)
def test_a_repeated_level_has_one_point(requested: Comparison, order: list[str]) -> None:
    (line,) = only(measured(requested)).lines
    assert [point.label for point in line.points] == order
    # The value of the first of the equal arms.
    assert round(line.points[1].value, -1) == 1000


def test_contexts_of_one_workload_are_lines_of_one_chart() -> None:
    one = measured(by_server(built(*SIZES)))
    found = sweeps(
        placed(
            one,
            one,
            one,
            levels=[{"workload": "w", "load": "c1"}, {"workload": "w", "load": "c8"}, {"workload": "v", "load": "c1"}],
        )
    )
    assert [(sweep.title, [line.name for line in sweep.lines]) for sweep in found] == [
        ("w", ["load=c1", "load=c8"]),
        ("v", ["load=c1"]),
    ]


def test_an_arm_without_a_number_has_no_point() -> None:
    (line,) = only(measured(by_server(built(*SIZES)), missing=1)).lines
    assert [point.label for point in line.points] == ["8 kB", "32 kB"]


def test_a_load_judged_by_latency_also_has_a_chart_of_tps() -> None:
    latencies = [[1000 + 10 * arm + n for n in range(400)] for arm in range(3)]
    requested = replace(
        comparison(("a", "b", "c"), judged_by(Metric.LATENCY_P95), open_loop()), arms=by_server(built(*SIZES)).arms
    )
    found = sweeps(study_answer([answer([latency_block(n, *latencies) for n in range(1, 7)], requested)]))
    assert [sweep.metric for sweep in found] == [Metric.LATENCY_P95, Metric.TPS]
    assert metric_axis(Metric.LATENCY_P95).endswith(" (s)")
    assert metric_axis(Metric.TPS) == "tps"


def texts(svg: str) -> list[str]:
    return ["".join(element.itertext()) for element in ET.fromstring(svg).iter() if element.tag.endswith("}text")]  # noqa: S314


def drawn(whole: StudyAnswer) -> dict[str, Picture]:
    """Return every picture of a study by name."""
    return {picture.name: picture for picture in pictures(whole)}


@pytest.mark.slow
def test_a_picture_shows_every_level_and_the_name_of_every_line() -> None:
    one = measured(by_server(built(*SIZES)))
    picture = drawn(placed(one, one, levels=[{"workload": "w/1", "load": load} for load in ("c1", "c8")]))[
        "levels-1-tps-w_1"
    ]
    found = texts(picture.svg)
    assert [text for text in found if text.endswith(" kB")] == ["4 kB", "8 kB", "32 kB"]
    assert {"load=c1", "load=c8", "block size", "tps", "tps by block size: w/1"} < set(found)
    assert picture.png.startswith(b"\x89PNG")
    assert "var(--" not in picture.svg


@pytest.mark.slow
def test_texts_in_a_picture_are_escaped() -> None:
    one = measured(by_setting("1MB", "2MB", "4MB"))
    whole = placed(one, one, levels=[{"workload": HOSTILE, "load": load} for load in (HOSTILE, "../c8")])
    pictured = drawn(whole)
    shown = HOSTILE.replace("\x1b", "\\x1b")
    (name,) = [name for name in pictured if name.startswith("levels-")]
    # A backslash in a title would start an escape.
    title = f"tps by work_mem: {shown}".replace("\\", "/")
    assert {title, f"load={shown}", "load=../c8"} < set(texts(pictured[name].svg))
    for name, picture in pictured.items():
        assert not [element for element in ET.fromstring(picture.svg).iter() if element.tag.endswith("}b")]  # noqa: S314
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789._-")


@pytest.mark.slow
def test_every_chart_of_a_study_becomes_a_picture() -> None:
    assert set(drawn(study_answer([answer(steady(1.1))]))) == {"forest-tps", "trials-1-workload_w1_load_c4"}
    assert drawn(study_answer([])) == {}


def levels_at(*rates: float) -> Answer:
    """Return an answer for levels of work_mem with these transactions per second and little noise."""
    values = ("1MB", "4MB", "16MB", "64MB", "256MB")
    noise = (1.0, 1.001, 0.999, 1.0005, 0.9995, 1.0)
    blocks = [
        rate_block(n, *(rate * noise[(n + arm) % len(noise)] for arm, rate in enumerate(rates))) for n in range(1, 13)
    ]
    return answer(blocks, by_setting(*values[: len(rates)]))


OTHERS = (
    "are the best: unlike all other levels, none of them has been shown to be more than 2.0 % worse than 16MB, "
    "the best on average."
)


@pytest.mark.parametrize(
    ("rates", "sentence"),
    [
        ((1000, 1500, 1000, 1000, 1000), "4MB is the best: every other level is worse by more than 2.0 %."),
        (
            (1001, 1000, 1000, 1000, 1000),
            "No level has been shown to be more than 2.0 % worse than 1MB, the best on average.",
        ),
        (
            (1000, 1490, 1500, 1495, 1000),
            f"4MB to 64MB {OTHERS}",
        ),
        # The level next to the best one is worse, but not the one behind it.
        (
            (1500, 1000, 1501, 1000, 1000),
            f"1MB, 16MB {OTHERS}",
        ),
    ],
)
def test_a_level_is_among_the_best_unless_it_is_shown_to_be_worse(rates: Sequence[float], sentence: str) -> None:
    assert plateau_sentence(levels_at(*rates)) == sentence


def test_a_level_whose_verdict_is_equivalent_is_among_the_best() -> None:
    one = levels_at(1010, 1000, 1005)
    assert {result.verdict for result in one.analysis.results} == {Verdict.EQUIVALENT}
    assert plateau_sentence(one).startswith("No level has been shown to be more than 2.0 % worse")
