"""`--set NAME=VALUE[,VALUE...]`: one value applies to all arms, several are levels to compare."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgversus.errors import StudyError
from pgversus.text.redaction import value_without_secrets

# The name of a GUC, or the two parts of a custom one (bench.delay), as accepted by guc.c.
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_$]*(\.[A-Za-z_][A-Za-z0-9_$]*)*")

_OWN = frozenset(
    {
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "listen_addresses",
        "port",
        "unix_socket_directories",
    }
)
_LEVEL = re.compile(r"\s*+(?:'((?:[^']++|'')*+)'\s*|([^',]*))(,|\Z)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A PostgreSQL setting and its value, as written in postgresql.conf."""

    name: str
    value: str

    def __str__(self) -> str:
        """`name=value`."""
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingLevels:
    """A setting and its values; with more than one value it is a factor."""

    name: str
    values: tuple[str, ...]


def parse_setting(text: str) -> SettingLevels:
    """Parse a setting and its levels, such as `work_mem=4MB,64MB`.

    A value that contains a comma is in single quotes: `search_path='a,b',c` has the levels `a,b` and `c`.
    StudyError without a name or `=`, and for a repeated level.
    """
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name.strip()):
        raise StudyError(
            f'invalid setting "{text}"',
            slug="study-bad-setting",
            where=f"--set {text}",
            found=f'"{text}"',
            expected="NAME=VALUE or NAME=VALUE,VALUE,...",
            to_do="--set work_mem=4MB,64MB compares two levels; --set work_mem=64MB applies to every arm",
        )
    if name.strip().lower() in _OWN:
        raise StudyError(
            f'"{name.strip()}" cannot be set',
            slug="study-own-setting",
            where=f"--set {text}",
            found=name.strip(),
            expected="a setting that does not define a location or an address of the server",
            to_do="remove it: pgversus sets it for each server",
        )
    levels = tuple(_split_levels(values, text))
    if len(set(levels)) != len(levels):
        raise StudyError(
            f'duplicate level of "{name.strip()}"',
            slug="study-repeated-level",
            where=f"--set {text}",
            found=", ".join(value_without_secrets(name, level) for level in levels),
            expected="each level once",
            to_do="remove the repeated level, or name the same server twice for an A/A comparison",
        )
    return SettingLevels(name=name.strip(), values=levels)


def check_repeated_names(settings: Sequence[SettingLevels]) -> None:
    """Raise StudyError when more than one --set gives the same setting."""
    names = [setting.name.lower() for setting in settings]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(
                f'the setting "{name}" is given more than once',
                slug="study-repeated-setting",
                where=f"--set {name}=...",
                found=f"{names.count(name)} times",
                expected="once",
                to_do=f"combine all levels: --set {name}=A,B,C",
            )


def _split_levels(values: str, text: str) -> list[str]:
    levels, at = [], 0
    while True:
        match = _LEVEL.match(values, at)
        if match is None:
            raise StudyError(
                "unterminated quoted value, or text next to a quoted value",
                slug="study-bad-setting",
                where=f"--set {text}",
                found=value_without_secrets(text.partition("=")[0], values[at:]),
                expected="VALUE or 'VALUE, WITH COMMAS'",
                to_do="add the closing quote; double each quote inside the value",
            )
        levels.append(match[2].strip() if match[1] is None else match[1].replace("''", "'"))
        if not match[3]:
            return levels
        at = match.end()


# Settings that affect the loaded data: arms that differ in one of them are loaded separately. Custom settings count as
# well, because a setup file may read them (bench.rows).
_SHAPE_DATA = frozenset({"default_statistics_target", "default_table_access_method", "default_toast_compression"})

# Settings that setup files may require: CREATE EXTENSION of a preloaded library, PREPARE TRANSACTION, thousands of
# partitions created at once. pgbench -i does not need them, so arms with only pgbench's tables share their data.
# wal_level is not included: it does not affect the data, its levels are worth comparing on the same bytes, and loading
# is much faster with minimal.
_NEEDED_BY_FILES = frozenset(
    {
        "local_preload_libraries",
        "max_locks_per_transaction",
        "max_prepared_transactions",
        "session_preload_libraries",
        "shared_preload_libraries",
    }
)


def shaping_settings(settings: Iterable[Setting], *, runs_files: bool) -> tuple[Setting, ...]:
    """Return the settings used to load data. runs_files: whether setup files are part of loading."""
    names = _SHAPE_DATA | _NEEDED_BY_FILES if runs_files else _SHAPE_DATA
    return tuple(setting for setting in settings if setting.name.lower() in names or "." in setting.name)
