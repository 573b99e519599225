"""Check that the settings of each arm act in the sessions of its load.

ALTER DATABASE or ALTER ROLE in a setup file, or SET in a script, may override a setting that is compared, and some
settings act only if the build or the host can do what they ask. Both arms would then run alike, and the comparison
would find no difference, without any warning.
"""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from pgversus.errors import WorkloadError
from pgversus.lab.arm_servers import ArmServer
from pgversus.lab.server_settings import Ask
from pgversus.postgres import catalog
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.session import Target, connect
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.servers import RunningServer, ServerName
from pgversus.study.settings import Setting
from pgversus.study.workload import Script
from pgversus.text.redaction import value_without_secrets
from pgversus.workload.pgbench_run import PgbenchLoad
from pgversus.workload.sent_statements import settings_during

Settings = Mapping[str, SettingValue]
"""Settings by name."""
ReportedSettings = Mapping[str, Sequence[str]]
"""Values of requested settings by name, one after each statement."""

_OVERRIDING = {
    "global": "ALTER ROLE ALL SET",
    "database": "ALTER DATABASE ... SET",
    "user": "ALTER ROLE ... SET",
    "database user": "ALTER ROLE ... IN DATABASE ... SET",
    "session": "SET in an event trigger of logins",
}
"""Statements that override the configuration of a server, by the source that pg_settings shows."""
_OF_CONNECTION = "client"
"""The source of the settings of a connection string."""
_OF_OUR_CONNECTION = "client_encoding"
"""A setting that a connection sets itself if it cannot read the requested one."""


def session_settings(server: ArmServer) -> Settings:
    """Return the settings of a running server as a session of the workload has them."""
    with connect(server.load_target, as_the_load=True) as connection:
        return catalog.session_settings(connection)


def check_settings_in_sessions(comparison: Comparison, sessions: Sequence[Settings], ask: Ask) -> None:
    """Raise WorkloadError if a new session of the load does not have a requested setting.

    sessions: for each arm, the settings of such a session. ask: asks its server about a setting.
    """
    for arm, settings in zip(comparison.arms, sessions, strict=True):
        by_name = _by_lower_name(settings)
        for setting in arm.settings:
            found = by_name.get(setting.name.lower())
            if found is None or setting.name.lower() == _OF_OUR_CONNECTION:
                continue
            cause = _cause(arm, found)
            # An override with the same value does no harm.
            if cause is not None and not _is_same(arm.server, setting, found.value, ask):
                raise _overridden(arm, setting.name, found.value, *cause)


def _cause(arm: Arm, found: SettingValue) -> tuple[str, str] | None:
    """Return what may have overridden a requested setting, and what to do; None if the server computes it.

    The settings of an external server are those of the connection, which a connection pooler may ignore.
    """
    is_external = isinstance(arm.server, RunningServer)
    statement = _OVERRIDING.get(found.source)
    if statement is not None:
        return statement, f"remove it {'from the server' if is_external else 'from the setup file or the dump'}"
    if is_external and found.source != _OF_CONNECTION:
        return "a connection pooler or the server", "connect without the pooler, or let it pass on options"
    return None


def _is_same(server: ServerName, setting: Setting, value: str, ask: Ask) -> bool:
    """Return whether this is the value of the setting, in any notation: 4096kB is 4MB, and false is off."""
    if value.lower() == setting.value.lower():
        return True
    requested, found = (ask(server, one) for one in (setting, replace(setting, value=value)))
    return requested is not None and found is not None and requested.value == found.value is not None


def check_settings_in_scripts(
    comparison: Comparison, loads: Sequence[PgbenchLoad], targets: Sequence[Target], sessions: Sequence[Settings]
) -> str:
    """Raise WorkloadError if a requested setting has another value after a statement of a script.

    Runs each script once on each arm, and returns why the first one could not be checked; empty if all were. loads,
    targets, sessions: for each arm; sessions: the settings before any script ran.
    """
    failure = ""
    for arm, load, target, settings in zip(comparison.arms, loads, targets, sessions, strict=True):
        for script in load.workload.scripts if arm.settings else ():
            try:
                reported = _during(script, load, target, arm)
            except WorkloadError as error:
                failure = failure or f"{error.where}: {error.found}"
            else:
                check_reported_settings(arm, settings, reported, script.name)
    return failure


def _during(script: Script, load: PgbenchLoad, target: Target, arm: Arm) -> ReportedSettings:
    names = [setting.name for setting in arm.settings]
    return settings_during(script, load.workload, load.client, target, load.scratch.with_name("settings"), names)


def check_reported_settings(arm: Arm, settings: Settings, reported: ReportedSettings, by: str) -> None:
    """Raise WorkloadError if a requested setting did not have its value all the time.

    settings: those of a new session. reported: the values in the session that ran a script or an operation.
    """
    before = _by_lower_name(settings)
    for setting in arm.settings:
        # pg_settings does not show custom settings of extensions that are not loaded. They have the text as requested,
        # until the extension is loaded.
        shown = before.get(setting.name.lower())
        expected = setting.value if shown is None else shown.value
        for value in reported.get(setting.name, ()):
            if value != expected and (shown is not None or _canonical(value) != _canonical(expected)):
                raise _overridden(arm, setting.name, value, by, f"remove SET {setting.name} from {by}")


_LIBRARIES = frozenset({"auth_delay", "auto_explain", "pg_stat_statements"})
"""Libraries whose settings do nothing until the server or the session has loaded them."""


def check_compared_settings_act(arms: Sequence[Arm], sessions: Sequence[Settings], have_jit: Sequence[bool]) -> None:
    """Raise WorkloadError if a setting that differs between arms has no effect on any arm that requests it.

    sessions, have_jit: for each arm, the settings of a new session, and whether its build can compile queries.
    """
    shown = [_by_lower_name(settings) for settings in sessions]
    for name in sorted({setting.name.lower() for arm in arms for setting in arm.settings}):
        requested = [next((one.value for one in arm.settings if one.name.lower() == name), None) for arm in arms]
        reasons = [
            _why_without_effect(name, settings, has_jit=has_jit)
            for value, settings, has_jit in zip(requested, shown, have_jit, strict=True)
            if value is not None
        ]
        reason = reasons[0]
        if len(set(requested)) > 1 and reason is not None and all(reasons):
            values = [value_without_secrets(name, value) for value in requested if value is not None]
            raise WorkloadError(
                "the compared setting has no effect",
                slug="workload-setting-without-effect",
                where=f"{name} = {', '.join(values)}",
                found=reason.found,
                expected="a setting that acts on at least one arm",
                to_do=reason.to_do,
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Reason:
    found: str
    to_do: str


def _why_without_effect(name: str, session: Mapping[str, SettingValue], *, has_jit: bool) -> _Reason | None:
    library, _, parameter = name.partition(".")
    if parameter and library in _LIBRARIES and name not in session:
        return _Reason(
            found=f"{library} is not loaded", to_do=f"add --set shared_preload_libraries={library} for every arm"
        )
    if (name == "jit" or name.startswith("jit_")) and not has_jit:
        return _Reason(found="a server without JIT compilation", to_do="use builds with LLVM (with-llvm)")
    status = session.get("huge_pages_status")
    if name == "huge_pages" and status is not None and status.value == "off":
        return _Reason(found="huge_pages_status is off", to_do="reserve huge pages on this host (vm.nr_hugepages)")
    return None


_BOOLEANS = {"true": "on", "yes": "on", "1": "on", "false": "off", "no": "off", "0": "off"}


def _canonical(value: str) -> str:
    """Return a value in one notation of booleans and numbers."""
    lower = value.strip().lower()
    with suppress(ValueError):
        lower = f"{float(lower):g}"
    return _BOOLEANS.get(lower, lower)


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
