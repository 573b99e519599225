"""Source tarballs: contents, downloads, and storage in the cache."""

import hashlib
import ipaddress
import json
import re
import ssl
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

from pgversus.builds.model import NotifyBytes, SourceCode, SourceFacts
from pgversus.builds.source_tree import is_tree
from pgversus.builds.unpacking import ArchiveError, unpack
from pgversus.errors import BuildError
from pgversus.host.directories import Cache, scratch_directory
from pgversus.host.files import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.on_disk import put_in_place
from pgversus.host.permissions import private_lock
from pgversus.study.servers import Download

_SUFFIXES = (".tar.bz2", ".tar.gz", ".tar.xz", ".tgz", ".tar")
_MOST_SHOWN = 5
_SHA256 = re.compile(r"\b[0-9a-fA-F]{64}\b")


def is_archive(path: Path) -> bool:
    """Return whether a file is named like a tarball."""
    return path.name.endswith(_SUFFIXES)


def archive_source(path: Path, *, name: str | None = None, checked: str | None = None) -> SourceCode:
    """Return the source in a tarball, verified against its .sha256 file if there is one; BuildError on mismatch.

    name: shown instead of the file name. checked: the reference of an earlier verification, which replaces this one.
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
    """Raise a BuildError if a published checksum is missing or different.

    text: the published text, a line of sha256sum or the checksum alone. where: the place of publication.
    """
    match = _SHA256.search(text)
    if match is None or match[0].lower() != sha256:
        raise BuildError(
            "the tarball does not match its published checksum" if match else "the tarball has no published checksum",
            slug="build-damaged",
            where=str(path),
            found=f"SHA-256 {sha256}",
            expected=f"SHA-256 {match[0].lower()} ({where})" if match else f"a SHA-256 hash in {where}",
            to_do="fetch it again; nothing was stored"
            if match
            else "append #sha256=HASH to the address, or correct the .sha256 file next to the tarball",
        )


class _Archive:
    """A source tarball."""

    def __init__(self, path: Path, facts: SourceFacts) -> None:
        self.facts = facts
        self._path = path

    def lay_out(self, target: Path, user: ServerUser) -> None:
        """Unpack its only directory; BuildError if it is not a tarball of PostgreSQL's source."""
        part = target.with_name(f"{target.name}.part")
        try:
            unpack(self._path, part, user)
        except ArchiveError as error:
            raise not_an_archive(self._path, str(error)) from error
        if file_sha256(self._path) != self.facts.sha256:
            raise BuildError(
                "the tarball changed before it was unpacked",
                slug="build-tree-changed",
                where=str(self._path),
                found="a file with another SHA-256",
                expected="a tarball that does not change until it is built",
                to_do="run the command again",
            )
        tops = list(part.iterdir())
        home = tops[0] if len(tops) == 1 and tops[0].is_dir() else part
        if not is_tree(home):
            names = sorted(path.name for path in home.iterdir())
            raise not_an_archive(self._path, f"a tarball that contains {', '.join(names[:_MOST_SHOWN]) or 'nothing'}")
        home.rename(target)


def not_an_archive(path: Path, found: str) -> BuildError:
    """Return the error for a file that is not a source tarball."""
    return BuildError(
        "this is not a tarball of PostgreSQL's source",
        slug="build-no-tarball",
        where=str(path),
        found=found,
        expected="a source tarball as published by PostgreSQL, e.g. postgresql-17.8.tar.bz2",
        to_do="use a different tarball; nothing was built",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Record:
    """The stored record of a tarball."""

    sha256: str
    checked: str
    """The reference that its hash was verified against."""


_RECORD = TypeAdapter(_Record)


def store(tarball: Path, place: Path, *, sha256: str, checked: str) -> None:
    """Move a tarball to its place in the cache. checked: the reference that its hash was verified against."""
    record = tarball.with_name(f"{tarball.name}.record")
    record.write_text(json.dumps({"sha256": sha256, "checked": checked}), encoding="utf-8")
    # The record comes first: without its tarball it is harmless.
    put_in_place(record, _record_of(place))
    put_in_place(tarball, place)


def stored_source(place: Path, name: str) -> SourceCode | None:
    """Return the source in a cached tarball; None if it is missing or was modified after it was stored.

    name: the name of the tarball, for messages.
    """
    try:
        record = _RECORD.validate_json(_record_of(place).read_bytes())
        source = archive_source(place, name=name, checked=record.checked)
    except (OSError, ValidationError, BuildError):
        return None
    return source if source.facts.sha256 == record.sha256 else None


def stored_tarballs(cache: Cache) -> list[Path]:
    """Return all cached tarballs, sorted by name."""
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
"""Tarballs of PostgreSQL's source have 20 to 30 MB."""
_MOST_CHECKSUM_BYTES = 1 << 16
_PIECE_BYTES = 1 << 16


class DownloadError(Exception):
    """A tarball could not be downloaded."""


def place_of(download: Download, cache: Cache) -> Path:
    """Return the path of a download in the cache."""
    name = Path(urllib.parse.urlsplit(download.address).path).name or "source.tar"
    return cache.sources / f"{hashlib.sha256(str(download).encode()).hexdigest()[:12]}-{name}"


def name_of(place: Path) -> str:
    """Return the original file name; the full address is part of the user's configuration and not shown."""
    return place.name.partition("-")[2]


def downloaded(download: Download, cache: Cache, progress: NotifyBytes) -> SourceCode:
    """Return the tarball at an address from the cache, or fetch it; BuildError if its hash differs.

    It is verified against the hash given by the user, else against ADDRESS.sha256, which must exist. DownloadError if
    either cannot be downloaded.
    """
    place = place_of(download, cache)
    name = name_of(place)
    with private_lock(cache.staging / f"{place.name}.lock"):
        found = stored_source(place, name)
        if found is not None:
            return found
        with scratch_directory(cache.staging, f"download-{place.name}-") as directory:
            part = directory / place.name
            # The hash first: it is small, and without it the tarball is useless.
            expected, checked = _expected(download, name)
            sha256 = _fetch(download.address, part, name, progress)
            check_published(Path(name), sha256, expected, checked)
            store(part, place, sha256=sha256, checked=checked)
        return archive_source(place, name=name, checked=checked)


def _expected(download: Download, name: str) -> tuple[str, str]:
    """Return the required hash of a tarball, given or published, and its origin."""
    if download.sha256 is not None:
        return download.sha256, "the hash given with its address"
    if not (_is_secure(download.address) or _is_local(download.address)):
        scheme = urllib.parse.urlsplit(download.address).scheme
        raise DownloadError(f"{name}: its hash would be fetched over {scheme}, where it can be altered in transit")
    pieces = _received(f"{download.address}.sha256", _MOST_CHECKSUM_BYTES)
    return b"".join(pieces).decode(errors="replace"), f"{name}.sha256"


def _fetch(address: str, part: Path, name: str, progress: NotifyBytes) -> str:
    """Download a file and return its SHA-256."""
    sha256 = hashlib.sha256()
    size = 0
    with part.open("wb") as file:
        for piece in _received(address, _MOST_BYTES):
            sha256.update(piece)
            size += file.write(piece)
            progress(name, size)
    return sha256.hexdigest()


def _received(address: str, most: int) -> Iterator[bytes]:
    """Yield the content at an address in chunks; DownloadError for more than `most` bytes or a timeout."""
    path = urllib.parse.urlsplit(address).path
    ends_at = time.monotonic() + _LONGEST_S
    size = 0
    try:
        with _opened(address) as answer:
            stated = answer.headers.get("Content-Length", "")
            length = int(stated) if stated.isdecimal() else None
            # read() would wait until a chunk is full, however slowly it arrives; read1() would wait at the end.
            while size != length and (piece := answer.read1(_PIECE_BYTES)):
                size += len(piece)
                if max(size, length or 0) > most:
                    raise DownloadError(f"{path}: larger than {most} bytes")
                if time.monotonic() > ends_at:
                    raise DownloadError(f"{path}: incomplete after {_LONGEST_S:.0f} s, {size} bytes received")
                yield piece
    except (HTTPException, OSError, ValueError) as error:
        raise DownloadError(f"{path}: {getattr(error, 'reason', error)}") from error
    if length not in (None, size):
        raise DownloadError(f"{path}: received {size} of {length} bytes")


def _opened(address: str) -> HTTPResponse:
    """Open an address, using the system's certificate store and the user's proxy."""
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    opener = urllib.request.build_opener(urllib.request.HTTPSHandler(context=context), _SecureRedirects)
    # Addresses in server names are http or https.
    answer: HTTPResponse = opener.open(address, timeout=_SILENCE_S)
    return answer


class _SecureRedirects(urllib.request.HTTPRedirectHandler):
    """Follow redirects to https only, or between local addresses, for tests."""

    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> urllib.request.Request | None:
        if not (_is_secure(newurl) or (_is_local(req.full_url) and _is_local(newurl))):
            raise urllib.error.URLError(f"redirected to {urllib.parse.urlsplit(newurl).scheme} instead of https")
        return super().redirect_request(req, fp, code, msg, headers, newurl)


def _is_secure(address: str) -> bool:
    return urllib.parse.urlsplit(address).scheme == "https"


def _is_local(address: str) -> bool:
    """Return whether an address is http on this machine itself, where nobody can intercept it."""
    parts = urllib.parse.urlsplit(address)
    try:
        is_loopback = parts.hostname == "localhost" or ipaddress.ip_address(parts.hostname or "").is_loopback
    except ValueError:
        return False
    return parts.scheme == "http" and is_loopback
