"""Tarballs of PostgreSQL's source: what one is, whether it is what was published, and what is in it."""

import re
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.hashes import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.model import SourceFacts
from pgversus.postgres.builds.source.source import Source
from pgversus.postgres.builds.source.tree import is_tree
from pgversus.postgres.builds.unpacking import ArchiveError, unpack

_SUFFIXES = (".tar.bz2", ".tar.gz", ".tar.xz", ".tgz", ".tar")
_MOST_SHOWN = 5
_SHA256 = re.compile(r"\b[0-9a-fA-F]{64}\b")


def is_archive(path: Path) -> bool:
    """Whether this is called as a tarball is."""
    return path.name.endswith(_SUFFIXES)


def archive_source(path: Path, *, name: str | None = None, checked: str | None = None) -> Source:
    """The source in a tarball, held against the checksum beside it, if there is one; BuildError where it differs.

    name: for people, where the file's own says nothing. checked: against what it was held already.
    """
    try:
        sha256 = file_sha256(path)
    except OSError as error:
        raise not_an_archive(path, error.strerror or str(error)) from error
    published = path.with_name(f"{path.name}.sha256")
    if checked is None and published.is_file():
        check_published(path, sha256, published.read_text(encoding="utf-8", errors="replace"), str(published))
        checked = published.name
    return _Archive(path, SourceFacts(words=name or path.name, sha256=sha256, checked=checked))


def check_published(path: Path, sha256: str, text: str, where: str) -> None:
    """BuildError when a published checksum is another one.

    text: as it was published, a line of sha256sum or the sum alone. where: it was published.
    """
    match = _SHA256.search(text)
    if match is None or match[0].lower() != sha256:
        raise BuildError(
            "a tarball is not what was published",
            slug="build-damaged",
            where=str(path),
            found=f"SHA-256 {sha256}",
            expected=f"SHA-256 {match[0].lower()} ({where})" if match else f"a SHA-256 in {where}",
            to_do="fetch it again; nothing of it was kept",
        )


class _Archive:
    """A tarball."""

    def __init__(self, path: Path, facts: SourceFacts) -> None:
        self.facts = facts
        self._path = path

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """What is inside its only directory; BuildError when it is no tarball, or not one of PostgreSQL's source."""
        part = target.with_name(f"{target.name}.part")
        try:
            unpack(self._path, part, user)
        except ArchiveError as error:
            raise not_an_archive(self._path, str(error)) from error
        tops = list(part.iterdir())
        home = tops[0] if len(tops) == 1 and tops[0].is_dir() else part
        if not is_tree(home):
            names = sorted(path.name for path in home.iterdir())
            raise not_an_archive(self._path, f"a tarball with {', '.join(names[:_MOST_SHOWN]) or 'nothing'} in it")
        home.rename(target)


def not_an_archive(path: Path, found: str) -> BuildError:
    """What is said of a file that holds no source."""
    return BuildError(
        "this is no tarball of PostgreSQL's source",
        slug="build-no-tarball",
        where=str(path),
        found=found,
        expected="a tarball as PostgreSQL is published: postgresql-17.8.tar.bz2",
        to_do="give another one; nothing was built",
    )
