"""Installed builds: fetched once, verified, and either complete or absent."""

import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from pgversus.builds.families import SOURCES, Artifact, ZonkyRegistry
from pgversus.builds.model import NotifyBytes
from pgversus.builds.ready_made import Choice, install, installed
from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.identity import server_user
from pgversus.study.servers import BuildFamily, Version

CHOICE = Choice(family=BuildFamily.ZONKY, version=Version(major=17, minor=8))
INSTALL = """
import sys
from pathlib import Path
from pgversus.host.directories import open_cache
from pgversus.host.identity import server_user
from pgversus.builds.ready_made import install
from pgversus.builds.ready_made import Choice
from pgversus.study.servers import BuildFamily, Version
fetched = []
choice = Choice(family=BuildFamily.ZONKY, version=Version(major=17, minor=8))
install(open_cache(), choice, server_user(), lambda name, size: fetched.append(size))
print(len(fetched))
"""


def quiet(_name: str, _size: int) -> None:
    pass


@pytest.fixture
def cache() -> Iterator[Cache]:
    root = Path(tempfile.mkdtemp(prefix="pgversus-test-", dir="/tmp"))
    root.chmod(0o755)
    cache = Cache(root=root)
    for directory in (cache.builds, cache.index, cache.staging, cache.runs):
        directory.mkdir()
    yield cache
    shutil.rmtree(root)


def test_two_concurrent_installs_fetch_a_build_once(cache: Cache) -> None:
    command = [sys.executable, "-c", INSTALL]
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(cache.root), "PGVERSUS_CACHE": str(cache.root)}
    processes = [
        subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        for _ in range(2)
    ]
    outputs = [process.communicate(timeout=200) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    reports = sorted(int(stdout) for stdout, _ in outputs)
    assert reports[0] == 0, "the second one found it there"
    build = installed(cache, CHOICE)
    assert build is not None
    assert build.version == "17.8"
    assert [path.name for path in cache.staging.iterdir() if path.is_dir()] == []


class _Truncated(ZonkyRegistry):
    """The registry's own artifact, truncated in transit; an honest one keeps the registry's checksum."""

    def __init__(self, *, honest: bool) -> None:
        self._honest = honest

    def fetch(self, version: Version, staging: Path, progress: NotifyBytes) -> Artifact:
        artifact = super().fetch(version, staging, progress)
        artifact.path.write_bytes(artifact.path.read_bytes()[:-100_000])
        return artifact if self._honest else Artifact(path=artifact.path, sha256="")


@pytest.mark.parametrize("honest", [True, False])
def test_a_truncated_build_is_rejected_and_not_kept(
    cache: Cache, monkeypatch: pytest.MonkeyPatch, *, honest: bool
) -> None:
    # The checksum next to an honest artifact detects it; otherwise only the one that pgversus knows does.
    monkeypatch.setitem(SOURCES, BuildFamily.ZONKY, _Truncated(honest=honest))
    with pytest.raises(BuildError) as caught:
        install(cache, CHOICE, server_user(), quiet)
    assert caught.value.slug == "build-damaged"
    assert "SHA-256" in caught.value.found
    assert installed(cache, CHOICE) is None
    assert list(cache.builds.iterdir()) == []


def test_a_listed_but_missing_version_is_distinguished_from_no_network(cache: Cache) -> None:
    with pytest.raises(BuildError) as caught:
        install(cache, Choice(family=BuildFamily.ZONKY, version=Version(major=17, minor=99)), server_user(), quiet)
    assert caught.value.slug == "build-fetch-failed"
    assert "://" not in str(caught.value.found), "no address of a registry in our messages"
