import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.errors import StudyError
from pgversus.study.comparison import Arm, expand_arms
from pgversus.study.dataset import Dataset
from pgversus.study.servers import ServerName, parse_server
from pgversus.study.settings import Setting, SettingLevels, parse_setting
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison

WORKLOAD, DATASET = PgbenchWorkload(scripts=(Script(name="select-only"),)), Dataset(pgbench_scale=1)


def named(*texts: str) -> list[tuple[str, ServerName]]:
    return [(text, parse_server(text)) for text in texts]


def expanded(
    servers: list[tuple[str, ServerName]], settings: list[SettingLevels]
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    return expand_arms(servers, settings, workload=WORKLOAD, dataset=DATASET)


def labels(servers: list[tuple[str, ServerName]], *settings: str) -> list[str]:
    return [arm.label for arm in expanded(servers, [parse_setting(text) for text in settings])[0]]


def test_two_servers_are_two_arms() -> None:
    arms, factors = expanded(named("16.12", "17.8"), [])
    assert [(arm.index, arm.label, arm.settings) for arm in arms] == [(0, "16.12", ()), (1, "17.8", ())]
    assert [arm.server for arm in arms] == [parse_server("16.12"), parse_server("17.8")]
    assert factors == ("server",)
    assert all((arm.workload, arm.dataset) == (WORKLOAD, DATASET) for arm in arms)


def test_a_server_named_twice_is_an_a_a_comparison_with_numbered_labels() -> None:
    assert labels(named("17", "17")) == ["17", "17 (2)"]
    assert labels(named("17", "17", "17")) == ["17", "17 (2)", "17 (3)"]


def test_levels_on_one_server_are_labeled_without_the_server() -> None:
    arms, factors = expanded(named("17"), [parse_setting("work_mem=4MB,64MB")])
    assert [arm.label for arm in arms] == ["work_mem=4MB", "work_mem=64MB"]
    assert [arm.settings for arm in arms] == [
        (Setting(name="work_mem", value="4MB"),),
        (Setting(name="work_mem", value="64MB"),),
    ]
    assert factors == ("work_mem",)


def test_a_setting_with_one_value_applies_to_every_arm_and_is_not_a_factor() -> None:
    arms, factors = expanded(named("16", "17"), [parse_setting("jit=off")])
    assert [arm.label for arm in arms] == ["16", "17"]
    assert all(arm.settings == (Setting(name="jit", value="off"),) for arm in arms)
    assert factors == ("server",)


def test_the_first_server_and_level_are_the_baseline() -> None:
    found = labels(named("16", "17"), "jit=off,on", "work_mem=4MB,64MB", "fsync=off")
    assert found[0] == "16 jit=off work_mem=4MB"
    assert len(found) == 8
    assert found[-1] == "17 jit=on work_mem=64MB"


@given(
    st.lists(st.sampled_from(["16", "17", "17.8", "./bin"]), min_size=1, max_size=4),
    st.lists(st.integers(1, 3), max_size=3),
)
def test_arms_are_the_product_with_unique_labels_and_indexes(servers: list[str], sizes: list[int]) -> None:
    settings = [
        SettingLevels(name=f"s{i}", values=tuple(str(value) for value in range(size))) for i, size in enumerate(sizes)
    ]
    expected = len(servers)
    for size in sizes:
        expected *= size
    if not 2 <= expected <= 51:
        with pytest.raises(StudyError):
            expanded(named(*servers), settings)
        return
    arms, factors = expanded(named(*servers), settings)
    assert [arm.index for arm in arms] == list(range(expected))
    assert len({arm.label for arm in arms}) == expected
    assert len(factors) == (len(servers) > 1) + sum(size > 1 for size in sizes)
    assert all([setting.name for setting in arm.settings] == [setting.name for setting in settings] for arm in arms)


def test_a_single_arm_is_rejected() -> None:
    for settings in ([], [parse_setting("jit=off")]):
        with pytest.raises(StudyError) as caught:
            expanded(named("17"), settings)
        assert caught.value.slug == "study-one-arm"
        assert caught.value.found == "17"


def test_too_many_arms_are_rejected_without_expansion() -> None:
    levels = [SettingLevels(name=f"s{number}", values=tuple(map(str, range(50)))) for number in range(40)]
    with pytest.raises(StudyError) as caught:
        expanded(named("17"), levels)
    assert caught.value.slug == "study-too-many-arms"
    assert caught.value.found == f"{' x '.join(['50'] * 40)} arms"


def test_a_comparison_without_servers_is_rejected() -> None:
    with pytest.raises(StudyError) as caught:
        expanded([], [parse_setting("jit=off,on")])
    assert caught.value.found == "nothing"


def test_all_arms_except_the_baseline_are_contenders() -> None:
    requested = comparison(("a", "b", "c"))
    assert requested.baseline.label == "a"
    assert [arm.label for arm in requested.contenders] == ["b", "c"]
