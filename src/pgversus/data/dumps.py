"""Data to restore: dumps of one database by pg_dump, and data directories, with their formats and identity."""

import hashlib
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from pgversus.data.changed_files import check_unchanged
from pgversus.errors import StudyError
from pgversus.host.files import file_sha256
from pgversus.study.dataset import Dump, DumpFormat

_CONTENTS = "toc.dat"
VERSION_FILE, _LOCK_FILE, _TABLESPACES = "PG_VERSION", "postmaster.pid", "tablespace_map"
_HEAD_BYTES = 1024
_CUSTOM_MAGIC, _TAR_MAGIC, _TAR_MAGIC_AT = b"PGDMP", b"ustar", 257
_PLAIN_HEAD, _CLUSTER_HEAD = b"-- PostgreSQL database dump", b"-- PostgreSQL database cluster dump"
_COMPRESSED = {
    b"\x1f\x8b": "gzip",
    b"\x28\xb5\x2f\xfd": "zstd",
    b"\x04\x22\x4d\x18": "lz4",
    b"BZh": "bzip2",
    b"\xfd7zXZ": "xz",
}
"""First bytes of compressed files, and the programs that decompress them."""


def dump_at(path: str, flag: str, database: str | None = None) -> Dump:
    """Return the dump or data directory at a path, identified by its content; StudyError if it is neither.

    flag: the option, for messages. database: a database of a data directory; None for the only one.
    """
    place = Path(path).absolute()
    try:
        form = _format_of_directory(place, path, flag) if place.is_dir() else _format_of_file(place, path, flag)
        if database is not None and form is not DumpFormat.DATA_DIRECTORY:
            raise _one_database(path, flag, database)
        return Dump(
            path=str(place),
            format=form,
            sha256=_hash_of(form)(place),
            database=database or "",
            size_bytes=sum(file.stat().st_size for file in (place, *place.rglob("*")) if file.is_file()),
        )
    except OSError as error:
        raise _no_dump(path, flag, error.strerror or str(error)) from error


def check_dump_unchanged(dump: Dump, place: Path | None = None) -> None:
    """Raise DatasetError if the dump or data directory has changed since the study began. place: a copy to check."""
    check_unchanged(dump.path, dump.sha256, place=place, hash_of=_hash_of(dump.format))


def elsewhere_in(directory: Path) -> str:
    """Return an entry that leads out of a directory, or is neither a file nor a directory; empty if none is.

    A server on a copy would use the target of a link: the original's tablespaces, or its WAL. On a base backup with a
    map of tablespaces, it would create such links itself.
    """
    for found in directory.rglob("*"):
        if found.is_symlink() or not (found.is_file() or found.is_dir()):
            return f"{found.relative_to(directory)}, which is a link, a pipe or a device"
    tablespaces = directory / _TABLESPACES
    return f"{_TABLESPACES}: it has tablespaces" if tablespaces.exists() and tablespaces.stat().st_size else ""


def _format_of_directory(place: Path, path: str, flag: str) -> DumpFormat:
    if found := elsewhere_in(place):
        raise _no_dump(path, flag, found)
    if (place / _CONTENTS).is_file():
        return DumpFormat.DIRECTORY
    if (place / "base.tar").is_file() or (place / "base.tar.gz").is_file():
        raise _no_dump(path, flag, "a base backup in tar format: unpack it first, with its WAL in pg_wal")
    if not (place / VERSION_FILE).is_file():
        raise _no_dump(path, flag, f"a directory with neither {_CONTENTS} nor {VERSION_FILE}")
    if (place / _LOCK_FILE).exists():
        raise _not_at_rest(path, flag)
    return DumpFormat.DATA_DIRECTORY


def _format_of_file(place: Path, path: str, flag: str) -> DumpFormat:
    if place.exists() and not place.is_file():
        # A pipe may never begin.
        raise _no_dump(path, flag, "a pipe or a device")
    with place.open("rb") as file:
        return _format_of(file.read(_HEAD_BYTES), path, flag)


def _format_of(head: bytes, path: str, flag: str) -> DumpFormat:
    if head.startswith(_CUSTOM_MAGIC):
        return DumpFormat.CUSTOM
    if head[_TAR_MAGIC_AT:].startswith(_TAR_MAGIC):
        return DumpFormat.TAR
    if _CLUSTER_HEAD in head:
        raise _no_dump(path, flag, "a dump of a whole cluster, by pg_dumpall")
    if _PLAIN_HEAD in head:
        return DumpFormat.PLAIN
    for magic, program in _COMPRESSED.items():
        if head.startswith(magic):
            raise _no_dump(path, flag, f"a file compressed by {program}: decompress it first")
    raise _no_dump(path, flag, "neither an archive nor a plain-text dump of pg_dump")


def _tree_sha256(top: Path) -> str:
    """Return a hash of the names and contents of all files in a tree; OSError if one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(path for path in top.rglob("*") if path.is_file()):
        whole.update(f"{file.relative_to(top)}\0{file_sha256(file)}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


_HASHES: Mapping[DumpFormat, Callable[[Path], str]] = {
    DumpFormat.DIRECTORY: _tree_sha256,
    DumpFormat.DATA_DIRECTORY: _tree_sha256,
}


def _hash_of(form: DumpFormat) -> Callable[[Path], str]:
    return _HASHES.get(form, file_sha256)


def _no_dump(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "this is neither a dump nor a data directory that can be restored",
        slug="study-no-dump",
        where=f"{flag} {_shown(path)}",
        found=found,
        expected="a dump of one database by pg_dump (custom, directory, tar or plain text), or a base backup or data "
        "directory",
        to_do="create a dump of one database: pg_dump -Fc -f app.dump DATABASE",
    )


def _not_at_rest(path: str, flag: str) -> StudyError:
    return StudyError(
        "this data directory is in use, or its server has crashed",
        slug="study-data-directory-in-use",
        where=f"{flag} {_shown(path)}",
        found=_LOCK_FILE,
        expected="a base backup, or the data directory of a server that was stopped",
        to_do="run pg_basebackup -D BACKUP, then use --restore BACKUP",
    )


def _one_database(path: str, flag: str, database: str) -> StudyError:
    return StudyError(
        "--database cannot be used with a dump, which contains only one database",
        slug="study-idle-database",
        where=f"--database {database}, {flag} {_shown(path)}",
        found="a dump by pg_dump",
        expected="a base backup or data directory",
        to_do="omit --database",
    )


def _shown(path: str) -> str:
    return os.fsencode(path).decode(errors="replace")
