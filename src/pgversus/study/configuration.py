"""The user's postgresql.conf: the settings that every arm gets, and those that say nothing about speed."""

import re
from collections.abc import Callable
from dataclasses import dataclass

from pgversus.errors import StudyError
from pgversus.study.settings import Setting
from pgversus.text.redaction import message_without_secrets, value_without_secrets

_LINE = re.compile(
    r"(?P<name>[A-Za-z_][\w$]*(?:\.[A-Za-z_][\w$]*)*)\s*(?:=\s*|\s)"
    r"(?:'(?P<quoted>(?:[^'\\]|''|\\.)*)'|(?P<bare>[^\s#'=][^\s#']*))\s*(?:#.*)?"
)
"""As in guc-file.l: the equals sign is optional."""
_ESCAPED = re.compile(r"''|\\([0-7]{1,3}|.)")
_CONTROLS = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
"""As in GUC_scanstr()."""
_INCLUDE = "include"
_INCLUDES = frozenset({_INCLUDE, "include_dir", "include_if_exists"})
_OF_THE_PLACE = re.compile(
    r"data_directory|dynamic_shared_memory_type|config_file|hba_file|ident_file|external_pid_file|cluster_name|update_process_title|event_source"
    r"|listen_addresses|port|superuser_reserved_connections|reserved_connections|unix_socket_\w+|bonjour\w*|tcp_\w+"
    r"|authentication_timeout|password_encryption|scram_iterations|ssl\w*|krb_\w+|gss_\w+|db_user_namespace"
    r"|log_\w+|logging_collector|syslog\w*|debug_print_\w+|application_name"
    r"|archive_\w+|restore_command|recovery_\w+|promote_trigger_file|primary_\w+|hot_standby\w*|wal_receiver_\w+"
    r"|wal_retrieve_retry_interval|synchronous_standby_names|sync_replication_slots|synchroni[sz]ed_standby_slots"
    r"|max_replication_slots|max_slot_wal_keep_size|wal_keep_\w+|max_wal_senders|wal_sender_timeout|max_standby_\w+"
    r"|oauth_validator_libraries|shared_preload_libraries|session_preload_libraries|local_preload_libraries|dynamic_library_path|jit_provider"
    r"|lc_\w+|timezone_abbreviations|default_text_search_config|stats_temp_directory"
)
"""Settings for addresses, access, logs, replication, libraries and the locale of a server."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The settings of a postgresql.conf."""

    settings: tuple[Setting, ...]
    """Settings for every arm whose server has them."""
    left_out: tuple[str, ...]
    """Names of the other settings: those for the place where the server runs, and those of extensions."""


def read_configuration(text: str, where: str, has_settings: Callable[[str], bool] = lambda _: True) -> Configuration:
    """Return the settings of a postgresql.conf; of several lines with the same name, the last one counts.

    where: its path, for messages. has_settings: whether an included file, or a file in an included directory, exists.
    StudyError for a line that is not a setting or that includes another file.
    """
    found: dict[str, Setting] = {}
    # Not splitlines(): a comment may contain other line separators.
    for number, line in enumerate(text.split("\n"), start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        match = _LINE.fullmatch(stripped)
        if match is None:
            raise _no_setting(f"{where}, line {number}", _without_secrets(stripped))
        name = match["name"].lower()
        quoted = match["quoted"]
        value = match["bare"] if quoted is None else _ESCAPED.sub(_unescaped, quoted)
        if name in _INCLUDES:
            if name == _INCLUDE or has_settings(value):
                raise _includes(f"{where}, line {number}", stripped)
            continue
        found[name] = Setting(name=name, value=value)
    kept = tuple(one for one in found.values() if not _is_left_out(one.name))
    return Configuration(settings=kept, left_out=tuple(name for name in found if _is_left_out(name)))


def _unescaped(pair: re.Match[str]) -> str:
    escaped = pair[1]
    if escaped is None:
        return "'"
    return chr(int(escaped, 8) % 256) if escaped[0] in "01234567" else _CONTROLS.get(escaped, escaped)


def _without_secrets(line: str) -> str:
    """Return a line that is not a setting; its value is hidden if its name is that of a secret."""
    name, equals, value = line.partition("=")
    return f"{name}{equals}{value_without_secrets(name, value)}" if equals else message_without_secrets(line)


def _is_left_out(name: str) -> bool:
    return "." in name or _OF_THE_PLACE.fullmatch(name) is not None


def _no_setting(where: str, found: str) -> StudyError:
    return StudyError(
        "invalid line in a postgresql.conf",
        slug="study-bad-configuration",
        where=where,
        found=found,
        expected="NAME = VALUE, with quotes around a value that contains spaces or punctuation",
        to_do="correct the line, or remove it from a copy of the file",
    )


def _includes(where: str, found: str) -> StudyError:
    return StudyError(
        "the configuration file includes another file",
        slug="study-bad-configuration",
        where=where,
        found=found,
        expected="all settings in one file",
        to_do="on the server: psql -XAt -c \"SELECT name || ' = ''' || replace(replace(current_setting(name), '\\\\', "
        "'\\\\\\\\'), '''', '''''') || '''' FROM pg_settings WHERE source IN ('configuration file', 'command line')\" "
        "> postgresql.conf",
    )
