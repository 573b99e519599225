"""One build into the cache: fetched once, checked, unpacked beside its place and moved there whole."""

import json
import re
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.hashes import file_sha256
from pgversus.host.identity import ServerUser
from pgversus.host.private import private_lock
from pgversus.postgres.builds.files import file_hashes, open_to_all, put_in_place, read_manifest
from pgversus.postgres.builds.inspect import missing_libraries, read_version
from pgversus.postgres.builds.model import MANIFEST, Build, NotifyBytes
from pgversus.postgres.builds.ready_made.checksums import known_checksum
from pgversus.postgres.builds.ready_made.families import SOURCES, RegistryError
from pgversus.postgres.builds.ready_made.resolve import Choice
from pgversus.postgres.builds.unpacking import ArchiveError

# Which registry serves a client is the user's configuration and not ours to print.
_ADDRESS = re.compile(r"https?://\S+")


@dataclass(eq=False)
class MissingLibrariesError(Exception):
    """A build that this host cannot run; another family may do."""

    choice: Choice
    libraries: tuple[str, ...]


def installed(cache: Cache, choice: Choice) -> Build | None:
    """The build if it is in the cache, whole; None otherwise."""
    directory = _place(cache, choice)
    manifest = read_manifest(directory)
    if manifest is None:
        return None
    return Build(
        version=manifest.version,
        bin_directory=directory / manifest.bin,
        origin=choice.family.value,
        sha256=manifest.sha256,
    )


def install(cache: Cache, choice: Choice, user: ServerUser, progress: NotifyBytes) -> Build:
    """The build, from the cache or fetched into it; two pgversus at once fetch it once.

    user: who unpacks it and runs its programs for the first time.
    BuildError when it cannot be fetched, or is not what it should be; then nothing is left in the cache.
    MissingLibrariesError when it is sound and this host lacks libraries that it needs.
    """
    with private_lock(cache.staging / f"{_name(choice)}.lock"):
        build = installed(cache, choice)
        if build is None:
            with _scratch(cache, choice) as scratch:
                _install(cache, choice, scratch, user, progress)
            build = installed(cache, choice)
    if build is None:
        raise _damaged(choice, "it vanished from the cache as soon as it was there")
    missing = missing_libraries(build.bin_directory, user)
    if missing:
        raise MissingLibrariesError(choice, missing)
    return build


def _install(cache: Cache, choice: Choice, scratch: Path, user: ServerUser, progress: NotifyBytes) -> None:
    download, unpacked = scratch / "download", scratch / "build"
    download.mkdir()
    source = SOURCES[choice.family]
    try:
        artifact = source.fetch(choice.version, download, progress)
    except RegistryError as error:
        raise _not_fetched(choice, error) from error
    sha256 = file_sha256(artifact.path)
    for expected in (artifact.sha256, known_checksum(choice.family, choice.version)):
        if expected and expected != sha256:
            raise _damaged(choice, f"SHA-256 {sha256}", expected=f"SHA-256 {expected}")
    try:
        home = source.unpack(artifact.path, unpacked, user)
    except ArchiveError as error:
        raise _damaged(choice, str(error)) from error
    open_to_all(unpacked)
    bin_directory = home / "bin"
    if not missing_libraries(bin_directory, user):
        version = read_version(bin_directory, user)
        if version != str(choice.version):
            raise _damaged(choice, f"PostgreSQL {version}", expected=f"PostgreSQL {choice.version}")
    manifest = {
        "version": str(choice.version),
        "bin": str(bin_directory.relative_to(unpacked)),
        "sha256": sha256,
        "files_sha256": file_hashes(unpacked),
    }
    (unpacked / MANIFEST).write_text(json.dumps(manifest), encoding="utf-8")
    place = _place(cache, choice)
    shutil.rmtree(place, ignore_errors=True)
    put_in_place(unpacked, place)


@contextmanager
def _scratch(cache: Cache, choice: Choice) -> Iterator[Path]:
    """A staging directory of this build's own; what a killed download left there is removed first."""
    for old in cache.staging.glob(f"{_name(choice)}-*"):
        shutil.rmtree(old, ignore_errors=True)
    with tempfile.TemporaryDirectory(prefix=f"{_name(choice)}-", dir=cache.staging) as directory:
        # For the user that runs what was unpacked.
        Path(directory).chmod(0o755)
        yield Path(directory)


def _name(choice: Choice) -> str:
    return f"{choice.family}-{choice.version}"


def _place(cache: Cache, choice: Choice) -> Path:
    return cache.builds / _name(choice)


def _not_fetched(choice: Choice, error: RegistryError) -> BuildError:
    last_words = _ADDRESS.sub("(the registry)", str(error).splitlines()[-1]) if str(error) else "no words"
    return BuildError(
        f"PostgreSQL {choice.version} could not be fetched",
        slug="build-certificate" if error.is_about_certificates else "build-fetch-failed",
        where=f"{choice.family} {choice.version}",
        found="a certificate that is not in the system's store" if error.is_about_certificates else last_words,
        expected="a download",
        to_do="add your proxy's certificate authority to the system's certificate store"
        if error.is_about_certificates
        else "try again with network access, or give the bin directory of a PostgreSQL that is on this host",
    )


def _damaged(choice: Choice, found: str, *, expected: str = "an intact build") -> BuildError:
    return BuildError(
        f"what was fetched for PostgreSQL {choice.version} is not what it should be",
        slug="build-damaged",
        where=f"{choice.family} {choice.version}",
        found=found,
        expected=expected,
        to_do="nothing was kept: run the same command again; if it happens again, a mirror or proxy alters the file",
    )
