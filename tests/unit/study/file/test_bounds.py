"""Untrusted study files are read or rejected in linear time."""

import pytest

from pgversus.errors import StudyFileError
from pgversus.study.comparison import unique_labels
from pgversus.study.file.problems import MOST_PROBLEMS
from tests.bounded import processor_time
from tests.unit.study.file.reading import SHORT, labels, problem, problems, study

SERVERS = 'server = ["16.12", "17.8"]'
MANY = 20_000


def with_factors(lines: str) -> str:
    return SHORT.replace(SERVERS, f"{SERVERS}\n{lines}")


def test_repeated_server_names_are_numbered_quickly() -> None:
    equal = ", ".join(['"17"'] * 1500)
    with processor_time():
        found = problem(SHORT.replace(SERVERS, f"server = [{equal}]"))
    assert found.slug == "study-too-many-arms"
    with processor_time():
        names = unique_labels(["17"] * MANY + ["17 (3)"] * MANY)
    assert names[:3] == ["17", "17 (2)", "17 (3)"]
    assert len(set(names)) == 2 * MANY
    assert unique_labels(["a (2)", "a", "a", "a (2)"]) == ["a (2)", "a", "a (3)", "a (2) (2)"]


def test_many_parentheses_are_reported_as_an_unknown_level() -> None:
    for text in ("(" * 20_000, "((" * 10_000 + "))" * 10_000, "a AND (" * 5_000):
        with processor_time():
            assert problem(f'{SHORT}[[exclude]]\nserver = "{text}"\n').slug == "study-unknown-level"


@pytest.mark.slow
@pytest.mark.parametrize("row", ['server = "15"', 'nowhere = "1"', "", 'server = "17.8"'])
def test_rows_without_effect_are_reported_up_to_a_limit(row: str) -> None:
    with processor_time(10):
        found = problems(SHORT + f"[[exclude]]\n{row}\n" * MANY)
    assert 1 <= len(found) <= MOST_PROBLEMS


def test_too_many_problems_are_truncated() -> None:
    with processor_time(10), pytest.raises(StudyFileError) as caught:
        study(SHORT + "".join(f"unknown_{number} = 1\n" for number in range(MANY)))
    assert caught.value.what == f"the study file has {MOST_PROBLEMS} problems or more"


def test_rows_with_too_many_combinations_are_rejected_before_expansion() -> None:
    equal = ", ".join(['"17"'] * 2_000)
    text = SHORT.replace(SERVERS, f'server = [{equal}]\nwork_mem = ["1", "2"]') + '[[exclude]]\nserver = "17"\n' * 1_000
    with processor_time(10):
        assert "study-too-many-treatments" in {one.slug for one in problems(f'compare = "work_mem"\n{text}')}


def test_rows_with_too_many_sets_of_factors_are_rejected() -> None:
    names = [f"x.a{number}" for number in range(16)]
    factors = "\n".join(f'"{name}" = [1, 2]' for name in names)
    rows = "".join(
        "[[exclude]]\n" + "".join(f'"{name}" = 1\n' for bit, name in enumerate(names) if number >> bit & 1)
        for number in range(1, 2_000)
    )
    with processor_time(10):
        assert "study-too-many-treatments" in {one.slug for one in problems(with_factors(factors) + rows)}


@pytest.mark.slow
def test_combinations_of_many_factors_are_counted_without_expansion() -> None:
    factors = "\n".join(f'"x.a{number}" = [1, 2]' for number in range(15_000))
    with processor_time(20):
        found = [one for one in problems(with_factors(factors)) if one.slug == "study-too-many-treatments"]
    assert found[0].found.endswith(" = more than 1e1000")


@pytest.mark.parametrize(
    "text",
    [
        ".".join("a" * 100_000) + " = 1",
        f"[{'.'.join('a' * 100_000)}]",
        " . ".join(['"a"'] * 50_000) + " = 1",
        f"[a]\n{'a' * 5_000} = 1",
        f'"{"a" * 5_000}" = [{"1, " * 20_000}]',
        "a = " + "[" * 100_000,
        "a = " + "{a=" * 100_000,
        'a = "' + "\\\\" * 50_000,
        'a = """' + '"' * 100_000,
    ],
    ids=lambda text: text[:20],
)
def test_text_too_deep_or_too_long_is_rejected_quickly(text: str) -> None:
    with processor_time():
        assert problem(f"{text}\n").slug == "study-file-syntax"


def test_dots_in_a_string_do_not_create_tables() -> None:
    text = SHORT.replace('script = "query.sql"', f"sql = \"SELECT '{'.'.join('1' * 150)}'\"")
    assert labels(text) == [("", ["16.12", "17.8"])]


@pytest.mark.parametrize("value", ["1" + " " * 50_000 + "x", "9" * 5_000, "9" * 400, " " * 50_000, "'" * 50_001])
def test_a_long_setting_value_is_read_quickly(value: str) -> None:
    servers = SHORT.replace(SERVERS, 'server = ["17+blocksize=16", "17"]')
    with processor_time():
        study(f'{servers}[settings]\nshared_buffers = "{value}"\nbgwriter_flush_after = "{value}x"\n')
