"""What is loaded into each arm before anything is measured."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFile:
    """An SQL file that psql runs once in each arm."""

    path: str
    sha256: str
    """Of its content when the comparison began."""
    text: str | None = None
    """The SQL itself, where it stands in a study file and `path` is only its name; None for a file on disk."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What is loaded: pgbench's tables at a scale, then SQL files."""

    pgbench_scale: int | None = None
    setup_files: tuple[SetupFile, ...] = ()

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be loaded."""
        return self.pgbench_scale is None and not self.setup_files
