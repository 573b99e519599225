"""Fingerprints of arms: rows, settings, build and database, which the arms must share.

`gather` reads them from a server; everything else here is pure comparison.
"""

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from pgversus.errors import DatasetError
from pgversus.postgres import catalog
from pgversus.postgres.catalog import ServerProperties, SettingValue, TableDigest
from pgversus.postgres.session import Target, connect
from pgversus.records.preparation import Difference
from pgversus.text.translation import N_

# Settings that differ between any two servers and do not affect speed.
_OWN_TO_EACH_SERVER = frozenset(
    {
        "application_name",
        # initdb of 18 writes it into every new cluster; it does not exist before 18.
        "autovacuum_worker_slots",
        "cluster_name",
        "config_file",
        "data_directory",
        "external_pid_file",
        "hba_file",
        "ident_file",
        "krb_server_keyfile",
        "listen_addresses",
        "log_directory",
        "log_filename",
        "num_os_semaphores",
        "port",
        "server_version",
        "server_version_num",
        "shared_memory_size",
        # 0 on a socket, the system's own on TCP.
        "tcp_keepalives_count",
        "tcp_keepalives_idle",
        "tcp_keepalives_interval",
        "tcp_user_timeout",
        "shared_memory_size_in_huge_pages",
        "transaction_isolation",
        "unix_socket_directories",
    }
)
_COMPILER = re.compile(r"compiled by (.+?), \d+-bit")
_WARNING = re.compile(r"-W(?![lap],)")
# -Wl, -Wa and -Wp are not warnings: they pass options to the linker, assembler and preprocessor.
_NO_BEARING = re.compile(
    r"--(prefix|exec-prefix|\w+dir|build|host|target|cache-file"
    r"|with-(system-tzdata|includes|libraries|tclconfig|pgport|extra-version|krb-srvnam|template|uuid)"
    r"|(with|without)-(perl|python|tcl|ldap|pam|bsd-auth|bonjour|systemd|selinux|gssapi|libcurl|readline|libedit-preferred"
    r"|libxml|libxslt|ossp-uuid)"
    r"|(enable|disable)-(integer-datetimes|thread-safety|option-checking|nls|tap-tests|depend|debug|rpath|silent-rules))"
    r"(=|$)"
)
# Options of configure for file locations or optional interfaces, which do not affect speed. If --enable-debug affects
# it, CFLAGS differ too.
_LONGEST_OPTIONS = 100_000
# Limit for text from an external server: the time of shlex grows with the square of the length.
_NOT_REPORTED = "not reported"
_UTF8 = re.compile(r"\.utf-?8\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """Data, settings and build of one arm."""

    tables: Mapping[str, TableDigest]
    indexes: Mapping[str, str]
    settings: Mapping[str, SettingValue]
    properties: ServerProperties
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Size of each table and index in bytes."""

    @property
    def compiler(self) -> str:
        """The compiler according to version()."""
        match = _COMPILER.search(self.properties.version)
        return match[1] if match else self.properties.version

    @property
    def build_flags(self) -> str:
        """CFLAGS of the build; empty if the role may not read them."""
        return self.properties.configuration.get("CFLAGS", "")

    @property
    def code_flags(self) -> str:
        """CFLAGS without warning options, which change between versions but do not affect code."""
        return " ".join(flag for flag in self.build_flags.split() if not _WARNING.match(flag))

    @property
    def configure_options(self) -> dict[str, str] | None:
        """Options of configure that may affect speed, each with its value or "yes"; None if unknown."""
        text = self.properties.configuration.get("CONFIGURE")
        if text is None:
            return None
        options = [word for word in _command_words(text) if word.startswith("--") and not _NO_BEARING.match(word)]
        return {name: value or "yes" for name, _, value in (option.partition("=") for option in options)}

    @property
    def collation(self) -> str:
        """The collation of the database; en_US.UTF-8 and en_US.utf8 are the same to libc."""
        return _UTF8.sub(".utf8", self.properties.collation)


def gather(target: Target) -> Fingerprint:
    """Return the fingerprint of an arm's server."""
    with connect(target) as connection:
        return Fingerprint(
            tables=catalog.table_digests(connection),
            indexes=catalog.index_definitions(connection),
            settings=catalog.session_settings(connection),
            properties=catalog.server_properties(connection),
            sizes=catalog.relation_sizes(connection),
        )


def check_equal_data(labels: Sequence[str], fingerprints: Sequence[Fingerprint]) -> None:
    """Raise DatasetError with the tables and both row counts if an arm's rows differ from the baseline's."""
    base = fingerprints[0].tables
    for label, fingerprint in zip(labels[1:], fingerprints[1:], strict=True):
        unequal = [
            _unequal(table, labels[0], base.get(table), label, fingerprint.tables.get(table))
            for table in sorted({*base, *fingerprint.tables})
            if base.get(table) != fingerprint.tables.get(table)
        ]
        if unequal:
            raise DatasetError(
                "the arms hold different data, so their speeds cannot be compared",
                slug="dataset-unequal",
                where=f"{labels[0]} and {label}",
                found="; ".join(unequal),
                expected="the same rows in every table",
                to_do="load the same rows on every arm: avoid now(), random() without a fixed seed, "
                "and anything that depends on the version",
            )


def differences(fingerprints: Sequence[Fingerprint], factors: Sequence[str]) -> tuple[Difference, ...]:
    """Return all differences between the arms except rows and the compared factors."""
    return (
        *_setting_differences(
            [fingerprint.settings for fingerprint in fingerprints], {name.lower() for name in factors}
        ),
        *_build_differences(fingerprints),
        *_differences_by_name("index", [fingerprint.indexes for fingerprint in fingerprints]),
    )


def table_differences(fingerprints: Sequence[Fingerprint]) -> tuple[Difference, ...]:
    """Return the tables and materialized views whose rows differ; the value of an arm is its number of rows."""
    found = []
    for name in sorted({name for one in fingerprints for name in one.tables}):
        digests = [one.tables.get(name) for one in fingerprints]
        if any(digest != digests[0] for digest in digests):
            rows = tuple("" if digest is None else str(digest.rows) for digest in digests)
            found.append(Difference(kind="table", name=name, values=rows, is_default=False))
    return tuple(found)


def _unequal(table: str, base_label: str, base: TableDigest | None, label: str, other: TableDigest | None) -> str:
    if base is None or other is None:
        holder, rows = (label, other) if base is None else (base_label, base)
        return f"{table} exists only on {holder} ({rows.rows if rows else 0} rows)"
    if base.rows == other.rows:
        return f"{table}: {base.rows} rows on both, with different content"
    return f"{table}: {base.rows} rows on {base_label}, {other.rows} rows on {label}"


def _setting_differences(arms: Sequence[Mapping[str, SettingValue]], factors: set[str]) -> list[Difference]:
    found = []
    for name in sorted(set().union(*arms) - _OWN_TO_EACH_SERVER):
        if name.lower() in factors:
            continue
        values = [arm.get(name) for arm in arms]
        present = [value for value in values if value is not None]
        is_default = all(value.is_default for value in present)
        if len(present) < len(arms) and all(value.is_default or value.context == "internal" for value in present):
            # A setting that one version lacks and that is at its default on the other.
            continue
        if len({value.value if value else None for value in values}) > 1:
            shown = tuple(value.value if value else "" for value in values)
            found.append(Difference(kind="setting", name=name, values=shown, is_default=is_default))
    return found


def _build_differences(fingerprints: Sequence[Fingerprint]) -> list[Difference]:
    return [
        *_unequal_rows("build", N_("compiler"), [fingerprint.compiler for fingerprint in fingerprints]),
        *_unequal_rows("build", "CFLAGS", [fingerprint.code_flags for fingerprint in fingerprints]),
        *_differences_by_name("build", [fingerprint.configure_options for fingerprint in fingerprints]),
        *_unequal_rows(
            "build",
            N_("JIT available"),
            ["yes" if fingerprint.properties.has_jit else "no" for fingerprint in fingerprints],
        ),
        *_unequal_rows("database", N_("encoding"), [fingerprint.properties.encoding for fingerprint in fingerprints]),
        *_unequal_rows("database", N_("collation"), [fingerprint.collation for fingerprint in fingerprints]),
    ]


def _differences_by_name(kind: str, arms: Sequence[Mapping[str, str] | None]) -> list[Difference]:
    """Return one difference for each name whose value differs between the arms whose values are known."""
    known = [arm for arm in arms if arm is not None]
    return [
        Difference(
            kind=kind,
            name=name,
            values=tuple(_NOT_REPORTED if arm is None else arm.get(name, "") for arm in arms),
            is_default=False,
        )
        for name in sorted(set().union(*known))
        if len({arm.get(name) for arm in known}) > 1
    ]


def _unequal_rows(kind: str, name: str, values: Sequence[str]) -> list[Difference]:
    if len(set(values)) == 1:
        return []
    return [Difference(kind=kind, name=name, values=tuple(values), is_default=False)]


def _command_words(text: str) -> list[str]:
    if len(text) > _LONGEST_OPTIONS:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()
