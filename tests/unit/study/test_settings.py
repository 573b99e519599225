import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.settings import Setting, SettingLevels, check_repeated_names, parse_setting, shaping_settings

PLAIN = st.text(alphabet="abcXYZ0129._-/ :", min_size=1, max_size=12).map(str.strip).filter(bool)
LINE = st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=40)


@pytest.mark.parametrize(
    ("text", "name", "values"),
    [
        ("work_mem=64MB", "work_mem", ("64MB",)),
        ("work_mem=4MB,64MB", "work_mem", ("4MB", "64MB")),
        ("work_mem = 4MB, 64MB ", "work_mem", ("4MB", "64MB")),
        ("bench.delay=1,2", "bench.delay", ("1", "2")),
        ("search_path='a,b',c", "search_path", ("a,b", "c")),
        ("search_path='a,b', 'c,d'", "search_path", ("a,b", "c,d")),
        ("x='it''s',b", "x", ("it's", "b")),
        ("x=", "x", ("",)),
        ("x=a,", "x", ("a", "")),
        ("x=''", "x", ("",)),
        ("x=a=b,c=d", "x", ("a=b", "c=d")),
        ("DateStyle=ISO", "DateStyle", ("ISO",)),
        ("_a$1=on", "_a$1", ("on",)),
    ],
)
def test_a_setting_has_a_name_and_levels(text: str, name: str, values: tuple[str, ...]) -> None:
    assert parse_setting(text) == SettingLevels(name=name, values=values)


@pytest.mark.parametrize("text", ["", "=", "=4MB", "work_mem", "work mem=4MB", "1x=2", "a..b=1", ".a=1", "a.=1", "é=1"])
def test_text_without_name_and_equals_sign_is_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_setting(text)
    assert caught.value.slug == "study-bad-setting"
    assert "NAME=VALUE" in caught.value.expected


@pytest.mark.parametrize("text", ["a=1,1", "a=1,2,1", "a=1, 1", " a =1,1", "a='1',1", "a=,"])
def test_a_repeated_level_is_rejected(text: str) -> None:
    with pytest.raises(StudyError) as caught:
        parse_setting(text)
    assert caught.value.slug == "study-repeated-level"
    assert caught.value.what == 'duplicate level of "a"'


@given(st.lists(PLAIN, min_size=1, max_size=6, unique=True))
def test_plain_levels_round_trip(values: list[str]) -> None:
    assert parse_setting("a=" + ",".join(values)).values == tuple(values)


@given(st.lists(st.text(alphabet="ab,'", min_size=1, max_size=8), min_size=1, max_size=4, unique=True))
def test_quoted_levels_round_trip(values: list[str]) -> None:
    quoted = ",".join("'" + value.replace("'", "''") + "'" for value in values)
    assert parse_setting(f"a={quoted}").values == tuple(values)


@given(LINE | LINE.map(lambda text: f"a={text}"))
def test_any_text_is_a_setting_or_a_study_error(text: str) -> None:
    try:
        setting = parse_setting(text)
    except StudyError as error:
        assert error.where == f"--set {text}"  # noqa: PT017 - the other branch does not fail
    else:
        assert setting.values
        assert text.strip().startswith(setting.name)


def test_a_setting_given_twice_is_rejected_in_any_case() -> None:
    with pytest.raises(StudyError) as caught:
        check_repeated_names([parse_setting("work_mem=1"), parse_setting("jit=on"), parse_setting("WORK_MEM=2")])
    assert caught.value.slug == "study-repeated-setting"
    assert "work_mem" in caught.value.what


def test_different_names_are_accepted() -> None:
    settings = [parse_setting("work_mem=1"), parse_setting("jit=on")]
    check_repeated_names(settings)
    assert [setting.name for setting in settings] == ["work_mem", "jit"]


def test_a_setting_is_formatted_as_name_and_value() -> None:
    assert str(Setting(name="jit", value="off")) == "jit=off"


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("default_toast_compression", (True, True)),
        ("bench.rows", (True, True)),
        ("shared_preload_libraries", (False, True)),
        ("Max_Prepared_Transactions", (False, True)),
        ("wal_level", (False, False)),
        ("work_mem", (False, False)),
    ],
)
def test_shaping_settings_include_those_needed_by_setup_files(name: str, shapes: tuple[bool, bool]) -> None:
    setting = Setting(name=name, value="x")
    assert tuple(shaping_settings([setting], runs_files=files) == (setting,) for files in (False, True)) == shapes
