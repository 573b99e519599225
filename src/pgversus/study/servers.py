"""How a server is named: a version, a bin directory, or a connection URI."""

import re
from dataclasses import dataclass
from enum import StrEnum

from pgversus.errors import StudyError

OLDEST_MAJOR = 12
# 12 is the oldest major of which ready-made builds with one compiler exist; older ones were never tried.


class Family(StrEnum):
    """A set of ready-made builds by one compiler with one set of flags."""

    WHEEL = "wheel"
    ZONKY = "zonky"


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Version:
    """A released PostgreSQL version since 10: major and minor."""

    major: int
    minor: int

    def __str__(self) -> str:
        """`17.8`."""
        return f"{self.major}.{self.minor}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A released version that pgversus fetches; without a minor, the newest there is."""

    major: int
    minor: int | None
    family: Family | None = None
    """Only builds of this family will do; None leaves the choice to pgversus."""

    def __str__(self) -> str:
        """The version as the user named it, without the family."""
        return str(self.major) if self.minor is None else f"{self.major}.{self.minor}"

    def admits(self, version: Version) -> bool:
        """Whether that version is what was asked for."""
        return version.major == self.major and self.minor in (None, version.minor)


@dataclass(frozen=True, slots=True, kw_only=True)
class BinDirectory:
    """The bin directory of a PostgreSQL that is already on this host."""

    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunningServer:
    """A server that somebody else runs: pgversus connects and must not restart it."""

    uri: str
    """A libpq connection URI; it may hold a password and is never shown or stored whole."""


Named = Release | BinDirectory
ServerName = Release | BinDirectory | RunningServer

_RELEASE = re.compile(r"(?:(?P<family>[a-z]+):)?(?P<major>[0-9]{1,2})(?:\.(?P<minor>[0-9]{1,3}))?")
_URI = re.compile(r"postgres(ql)?://", re.IGNORECASE)
_CONNECTION = re.compile(r"\s*(\w+\s*=|(jdbc:)?postgres(ql)?:)", re.IGNORECASE)
# Other ways of saying where to connect; a password may be in them, so they are not shown.
_FORMS = "17, 17.8, wheel:17.11, zonky:17.8, /path/to/bin, or postgresql://host/database"


def parse_server(text: str) -> ServerName:
    """What the user means by `17`, `17.8`, `zonky:17.8`, `/usr/lib/postgresql/17/bin` or `postgresql://...`.

    Nothing is looked up: whether the version or the directory exists is asked later. StudyError for anything else.
    """
    if _URI.match(text):
        return RunningServer(uri=text)
    if _CONNECTION.match(text):
        raise _not_a_uri()
    if "/" in text or text in (".", ".."):
        return BinDirectory(path=text)
    match = _RELEASE.fullmatch(text)
    if match is None:
        raise _not_a_server(text)
    major, minor = int(match["major"]), match["minor"]
    if major < OLDEST_MAJOR:
        raise StudyError(
            f"PostgreSQL {text} is too old to be fetched",
            slug="study-version-too-old",
            where=f"server {text}",
            found=text,
            expected=f"{OLDEST_MAJOR} or newer",
            to_do="give the bin directory of your own build of it",
        )
    return Release(major=major, minor=None if minor is None else int(minor), family=_family(match["family"], text))


def name_in_full(name: Named) -> str:
    """`zonky:17.8`, `17`, `/path/to/bin`: no two names that mean something else have the same text."""
    match name:
        case Release(family=family):
            return str(name) if family is None else f"{family}:{name}"
        case BinDirectory(path=path):
            return path


def _family(name: str | None, text: str) -> Family | None:
    if name is None:
        return None
    try:
        return Family(name)
    except ValueError:
        raise StudyError(
            f'"{name}" is no build family',
            slug="study-unknown-family",
            where=f"server {text}",
            found=name,
            expected=" or ".join(Family),
            to_do=f"leave it out ({text.partition(':')[2]}) and pgversus chooses one family for all arms",
        ) from None


def _not_a_uri() -> StudyError:
    return StudyError(
        "this connection string does not name a server",
        slug="study-unknown-server",
        where="server",
        found="a connection string of another form (not shown, because a password may be in it)",
        expected=_FORMS,
        to_do="write it as postgresql://user@host:port/database; a socket directory goes at its end: "
        "postgresql:///database?host=/run/postgresql; a bin directory with = in its name begins with / or ./",
    )


def _not_a_server(text: str) -> StudyError:
    is_option = "+" in text
    return StudyError(
        f'"{text}" does not name a server',
        slug="study-unknown-server",
        where=f"server {text}",
        found=f'"{text}"',
        expected=_FORMS,
        to_do="build options are not supported: give the bin directory of your own build"
        if is_option
        else "a directory is written with a slash in it: ./bin",
    )
