"""Heat maps of factors: text and colors where a contender is faster."""

from dataclasses import replace

import pytest

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.markdown import markdown
from pgversus.report.sweeps import heat_color, heat_maps
from tests.builders import answer, study_answer
from tests.unit.report.cases import CASES, noisy, steady


def study(*places: tuple[Answer, dict[str, str]]) -> StudyAnswer:
    whole = study_answer([one for one, _ in places])
    placed = tuple(
        replace(one, context=replace(one.context, levels=tuple(levels.items())))
        for one, (_, levels) in zip(whole.answers, places, strict=True)
    )
    return replace(whole, answers=placed)


def mapped() -> StudyAnswer:
    return study(
        (answer(steady(2.5)), {"scale": "10", "dead": "3"}),
        (answer(steady(0.9)), {"scale": "10", "dead": "20"}),
        (answer(steady(1.0)), {"scale": "10", "dead": "50"}),
        (answer(noisy(0.2)), {"scale": "100", "dead": "3"}),
    )


def test_the_factor_with_the_most_levels_is_in_the_columns() -> None:
    (found,) = heat_maps(mapped())
    assert found.title == "17.8 vs 16.12, by dead (columns)"
    assert found.columns == ("3", "20", "50")
    assert [(place, [cell is not None for cell in cells]) for place, cells in found.rows] == [
        ("scale=10", [True, True, True]),
        ("scale=100", [True, False, False]),
    ]


def test_cells_show_the_change_and_mark_verdicts_without_a_direction() -> None:
    (found,) = heat_maps(mapped())
    texts = [cell.text for _, cells in found.rows for cell in cells if cell is not None]
    assert texts[:2] == ["2.5x", "0.9x"]
    assert texts[2].startswith("=")
    assert texts[3].startswith("?")


def test_only_certain_directions_have_a_color() -> None:
    (found,) = heat_maps(mapped())
    colors = [heat_color(cell) for _, cells in found.rows for cell in cells if cell is not None]
    assert colors[0] == "#00dc00", "twice as fast is as green as can be"
    assert colors[1].startswith("#dc")
    assert colors[2:] == ["", ""]


def test_a_shorter_time_is_faster() -> None:
    one = CASES["operation"]()
    (found,) = heat_maps(study((one, {"dead": "3"}), (one, {"dead": "20"})))
    (cell, _) = found.rows[0][1]
    assert cell is not None
    ratio = one.analysis.results[0].ratios[one.analysis.metric].value
    assert (cell.heat > 0) == (ratio < 1)


@pytest.mark.parametrize("levels", [({"load": "c1"}, {"load": "c4"}), ({}, {})])
def test_a_single_row_of_loads_is_not_a_map(levels: tuple[dict[str, str], dict[str, str]]) -> None:
    assert heat_maps(study((answer(steady(2.0)), levels[0]), (answer(steady(2.0)), levels[1]))) == []


def test_markdown_keeps_the_empty_columns_of_a_map() -> None:
    assert "| 17.8 vs 16.12, by dead (columns) | 3 | 20 | 50 |" in markdown(mapped())
