"""What the arms must share: the same rows, the same settings, the same kind of build and database.

Gathered from each server by `gather`; everything else here is pure comparison.
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

# Settings that differ between any two servers and have no bearing on speed.
_OWN_TO_EACH_SERVER = frozenset(
    {
        "application_name",
        # initdb of 18 writes it into every new cluster; before 18 there is none.
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
# -Wl, -Wa and -Wp hand something on to linker, assembler and preprocessor.
_NO_BEARING = re.compile(
    r"--(prefix|exec-prefix|\w+dir|build|host|target|cache-file"
    r"|with-(system-tzdata|includes|libraries|tclconfig|pgport|extra-version|krb-srvnam|template|uuid)"
    r"|(with|without)-(perl|python|tcl|ldap|pam|bsd-auth|bonjour|systemd|selinux|gssapi|libcurl|readline|libedit-preferred"
    r"|libxml|libxslt|ossp-uuid)"
    r"|(enable|disable)-(integer-datetimes|thread-safety|option-checking|nls|tap-tests|depend|debug|rpath|silent-rules))"
    r"(=|$)"
)
# Options of configure that say where files lie, or with what else the server can be used. With --enable-debug CFLAGS
# differ too, where it matters.
_LONGEST_OPTIONS = 100_000
# As a server of others tells them; shlex takes time that grows with the square of the length.
_NOT_TOLD = "not told"
_UTF8 = re.compile(r"\.utf-?8\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class Fingerprint:
    """What one arm holds and is."""

    tables: Mapping[str, TableDigest]
    indexes: Mapping[str, str]
    settings: Mapping[str, SettingValue]
    properties: ServerProperties
    sizes: Mapping[str, int] = field(default_factory=dict)
    """Bytes of each table and index."""

    @property
    def compiler(self) -> str:
        """The compiler, as version() names it."""
        match = _COMPILER.search(self.properties.version)
        return match[1] if match else self.properties.version

    @property
    def build_flags(self) -> str:
        """CFLAGS of the build; empty where the role may not read them."""
        return self.properties.configuration.get("CFLAGS", "")

    @property
    def code_flags(self) -> str:
        """CFLAGS without those that only ask for warnings: they change from version to version, and no code."""
        return " ".join(flag for flag in self.build_flags.split() if not _WARNING.match(flag))

    @property
    def configure_options(self) -> dict[str, str] | None:
        """The options of configure that bear on speed, each with its value or "yes"; None where nobody tells."""
        text = self.properties.configuration.get("CONFIGURE")
        if text is None:
            return None
        options = [word for word in _words(text) if word.startswith("--") and not _NO_BEARING.match(word)]
        return {name: value or "yes" for name, _, value in (option.partition("=") for option in options)}

    @property
    def collation(self) -> str:
        """The collation of the database; libc takes en_US.UTF-8 and en_US.utf8 for the same."""
        return _UTF8.sub(".utf8", self.properties.collation)


def gather(target: Target) -> Fingerprint:
    """The fingerprint of one arm's server, as a session of the load sees it."""
    with connect(target) as connection:
        return Fingerprint(
            tables=catalog.table_digests(connection),
            indexes=catalog.index_definitions(connection),
            settings=catalog.session_settings(connection),
            properties=catalog.server_properties(connection),
            sizes=catalog.relation_sizes(connection),
        )


def check_equal_data(labels: Sequence[str], fingerprints: Sequence[Fingerprint]) -> None:
    """DatasetError that names the tables and both counts when an arm's rows are not the baseline's."""
    base = fingerprints[0].tables
    for label, fingerprint in zip(labels[1:], fingerprints[1:], strict=True):
        unequal = [
            _unequal(table, labels[0], base.get(table), label, fingerprint.tables.get(table))
            for table in sorted({*base, *fingerprint.tables})
            if base.get(table) != fingerprint.tables.get(table)
        ]
        if unequal:
            raise DatasetError(
                "the arms do not hold the same data, so a difference in speed would say nothing",
                slug="dataset-unequal",
                where=f"{labels[0]} and {label}",
                found="; ".join(unequal),
                expected="the same rows in every table",
                to_do="load every arm once with the same rows: no random() or now() without a fixed seed, "
                "nothing that depends on the version",
            )


def differences(fingerprints: Sequence[Fingerprint], factors: Sequence[str]) -> tuple[Difference, ...]:
    """Everything but rows in which the arms differ besides what is compared on purpose."""
    return (
        *_setting_differences(
            [fingerprint.settings for fingerprint in fingerprints], {name.lower() for name in factors}
        ),
        *_build_differences(fingerprints),
        *_index_differences([fingerprint.indexes for fingerprint in fingerprints]),
    )


def _unequal(table: str, base_label: str, base: TableDigest | None, label: str, other: TableDigest | None) -> str:
    if base is None or other is None:
        holder, rows = (label, other) if base is None else (base_label, base)
        return f"{table} is on {holder} only ({rows.rows if rows else 0} rows)"
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
            # A setting that one version does not have, and that nobody has set on the other.
            continue
        if len({value.value if value else None for value in values}) > 1:
            shown = tuple(value.value if value else "" for value in values)
            found.append(Difference(kind="setting", name=name, values=shown, is_default=is_default))
    return found


def _build_differences(fingerprints: Sequence[Fingerprint]) -> list[Difference]:
    return [
        *_unequal_rows("build", N_("compiler"), [fingerprint.compiler for fingerprint in fingerprints]),
        *_unequal_rows("build", "CFLAGS", [fingerprint.code_flags for fingerprint in fingerprints]),
        *_option_differences([fingerprint.configure_options for fingerprint in fingerprints]),
        *_unequal_rows(
            "build",
            N_("JIT available"),
            ["yes" if fingerprint.properties.has_jit else "no" for fingerprint in fingerprints],
        ),
        *_unequal_rows("database", N_("encoding"), [fingerprint.properties.encoding for fingerprint in fingerprints]),
        *_unequal_rows("database", N_("collation"), [fingerprint.collation for fingerprint in fingerprints]),
    ]


def _option_differences(arms: Sequence[Mapping[str, str] | None]) -> list[Difference]:
    """One for each option in which arms that tell theirs differ."""
    told = [arm for arm in arms if arm is not None]
    return [
        Difference(
            kind="build",
            name=name,
            values=tuple(_NOT_TOLD if arm is None else arm.get(name, "") for arm in arms),
            is_default=False,
        )
        for name in sorted(set().union(*told))
        if len({arm.get(name) for arm in told}) > 1
    ]


def _unequal_rows(kind: str, name: str, values: Sequence[str]) -> list[Difference]:
    if len(set(values)) == 1:
        return []
    return [Difference(kind=kind, name=name, values=tuple(values), is_default=False)]


def _words(text: str) -> list[str]:
    if len(text) > _LONGEST_OPTIONS:
        return text.split()
    try:
        return shlex.split(text)
    except ValueError:
        return text.split()


def _index_differences(arms: Sequence[Mapping[str, str]]) -> list[Difference]:
    return [
        Difference(kind="index", name=name, values=tuple(arm.get(name, "") for arm in arms), is_default=False)
        for name in sorted(set().union(*arms))
        if len({arm.get(name) for arm in arms}) > 1
    ]
