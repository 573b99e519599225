"""Clusters: data directories created by initdb with the same explicit options on every major, and copies of them."""

import shutil
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.builds.model import Build
from pgversus.errors import HostError, ServerError
from pgversus.host.commands import run
from pgversus.host.directories import make_directory
from pgversus.host.identity import ServerUser
from pgversus.postgres.session import SUPERUSER

INITDB_OPTIONS = (
    "--encoding=UTF8",
    "--locale=C",
    f"--username={SUPERUSER}",
    # The socket, the only way to connect, is in a directory that only this user can enter.
    "--auth-local=trust",
    "--auth-host=reject",
    # On by default in 18, off before. Enabled everywhere, since only 18 has an option to disable checksums.
    "--data-checksums",
    # In MB: a build may be configured with a different size, which does not suit the settings for loading.
    "--wal-segsize=16",
    # sync and a checkpoint write everything to disk before measuring.
    "--no-sync",
)
# system_identifier, pg_control_version, catalog_version_no, state; DB_SHUTDOWNED (pg_control.h, the same since 8.3).
_CONTROL_FILE = struct.Struct("=QIIi")
_SHUT_DOWN = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A data directory and the build it belongs to."""

    build: Build
    data_directory: Path
    user: ServerUser


def make_home(directory: Path) -> Path:
    """Create a directory for a cluster and return the path of its future data directory.

    pgversus keeps its ownership: root writes files there, and the servers' user could otherwise plant links.
    """
    make_directory(directory, 0o711)
    return directory / "data"


def make_cluster(build: Build, directory: Path, user: ServerUser, options: Sequence[str] = ()) -> Cluster:
    """Create a cluster in directory/data; ServerError with the output of initdb if that fails.

    options: further options of initdb, which take precedence.
    """
    data_directory = make_home(directory)
    make_directory(data_directory, 0o700)
    user.change_owner(data_directory)
    arguments = [str(build.program("initdb")), "-D", str(data_directory), *INITDB_OPTIONS, *options]
    finished = run(arguments, user=user, directory=directory)
    if not finished.succeeded:
        raise ServerError(
            f"initdb of PostgreSQL {build.version} failed",
            slug="server-initdb",
            where=str(data_directory),
            found=finished.stderr.strip() or f"exit code {finished.exit_code}",
            expected="a new cluster",
            to_do="check that the file system of the cache directory has free space and is writable for "
            f'user "{user.name}", or set PGVERSUS_CACHE to a different directory',
        )
    return Cluster(build=build, data_directory=data_directory, user=user)


def copy_cluster(source: Cluster, target: Path) -> Cluster:
    """Copy a stopped cluster, sharing blocks if the file system can (reflink).

    The copy is synced, since its dirty pages would otherwise be written during the first windows. It belongs to the
    servers' user even if the source does not. HostError if copying fails; no partial copy is left then.
    """
    part = target.with_name(f"{target.name}.part")
    try:
        _run_or_fail(["cp", "-a", "--reflink=auto", "--", str(source.data_directory), str(part)], source, target)
        if not source.user.is_self:
            owner = f"{source.user.uid}:{source.user.gid}"
            _run_or_fail(["chown", "--recursive", "--no-dereference", "--", owner, str(part)], source, target)
        _run_or_fail(["sync", "--file-system", str(part)], source, target)
        part.rename(target)
    finally:
        remove_directory(part)
    return Cluster(build=source.build, data_directory=target, user=source.user)


def was_shut_down(cluster: Cluster) -> bool:
    """Return whether its server was shut down cleanly, so that the next start needs no recovery."""
    with (cluster.data_directory / "global" / "pg_control").open("rb") as control:
        state = _CONTROL_FILE.unpack(control.read(_CONTROL_FILE.size))[-1]
    return bool(state == _SHUT_DOWN) and not (cluster.data_directory / "postmaster.pid").exists()


def remove_directory(directory: Path) -> None:
    """Remove the data directory of a stopped cluster, if it exists."""
    shutil.rmtree(directory, ignore_errors=True)


def _run_or_fail(arguments: Sequence[str], source: Cluster, target: Path) -> None:
    finished = run(arguments, ends_with_us=True)
    if not finished.succeeded:
        raise HostError(
            "loaded data could not be copied",
            slug="host-copy",
            where=str(target),
            found=finished.stderr.strip() or f"{arguments[0]} ended with exit code {finished.exit_code}",
            expected=f"a copy of {source.data_directory}",
            to_do="free space on that file system, or set PGVERSUS_CACHE to a directory on a different one",
        )
