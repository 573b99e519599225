"""`--set NAME=VALUE[,VALUE...]`: one value is for all arms, several are the levels to compare."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pgversus.errors import StudyError
from pgversus.text.redaction import value_without_secrets

# A GUC's name, or the two parts of a custom one (bench.delay), as guc.c accepts them.
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
    """One PostgreSQL setting and its value, as it would stand in postgresql.conf."""

    name: str
    value: str

    def __str__(self) -> str:
        """`name=value`."""
        return f"{self.name}={self.value}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingLevels:
    """A setting with the values that it takes; more than one makes it a factor."""

    name: str
    values: tuple[str, ...]


def parse_setting(text: str) -> SettingLevels:
    """The setting and its levels in `work_mem=4MB,64MB`.

    A value with a comma in it stands in single quotes: `search_path='a,b',c` has the levels `a,b` and `c`.
    StudyError when there is no name, no `=`, or a level appears twice.
    """
    name, equals, values = text.partition("=")
    if not equals or not _NAME.fullmatch(name.strip()):
        raise StudyError(
            f'"{text}" is no setting',
            slug="study-bad-setting",
            where=f"--set {text}",
            found=f'"{text}"',
            expected="NAME=VALUE or NAME=VALUE,VALUE,...",
            to_do="--set work_mem=4MB,64MB compares two levels; --set work_mem=64MB gives every arm the same",
        )
    if name.strip().lower() in _OWN:
        raise StudyError(
            f'"{name.strip()}" is not free to choose',
            slug="study-own-setting",
            where=f"--set {text}",
            found=name.strip(),
            expected="a setting that does not say where a server lies or listens",
            to_do="leave it out: pgversus gives each server its own",
        )
    levels = tuple(_split_levels(values, text))
    if len(set(levels)) != len(levels):
        raise StudyError(
            f'the levels of "{name}" are not all different',
            slug="study-repeated-level",
            where=f"--set {text}",
            found=", ".join(value_without_secrets(name, level) for level in levels),
            expected="each level once",
            to_do="leave the repeated level out, or name the same server twice for an A/A comparison",
        )
    return SettingLevels(name=name.strip(), values=levels)


def check_repeated_names(settings: Sequence[SettingLevels]) -> None:
    """StudyError when one setting is given by more than one --set."""
    names = [setting.name.lower() for setting in settings]
    for name in names:
        if names.count(name) > 1:
            raise StudyError(
                f'the setting "{name}" is given more than once',
                slug="study-repeated-setting",
                where=f"--set {name}=...",
                found=f"{names.count(name)} times",
                expected="once",
                to_do=f"put all its levels in one: --set {name}=A,B,C",
            )


def _split_levels(values: str, text: str) -> list[str]:
    levels, at = [], 0
    while True:
        match = _LEVEL.match(values, at)
        if match is None:
            raise StudyError(
                "a quote is not closed, or something stands beside it",
                slug="study-bad-setting",
                where=f"--set {text}",
                found=value_without_secrets(text.partition("=")[0], values[at:]),
                expected="VALUE or 'VALUE, WITH COMMAS'",
                to_do="close the quote; a quote inside of quotes is written twice",
            )
        levels.append(match[2].strip() if match[1] is None else match[1].replace("''", "'"))
        if not match[3]:
            return levels
        at = match.end()


# Settings that leave their mark in what is loaded: arms that differ in one of them are loaded apart. A custom
# setting (bench.rows) may be read by a setup file, so it counts as well.
_SHAPE_DATA = frozenset({"default_statistics_target", "default_table_access_method", "default_toast_compression"})

# Settings without which a setup file may fail: CREATE EXTENSION of a library that must be preloaded, PREPARE
# TRANSACTION, thousands of partitions made at once. pgbench -i needs none of them, so that arms with pgbench's tables
# alone go on sharing their data. wal_level is not here: data need no other, levels of it are worth comparing on the
# same bytes, and loading is far quicker with minimal.
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
    """Those with which data are loaded. runs_files: whether setup files are among what makes the data."""
    names = _SHAPE_DATA | _NEEDED_BY_FILES if runs_files else _SHAPE_DATA
    return tuple(setting for setting in settings if setting.name.lower() in names or "." in setting.name)
