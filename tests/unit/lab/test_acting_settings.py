"""Settings that are overridden in the sessions of the load are refused."""

from dataclasses import replace

import pytest

from pgversus.errors import WorkloadError
from pgversus.lab.acting_settings import check_settings_in_sessions
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.settings_check import SettingAnswer
from pgversus.study.servers import ServerName
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
        ("work_mem", "4096kB", "8MB", "configuration file", False),
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
