"""Names of servers: a version, a path, an address of source, or a connection URI, with build options."""

import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

from pgversus.errors import StudyError
from pgversus.study.build_options import HANDED_ON, NO_OPTIONS, WORDS, BuildOptions, parse_build_options

OLDEST_MAJOR = 12
"""The oldest major with ready-made builds from one compiler. Older ones lack settings and functions that are used."""
NEWEST_TESTED_MAJOR = 18
"""The newest major version that the tests run; a newer server gets a caveat."""


class BuildFamily(StrEnum):
    """Ready-made builds from one compiler with one set of flags."""

    WHEEL = "wheel"
    ZONKY = "zonky"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Version:
    """A released PostgreSQL version, major and minor, since 10."""

    major: int
    minor: int

    def __str__(self) -> str:
        """`17.8`."""
        return f"{self.major}.{self.minor}"


def released_version(text: str) -> Version | None:
    """Return the version, e.g. 17.11 for `17.11-0+deb13u1`; None for pre-releases such as `19~beta2-1`."""
    match = re.match(r"(?:\d+:)?(\d+)\.(\d+)(?![\d.~])", text)
    return Version(major=int(match[1]), minor=int(match[2])) if match else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A released version that pgversus fetches; without a minor, the newest one."""

    major: int
    minor: int | None
    family: BuildFamily | None = None
    """Accept only builds of this family; None lets pgversus choose."""

    def __str__(self) -> str:
        """Return the version as the user wrote it, without the family."""
        return str(self.major) if self.minor is None else f"{self.major}.{self.minor}"

    def admits(self, version: Version) -> bool:
        """Return whether the version matches the request."""
        return version.major == self.major and self.minor in (None, version.minor)


@dataclass(frozen=True, slots=True, kw_only=True)
class LocalPath:
    """A path on this host: a bin directory, a source tree, or a tarball. The type is determined later."""

    path: str

    def __str__(self) -> str:
        """Return the path as the user wrote it."""
        return self.path


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkout:
    """A commit of a git repository on this host."""

    path: str
    ref: str
    """A commit, tag or branch, or another name that git resolves."""

    def __str__(self) -> str:
        """`./postgres@REL_17_STABLE`."""
        return f"{self.path}@{self.ref}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Download:
    """A tarball to download."""

    address: str
    sha256: str | None = None
    """Expected SHA-256; None if the site publishes it next to the tarball."""

    def __str__(self) -> str:
        """`https://host/postgresql-17.8.tar.bz2#sha256=...`."""
        return self.address if self.sha256 is None else f"{self.address}{_HASH_MARK}{self.sha256}"


SourceName = Release | LocalPath | Checkout | Download


@dataclass(frozen=True, slots=True, kw_only=True)
class SourceBuild:
    """A server that pgversus builds itself."""

    source: SourceName
    options: BuildOptions = NO_OPTIONS

    def __str__(self) -> str:
        """`17.8+blocksize=16`."""
        return f"{self.source}{self.options}"


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that pgversus does not manage: it connects and must not restart it."""

    uri: str
    """A libpq connection URI; it may contain a password and is never shown or stored in full."""


Named = Release | LocalPath | SourceBuild
ServerName = Named | RunningServer

_RELEASE = re.compile(r"(?:(?P<family>[a-z]+):)?(?P<major>[0-9]{1,2})(?:\.(?P<minor>[0-9]{1,3}))?")
_RANGE = re.compile(
    r"(?P<family>[a-z]+:)?(?P<first>[0-9]{1,2}(?:\.[0-9]{1,3})?)\.\.(?P<last>[0-9]{1,2}(?:\.[0-9]{1,3})?)"
)
_LEAST_VERSIONS = 2
_URI = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_ADDRESS = re.compile(r"https?://", re.IGNORECASE)
_HASH_MARK = "#sha256="
_SHA256 = re.compile(r"[0-9a-fA-F]{64}")
_CONNECTION = re.compile(r"\s*(\w+\s*=|(jdbc:)?postgres(ql)?:)", re.IGNORECASE)
# Other forms of connection strings. They may contain a password, so they are not shown.
_OPTION = re.compile(rf"\+(?=(?:{'|'.join(WORDS)}|{HANDED_ON})(?:[=+]|\Z))")
_FROM_SOURCE = "source"
_FORMS = (
    "17, 17.8, wheel:17.11, zonky:17.8, source:17.11, 17.11+blocksize=16, /path/to/bin, ./source-tree, "
    "./git-tree@REF, ./postgresql-17.8.tar.bz2, https://.../postgresql-17.8.tar.bz2, or postgresql://host/database"
)


def versions_of(text: str) -> list[str]:
    """Return the names of a range of majors (`14..18`) or minors (`17.0..17.8`); any other name is returned unchanged.

    StudyError for versions that are not in order, or for minors of different majors.
    """
    found = _RANGE.fullmatch(text)
    if found is None:
        return [text]
    family, first, last = found["family"] or "", found["first"], found["last"]
    (major, _, minor), (last_major, _, last_minor) = first.partition("."), last.partition(".")
    are_minors = bool(minor) and bool(last_minor) and major == last_major
    are_majors = not minor and not last_minor
    numbers = range(int(minor), int(last_minor) + 1) if are_minors else range(int(major), int(last_major) + 1)
    if not (are_minors or are_majors) or len(numbers) < _LEAST_VERSIONS:
        raise StudyError(
            "invalid range of versions",
            slug="study-no-range",
            where=text,
            found=f"from {first} to {last}",
            expected="two major versions, or two minor releases of one major version, in ascending order",
            to_do="write a range such as 14..18 or 17.0..17.8",
        )
    return [f"{family}{major}.{number}" if are_minors else f"{family}{number}" for number in numbers]


def is_uri(text: str) -> bool:
    """Return whether a text is a libpq connection URI, valid or not."""
    return _URI.match(text) is not None


def parse_server(text: str) -> ServerName:
    """Parse a server name such as `17`, `zonky:17.8`, `17.8+cassert`, `./postgres@master` or `postgresql://...`.

    Whether the version or the directory exists is checked later. StudyError for any other text.
    """
    if is_uri(text):
        return RunningServer(uri=text)
    if _ADDRESS.match(text):
        named, options = _split_options(text)
        return SourceBuild(source=_download(named), options=options)
    if _CONNECTION.match(text):
        raise _not_a_uri()
    bare, options = _split_options(text)
    if "/" in bare or bare in (".", ".."):
        return _of_path(bare, options)
    release, is_source = _release(bare, text)
    if is_source or options != NO_OPTIONS or bare != text:
        return SourceBuild(source=release, options=options)
    return release


def parse_to_build(text: str) -> ServerName:
    """Parse a server to build from source, where `17` does not mean a ready-made build. StudyError as there."""
    name = parse_server(text)
    if isinstance(name, Release):
        if name.family is not None:
            raise _ready_made(text, name.family)
        return SourceBuild(source=name)
    return SourceBuild(source=name) if isinstance(name, LocalPath) else name


def name_in_full(name: Named) -> str:
    """Return a name that is unique for each meaning: `zonky:17.8`, `17`, `source:17+cassert`."""
    match name:
        case Release(family=family):
            return str(name) if family is None else f"{family}:{name}"
        case SourceBuild(source=Release()):
            return f"{_FROM_SOURCE}:{name}"
        case LocalPath() | SourceBuild():
            return str(name)


def _split_options(text: str) -> tuple[str, BuildOptions]:
    """Split a name from its options. A plus in a path or tag starts options only if a known option follows."""
    bare, *words = _OPTION.split(text)
    if _RELEASE.fullmatch(bare.partition("+")[0]):
        # In the name of a release, anything after a plus is meant as an option, so unknown ones are reported.
        bare, *unknown = bare.split("+")
        words = unknown + words
    return bare, parse_build_options(words, text) if words else NO_OPTIONS


def _download(text: str) -> Download:
    address, mark, sha256 = text.partition(_HASH_MARK)
    if re.search(r"[?#]|//[^/]*@", address):
        raise _secret_address()
    if mark and not _SHA256.fullmatch(sha256):
        raise _not_a_hash()
    try:
        host = urlsplit(address).hostname
    except ValueError:
        # The address is invalid: for example, brackets around text that is not an IPv6 address.
        host = None
    if not host:
        raise _not_a_server(text)
    return Download(address=address, sha256=sha256.lower() or None)


def _of_path(text: str, options: BuildOptions) -> LocalPath | SourceBuild:
    # A reference follows an @; a path that contains an @ must end with a slash.
    path, at, ref = text.partition("@") if not text.endswith("/") else (text, "", "")
    if at and ref:
        return SourceBuild(source=Checkout(path=path, ref=ref), options=options)
    here = LocalPath(path=text)
    return here if options == NO_OPTIONS else SourceBuild(source=here, options=options)


def _release(bare: str, text: str) -> tuple[Release, bool]:
    """Return the release, and whether it was requested from source."""
    match = _RELEASE.fullmatch(bare)
    if match is None:
        raise _not_a_server(text)
    major, minor = int(match["major"]), match["minor"]
    if major < OLDEST_MAJOR:
        raise StudyError(
            f"PostgreSQL {bare} is too old",
            slug="study-version-too-old",
            where=f"server {text}",
            found=bare,
            expected=f"{OLDEST_MAJOR} or newer",
            to_do="compare newer versions",
        )
    family = match["family"]
    release = Release(
        major=major,
        minor=None if minor is None else int(minor),
        family=None if family == _FROM_SOURCE else _family(family, text),
    )
    if release.family is not None and bare != text:
        raise _ready_made(text, release.family)
    return release, family == _FROM_SOURCE


def _family(name: str | None, text: str) -> BuildFamily | None:
    if name is None:
        return None
    try:
        return BuildFamily(name)
    except ValueError:
        raise StudyError(
            f'unknown build family "{name}"',
            slug="study-unknown-family",
            where=f"server {text}",
            found=name,
            expected=f"{', '.join(BuildFamily)} or {_FROM_SOURCE}",
            to_do=f"write {text.partition(':')[2]} without the prefix to let pgversus choose one family for all arms",
        ) from None


def _ready_made(text: str, family: BuildFamily) -> StudyError:
    return StudyError(
        f"the {family} family provides ready-made builds, which do not take build options",
        slug="study-ready-made",
        where=f"server {text}",
        found=text,
        expected=f"a version that is built from source: {text.partition(':')[2]}",
        to_do=f"omit the prefix {family}:",
    )


def _secret_address() -> StudyError:
    return StudyError(
        "this address may contain a secret, and server names are stored and shown",
        slug="study-unknown-server",
        where="server",
        found="an address with a user, a query or a fragment (not shown)",
        expected=f"https://host/path/postgresql-17.8.tar.bz2, optionally followed by {_HASH_MARK}HASH",
        to_do="download the tarball yourself and specify the file: ./postgresql-17.8.tar.bz2",
    )


def _not_a_hash() -> StudyError:
    return StudyError(
        f"the text after {_HASH_MARK} in an address is not a SHA-256 hash",
        slug="study-unknown-server",
        where="server",
        found="a different text (not shown, because it may be a secret)",
        expected="64 hexadecimal digits",
        to_do=f"append {_HASH_MARK} and the hash of the tarball, as published by a site that you trust",
    )


def _not_a_uri() -> StudyError:
    return StudyError(
        "this connection string does not name a server",
        slug="study-unknown-server",
        where="server",
        found="a connection string in a different form (not shown, because it may contain a password)",
        expected=_FORMS,
        to_do="write postgresql://user@host:port/database; with a socket directory: "
        "postgresql:///database?host=/run/postgresql; a bin directory with = in its name must begin with / or ./",
    )


def _not_a_server(text: str) -> StudyError:
    return StudyError(
        f'unknown server "{text}"',
        slug="study-unknown-server",
        where=f"server {text}",
        found=f'"{text}"',
        expected=_FORMS,
        to_do="write a directory with a slash: ./bin",
    )
