"""Each server is asked once for every level; refusals are reported together, and missing settings may be skipped."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.builds.model import Build
from pgversus.errors import StudyError, StudyFileError
from pgversus.lab.server_settings import ask_of, with_possible_settings
from pgversus.postgres.settings_check import SettingAnswer
from pgversus.study.servers import Release, RunningServer, ServerName
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from tests.builders import comparison

OLD, NEW = Release(major=16, minor=12), Release(major=17, minor=8)
UNKNOWN = 'unrecognized configuration parameter "io_combine_limit"'


class Servers:
    """Fake servers: the old one lacks io_combine_limit, work_mem has a range, and units are understood."""

    def __init__(self) -> None:
        self.requested: list[tuple[ServerName, Setting]] = []

    def __call__(self, server: ServerName, setting: Setting) -> SettingAnswer:
        self.requested.append((server, setting))
        if setting.name == "io_combine_limit" and server == OLD:
            return SettingAnswer(value=None, message=UNKNOWN, nearest="io_method")
        if setting.value == "1kB":
            return SettingAnswer(value=None, message="1 kB is outside the valid range")
        return SettingAnswer(value={"4096kB": "4096", "4MB": "4096"}.get(setting.value, setting.value), message="")


def study(
    *contexts: tuple[tuple[ServerName, tuple[tuple[str, str], ...]], ...], factors: tuple[str, ...] = ("server",)
) -> Study:
    made = []
    for number, arms in enumerate(contexts, 1):
        requested = comparison(tuple(f"arm{index}" for index in range(len(arms))))
        new = tuple(
            replace(arm, server=server, settings=tuple(Setting(name=n, value=v) for n, v in settings))
            for arm, (server, settings) in zip(requested.arms, arms, strict=True)
        )
        made.append(Context(number=number, levels=(), comparison=replace(requested, arms=new, factors=factors)))
    return Study(name="s", title="t", question="", contexts=tuple(made), seed=1, budget_s=60.0)


def test_each_server_checks_each_value_once() -> None:
    ask = Servers()
    arms = ((OLD, (("work_mem", "8MB"),)), (NEW, (("work_mem", "8MB"),)))
    requested = study(arms, arms, arms)
    assert with_possible_settings(requested, ask) == requested
    assert ask.requested == [(server, Setting(name="work_mem", value="8MB")) for server in (OLD, NEW)]


def test_only_available_servers_check_values() -> None:
    builds: dict[ServerName, Build | None] = {OLD: Build(version="16.12", bin_directory=Path("/x"), origin="test")}
    said = SettingAnswer(value="1", message="")
    ask = ask_of({**builds, NEW: None}, lambda _, __: said)
    setting = Setting(name="work_mem", value="8MB")
    nowhere = RunningServer(uri="postgresql:///postgres?host=/nowhere")
    assert [ask(server, setting) for server in (OLD, NEW, nowhere)] == [said, None, None]


def test_all_refusals_are_reported_together_with_the_servers_messages() -> None:
    requested = study(
        ((OLD, (("work_mem", "1kB"),)), (NEW, (("work_mem", "1kB"), ("io_combine_limit", "8")))),
        ((OLD, (("io_combine_limit", "8"),)), (NEW, (("io_combine_limit", "8"),))),
    )
    with pytest.raises(StudyFileError) as caught:
        with_possible_settings(requested, Servers())
    assert [(problem.where, problem.found) for problem in caught.value.problems] == [
        ("work_mem = 1kB, on 16.12, 17.8", "1 kB is outside the valid range"),
        ("io_combine_limit = 8, on 16.12", UNKNOWN),
    ]


def test_a_setting_that_no_server_has_is_refused_once_even_if_missing_ones_are_skipped() -> None:
    levels = tuple((OLD, (("io_combine_limit", str(i)),)) for i in range(3))
    for skips in (False, True):
        requested = replace(study(levels, factors=("io_combine_limit",)), skips_missing_settings=skips)
        with pytest.raises(StudyError) as caught:
            with_possible_settings(requested, Servers())
        assert caught.value.slug == "study-setting-refused"
        assert caught.value.where == "io_combine_limit = 0, 1, 2, on 16.12"
        assert caught.value.to_do == "did you mean io_method?"


def test_skipping_is_suggested_only_if_another_server_has_the_setting() -> None:
    requested = study(((OLD, (("io_combine_limit", "8"),)), (NEW, (("io_combine_limit", "8"), ("work_mem", "1kB")))))
    with pytest.raises(StudyFileError) as caught:
        with_possible_settings(requested, Servers())
    assert ['if_missing = "skip"' in problem.to_do for problem in caught.value.problems] == [True, False]


def test_levels_that_are_the_same_to_the_server_are_refused() -> None:
    requested = study(
        ((NEW, (("work_mem", "4MB"),)), (NEW, (("work_mem", "4096kB"),))),
        factors=("work_mem",),
    )
    with pytest.raises(StudyError) as caught:
        with_possible_settings(requested, Servers())
    assert caught.value.slug == "study-same-levels"


def test_a_shared_setting_is_left_out_for_the_server_that_lacks_it() -> None:
    arms = ((OLD, (("io_combine_limit", "8"),)), (NEW, (("io_combine_limit", "8"),)))
    found = with_possible_settings(replace(study(arms), skips_missing_settings=True), Servers())
    assert [arm.settings for arm in found.contexts[0].comparison.arms] == [
        (),
        (Setting(name="io_combine_limit", value="8"),),
    ]
    assert [(one.label, one.reason) for one in found.skipped] == [(f"io_combine_limit on {OLD}", "unknown setting")]


def test_a_setting_of_the_users_own_server_may_be_unknown_to_every_compared_server() -> None:
    arms = ((OLD, (("io_combine_limit", "8"),)), (OLD, (("io_combine_limit", "8"),)))
    requested = replace(study(arms), skips_missing_settings=True)
    with pytest.raises(StudyError):
        with_possible_settings(requested, Servers())
    found = with_possible_settings(replace(requested, carried_settings=frozenset({"io_combine_limit"})), Servers())
    assert [arm.settings for arm in found.contexts[0].comparison.arms] == [(), ()]
    assert len(found.skipped) == 1


def test_a_level_that_a_server_lacks_is_left_out_with_its_treatment() -> None:
    levels = tuple((OLD if i == 2 else NEW, (("io_combine_limit", str(i)),)) for i in range(3))
    requested = study(levels, factors=("io_combine_limit",))
    found = with_possible_settings(replace(requested, skips_missing_settings=True), Servers())
    assert [(arm.index, arm.label) for arm in found.contexts[0].comparison.arms] == [(0, "arm0"), (1, "arm1")]
    assert [(one.label, one.reason) for one in found.skipped] == [("arm2", "unknown setting io_combine_limit")]


def test_a_context_without_baseline_is_dropped_and_a_study_without_contexts_is_an_error() -> None:
    arms = ((OLD, (("io_combine_limit", "1"),)), (NEW, (("io_combine_limit", "2"),)))
    good = ((NEW, ()), (NEW, ()))
    requested = replace(study(good, arms, factors=("io_combine_limit",)), skips_missing_settings=True)
    assert [context.number for context in with_possible_settings(requested, Servers()).contexts] == [1]
    with pytest.raises(StudyError) as caught:
        with_possible_settings(replace(requested, contexts=requested.contexts[1:]), Servers())
    assert caught.value.slug == "study-nothing-left"


def test_contexts_left_are_numbered_without_gaps() -> None:
    arms = ((OLD, (("io_combine_limit", "1"),)), (NEW, (("io_combine_limit", "2"),)))
    good, other = ((NEW, ()), (NEW, ())), ((NEW, (("work_mem", "8MB"),)), (NEW, ()))
    requested = replace(study(arms, good, arms, other, factors=("io_combine_limit",)), skips_missing_settings=True)
    left = with_possible_settings(requested, Servers()).contexts
    assert [context.number for context in left] == [1, 2]
    assert [one.comparison.baseline for one in left] == [requested.contexts[i].comparison.baseline for i in (1, 3)]


def test_a_refused_value_is_an_error_even_if_missing_settings_are_skipped() -> None:
    requested = replace(study(((NEW, ()), (NEW, (("work_mem", "1kB"),)))), skips_missing_settings=True)
    with pytest.raises(StudyError) as caught:
        with_possible_settings(requested, Servers())
    assert caught.value.slug == "study-setting-refused"
