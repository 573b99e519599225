"""Check that the settings of each arm act in the sessions of its load.

ALTER DATABASE or ALTER ROLE in a setup file, or SET in a script, may override a setting that is compared. Both arms
would then run with the same value, and the comparison would find no difference, without any warning.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from pgversus.errors import WorkloadError
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.server_settings import Ask
from pgversus.postgres import catalog
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.session import Target, connect
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.servers import ServerName
from pgversus.study.settings import Setting
from pgversus.study.workload import Script
from pgversus.text.redaction import value_without_secrets
from pgversus.workload.pgbench_run import PgbenchLoad
from pgversus.workload.sent_statements import settings_after

Settings = Mapping[str, SettingValue]
"""Settings by name."""

_OVERRIDING = {
    "database": "ALTER DATABASE ... SET",
    "user": "ALTER ROLE ... SET",
    "database user": "ALTER ROLE ... IN DATABASE ... SET",
}
"""Statements that override the configuration of a server, by the source that pg_settings shows."""


def session_settings(server: ArmServer) -> Settings:
    """Return the settings of a running server as a session of the workload has them."""
    with connect(server.target, as_the_load=True) as connection:
        return catalog.session_settings(connection)


def check_settings_in_sessions(comparison: Comparison, sessions: Sequence[Settings], ask: Ask) -> None:
    """Raise WorkloadError if a new session of the load does not have a requested setting.

    sessions: for each arm, the settings of such a session. ask: asks its server about a setting.
    """
    for arm, settings in zip(comparison.arms, sessions, strict=True):
        by_name = _by_lower_name(settings)
        for setting in arm.settings:
            found = by_name.get(setting.name.lower())
            statement = None if found is None else _OVERRIDING.get(found.source)
            # An override with the same value does no harm.
            if found is not None and statement is not None and not _is_same(arm.server, setting, found.value, ask):
                raise _overridden(
                    arm, setting.name, found.value, statement, f"remove {statement} from the setup file or the server"
                )


def _is_same(server: ServerName, setting: Setting, value: str, ask: Ask) -> bool:
    """Return whether this is the value of the setting, in any notation: 4096kB is 4MB, and false is off."""
    if value.lower() == setting.value.lower():
        return True
    requested, found = (ask(server, one) for one in (setting, replace(setting, value=value)))
    return requested is not None and found is not None and requested.value == found.value is not None


def check_settings_in_scripts(
    comparison: Comparison, loads: Sequence[PgbenchLoad], targets: Sequence[Target], sessions: Sequence[Settings]
) -> None:
    """Raise WorkloadError if a script changes a requested setting in its session. Runs each script once on each arm.

    loads, targets, sessions: for each arm; sessions: the settings before any script ran. Scripts that cannot run inside
    one transaction are not checked.
    """
    for arm, load, target, settings in zip(comparison.arms, loads, targets, sessions, strict=True):
        before = _by_lower_name(settings)
        names = [setting.name for setting in arm.settings if setting.name.lower() in before]
        for script in load.workload.scripts if names else ():
            for name, value in _after(script, load, target, names).items():
                if name in names and value != before[name.lower()].value:
                    raise _overridden(arm, name, value, script.name, f"remove SET {name} from {script.name}")


def _after(script: Script, load: PgbenchLoad, target: Target, names: Sequence[str]) -> Mapping[str, str]:
    """Return the settings after a script; empty if it cannot run inside one transaction."""
    try:
        return settings_after(script, load.workload, load.client, target, load.scratch.with_name("settings"), names)
    except WorkloadError:
        return {}


def _by_lower_name(settings: Settings) -> Mapping[str, SettingValue]:
    return {name.lower(): value for name, value in settings.items()}


def _overridden(arm: Arm, name: str, found: str, by: str, to_do: str) -> WorkloadError:
    requested = next(setting.value for setting in arm.settings if setting.name == name)
    return WorkloadError(
        "a setting is overridden in the sessions of the load",
        slug="workload-setting-overridden",
        where=f"{name} = {value_without_secrets(name, requested)}, on {arm.label}",
        found=f"{value_without_secrets(name, found)}, set by {by}",
        expected="the requested value in every session, during every script",
        to_do=to_do,
    )
