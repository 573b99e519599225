"""Source tarballs: what they hold, downloads, and those that the cache stores."""

import hashlib
import ipaddress
import json
import re
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO

import truststore
from pydantic import TypeAdapter, ValidationError

from pgversus.builds.inspect import put_in_place
from pgversus.builds.model import NotifyBytes, SourceCode, SourceFacts
from pgversus.builds.source_tree import is_tree
from pgversus.builds.unpacking import ArchiveError, unpack
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.files import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import private_lock
from pgversus.study.servers import Download

_SUFFIXES = (".tar.bz2", ".tar.gz", ".tar.xz", ".tgz", ".tar")
_MOST_SHOWN = 5
_SHA256 = re.compile(r"\b[0-9a-fA-F]{64}\b")


def is_archive(path: Path) -> bool:
    """Whether this is called as a tarball is."""
    return path.name.endswith(_SUFFIXES)


def archive_source(path: Path, *, name: str | None = None, checked: str | None = None) -> SourceCode:
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """What is kept of a tarball."""

    sha256: str
    checked: str
    """Against what its hash was verified."""


_RECORD = TypeAdapter(_Record)


def store(tarball: Path, place: Path, *, sha256: str, checked: str) -> None:
    """Move a tarball to its place in the cache. checked: against what its hash was verified."""
    record = tarball.with_name(f"{tarball.name}.record")
    record.write_text(json.dumps({"sha256": sha256, "checked": checked}), encoding="utf-8")
    # The record comes first: without its tarball it does no harm.
    put_in_place(record, _record_of(place))
    put_in_place(tarball, place)


def stored_source(place: Path, name: str) -> SourceCode | None:
    """The source in a tarball of the cache; None where it is not there, or differs from what was stored.

    name: of the tarball, for people.
    """
    try:
        record = _RECORD.validate_json(_record_of(place).read_bytes())
        source = archive_source(place, name=name, checked=record.checked)
    except (OSError, ValidationError, BuildError):
        return None
    return source if source.facts.sha256 == record.sha256 else None


def stored_tarballs(cache: Cache) -> list[Path]:
    """Every tarball in the cache, by name."""
    return sorted(path for path in cache.sources.glob("*") if is_archive(path))


def remove_stored(place: Path) -> None:
    """Remove a tarball from the cache; OSError when it cannot be removed."""
    place.unlink(missing_ok=True)
    _record_of(place).unlink(missing_ok=True)


def _record_of(place: Path) -> Path:
    return place.with_name(f"{place.name}.json")


_SILENCE_S = 60.0
_LONGEST_S = 1800.0
_MOST_BYTES = 1 << 30
"""PostgreSQL's source is published in 20 to 30 MB."""
_MOST_CHECKSUM_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


class DownloadError(Exception):
    """Why an address gave no tarball."""


def place_of(download: Download, cache: Cache) -> Path:
    """Where what is at this address is kept."""
    name = Path(urllib.parse.urlsplit(download.address).path).name or "source.tar"
    return cache.sources / f"{hashlib.sha256(str(download).encode()).hexdigest()[:12]}-{name}"


def name_of(place: Path) -> str:
    """What the file was called where it came from; the whole address is the user's configuration."""
    return place.name.partition("-")[2]


def downloaded(download: Download, cache: Cache, progress: NotifyBytes) -> SourceCode:
    """The tarball at an address, from the cache or fetched; DownloadError, or BuildError when its hash is another one.

    It is verified against the hash that the user gives, else against ADDRESS.sha256, which must be there.
    """
    place = place_of(download, cache)
    name = name_of(place)
    with private_lock(cache.staging / f"{place.name}.lock"):
        found = stored_source(place, name)
        if found is not None:
            return found
        with tempfile.TemporaryDirectory(prefix="download-", dir=cache.staging) as directory:
            part = Path(directory) / place.name
            # First the hash, which is small: without one the tarball is of no use.
            expected, checked = _expected(download, name)
            sha256 = _fetch(download.address, part, name, progress)
            check_published(Path(name), sha256, expected, checked)
            store(part, place, sha256=sha256, checked=checked)
        return archive_source(place, name=name, checked=checked)


def _expected(download: Download, name: str) -> tuple[str, str]:
    """The hash that a tarball must have, as it was given or published, and who says so."""
    if download.sha256 is not None:
        return download.sha256, "the hash given with its address"
    if not (_is_secure(download.address) or _is_local(download.address)):
        scheme = urllib.parse.urlsplit(download.address).scheme
        raise DownloadError(f"{name}: its hash would come over {scheme}, where anybody on the way can change it")
    pieces = _received(f"{download.address}.sha256", _MOST_CHECKSUM_BYTES)
    return b"".join(pieces).decode(errors="replace"), f"{name}.sha256"


def _fetch(address: str, part: Path, name: str, progress: NotifyBytes) -> str:
    """The SHA-256 of what was fetched."""
    sha256 = hashlib.sha256()
    size = 0
    with part.open("wb") as file:
        for piece in _received(address, _MOST_BYTES):
            sha256.update(piece)
            size += file.write(piece)
            progress(name, size)
    return sha256.hexdigest()


def _received(address: str, most: int) -> Iterator[bytes]:
    """What is at an address, piece by piece; DownloadError when it has more than `most` bytes, or takes too long."""
    path = urllib.parse.urlsplit(address).path
    ends_at = time.monotonic() + _LONGEST_S
    size = 0
    try:
        with _opened(address) as answer:
            told = answer.headers.get("Content-Length", "")
            length = int(told) if told.isdecimal() else None
            # read() would wait until a piece is full, however slowly it fills; read1() after the last byte, for more.
            while size != length and (piece := answer.read1(_PIECE_BYTES)):
                size += len(piece)
                if max(size, length or 0) > most:
                    raise DownloadError(f"{path}: it has more than {most} bytes")
                if time.monotonic() > ends_at:
                    raise DownloadError(f"{path}: {size} bytes came in {_LONGEST_S:.0f} s, and there are more")
                yield piece
    except (HTTPException, OSError, ValueError) as error:
        raise DownloadError(f"{path}: {getattr(error, 'reason', error)}") from error
    if length not in (None, size):
        raise DownloadError(f"{path}: {size} bytes came of {length}")


def _opened(address: str) -> HTTPResponse:
    """The answer, by the system's certificate store and the user's proxy."""
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _SecureRedirects)
    # Servers' names say http or https.
    answer: HTTPResponse = opener.open(address, timeout=_SILENCE_S)
    return answer


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follows to https alone; tests are sent from one local address to another."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if not (_is_secure(newurl) or (_is_local(req.full_url) and _is_local(newurl))):
            raise urllib.error.URLError(
                f"it leads elsewhere, to {urllib.parse.urlsplit(newurl).scheme} and not to https"
            )
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_secure(address: str) -> bool:
    return urllib.parse.urlsplit(address).scheme == "https"


def _is_local(address: str) -> bool:
    """Whether http goes to this machine itself, where nobody is between."""
    parts = urllib.parse.urlsplit(address)
    try:
        is_loopback = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
    return parts.scheme == "http" and is_loopback
