"""What can be built: a tarball, a tree, a commit; each known by what is in it before anything is unpacked."""

from pathlib import Path
from typing import Protocol

from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.model import SourceFacts


class Source(Protocol):
    """PostgreSQL's source, wherever it is."""

    @property
    def facts(self) -> SourceFacts:
        """What it is."""

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Its files, in a directory that is not there yet; BuildError when it is not what it seemed to be.

        user: who unpacks what others have packed.
        """
