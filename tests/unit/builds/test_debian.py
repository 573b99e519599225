"""The package source given to apt, and the suites queried."""

import textwrap
from pathlib import Path

import pytest

from pgversus.builds import debian as module
from pgversus.builds.debian import AptError, _first_stanza, _key, _suites_of, debian_archive
from pgversus.study.servers import Release

DEB822 = """
# Written by the installer.

Enabled: no
Types: deb
URIs: http://off.example/debian
Suites: off

# The one that counts.
Types: deb deb-src
URIs: http://deb.example/debian
# of this machine
Suites: bookworm bookworm-updates
Components: main contrib
Signed-By:
 -----BEGIN PGP PUBLIC KEY BLOCK-----
 .
 mDMEZ: no field
 -----END PGP PUBLIC KEY BLOCK-----

Types: deb
URIs: http://security.example/debian
Suites: bookworm-security
"""


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(module, "_LISTS", tmp_path)
    monkeypatch.setattr(module, "_OS_RELEASE", tmp_path / "os-release")
    (tmp_path / "sources.list.d").mkdir()
    return tmp_path


def test_the_first_enabled_source_is_used_with_its_key(lists: Path) -> None:
    (lists / "os-release").write_text("VERSION_CODENAME=bookworm\n")
    # A third-party source, whose name comes first.
    (lists / "sources.list.d" / "a.sources").write_text(
        "Types: deb\nURIs: https://other.example\nSuites: bookworm\nComponents: stable\n"
    )
    (lists / "sources.list.d" / "debian.sources").write_text(DEB822)
    (lists / "sources.list").write_text("deb http://old.example/debian bullseye main\n")
    assert _first_stanza() == {
        "Types": "deb deb-src",
        "URIs": "http://deb.example/debian",
        "Suites": "bookworm bookworm-updates",
        "Components": "main contrib",
        "Signed-By": textwrap.dedent("""\
            -----BEGIN PGP PUBLIC KEY BLOCK-----
             .
             mDMEZ: no field
             -----END PGP PUBLIC KEY BLOCK-----"""),
    }


def test_a_file_of_sources_that_cannot_be_read_is_skipped(lists: Path) -> None:
    (lists / "os-release").write_text("VERSION_CODENAME=bookworm\n")
    # As root, every file can be read, but no directory.
    (lists / "sources.list.d" / "a.sources").mkdir()
    (lists / "sources.list.d" / "debian.sources").write_text(DEB822)
    assert _first_stanza()["URIs"] == "http://deb.example/debian"


@pytest.mark.parametrize(
    ("line", "fields"),
    [
        (
            "deb http://deb.example/debian trixie main",
            {"URIs": "http://deb.example/debian", "Suites": "trixie", "Components": "main"},
        ),
        (
            "deb [arch=amd64 signed-by=/usr/share/keyrings/x.gpg trusted=yes] https://deb.example/ubuntu noble main",
            {
                "URIs": "https://deb.example/ubuntu",
                "Suites": "noble",
                "Components": "main",
                "Signed-By": "/usr/share/keyrings/x.gpg",
                "Trusted": "yes",
            },
        ),
    ],
)
@pytest.mark.parametrize("file", ["sources.list", "sources.list.d/x.list"])
def test_one_line_sources_are_supported(lists: Path, file: str, line: str, fields: dict[str, str]) -> None:
    (lists / "os-release").write_text(f"VERSION_CODENAME={fields['Suites']}\n")
    (lists / file).write_text(
        f"# deb http://off.example/debian off main\ndeb-src http://src.example/debian off main\n{line}\n"
    )
    assert _first_stanza() == fields


def test_a_host_without_a_source_is_an_error(lists: Path) -> None:
    (lists / "sources.list.d" / "empty.sources").write_text("# nothing\n")
    with pytest.raises(AptError, match="has no package source of the distribution"):
        _first_stanza()


@pytest.mark.parametrize(
    ("os_release", "major", "suites"),
    [
        ("ID=debian\n", 17, ["trixie", "bookworm", "bookworm-updates"]),
        ("ID=debian\n", 15, ["bookworm", "bookworm-updates"]),
        ("ID=debian\n", 18, ["forky", "sid", "bookworm", "bookworm-updates"]),
        ('NAME="U"\nID="ubuntu"\nID_LIKE=debian\n', 16, ["noble", "bookworm", "bookworm-updates"]),
        ("ID=debian\n", 99, ["bookworm", "bookworm-updates"]),
        ("ID=mint\n", 17, ["bookworm", "bookworm-updates"]),
        (None, 17, ["bookworm", "bookworm-updates"]),
    ],
)
def test_known_suites_are_queried_before_the_hosts_own(
    lists: Path, os_release: str | None, major: int, suites: list[str]
) -> None:
    if os_release is not None:
        (lists / "os-release").write_text(os_release)
    assert _suites_of(major, {"Suites": "bookworm bookworm-updates"}) == suites


def test_package_versions_are_compared_by_number() -> None:
    assert max(["17.9-1", "17.11-0+deb13u1", "17.10-2", "17.11-0+deb13u2"], key=_key) == "17.11-0+deb13u2"


def test_an_earlier_version_is_used_if_the_mirror_lacks_the_listed_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    requested: list[list[str]] = []

    def apt(arguments: list[str], _directory: Path) -> str:
        requested.append(arguments)
        if "showsrc" in arguments:
            return "Package: postgresql-17\nVersion: 17.12-0+deb13u1\n"
        if "source" in arguments:
            raise AptError("E: Failed to fetch (its mirror)  404  Not Found")
        return ""

    monkeypatch.setattr(module, "_apt", apt)
    monkeypatch.setattr(module, "_first_stanza", lambda: {"URIs": "http://deb.example/debian/", "Suites": "bookworm"})
    path, version = debian_archive(Release(major=17, minor=None), tmp_path)
    assert (path.name, version) == ("postgresql-17_17.11.orig.tar.bz2", "17.11")
    *_, address, place, checked = requested[-1]
    assert address == "http://deb.example/debian/pool/main/p/postgresql-17/postgresql-17_17.11.orig.tar.bz2"
    assert place == str(path)
    assert checked.startswith("SHA256:")
    # A minor that no index listed, and a major without known minors, are not replaced by others.
    for release, why in ((Release(major=17, minor=12), "404"), (Release(major=16, minor=None), "no postgresql-16")):
        with pytest.raises(AptError, match=why):
            debian_archive(release, tmp_path)
