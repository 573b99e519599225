"""PostgreSQL's source from the host's apt, which knows the mirrors of the distribution and verifies signatures.

The system is not changed: apt uses separate lists and caches, and a single package source, derived from the host's
first one with a different suite. Works for any user.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.host.commands import CLEAN_ENVIRONMENT, Finished, run
from pgversus.study.servers import Release, Version, released_version

_SUITES = {
    "debian": {13: ("bullseye",), 15: ("bookworm",), 17: ("trixie",), 18: ("forky", "sid")},
    "ubuntu": {12: ("focal",), 14: ("jammy",), 16: ("noble",), 17: ("plucky", "questing")},
}
"""Suites by ID in os-release and major version; the host's own suites are tried as well."""
_FORMERLY_LISTED = {
    Version(major=13, minor=16): "c9cbbb6129f02328204828066bb3785c00a85c8ca8fd329c2a8a53c1f5cd8865",
    Version(major=15, minor=18): "11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4",
    Version(major=17, minor=11): "dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979",
    Version(major=18, minor=6): "555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f",
}
"""SHA-256 of tarballs, from Debian's signed indexes of 2026. An index lists only the newest version. A mirror may still
have the previous version instead, because it received the index earlier than the tarball."""
_HELPER = "/usr/lib/apt/apt-helper"
_OS_RELEASE = Path("/etc/os-release")
_LISTS = Path("/etc/apt")
_TIMEOUT_S = 300.0
_ADDRESS = re.compile(r"\w+://\S+")
_MOST_WORDS = 300


class AptError(Exception):
    """apt cannot provide a source; the message is apt's own, without addresses."""


def debian_archive(release: Release, directory: Path) -> tuple[Path, str]:
    """Download the newest tarball of a release to `directory`; return its path and the version of the package.

    apt verifies it against the index signed by the distribution: the current one or, if the mirror lacks the listed
    version, an earlier one. AptError without one.
    """
    if shutil.which("apt-get", path=CLEAN_ENVIRONMENT["PATH"]) is None:
        raise AptError("apt is not installed on this host")
    stanza = _first_stanza()
    problems = []
    for suite in _suites_of(release.major, stanza):
        try:
            return _of_suite(release, stanza, suite, directory)
        except AptError as error:
            problems.append(f"{suite}: {error}")
    for version in sorted(filter(release.admits, _FORMERLY_LISTED), reverse=True):
        try:
            return _formerly_listed(version, stanza, directory)
        except AptError as error:
            problems.append(f"{version}: {error}")
    raise AptError("; ".join(problems))


def _of_suite(release: Release, stanza: dict[str, str], suite: str, directory: Path) -> tuple[Path, str]:
    home = directory / suite
    options = _own_directories(home)
    fields = {**stanza, "Types": "deb-src", "Suites": suite, "Components": "main"}
    (home / "etc" / "src.sources").write_text("".join(f"{name}: {value}\n" for name, value in fields.items()))
    _apt(["apt-get", *options, "-qq", "update"], home)
    package = f"postgresql-{release.major}"
    shown = _apt(["apt-cache", *options, "showsrc", "--only-source", package], home)
    versions = [text for text in re.findall(r"^Version: (\S+)$", shown, re.MULTILINE) if _admits(release, text)]
    if not versions:
        raise AptError(f"no {package} {release}" if shown else f"no {package}")
    newest = max(versions, key=_key)
    for old in home.glob(f"{package}_*"):
        old.unlink()
    _apt(["apt-get", *options, "-qq", "source", "--download-only", f"{package}={newest}"], home)
    found = sorted(home.glob(f"{package}_*.orig.tar.*"))
    archives = [path for path in found if not path.name.endswith(".asc")]
    if not archives:
        raise AptError(f"package {newest} contains no tarball")
    return archives[0], newest


def _formerly_listed(version: Version, stanza: dict[str, str], directory: Path) -> tuple[Path, str]:
    package = f"postgresql-{version.major}"
    name = f"{package}_{version}.orig.tar.bz2"
    address = f"{stanza['URIs'].split()[0].rstrip('/')}/pool/main/p/{package}/{name}"
    directory.mkdir(parents=True, exist_ok=True)
    checked = f"SHA256:{_FORMERLY_LISTED[version]}"
    options = ["-qq", "-oAPT::Sandbox::User="]
    _apt([_HELPER, *options, "download-file", address, str(directory / name), checked], directory)
    return directory / name, str(version)


def _own_directories(home: Path) -> list[str]:
    for name in ("etc", "lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True, exist_ok=True)
    return [
        "-oDir::Etc::sourcelist=/dev/null",
        f"-oDir::Etc::sourceparts={home / 'etc'}",
        f"-oDir::State::lists={home / 'lists'}",
        f"-oDir::Cache={home / 'cache'}",
        "-oAcquire::Languages=none",
        # By default, apt run as root downloads as a user that cannot enter our directories.
        "-oAPT::Sandbox::User=",
    ]


def _apt(arguments: Sequence[str], directory: Path) -> str:
    finished = run(arguments, environment=_environment(), directory=directory, timeout_s=_TIMEOUT_S, ends_with_us=True)
    if not finished.succeeded:
        raise AptError(_failure_text(finished))
    return finished.stdout


def _environment() -> dict[str, str]:
    # apt honors these by default.
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {**CLEAN_ENVIRONMENT, **proxies, "PATH": "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/sbin:/bin"}


def _failure_text(finished: Finished) -> str:
    if finished.timed_out:
        return f"no answer in {_TIMEOUT_S:.0f} s"
    lines = [line for line in finished.stderr.splitlines() if line.startswith("E:")] or finished.stderr.splitlines()
    return _ADDRESS.sub("(its mirror)", lines[0] if lines else f"exit code {finished.exit_code}")[:_MOST_WORDS]


def _first_stanza() -> dict[str, str]:
    """Return the distribution's own package source as deb822 fields; AptError without one.

    Third-party sources often have the same suite, but no `main` component.
    """
    for fields in (*_stanzas(), *_one_line_sources()):
        if "main" in fields.get("Components", "").split() and _release("VERSION_CODENAME") in fields["Suites"].split():
            return fields
    raise AptError("apt on this host has no package source of the distribution")


def _stanzas() -> Iterator[dict[str, str]]:
    for file in sorted(_LISTS.glob("sources.list.d/*.sources")):
        for text in re.split(r"\n\s*\n", _text_of(file)):
            fields = dict(_fields(text))
            if "URIs" in fields and "Suites" in fields and fields.get("Enabled", "yes").lower() != "no":
                yield fields


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Yield the fields of one stanza; continuation lines belong to the preceding field."""
    for part in re.split(r"\n(?=\S)", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE).strip()):
        name, colon, value = part.partition(":")
        if colon:
            yield name.strip(), value.strip()


_LINE = re.compile(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)[ \t]*(.*)$", re.MULTILINE)
_OPTIONS = {"signed-by": "Signed-By", "trusted": "Trusted"}


def _one_line_sources() -> Iterator[dict[str, str]]:
    for file in (_LISTS / "sources.list", *sorted(_LISTS.glob("sources.list.d/*.list"))):
        for given, address, suite, components in _LINE.findall(_text_of(file)):
            pairs = (word.partition("=") for word in given.split())
            options = {_OPTIONS[name]: value for name, _, value in pairs if name in _OPTIONS}
            yield {"URIs": address, "Suites": suite, "Components": components, **options}


def _text_of(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read, like one with the password of a third party's archive."""
    try:
        return file.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""


def _suites_of(major: int, stanza: dict[str, str]) -> list[str]:
    """Return the suites that may contain a major: the known ones, then the host's own."""
    known = _SUITES.get(_release("ID"), {}).get(major, ())
    return list(dict.fromkeys((*known, *stanza["Suites"].split())))


def _release(name: str) -> str:
    """Return a field of os-release; empty if it is missing."""
    try:
        text = _OS_RELEASE.read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(rf"^{name}=\"?([\w.-]+)", text, re.MULTILINE)
    return match[1] if match else ""


def _admits(release: Release, text: str) -> bool:
    version = released_version(text)
    return version is not None and release.admits(version)


def _key(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
