"""What is loaded into each arm before anything is measured."""

import hashlib
from dataclasses import dataclass, replace

from pgversus.text.documents import hidden_sha256


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFile:
    """An SQL file that psql runs once in each arm."""

    path: str
    sha256: str
    """Of its content when the comparison began."""
    text: str | None = None
    """The SQL itself, where it stands in a study file and `path` is only its name; None for a file on disk."""
    hidden_sha256: str | None = None
    """Of its content without passwords, which is stored in the place of the other; None where there are none in it."""


def setup_file(path: str, content: bytes, *, text: str | None = None) -> SetupFile:
    """A file as it is when the comparison begins. text: where it stands in a study file."""
    sha256 = hashlib.sha256(content).hexdigest()
    return SetupFile(path=path, sha256=sha256, text=text, hidden_sha256=hidden_sha256(content))


@dataclass(frozen=True, slots=True, kw_only=True)
class Dataset:
    """What is loaded: pgbench's tables at a scale, then SQL files, then VACUUM ANALYZE; last, what is done to them."""

    pgbench_scale: int | None = None
    setup_files: tuple[SetupFile, ...] = ()
    prepare: tuple[SetupFile, ...] = ()
    """SQL files that bring what was loaded into the state in which an operation finds it, with dead rows and all."""
    variables: tuple[tuple[str, str], ...] = ()
    """psql's variables for the files of `prepare`."""
    full_statistics: bool = False
    """Whether what was loaded is analyzed with the largest target, so that no plan differs by sampling."""

    @property
    def is_empty(self) -> bool:
        """Whether nothing is to be loaded."""
        return self.pgbench_scale is None and not self.setup_files and not self.prepare

    @property
    def runs_files(self) -> bool:
        """Whether SQL of the user's is among what makes it."""
        return bool(self.setup_files or self.prepare)

    @property
    def loaded(self) -> "Dataset":
        """The same before anything is done to it."""
        return replace(self, prepare=(), variables=())
