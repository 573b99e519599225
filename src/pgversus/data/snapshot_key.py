"""Cache keys of snapshots: snapshots with equal inputs are equal, whichever run created them.

A key contains the contents of files, not their paths or names. The inputs of a file that reads other sources are not
known beforehand, so data from such files are loaded again in each run.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, replace
from json import dumps
from pathlib import Path

from pgversus.builds.model import Build
from pgversus.host.files import readable_sha256
from pgversus.postgres.client import Client
from pgversus.postgres.cluster import INITDB_OPTIONS
from pgversus.study.dataset import Dataset, SetupFile, Statistics
from pgversus.text.redaction import value_without_secrets

FORM = 9
"""Incremented whenever loading changes in a way that no field below reflects."""

_KEY_DIGITS = 16
_FROM_ELSEWHERE = re.compile(
    r"\\(?:i|ir|include|include_relative|copy|getenv|lo_import)\b|\\!|`"
    r"|\b(?:pg_read_(?:binary_)?file|pg_ls_dir|lo_import|dblink|postgres_fdw|file_fdw)\b",
    re.IGNORECASE,
)
# Commands and functions that read other files, the environment, programs or other servers.
_COPY, _COPY_SOURCE = (
    re.compile(r"\bcopy\b", re.IGNORECASE),
    re.compile(r"\bfrom\s*(?:program\b|[eu]?&?'|:|\$|/\*|--)", re.IGNORECASE),
)
_OF_THE_MOMENT = re.compile(
    r"\b(?:now|clock_timestamp|statement_timestamp|transaction_timestamp|timeofday"
    r"|age|pg_postmaster_start_time|pg_current_wal_lsn|txid_current|pg_current_xact_id"
    r"|gen_random_uuid|gen_random_bytes|uuidv[47]|uuid_generate_v\d\w*)\s*\(|\btablesample\b"
    r"|\b(?:current_date|current_timestamp|current_time|localtime|localtimestamp)\b|'(?:now|today|yesterday|tomorrow)'"
    r"|\\(?:watch|timing)\b",
    re.IGNORECASE,
)
_RANDOM, _SEED = (
    re.compile(r"\b(?:random|random_normal)\s*\(", re.IGNORECASE),
    re.compile(r"\bsetseed\s*\(", re.IGNORECASE),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SnapshotKey:
    """All inputs that determine the bytes of a snapshot."""

    form: int
    version: str
    origin: str
    build_sha256: str
    """Hash of the artifact or, without one, of the program postgres."""
    initdb_options: tuple[str, ...]
    settings: tuple[tuple[str, str], ...]
    """Settings of the server while the snapshot was created, by name."""
    pgbench_scale: int | None
    pgbench: str | None
    """The version of the client that restored the dump or created pgbench's tables; None if there are neither."""
    setup_sha256: tuple[str, ...]
    prepare_sha256: tuple[str, ...]
    variables: tuple[tuple[str, str], ...]
    full_statistics: bool
    restore_sha256: str | None = None
    """Hash of the dump, if there is one."""
    restore_database: str = ""
    """The database of a data directory, if the user has named it."""
    statistics: str = Statistics.ALL.value
    is_of_application: bool = False
    """Whether there is a role for the statements of an application."""
    settings_of_arms: tuple[str, ...] = ()
    """Names of settings that were not taken from a dumped database."""

    @property
    def key(self) -> str:
        """The name of the snapshot in the cache."""
        return hashlib.sha256(dumps(asdict(self), sort_keys=True).encode()).hexdigest()[:_KEY_DIGITS]

    @property
    def hidden(self) -> "SnapshotKey":
        """The same inputs without secrets, as stored and shown; the key still depends on the secrets."""
        return replace(self, settings=_hidden(self.settings), variables=_hidden(self.variables))


def snapshot_key(
    dataset: Dataset,
    build: Build,
    client: Client,
    settings: Mapping[str, str],
    *,
    locale: tuple[str, ...] = (),
    settings_of_arms: frozenset[str] = frozenset(),
    is_of_application: bool = False,
) -> SnapshotKey | None:
    """Return the key of the snapshot of a dataset; None if its inputs are not known beforehand.

    settings: settings of the server while the snapshot is created. locale: options of initdb for the locale of a dumped
    database. settings_of_arms: names of settings that are not taken from it. is_of_application: whether statements of
    an application will be executed on it.
    """
    files = (*dataset.setup_files, *dataset.prepare)
    sha256 = build.sha256 or readable_sha256(build.program("postgres"))
    if sha256 is None or any(has_external_inputs(text) for text in _texts(files)):
        return None
    return SnapshotKey(
        form=FORM,
        version=build.version,
        origin=build.origin,
        build_sha256=sha256,
        initdb_options=(*INITDB_OPTIONS, *locale),
        settings=tuple(sorted(settings.items())),
        pgbench_scale=dataset.pgbench_scale,
        pgbench=None if dataset.pgbench_scale is None and dataset.restore is None else client.version,
        setup_sha256=tuple(file.sha256 for file in dataset.setup_files),
        prepare_sha256=tuple(file.sha256 for file in dataset.prepare),
        variables=dataset.variables,
        full_statistics=dataset.full_statistics,
        statistics=dataset.statistics.value,
        is_of_application=is_of_application,
        settings_of_arms=() if dataset.restore is None else tuple(sorted(settings_of_arms)),
        restore_sha256=None if dataset.restore is None else dataset.restore.sha256,
        restore_database="" if dataset.restore is None else dataset.restore.database,
    )


def _hidden(pairs: tuple[tuple[str, str], ...]) -> tuple[tuple[str, str], ...]:
    return tuple((name, value_without_secrets(name, value)) for name, value in pairs)


def has_external_inputs(text: str) -> bool:
    """Return whether this SQL may depend on more than its text: other files, programs, the time, random numbers."""
    if _FROM_ELSEWHERE.search(text) or _OF_THE_MOMENT.search(text) or any(map(_copies_from_outside, text.split(";"))):
        return True
    return bool(_RANDOM.search(text)) and not _SEED.search(text)


def _copies_from_outside(statement: str) -> bool:
    copy = _COPY.search(statement)
    return copy is not None and _COPY_SOURCE.search(statement, copy.end()) is not None


def _texts(files: Iterable[SetupFile]) -> Iterable[str]:
    for file in files:
        if file.text is not None:
            yield file.text
        else:
            try:
                yield Path(file.path).read_text(encoding="utf-8", errors="replace")
            except OSError:
                # Treated as unknown input; running the file reports the error.
                yield "`"
