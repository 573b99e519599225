"""Settings that are overridden in the sessions of the load are refused."""

from dataclasses import replace

import pytest

from pgversus.errors import WorkloadError
from pgversus.lab.acting_settings import (
    check_compared_settings_act,
    check_reported_settings,
    check_settings_in_sessions,
)
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.settings_check import SettingAnswer
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting
from tests.builders import comparison

# What postgres -C prints.
PRINTED = {"4096kB": "4096", "4MB": "4096", "8MB": "8192", "false": "off", "off": "off", "on": "on"}


def ask(_server: ServerName, setting: Setting) -> SettingAnswer | None:
    if setting.value not in PRINTED:
        return SettingAnswer(value=None, message="invalid value")
    return SettingAnswer(value=PRINTED[setting.value], message="")


@pytest.mark.parametrize(
    ("name", "requested", "shown", "source", "is_refused"),
    [
        ("work_mem", "4096kB", "4MB", "database", False),
        ("enable_hashjoin", "false", "off", "user", False),
        ("enable_hashjoin", "OFF", "off", "database user", False),
        ("work_mem", "4096kB", "8MB", "database", True),
        ("enable_hashjoin", "false", "on", "user", True),
        ("work_mem", "unknown", "other", "database", True),
        ("work_mem", "4096kB", "8MB", "session", True),
        # The server computes it, like wal_buffers.
        ("work_mem", "4096kB", "8MB", "override", False),
    ],
)
def test_a_value_that_was_set_again_in_a_different_notation_is_not_overridden(
    name: str, requested: str, shown: str, source: str, *, is_refused: bool
) -> None:
    setting = Setting(name=name, value=requested)
    of = comparison()
    of = replace(of, arms=tuple(replace(arm, settings=(setting,)) for arm in of.arms))
    sessions = [{name.upper(): SettingValue(value=shown, source=source, context="user")}] * 2
    if not is_refused:
        check_settings_in_sessions(of, sessions, ask)
        return
    with pytest.raises(WorkloadError) as caught:
        check_settings_in_sessions(of, sessions, ask)
    assert caught.value.slug == "workload-setting-overridden"


@pytest.mark.parametrize(("source", "is_refused"), [("client", False), ("default", True), ("database", True)])
def test_a_setting_that_a_connection_pooler_ignores_is_refused(source: str, *, is_refused: bool) -> None:
    of = comparison()
    external = tuple(
        replace(arm, server=RunningServer(uri="postgresql:///"), settings=(Setting(name="work_mem", value="8MB"),))
        for arm in of.arms
    )
    sessions = [{"work_mem": SettingValue(value="4MB", source=source, context="user")}] * 2
    if not is_refused:
        check_settings_in_sessions(replace(of, arms=external), sessions, ask)
        return
    with pytest.raises(WorkloadError) as caught:
        check_settings_in_sessions(replace(of, arms=external), sessions, ask)
    assert caught.value.to_do is not None
    assert ("pooler" in caught.value.to_do) == (source == "default")


def shown(**values: str) -> dict[str, SettingValue]:
    return {name: SettingValue(value=value, source="default", context="user") for name, value in values.items()}


@pytest.mark.parametrize(
    ("name", "values", "session", "have_jit", "is_refused"),
    [
        ("jit", ("off", "on"), shown(jit="on"), False, True),
        ("jit_above_cost", ("0", "1"), shown(), False, True),
        ("jit", ("off", "on"), shown(jit="on"), True, False),
        ("jit", ("on", "on"), shown(jit="on"), False, False),
        # Without huge pages on the other arm, "off" is what it has anyway.
        ("huge_pages", ("off", "try"), shown(huge_pages_status="off"), True, True),
        ("huge_pages", ("off", "try"), shown(huge_pages="try"), True, False),
        ("auto_explain.log_analyze", ("off", "on"), shown(), True, True),
        ("auto_explain.log_analyze", ("off", "on"), {"auto_explain.log_analyze": shown(a="on")["a"]}, True, False),
        ("my.rounds", ("1", "2"), shown(), True, False),
    ],
)
def test_a_compared_setting_that_cannot_act_is_refused(
    name: str, values: tuple[str, str], session: dict[str, SettingValue], *, have_jit: bool, is_refused: bool
) -> None:
    arms = comparison().arms
    arms = tuple(
        replace(arm, settings=(Setting(name=name, value=value),)) for arm, value in zip(arms, values, strict=True)
    )
    if not is_refused:
        check_compared_settings_act(arms, [session] * 2, [have_jit] * 2)
        return
    with pytest.raises(WorkloadError) as caught:
        check_compared_settings_act(arms, [session] * 2, [have_jit] * 2)
    assert caught.value.slug == "workload-setting-without-effect"


@pytest.mark.parametrize(
    ("name", "told", "is_refused"),
    [
        ("work_mem", ["4MB", "4MB"], False),
        ("work_mem", ["8MB", "4MB"], True),
        ("my.rounds", ["4096kB"], False),
        ("my.rounds", ["4096KB"], False),
        ("my.rounds", ["5"], True),
    ],
)
def test_a_setting_that_changes_for_some_statements_is_overridden(
    name: str, told: list[str], *, is_refused: bool
) -> None:
    arm = replace(comparison().arms[0], settings=(Setting(name=name, value="4096kB"),))
    if not is_refused:
        check_reported_settings(arm, shown(work_mem="4MB"), {name: told}, "load.sql")
        return
    with pytest.raises(WorkloadError) as caught:
        check_reported_settings(arm, shown(work_mem="4MB"), {name: told}, "load.sql")
    assert caught.value.slug == "workload-setting-overridden"


def test_a_setting_that_acts_on_one_arm_is_compared() -> None:
    plain, other = comparison().arms
    tracking = replace(other, settings=(Setting(name="pg_stat_statements.track", value="all"),))
    sessions = [shown(), {"pg_stat_statements.track": shown(a="all")["a"]}]
    check_compared_settings_act([plain, tracking], sessions, [False, False])
    jit = replace(other, settings=(Setting(name="jit", value="off"),))
    check_compared_settings_act([plain, jit], [shown(), shown(jit="off")], [False, True])
