"""The settings and the locale of a dumped database, which pg_restore restores only into a database that it creates.

They are in archives (custom, directory, tar), in the commands that --create adds; a dump in plain text has neither.
"""

import re
from dataclasses import dataclass
from pathlib import Path

import psycopg

from pgversus.host.commands import may_read, run, standard_input
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target, connect
from pgversus.records.preparation import DATABASE_LOCALE, DATABASE_SETTINGS, RestoreProblem
from pgversus.study.dataset import Dump, DumpFormat
from pgversus.text.redaction import code_without_secrets
from pgversus.text.sql import NAME

_REST = r"((?:[^';]++|'(?:[^']++|'')*+')*+);$"
_SETTING = re.compile(rf"^ALTER DATABASE {NAME} SET {_REST}", re.MULTILINE)
_CREATED = re.compile(rf"^CREATE DATABASE {NAME} WITH {_REST}", re.MULTILINE)
_OBJECT = re.compile(r"^CREATE (?!DATABASE )", re.MULTILINE)
"""The first object of the database; its own commands come before."""
_OPTION = re.compile(
    r"\b(LOCALE_PROVIDER|LOCALE|LC_COLLATE|LC_CTYPE|ICU_LOCALE|BUILTIN_LOCALE) = (?:'((?:[^']|'')*)'|(\w+))"
)
_NAME_OF_SETTING = re.compile(r'"?([\w.]+)')
_LIBRARIES = frozenset({"session_preload_libraries", "local_preload_libraries"})
"""Settings with which no session begins if a library is missing."""
_OF_CLIENTS = frozenset({"client_encoding"})
"""Settings that describe the clients of the application, not its server."""
_LIBC = "libc"
_USUAL = "C"


@dataclass(frozen=True, slots=True, kw_only=True)
class DumpedDatabase:
    """What a dump says about its database."""

    settings: tuple[str, ...] = ()
    """Its settings as in SQL: `work_mem TO '4MB'`."""
    collation: str = _USUAL
    """The locale of its LC_COLLATE."""
    character_type: str = _USUAL
    """The locale of its LC_CTYPE."""
    other_provider: str = ""
    """Its locale, if not libc provides it: `icu en-US`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterLocale:
    """The locale of the clusters into which a dump is restored."""

    options: tuple[str, ...]
    """Options of initdb."""
    problem: RestoreProblem | None = None
    """The dumped database has another one, which is not available."""


def read_database(dump: Dump, client: Client) -> DumpedDatabase:
    """Return what a dump says about its database. A dump that cannot be read says nothing; restoring it fails."""
    place = Path(dump.path)
    is_readable = may_read(client.user, place)
    if dump.format is DumpFormat.PLAIN or not (is_readable or place.is_file()):
        return DumpedDatabase()
    command = [str(client.pg_restore), "--create", "--schema-only", "--section=pre-data", "-f", "-"]
    with standard_input(None if is_readable else place) as stdin:
        arguments = [*command, *([dump.path] if is_readable else [])]
        finished = run(arguments, stdin=stdin, user=client.user, ends_with_us=True)
    return database_in(finished.stdout)


def database_in(schema: str) -> DumpedDatabase:
    """Return what the commands of pg_restore --create say about the database."""
    first = _OBJECT.search(schema)
    commands = schema if first is None else schema[: first.start()]
    created = _CREATED.search(commands)
    options = {name: quoted or word for name, quoted, word in _OPTION.findall(created[1])} if created else {}
    locale = options.get("LOCALE", _USUAL)
    provider = options.get("LOCALE_PROVIDER", _LIBC)
    own_locale = options.get(f"{provider.upper()}_LOCALE", locale)
    return DumpedDatabase(
        settings=tuple(_SETTING.findall(commands)),
        collation=options.get("LC_COLLATE", locale),
        character_type=options.get("LC_CTYPE", locale),
        other_provider="" if provider == _LIBC else f"{provider} {own_locale}",
    )


def cluster_locale(database: DumpedDatabase, installed: frozenset[str]) -> ClusterLocale:
    """Return the locale of the database, or C if this host does not have it or libc does not provide it.

    installed: see `installed_locales`.
    """
    wanted = database.collation, database.character_type
    unusable = [name for name in wanted if name != _USUAL and not _is_usable(name, installed)]
    if not (unusable or database.other_provider):
        return ClusterLocale(options=_options(*wanted))
    name = database.other_provider or unusable[0]
    problem = RestoreProblem(item=DATABASE_LOCALE, message=name, is_setting=False)
    return ClusterLocale(options=_options(_USUAL, _USUAL), problem=problem)


def installed_locales() -> frozenset[str]:
    """Return the locales of this host, as `cluster_locale` compares them; only C and POSIX if they cannot be listed."""
    try:
        listed = run(["locale", "-a"]).stdout.split()
    except OSError:
        listed = []
    return frozenset(map(_comparable, (*listed, "C", "POSIX")))


def apply_settings(settings: tuple[str, ...], target: Target, of_arms: frozenset[str]) -> list[RestoreProblem]:
    """Apply the settings of a dumped database; return those that were not.

    of_arms: names of settings that the arms have themselves.
    """
    problems = []
    with connect(target) as connection:
        for setting in settings:
            named = _NAME_OF_SETTING.match(setting)
            name = named[1].lower() if named else ""
            try:
                if name in of_arms:
                    problems.append(_not_applied(f"{setting}: the arms have a value of their own"))
                elif name in _OF_CLIENTS:
                    problems.append(_not_applied(f"{setting}: it describes the clients of the application"))
                elif name in _LIBRARIES:
                    problems.append(_not_applied(f"{setting}: a session could not begin without the library"))
                else:
                    catalog.set_for_database(connection, setting)
            except psycopg.Error as error:
                problems.append(_not_applied(str(error).strip().partition("\n")[0]))
    return problems


def _not_applied(message: str) -> RestoreProblem:
    return RestoreProblem(item=DATABASE_SETTINGS, message=code_without_secrets(message), is_setting=True)


def _options(collation: str, character_type: str) -> tuple[str, ...]:
    # The language of messages is not that of the database.
    return (
        () if collation == character_type == _USUAL else (f"--lc-collate={collation}", f"--lc-ctype={character_type}")
    )


def _is_usable(name: str, installed: frozenset[str]) -> bool:
    """Return whether a locale is installed and has the encoding UTF8, as the clusters do."""
    found = _comparable(name)
    return found in installed and found.partition("@")[0].endswith((".utf8", "POSIX."))


def _comparable(name: str) -> str:
    """Return a name of a locale in one form: `en_US.UTF-8` is listed as `en_US.utf8`."""
    language, _, encoding = name.partition(".")
    return f"{language}.{encoding.lower().replace('-', '')}"
