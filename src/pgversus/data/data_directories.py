"""Data directories and base backups: a server is started on a copy, and one of its databases is dumped.

The copy starts with an empty configuration: the original one may load libraries, open ports and run commands. Its roles
and passwords do not matter either, since the dump is made by a role of our own.
"""

import hashlib
import os
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from psycopg import conninfo

from pgversus.builds.model import Build
from pgversus.data.dumps import VERSION_FILE, check_dump_unchanged, dump_at, elsewhere_in
from pgversus.errors import DatasetError
from pgversus.host.commands import run
from pgversus.host.permissions import PRIVATE_DIRECTORY, make_private, write_for
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres import catalog
from pgversus.postgres.client import Client
from pgversus.postgres.cluster import Cluster, copy_cluster, make_home, remove_directory
from pgversus.postgres.server import Server
from pgversus.postgres.session import DATABASE, Target, connect
from pgversus.study.dataset import Dump

_ROLE = "pgversus_dump"
_ANY_DATABASE = "template1"
_FILES = {"config_file": b"", "ident_file": b"", "hba_file": b"local all all trust\n"}
"""The socket, the only way to connect, is in a directory that only the servers' user can enter."""
_NOT_USED = ("postgresql.auto.conf", "recovery.conf", "recovery.signal", "standby.signal")
_SLOTS = "pg_replslot"
_SETTINGS = {
    "fsync": "off",
    "autovacuum": "off",
    # Subscriptions would receive the changes that publishers retain for the original.
    "max_logical_replication_workers": "0",
    # A server does not start without room for the transactions that were prepared for two-phase commit.
    "max_prepared_transactions": "1000",
}
_MOST_JOBS = 16


def dump_of(source: Dump, builds: Iterable[Build | None], client: Client, directory: RunDirectory) -> Dump:
    """Return a dump of a database of a data directory, made in the directory of a run.

    builds: builds of the arms; one of them must have the major version of the data directory.
    DatasetError if the data directory has changed or cannot be dumped; ServerError if no server starts on its copy.
    """
    # A link to it would be copied as a link.
    place = Path(source.path).resolve()
    original = Cluster(build=_build_for(place, builds), data_directory=place, user=directory.user)
    home = directory.root / f"dumped-{hashlib.sha256(f'{source.sha256} {source.database}'.encode()).hexdigest()[:12]}"
    copy = copy_cluster(original, make_home(home))
    try:
        _check_copy(copy, source)
        settings = _make_usable(copy, home)
        _create_role(copy, source, settings)
        with _running(copy, home, directory, settings) as target:
            return _dump(_with_database(target, _chosen_database(target, source)), home / "dump", source, client)
    except BaseException:
        remove_directory(home)
        raise
    finally:
        remove_directory(copy.data_directory)


def _check_copy(copy: Cluster, source: Dump) -> None:
    """Raise DatasetError if the copy differs from the data directory of the study, or refers to files outside it."""
    check_dump_unchanged(source, copy.data_directory)
    if found := elsewhere_in(copy.data_directory):
        raise _not_dumped(source, found)


def _build_for(place: Path, builds: Iterable[Build | None]) -> Build:
    """Return a build of the major version of a data directory, one from source only if there is no other."""
    major = (place / VERSION_FILE).read_text(encoding="ascii", errors="replace").strip()
    # Builds of the user's own source may have other block sizes.
    known = sorted((build for build in builds if build is not None), key=lambda build: build.made_from is not None)
    for build in known:
        if build.version.startswith(major) and not build.version[len(major) :][:1].isdigit():
            return build
    versions = ", ".join(dict.fromkeys(build.version for build in known)) or "no version"
    raise DatasetError(
        "no compared server can start on this data directory",
        slug="dataset-other-major",
        where=str(place),
        found=f"a data directory of PostgreSQL {major}, and servers of {versions}",
        expected="a server of the same major version among those compared",
        to_do=f"compare {major} as well, or dump the database with pg_dump and restore the dump",
    )


def _make_usable(copy: Cluster, home: Path) -> Mapping[str, str]:
    """Remove files that belong to the original's location, and return the settings of a server on the copy."""
    for name in _NOT_USED:
        (copy.data_directory / name).unlink(missing_ok=True)
    for slot in (copy.data_directory / _SLOTS).glob("*"):
        remove_directory(slot)
    # An unpacked archive may be open to others, and a server refuses that.
    copy.data_directory.chmod(PRIVATE_DIRECTORY)
    files = {name: home / f"{name}.conf" for name in _FILES}
    for name, content in _FILES.items():
        write_for(copy.user, files[name], content)
    return {**_SETTINGS, **{name: str(file) for name, file in files.items()}}


def _create_role(copy: Cluster, source: Dump, settings: Mapping[str, str]) -> None:
    """Create the role that dumps, in single-user mode, because no role of the data directory is known."""
    words = [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    postgres, data = str(copy.build.program("postgres")), str(copy.data_directory)
    with tempfile.TemporaryFile() as commands:
        commands.write(f"CREATE ROLE {_ROLE} SUPERUSER LOGIN;\n".encode())
        commands.seek(0)
        finished = run(
            [postgres, "--single", "-D", data, *words, _ANY_DATABASE],
            stdin=commands,
            user=copy.user,
            directory=copy.data_directory,
            ends_with_us=True,
            is_abridged=True,
        )
    if not finished.succeeded or "ERROR:" in finished.stderr:
        raise _not_dumped(source, finished.stderr.strip() or f"exit code {finished.exit_code}")


@contextmanager
def _running(copy: Cluster, home: Path, directory: RunDirectory, settings: Mapping[str, str]) -> Iterator[Target]:
    # The server that the dump is restored into is running already, in a socket directory of its own.
    sockets = directory.sockets / "dumped"
    make_private(copy.user, sockets)
    server = Server(copy, sockets, home / "server.log", settings)
    server.start()
    try:
        # Names of databases can be read whatever their own encodings.
        given = {"user": _ROLE, "dbname": _ANY_DATABASE, "client_encoding": "UTF8"}
        as_role = conninfo.make_conninfo(server.target.conninfo, **given)
        yield replace(server.target, conninfo=as_role)
    finally:
        server.stop()


def _with_database(target: Target, name: str) -> Target:
    """Return the same server with another database."""
    return replace(target, conninfo=conninfo.make_conninfo(target.conninfo, dbname=name))


def _chosen_database(target: Target, source: Dump) -> str:
    """Return the name of the database to dump; DatasetError if it does not exist, or if there are several."""
    with connect(target) as connection:
        names = catalog.databases(connection)
    chosen = [source.database] if source.database else [name for name in names if name != DATABASE] or [DATABASE]
    if len(chosen) == 1 and chosen[0] in names:
        return chosen[0]
    if source.database:
        what = f'database "{source.database}" does not exist in this data directory'
    else:
        what = f"this data directory contains {'more than one' if names else 'no'} database"
    raise DatasetError(
        what,
        slug="dataset-which-database",
        where=source.path,
        found=", ".join(names),
        expected="the name of one of these databases",
        to_do=f"use --database {names[0]}" if names else "restore a base backup of another server",
    )


def _dump(target: Target, place: Path, source: Dump, client: Client) -> Dump:
    make_private(client.user, place)
    finished = run(
        [
            *(str(client.pg_dump), "--format=directory", "--compress=0"),
            *("--jobs", str(min(_MOST_JOBS, len(os.sched_getaffinity(0))))),
            *("--file", str(place), "--dbname", target.conninfo),
        ],
        environment=client.environment(target),
        user=client.user,
        ends_with_us=True,
        is_abridged=True,
    )
    if not finished.succeeded:
        raise _not_dumped(source, finished.stderr.strip() or f"exit code {finished.exit_code}")
    return dump_at(str(place), "--restore")


def _not_dumped(source: Dump, words: str) -> DatasetError:
    return DatasetError(
        "the data directory could not be dumped",
        slug="dataset-not-dumped",
        where=source.path,
        found=words,
        expected="a base backup with its WAL, or the data directory of a stopped server",
        to_do="see the messages above; otherwise dump the database on its own server: pg_dump -Fc -f app.dump DATABASE",
    )
