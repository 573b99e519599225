import pytest

from pgversus.errors import StudyError
from pgversus.study.comparison import Arm, expand_arms
from pgversus.study.dataset import Dataset, Statistics
from pgversus.study.servers import parse_server
from pgversus.study.settings import SettingLevels
from pgversus.study.targets import with_new_defaults, with_statistics
from pgversus.study.workload import PgbenchWorkload


def arms_of(*versions: str, **settings: str) -> tuple[Arm, ...]:
    """Arms with these settings."""
    servers = [(version, parse_server(version)) for version in versions]
    carried = [SettingLevels(name=name, values=(value,)) for name, value in settings.items()]
    arms, _ = expand_arms(servers, carried, workload=PgbenchWorkload(scripts=()), dataset=Dataset(pgbench_scale=1))
    return arms


def test_each_target_is_also_added_with_other_statistics() -> None:
    arms = arms_of("16.12", "17.8", "18.0")
    found, factors = with_statistics(arms, ("server",), ["none", "none"])
    assert [(one.index, one.label) for one in found] == [
        (0, "16.12"),
        (1, "17.8"),
        (2, "17.8 without statistics"),
        (3, "18.0"),
        (4, "18.0 without statistics"),
    ]
    kinds = [one.dataset.statistics for one in found]
    assert kinds == [Statistics.ALL, Statistics.ALL, Statistics.NONE, Statistics.ALL, Statistics.NONE]
    assert len({one.dataset.rows for one in found}) == 1
    assert factors == ("server", "statistics")
    with pytest.raises(StudyError) as caught:
        with_statistics(arms * 10, (), ["none", "kept"])
    assert caught.value.slug == "study-too-many-arms"


def test_without_other_statistics_nothing_is_added() -> None:
    arms = arms_of("16.12", "17.8")
    assert with_statistics(arms, ("server",), []) == (arms, ("server",))


def test_targets_are_added_without_the_old_defaults_of_the_source() -> None:
    settings = {"effective_io_concurrency": "1", "vacuum_buffer_usage_limit": "256 kB", "work_mem": "4MB"}
    arms = arms_of("16.12", "17.8", "18", **settings)
    found, factors = with_new_defaults(arms, ("server",), settings)
    assert [(one.index, one.label) for one in found] == [
        (0, "16.12"),
        (1, "17.8"),
        (2, "17.8 with new defaults"),
        (3, "18"),
        (4, "18 with new defaults"),
    ]
    assert [sorted(setting.name for setting in one.settings) for one in found] == [
        sorted(settings),
        sorted(settings),
        ["effective_io_concurrency", "work_mem"],
        sorted(settings),
        ["work_mem"],
    ]
    assert factors == ("server", "vacuum_buffer_usage_limit", "effective_io_concurrency")


@pytest.mark.parametrize(
    ("settings", "carried"),
    [
        # Not the old default, not from the configuration file, and a default that has not changed since 16.
        ({"effective_io_concurrency": "200"}, ["effective_io_concurrency"]),
        ({"effective_io_concurrency": "1"}, []),
        ({"checkpoint_completion_target": "0.90"}, ["checkpoint_completion_target"]),
    ],
)
def test_without_an_old_default_there_is_nothing_to_check(settings: dict[str, str], carried: list[str]) -> None:
    with pytest.raises(StudyError) as caught:
        with_new_defaults(arms_of("16.12", "18", **settings), (), carried)
    assert caught.value.slug == "study-no-new-defaults"


def test_new_defaults_are_also_checked_for_a_build_from_source() -> None:
    arms = arms_of("12", "14+cassert", checkpoint_completion_target="0.50")
    found, _ = with_new_defaults(arms, (), ["checkpoint_completion_target"])
    assert [one.label for one in found] == ["12", "14+cassert", "14+cassert with new defaults"]


def test_the_defaults_of_an_unknown_version_are_unknown() -> None:
    arms = arms_of("16", "./postgres", effective_io_concurrency="1")
    with pytest.raises(StudyError) as caught:
        with_new_defaults(arms, (), ["effective_io_concurrency"])
    assert caught.value.slug == "study-no-new-defaults"
    assert "./postgres" in caught.value.where
