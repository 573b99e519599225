"""Tarballs at an address that the user gives, kept in the cache by their address."""

import hashlib
import ssl
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from http.client import HTTPException, HTTPResponse
from pathlib import Path

if sys.version_info >= (3, 12):
    import tarfile
else:  # as archive.py, so that both have the same opinion
    from backports import tarfile

import truststore
from filelock import FileLock

from pgversus.host.directories import Cache
from pgversus.host.hashes import file_sha256
from pgversus.postgres.builds.model import NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, check_published
from pgversus.postgres.builds.source.source import Source

_TIMEOUT_S = 60.0
_PIECE = 1 << 16
_NOT_PUBLISHED = frozenset({403, 404, 410})
"""What servers answer where there is no checksum: not everybody publishes one."""


class DownloadError(Exception):
    """Why an address gave no tarball."""


def place_of(address: str, cache: Cache) -> Path:
    """Where what is at this address is kept."""
    name = Path(urllib.parse.urlsplit(address).path).name or "source.tar"
    return cache.sources / f"{hashlib.sha256(address.encode()).hexdigest()[:12]}-{name}"


def name_of(place: Path) -> str:
    """What the file was called where it came from; the whole address is the user's configuration."""
    return place.name.partition("-")[2]


def downloaded(address: str, cache: Cache, progress: NotifyBytes) -> Source:
    """The tarball at an address, held against ADDRESS.sha256 where one is published; DownloadError, BuildError."""
    place = place_of(address, cache)
    with FileLock(cache.staging / f"{place.name}.lock"):
        if not place.exists():
            with tempfile.TemporaryDirectory(prefix="download-", dir=cache.staging) as name:
                _fetch(address, Path(name) / place.name, place, progress)
    return archive_source(place, name=name_of(place))


def _fetch(address: str, part: Path, place: Path, progress: NotifyBytes) -> None:
    name = name_of(place)
    with _opened(address) as answer, part.open("wb") as file:
        size = 0
        while piece := _read(answer, address):
            size += file.write(piece)
            progress(name, size)
        told = answer.headers.get("Content-Length")
    if told is not None and told.isdecimal() and int(told) != size:
        raise DownloadError(f"{name}: {size} bytes came of {told}")
    if not tarfile.is_tarfile(part):
        raise DownloadError(f"{name}: what is there is no tarball")
    published = _published(f"{address}.sha256")
    if published is not None:
        check_published(Path(name), file_sha256(part), published, f"{name}.sha256")
        place.with_name(f"{place.name}.sha256").write_text(published, encoding="utf-8")
    part.rename(place)


def _published(address: str) -> str | None:
    try:
        with _opened(address) as answer:
            return _read(answer, address).decode(errors="replace")
    except DownloadError as error:
        if isinstance(error.__cause__, urllib.error.HTTPError) and error.__cause__.code in _NOT_PUBLISHED:
            return None
        raise


def _read(answer: HTTPResponse, address: str) -> bytes:
    try:
        return answer.read(_PIECE)
    except (HTTPException, OSError) as error:
        raise DownloadError(f"{urllib.parse.urlsplit(address).path}: {error}") from error


def _opened(address: str) -> HTTPResponse:
    """The answer, by the system's certificate store and the user's proxy. Servers' names say http or https."""
    context = truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    try:
        answer: HTTPResponse = urllib.request.urlopen(address, timeout=_TIMEOUT_S, context=context)  # noqa: S310 - see above
    except (urllib.error.URLError, HTTPException, OSError, ValueError) as error:
        raise DownloadError(f"{urllib.parse.urlsplit(address).path}: {getattr(error, 'reason', error)}") from error
    return answer
