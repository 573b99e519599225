"""Options of a server built from source, and the profile and build system shared by all builds of a study."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from pgversus.errors import StudyError

BLOCK_SIZES = (1, 2, 4, 8, 16, 32)
WAL_BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64)
"""Values that configure accepts since 7.4, in kB."""
USUAL_COMPILER = "gcc"
USUAL_BLOCK_SIZE = 8
"""Default size of table blocks and of WAL blocks, in kB."""

HANDED_ON = r"(?:with|without|enable|disable)-[a-z0-9-]+"
# configure itself checks whether a version has such an option.
_OWN = frozenset(
    {
        "with-blocksize",
        "with-wal-blocksize",
        "enable-cassert",
        "disable-cassert",
        "enable-option-checking",
        "disable-option-checking",
        "disable-rpath",
        "enable-rpath",
    }
)
WORDS = ("blocksize", "wal-blocksize", "cassert", "cflags", "cc")
# make passes this to a shell unquoted, so shell metacharacters would run other commands.
_COMPILER = re.compile(r"[\w./][\w./+,:@%-]*(?:[ \t]+[\w./+=,:@%-]+)*")
_FORMS = (
    "blocksize=KB, wal-blocksize=KB, cassert, cflags=FLAGS, cc=COMPILER, or a configure option (with-lz4, "
    "enable-dtrace)"
)


class BuildProfile(StrEnum):
    """The extent of a build."""

    MINIMAL = "minimal"
    """The programs that a comparison runs, without optional libraries."""
    FULL = "full"
    """Everything, with the libraries that distributions use: ICU, LZ4, Zstandard, OpenSSL, libxml2, zlib."""


class BuildSystem(StrEnum):
    """PostgreSQL's two build systems."""

    CONFIGURE = "configure"
    MESON = "meson"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildManner:
    """Choices that apply to all builds of a study."""

    profile: BuildProfile = BuildProfile.MINIMAL
    system: BuildSystem | None = None
    """None means configure, or meson for a source tree without configure."""


USUAL_MANNER = BuildManner()


def requested_manner(manner: BuildManner, profile: str | None, system: str | None) -> BuildManner:
    """Return the manner with the requested changes; None keeps a value. StudyError for an unknown word."""
    for name, word, kind in (("profile", profile, BuildProfile), ("system", system, BuildSystem)):
        if word and word not in list(kind):
            raise StudyError(
                f'invalid build {name} "{word}"',
                slug="study-bad-build-option",
                where=f"build {name}",
                found=word,
                expected=" or ".join(kind),
                to_do="omit it to use the default",
            )
    return BuildManner(
        profile=BuildProfile(profile) if profile else manner.profile,
        system=BuildSystem(system) if system else manner.system,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """Options of one build that differ from the default."""

    block_size_kb: int = USUAL_BLOCK_SIZE
    wal_block_size_kb: int = USUAL_BLOCK_SIZE
    cassert: bool = False
    """Whether the build checks assertions at run time."""
    cflags: str | None = None
    """Replaces -O2."""
    compiler: str | None = None
    """Replaces gcc."""
    handed_on: tuple[str, ...] = ()
    """Further configure options, without their dashes, in alphabetical order."""

    def __str__(self) -> str:
        """Return the suffix of a server's name, empty without options. Equal options give equal texts."""
        return "".join(f"+{word}" for word in self.words)

    @property
    def words(self) -> tuple[str, ...]:
        """The options without the plus: `blocksize=16`."""
        return (
            *([f"blocksize={self.block_size_kb}"] if self.block_size_kb != USUAL_BLOCK_SIZE else []),
            *([f"wal-blocksize={self.wal_block_size_kb}"] if self.wal_block_size_kb != USUAL_BLOCK_SIZE else []),
            *(["cassert"] if self.cassert else []),
            *([f"cflags={self.cflags}"] if self.cflags is not None else []),
            *([f"cc={self.compiler}"] if self.compiler is not None else []),
            *self.handed_on,
        )


NO_OPTIONS = BuildOptions()


def parse_build_options(words: Sequence[str], server: str) -> BuildOptions:
    """Parse options such as `blocksize=16` or `cassert`, each at most once. StudyError for any other.

    server: the user's whole text, for messages.
    """
    given: dict[str, str] = {}
    handed_on: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name in given or name in [other.partition("=")[0] for other in handed_on]:
            raise _bad(server, f"{name} twice", "each option once", "omit one of them")
        is_handed_on = re.fullmatch(HANDED_ON, name) is not None and name not in _OWN
        if not is_handed_on and name not in WORDS:
            raise _unknown(server, name)
        if is_handed_on:
            if equals and not value.strip():
                raise _bad(server, f"+{word}", "a value after the =", f"+{name}=VALUE, or +{name}")
            handed_on.append(word)
        elif bool(equals) is (name == "cassert") or (equals and not value.strip()):
            raise _bad(server, f"+{word}", _FORMS, "cassert takes no value; the other options require one")
        elif name == "cc" and not _COMPILER.fullmatch(value.strip()):
            raise _bad(
                server, f"+{word}", "a program and its options, without quotes", "+cc=clang-18, or +cc=/opt/bin/gcc"
            )
        else:
            given[name] = value
    return BuildOptions(
        block_size_kb=_size(given, "blocksize", BLOCK_SIZES, server),
        wal_block_size_kb=_size(given, "wal-blocksize", WAL_BLOCK_SIZES, server),
        cassert="cassert" in given,
        cflags=given.get("cflags"),
        compiler=None if given.get("cc") == USUAL_COMPILER else given.get("cc"),
        handed_on=tuple(sorted(handed_on)),
    )


def _size(given: dict[str, str], name: str, sizes: Sequence[int], server: str) -> int:
    text = given.get(name, str(USUAL_BLOCK_SIZE))
    if text not in map(str, sizes):
        known = ", ".join(map(str, sizes))
        raise _bad(server, f"{name}={text}", f"one of {known} (kB)", f"for example, +{name}=16")
    return int(text)


def _unknown(server: str, name: str) -> StudyError:
    # Users may try the names that configure uses.
    near = get_close_matches(re.sub("^(with|enable)-", "", name), WORDS, n=1)
    return _bad(server, f"+{name}", _FORMS, f"did you mean +{near[0]}?" if near else "see the README")


def _bad(server: str, found: str, expected: str, to_do: str) -> StudyError:
    return StudyError(
        "invalid build option",
        slug="study-bad-build-option",
        where=f"server {server}",
        found=found,
        expected=expected,
        to_do=to_do,
    )
