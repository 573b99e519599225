"""The data loaded into each arm before measuring."""

import hashlib
from dataclasses import dataclass, field, replace
from enum import StrEnum

from pgversus.text.documents import hidden_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFile:
    """An SQL file that psql runs once on each arm."""

    path: str
    sha256: str
    """SHA-256 of the content when the comparison began."""
    text: str | None = None
    """SQL written inline in a study file, where `path` is only its name; None for a file on disk."""
    hidden_sha256: str | None = None
    """SHA-256 of the content without passwords, which is stored instead of `sha256`; None without passwords."""


def setup_file(path: str, content: bytes, *, text: str | None = None) -> SetupFile:
    """Return a file as it is when the comparison begins. text: the SQL if it is inline in a study file."""
    sha256 = hashlib.sha256(content).hexdigest()
    return SetupFile(path=path, sha256=sha256, text=text, hidden_sha256=hidden_sha256(content))


class DumpFormat(StrEnum):
    """Formats of pg_dump, and the data directory of a server, which pgversus dumps first."""

    CUSTOM = "custom"
    DIRECTORY = "directory"
    TAR = "tar"
    PLAIN = "plain"
    DATA_DIRECTORY = "data directory"


@dataclass(frozen=True, slots=True, kw_only=True)
class Dump:
    """One database to restore."""

    path: str
    format: DumpFormat
    sha256: str
    """SHA-256 of the content when the comparison began."""
    database: str = ""
    """Name of the database in a data directory; empty if it is the only one there, and for a dump."""
    size_bytes: int = field(default=0, compare=False)
    """Size of the files; 0 if they were not read yet."""


class Statistics(StrEnum):
    """The planner's statistics that an arm has."""

    ALL = "all"
    """All statistics that ANALYZE collects."""
    KEPT = "kept"
    """All except extended statistics, as after pg_upgrade to 18 or newer."""
    NONE = "none"
    """No statistics, as after pg_upgrade to 17 or older, before ANALYZE."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """The data to load, in this order: `restore`, pgbench's tables, SQL files, VACUUM ANALYZE, `prepare`."""

    restore: Dump | None = None
    pgbench_scale: int | None = None
    setup_files: tuple[SetupFile, ...] = ()
    prepare: tuple[SetupFile, ...] = ()
    """SQL files that bring the loaded data into the state that an operation needs, for example with dead rows."""
    variables: tuple[tuple[str, str], ...] = ()
    """psql variables for the files in `prepare`."""
    full_statistics: bool = False
    """Whether ANALYZE reads every row (of up to three million), so that plans do not depend on samples."""
    statistics: Statistics = Statistics.ALL
    """The statistics that remain once the data is loaded."""

    @property
    def is_empty(self) -> bool:
        """Whether there is nothing to load."""
        return self.restore is None and self.pgbench_scale is None and not self.setup_files and not self.prepare

    @property
    def runs_files(self) -> bool:
        """Whether loading runs SQL of the user."""
        return bool(self.restore or self.setup_files or self.prepare)

    @property
    def files(self) -> tuple[str, ...]:
        """The paths of the dump and of the setup files that the data come from."""
        dump = () if self.restore is None else (self.restore.path,)
        return (*dump, *(file.path for file in self.setup_files))

    @property
    def rows(self) -> "Dataset":
        """The same dataset with all statistics: it has the same rows."""
        return replace(self, statistics=Statistics.ALL)

    @property
    def loaded(self) -> "Dataset":
        """The loaded dataset from which this one derives: without its preparation, and with all statistics."""
        return replace(self, prepare=(), variables=(), statistics=Statistics.ALL)

    @property
    def is_derived(self) -> bool:
        """Whether it is made on a copy of the loaded dataset."""
        return bool(self.prepare) or self.statistics is not Statistics.ALL
