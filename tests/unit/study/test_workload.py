from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.workload import (
    BUILTIN_SCRIPTS,
    PgbenchWorkload,
    Script,
    check_load,
    find_builtin,
    split_weight,
    threads_used,
)


@pytest.mark.parametrize(
    ("text", "name"),
    [("t", "tpcb-like"), ("tpcb", "tpcb-like"), ("si", "simple-update"), ("se", "select-only")]
    + [(name, name) for name in BUILTIN_SCRIPTS],
)
def test_an_unambiguous_prefix_selects_a_builtin(text: str, name: str) -> None:
    assert find_builtin(text) == name


@pytest.mark.parametrize("text", ["", "s", "x", "tpcb-like2", "select_only", "SELECT-ONLY", "only"])
def test_an_unknown_or_ambiguous_prefix_is_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        find_builtin(text)
    assert caught.value.slug == "study-unknown-builtin"
    assert all(name in caught.value.expected for name in BUILTIN_SCRIPTS)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a.sql", ("a.sql", None)),
        ("a.sql@3", ("a.sql", 3)),
        ("a.sql@0", ("a.sql", 0)),
        ("mail@home.sql@2", ("mail@home.sql", 2)),
    ],
)
def test_the_weight_follows_the_last_at_sign(text: str, expected: tuple[str, int | None]) -> None:
    assert split_weight(text, "-f") == expected


@pytest.mark.parametrize("text", ["a.sql@", "a.sql@x", "a.sql@-1", "a.sql@1.5", "a.sql@ 2", "mail@home.sql"])
def test_a_weight_that_is_not_a_whole_number_is_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        split_weight(text, "-f")
    assert caught.value.slug == "study-bad-weight"
    assert caught.value.where == f"-f {text}"


@given(st.text(), st.integers(0, 10**6))
def test_name_and_weight_round_trip(name: str, weight: int) -> None:
    assert split_weight(f"{name}@{weight}", "-f") == (name, weight)


@given(st.text())
def test_any_text_is_a_weight_or_a_study_error(text: str) -> None:
    try:
        name, weight = split_weight(text, "-f")
    except StudyError as error:
        assert "@" in text
        assert error.slug == "study-bad-weight"  # noqa: PT017 - the same
    else:
        assert text.startswith(name)
        assert (weight is None) == ("@" not in text)


def load(*scripts: Script) -> PgbenchWorkload:
    return PgbenchWorkload(scripts=scripts)


@pytest.mark.parametrize(("threads", "clients", "used"), [(8, 4, 4), (4, 8, 4), (1, 1, 1)])
def test_threads_never_exceed_clients(threads: int, clients: int, used: int) -> None:
    assert threads_used(threads, clients) == used


def test_a_mix_with_only_zero_weights_is_rejected() -> None:
    with pytest.raises(StudyError) as caught:
        check_load(load(Script(name="tpcb-like", weight=0), Script(name="a.sql", weight=0, text="")))
    assert caught.value.slug == "study-no-weight"
    assert "tpcb-like@0, a.sql@0" in caught.value.found


@pytest.mark.parametrize("weights", [(None,), (0, None), (0, 1), (5, 0)])
def test_a_mix_with_a_positive_weight_is_accepted(weights: tuple[int | None, ...]) -> None:
    mix = load(*(Script(name=f"{i}.sql", weight=weight, text="") for i, weight in enumerate(weights)))
    check_load(mix)
    assert len(mix.scripts) == len(weights)


def test_a_workload_is_named_after_its_scripts() -> None:
    mix = load(Script(name="tpcb-like"), Script(name="a.sql", weight=3, text="SELECT 1"))
    assert mix.name == "tpcb-like, a.sql@3"


def test_the_short_name_of_a_mix_has_every_script_without_its_folder() -> None:
    mix = load(Script(name="q/a.sql", weight=9, text="SELECT 1"), Script(name="q/b.sql", text="SELECT 2"))
    assert mix.short_name == "a.sql@9, b.sql"


def test_a_rate_makes_an_open_loop() -> None:
    closed = load(Script(name="tpcb-like"))
    assert not closed.is_open_loop
    assert replace(closed, rate=100.0).is_open_loop


@pytest.mark.parametrize(
    ("rate", "text"), [(100.0, "100"), (12345.678, "12345.678"), (1234567.0, "1234567"), (1e-05, "1e-05")]
)
def test_the_rate_of_pgbench_is_that_of_the_study(rate: float, text: str) -> None:
    load = PgbenchWorkload(scripts=(Script(name="select-only"),), rate=rate)
    assert load.pgbench_arguments([])[-2:] == ["-R", text]


def test_an_empty_file_is_not_a_builtin() -> None:
    assert Script(name="tpcb-like").is_builtin
    assert not Script(name="tpcb-like", text="").is_builtin


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("SELECT 1", True),
        ("SELECT 1;\n", True),
        ("\\set id random(1, 10)\nSELECT :id;", True),
        ("SELECT 'a;b', \"c;d\", $$e;f$$, $x$g;$$h;$x$;", True),
        ("SELECT 1; -- a comment; with semicolons", True),
        ("/* one; two; */ SELECT 1;", True),
        ("SELECT E'it\\'s; one';", True),
        ("SELECT e'\\\\';", True),
        ("SELECT 1; SELECT 2;", False),
        ("BEGIN; SELECT 1; COMMIT;", False),
        ("SELECT E'it\\'s'; SELECT 'x';", False),
        ("SELECT e'\\\\'; SELECT 'x';", False),
        ("SELECT 'a''b'; SELECT 'c';", False),
        ("SELECT 1 AS a \\gset\nSELECT :a;", False),
        ("SELECT 1 \\; SELECT 2;", False),
        ("SELECT 1;\n\\set id 1", False),
    ],
)
def test_single_statements_are_recognized(text: str, *, is_one: bool) -> None:
    assert Script(name="q.sql", text=text).is_one_statement is is_one


def test_select_only_is_the_only_builtin_with_one_statement() -> None:
    assert [name for name in BUILTIN_SCRIPTS if Script(name=name, text=None).is_one_statement] == ["select-only"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("BEGIN;\nDELETE FROM t;\nROLLBACK;\n", True),
        ("begin; UPDATE t SET a = ';'; SELECT 1; rollback", True),
        ("BEGIN;\nDELETE FROM t;\nCOMMIT;\nBEGIN;\nSELECT 1;\nROLLBACK;\n", False),
        ("BEGIN;\nDELETE FROM t;\nCOMMIT;\n", False),
        ("DELETE FROM t;\nROLLBACK;\n", False),
        ("BEGIN;\nROLLBACK;\n", False),
        ("BEGIN;\nDELETE FROM t;\nROLLBACK;\nDELETE FROM u;\n", False),
        ("", False),
    ],
)
def test_a_script_that_is_rolled_back_is_one_transaction(text: str, *, expected: bool) -> None:
    assert Script(name="x.sql", text=text).is_rolled_back is expected
    assert not Script(name="tpcb-like").is_rolled_back
