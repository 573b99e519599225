"""The work that a run of a study would do, determined without running it."""

from collections.abc import Mapping
from dataclasses import dataclass

from pgversus.study.needs import Needs
from pgversus.study.servers import ServerName
from pgversus.study.study import Study


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRun:
    """The result of a dry run: what a run would fetch, build, load and store."""

    study: Study
    """The study without treatments that use a setting which their server on this host is known to lack."""
    refused: tuple[str, ...]
    """Contexts that the run would not measure, with the reasons."""
    needs: Needs
    versions: Mapping[ServerName, str]
    """Version and origin of each server whose build is in the cache or was inspected."""
    downloads: tuple[str, ...]
    """Builds that are not in the cache yet."""
    to_build: tuple[str, ...]
    """Servers that are built from source and not in the cache yet."""
    not_queried: tuple[str, ...]
    """Servers without known properties: the study names them and they were not to be queried."""
    unreachable: tuple[str, ...]
    """External servers that were to be queried and refused a session."""
    free_bytes: int
    """Free space on the file system on which data would be stored."""
    blocks_there: int
    """Blocks stored by an earlier run of the same study."""
    results: str
