"""Tarballs at an address that the user gives: checked against a hash, and kept in the cache by their address."""

import hashlib
import ipaddress
import ssl
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator
from http.client import HTTPException, HTTPMessage, HTTPResponse
from pathlib import Path
from typing import IO

import truststore

from pgversus.host.directories import Cache
from pgversus.host.private import private_lock
from pgversus.postgres.builds.model import NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, check_published
from pgversus.postgres.builds.source.source import Source
from pgversus.postgres.builds.source.stored import store, stored_source
from pgversus.study.servers import Download

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


def downloaded(download: Download, cache: Cache, progress: NotifyBytes) -> Source:
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
