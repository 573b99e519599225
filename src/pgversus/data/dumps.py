"""Dumps of one database, as pg_dump writes them: their formats and the identity of their content."""

import hashlib
import os
from pathlib import Path

from pgversus.data.changed_files import check_unchanged
from pgversus.errors import StudyError
from pgversus.host.files import file_sha256
from pgversus.study.dataset import Dump, DumpFormat

_CONTENTS = "toc.dat"
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


def dump_at(path: str, flag: str) -> Dump:
    """Return the dump at a path, identified by its content; StudyError if it is none, or cannot be read.

    flag: the option, for messages.
    """
    place = Path(path).absolute()
    try:
        if place.is_dir():
            if not (place / _CONTENTS).is_file():
                raise _no_dump(path, flag, f"a directory without {_CONTENTS}")
            return Dump(path=str(place), format=DumpFormat.DIRECTORY, sha256=_directory_sha256(place))
        with place.open("rb") as file:
            head = file.read(_HEAD_BYTES)
        return Dump(path=str(place), format=_format_of(head, path, flag), sha256=file_sha256(place))
    except OSError as error:
        raise _no_dump(path, flag, error.strerror or str(error)) from error


def check_dump_unchanged(dump: Dump) -> None:
    """Raise DatasetError if the dump has changed since the study began."""
    is_directory = dump.format is DumpFormat.DIRECTORY
    check_unchanged(dump.path, dump.sha256, hash_of=_directory_sha256 if is_directory else file_sha256)


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


def _directory_sha256(directory: Path) -> str:
    """Return a hash of the names and contents of all files in a directory; OSError if one cannot be read."""
    whole = hashlib.sha256()
    for file in sorted(path for path in directory.iterdir() if path.is_file()):
        whole.update(f"{file.name}\0{file_sha256(file)}\0".encode(errors="surrogateescape"))
    return whole.hexdigest()


def _no_dump(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "not a dump that can be restored",
        slug="study-no-dump",
        where=f"{flag} {os.fsencode(path).decode(errors='replace')}",
        found=found,
        expected="a dump of one database by pg_dump: custom, directory, tar or plain text",
        to_do="pg_dump -Fc -f app.dump DATABASE",
    )
