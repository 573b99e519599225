"""Published figures are read with their conditions, and invalid ones are rejected."""

import pytest

from pgversus.errors import StudyError
from pgversus.lab.studies import bundled_names, library
from pgversus.study.published import CONFOUNDED, read_figures


def test_conditions_version_and_reason_are_read() -> None:
    text = "workload,clients,level,version,tps,confounded\nq,4,16.12,,100,yes\n,,jit=on,17beta3,7.5,\n"
    first, second = read_figures(text)
    assert (first.level, first.version, first.values) == ("16.12", "16.12", {"tps": 100.0})
    assert (first.conditions, first.confounded) == ({"workload": "q", "clients": "4"}, CONFOUNDED)
    assert (second.version, second.conditions, second.confounded) == ("17beta3", {}, "")


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


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("version", "17", "a complete version, such as 17.4 or 17beta3"),
        ("version", "newest", "a complete version"),
        ("version", "9.6", "a complete version"),
        ("version", "17.4", "does not contradict the level"),
        ("confounded", "no", "an empty field for a figure that is not confounded"),
        ("confounded", "x" * 201, "at most 200 printable characters"),
        ("confounded", "a\x1b[2J", "printable characters"),
    ],
)
def test_an_invalid_version_or_reason_is_rejected_with_its_line(column: str, value: str, expected: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_figures(f"level,tps,{column}\n16.12,1,\n17.8,1,{value}\n")
    error = caught.value
    assert error.slug == "study-bad-figures"
    assert error.where == "line 3 of the published figures"
    assert column in error.found
    assert expected in error.expected
    assert "\x1b" not in error.found


@pytest.mark.parametrize(
    ("text", "line", "found"),
    [
        ("level,tps\n\n\n16.12,10\n17.8,x\n", 5, "level=17.8, tps=x"),
        ('level,tps,note\n16.12,10,"two\nlines"\n17.8,x,b\n', 4, "level=17.8, tps=x, note=b"),
        ("level,tps\n17.8,1,5\n", 2, "level=17.8, tps=1, 5"),
        ("level,tps,tps\n17.8,1,5\n", 1, "level, tps, tps"),
    ],
)
def test_an_invalid_line_is_named_and_shown_as_it_is(text: str, line: int, found: str) -> None:
    with pytest.raises(StudyError) as caught:
        read_figures(text)
    assert caught.value.where == f"line {line} of the published figures"
    assert caught.value.found == f"line {line}: {found}"


def test_bundled_figures_state_the_version_of_every_level() -> None:
    files = [path for name in bundled_names() if (path := library() / name / "published.csv").is_file()]
    assert len(files) > 3
    for path in files:
        assert all(figure.version for figure in read_figures(path.read_text(encoding="utf-8")))


def test_the_figure_of_the_table_that_was_filled_twice_is_confounded() -> None:
    text = (library() / "planner-16-vs-17" / "published.csv").read_text(encoding="utf-8")
    marked = {figure.conditions["workload"] for figure in read_figures(text) if figure.confounded}
    assert marked == {"group_by_order"}
