"""PostgreSQL's source by way of the machine's own apt, which knows where a distribution has it, and checks signatures.

Nothing of the system's is changed: apt gets lists, caches and one source of ours, made from the machine's own first one
with another suite. Works for any user.
"""

import os
import re
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

from pgversus.host.commands import CLEAN_ENVIRONMENT, Finished, run
from pgversus.study.servers import Release, Version

_SUITES = {
    "debian": {13: ("bullseye",), 15: ("bookworm",), 17: ("trixie",), 18: ("forky", "sid")},
    "ubuntu": {12: ("focal",), 14: ("jammy",), 16: ("noble",), 17: ("plucky", "questing")},
}
"""Which suite of a distribution has which major, by its ID in os-release; the machine's own suite is asked as well."""
_ONCE_LISTED = {
    (13, 16): "c9cbbb6129f02328204828066bb3785c00a85c8ca8fd329c2a8a53c1f5cd8865",
    (15, 18): "11df0df97fe3ea4ba9a791faaf39cee1d2fe571e78885b5b55d8517d27c323b4",
    (17, 11): "dd27f2b3c59e73ed14aa3324901242bf69a032a6347805f274e6260322d42979",
    (18, 6): "555610c24d53e4316da5b7d3fc25c279d96856d5e0e23ee308c328c5fa881d9f",
}
"""SHA-256 of tarballs by major and minor, from Debian's signed indexes of 2026. An index tells of the newest alone, and
a mirror may have that later than its index, while what was listed before is still there."""
_HELPER = "/usr/lib/apt/apt-helper"
_OS_RELEASE = Path("/etc/os-release")
_LISTS = Path("/etc/apt")
_TIMEOUT_S = 300.0
_ADDRESS = re.compile(r"\w+://\S+")
_MOST_WORDS = 300


class AptError(Exception):
    """Why apt has no such source; its words, without addresses."""


def debian_archive(release: Release, directory: Path) -> tuple[Path, str]:
    """The newest tarball of this release that apt has, in `directory`, and the package's version.

    It was checked by apt, against the index that the distribution has signed: today's, or where the mirror does not
    have what that lists, an earlier one. AptError when there is none.
    """
    if shutil.which("apt-get", path=CLEAN_ENVIRONMENT["PATH"]) is None:
        raise AptError("no apt on this machine")
    stanza = _first_stanza()
    problems = []
    for suite in _suites_of(release.major, stanza):
        try:
            return _of_suite(release, stanza, suite, directory)
        except AptError as error:
            problems.append(f"{suite}: {error}")
    for minor in _minors_once_listed(release):
        try:
            return _once_listed(release.major, minor, stanza, directory)
        except AptError as error:
            problems.append(f"{release.major}.{minor}: {error}")
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
        raise AptError(f"{newest} came without a tarball")
    return archives[0], newest


def _minors_once_listed(release: Release) -> list[int]:
    """Newest first."""
    minors = (minor for major, minor in _ONCE_LISTED if major == release.major)
    return sorted((minor for minor in minors if release.minor in (None, minor)), reverse=True)


def _once_listed(major: int, minor: int, stanza: dict[str, str], directory: Path) -> tuple[Path, str]:
    package, version = f"postgresql-{major}", f"{major}.{minor}"
    name = f"{package}_{version}.orig.tar.bz2"
    address = f"{stanza['URIs'].split()[0].rstrip('/')}/pool/main/p/{package}/{name}"
    directory.mkdir(parents=True, exist_ok=True)
    checked = f"SHA256:{_ONCE_LISTED[major, minor]}"
    options = ["-qq", "-oAPT::Sandbox::User="]
    _apt([_HELPER, *options, "download-file", address, str(directory / name), checked], directory)
    return directory / name, version


def _own_directories(home: Path) -> list[str]:
    for name in ("etc", "lists/partial", "cache/archives/partial"):
        (home / name).mkdir(parents=True, exist_ok=True)
    return [
        "-oDir::Etc::sourcelist=/dev/null",
        f"-oDir::Etc::sourceparts={home / 'etc'}",
        f"-oDir::State::lists={home / 'lists'}",
        f"-oDir::Cache={home / 'cache'}",
        "-oAcquire::Languages=none",
        # As root it would fetch as a user that cannot enter our directories.
        "-oAPT::Sandbox::User=",
    ]


def _apt(arguments: Sequence[str], directory: Path) -> str:
    finished = run(arguments, environment=_environment(), directory=directory, timeout_s=_TIMEOUT_S, ends_with_us=True)
    if not finished.succeeded:
        raise AptError(_words(finished))
    return finished.stdout


def _environment() -> dict[str, str]:
    # The machine's own apt honours these as well.
    proxies = {name: value for name, value in os.environ.items() if name.lower().endswith("_proxy")}
    return {**CLEAN_ENVIRONMENT, **proxies, "PATH": "/usr/local/sbin:/usr/sbin:/usr/local/bin:/usr/bin:/sbin:/bin"}


def _words(finished: Finished) -> str:
    if finished.timed_out:
        return f"no answer in {_TIMEOUT_S:.0f} s"
    lines = [line for line in finished.stderr.splitlines() if line.startswith("E:")] or finished.stderr.splitlines()
    return _ADDRESS.sub("(its mirror)", lines[0] if lines else f"exit code {finished.exit_code}")[:_MOST_WORDS]


def _first_stanza() -> dict[str, str]:
    """The distribution's own source of packages on this machine, as deb822 fields; AptError where there is none.

    Others have one beside it, often of the same suite: theirs has no `main`.
    """
    for fields in (*_stanzas(), *_one_line_sources()):
        if "main" in fields.get("Components", "").split() and _release("VERSION_CODENAME") in fields["Suites"].split():
            return fields
    raise AptError("this machine's apt has no source of the distribution's packages")


def _stanzas() -> Iterator[dict[str, str]]:
    for file in sorted(_LISTS.glob("sources.list.d/*.sources")):
        for text in re.split(r"\n\s*\n", file.read_text(encoding="utf-8", errors="replace")):
            fields = dict(_fields(text))
            if "URIs" in fields and "Suites" in fields and fields.get("Enabled", "yes").lower() != "no":
                yield fields


def _fields(text: str) -> Iterator[tuple[str, str]]:
    """Of one stanza; a line that goes on belongs to the field before it."""
    for part in re.split(r"\n(?=\S)", re.sub(r"^#.*\n?", "", text, flags=re.MULTILINE).strip()):
        name, colon, value = part.partition(":")
        if colon:
            yield name.strip(), value.strip()


_LINE = re.compile(r"^deb\s+(?:\[([^\]]*)\]\s+)?(\S+)\s+(\S+)[ \t]*(.*)$", re.MULTILINE)
_OPTIONS = {"signed-by": "Signed-By", "trusted": "Trusted"}


def _one_line_sources() -> Iterator[dict[str, str]]:
    for file in (_LISTS / "sources.list", *sorted(_LISTS.glob("sources.list.d/*.list"))):
        if file.is_file():
            for given, address, suite, components in _LINE.findall(file.read_text(encoding="utf-8", errors="replace")):
                pairs = (word.partition("=") for word in given.split())
                options = {_OPTIONS[name]: value for name, _, value in pairs if name in _OPTIONS}
                yield {"URIs": address, "Suites": suite, "Components": components, **options}


def _suites_of(major: int, stanza: dict[str, str]) -> list[str]:
    """Where a major may be: where it is known to be, then the machine's own suites."""
    known = _SUITES.get(_release("ID"), {}).get(major, ())
    return list(dict.fromkeys((*known, *stanza["Suites"].split())))


def _release(name: str) -> str:
    """A field of os-release; empty where there is none."""
    try:
        text = _OS_RELEASE.read_text(encoding="utf-8")
    except OSError:
        return ""
    match = re.search(rf"^{name}=\"?([\w.-]+)", text, re.MULTILINE)
    return match[1] if match else ""


def _admits(release: Release, text: str) -> bool:
    version = released_version(text)
    return version is not None and release.admits(version)


def released_version(text: str) -> Version | None:
    """17.11 of `17.11-0+deb13u1`; None for what is no release, such as `19~beta2-1`."""
    match = re.match(r"(?:\d+:)?(\d+)\.(\d+)(?![\d.~])", text)
    return Version(major=int(match[1]), minor=int(match[2])) if match else None


def _key(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in re.findall(r"\d+", text))
