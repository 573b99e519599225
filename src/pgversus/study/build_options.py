"""What can be asked of a build from source: options of one server, and the manner in which all of them are built."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from enum import StrEnum

from pgversus.errors import StudyError

BLOCK_SIZES = (1, 2, 4, 8, 16, 32)
WAL_BLOCK_SIZES = (1, 2, 4, 8, 16, 32, 64)
"""kB, as configure takes them since 7.4."""
USUAL_COMPILER = "gcc"
USUAL_BLOCK_SIZE = 8
"""kB, of blocks of tables and of WAL, where nobody says otherwise."""

_HANDED_ON = re.compile(r"(?:with|without|enable|disable)-[a-z0-9-]+")
# Options of configure itself: which of them a version has, it knows better.
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
_WORDS = ("blocksize", "wal-blocksize", "cassert", "cflags", "cc")
# What make hands to a shell as it is: letters that mean something there would run what follows them.
_COMPILER = re.compile(r"[\w./][\w./+,:@%-]*(?:[ \t]+[\w./+=,:@%-]+)*")
_FORMS = (
    "blocksize=KB, wal-blocksize=KB, cassert, cflags=FLAGS, cc=COMPILER, or an option of configure (with-lz4, "
    "enable-dtrace)"
)


class BuildProfile(StrEnum):
    """How much of PostgreSQL is built."""

    MINIMAL = "minimal"
    """What a comparison runs, with no optional library."""
    FULL = "full"
    """All of it, with the libraries that distributions build with: ICU, LZ4, Zstandard, OpenSSL, libxml2, zlib."""


class BuildSystem(StrEnum):
    """By which of PostgreSQL's two build systems."""

    CONFIGURE = "configure"
    MESON = "meson"


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildManner:
    """What all builds of a study have in common."""

    profile: BuildProfile = BuildProfile.MINIMAL
    system: BuildSystem | None = None
    """None: configure, and meson for a tree that has nothing else."""


USUAL_MANNER = BuildManner()


def manner_asked(manner: BuildManner, profile: str | None, system: str | None) -> BuildManner:
    """The manner with what is asked otherwise; None leaves it. StudyError for a word that is neither."""
    for name, word, kind in (("profile", profile, BuildProfile), ("system", system, BuildSystem)):
        if word and word not in list(kind):
            raise StudyError(
                f'"{word}" is no build {name}',
                slug="study-bad-build-option",
                where=f"build {name}",
                found=word,
                expected=" or ".join(kind),
                to_do="leave it out for the usual one",
            )
    return BuildManner(
        profile=BuildProfile(profile) if profile else manner.profile,
        system=BuildSystem(system) if system else manner.system,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildOptions:
    """What one build is asked to be otherwise than the usual one."""

    block_size_kb: int = USUAL_BLOCK_SIZE
    wal_block_size_kb: int = USUAL_BLOCK_SIZE
    cassert: bool = False
    """Whether its assertions are checked while it runs."""
    cflags: str | None = None
    """In place of -O2."""
    compiler: str | None = None
    """In place of gcc."""
    handed_on: tuple[str, ...] = ()
    """Further options of configure, without their dashes, in order of the alphabet."""

    def __str__(self) -> str:
        """As they stand behind a server's name; empty for none. Equal options have equal texts."""
        return "".join(f"+{word}" for word in self.words)

    @property
    def words(self) -> tuple[str, ...]:
        """Each of them, without the plus: `blocksize=16`."""
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
    """The options in `blocksize=16`, `cassert`, each once; StudyError for others. server: the whole text, for words."""
    given: dict[str, str] = {}
    handed_on: list[str] = []
    for word in words:
        name, equals, value = word.partition("=")
        if name in given or name in [other.partition("=")[0] for other in handed_on]:
            raise _bad(server, f"{name} twice", "each option once", "leave one of them out")
        is_handed_on = _HANDED_ON.fullmatch(name) is not None and name not in _OWN
        if not is_handed_on and name not in _WORDS:
            raise _unknown(server, name)
        if is_handed_on:
            if equals and not value.strip():
                raise _bad(server, f"+{word}", "a value behind the =", f"+{name}=VALUE, or +{name}")
            handed_on.append(word)
        elif bool(equals) is (name == "cassert") or (equals and not value.strip()):
            raise _bad(server, f"+{word}", _FORMS, "cassert takes no value, and the others take one")
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
        raise _bad(server, f"{name}={text}", f"one of {known} (kB)", f"+{name}=16, for one")
    return int(text)


def _unknown(server: str, name: str) -> StudyError:
    # What configure calls it is what some will try.
    near = get_close_matches(re.sub("^(with|enable)-", "", name), _WORDS, n=1)
    return _bad(server, f"+{name}", _FORMS, f"+{near[0]}, if that is meant" if near else "see the README")


def _bad(server: str, found: str, expected: str, to_do: str) -> StudyError:
    return StudyError(
        "this is no build option",
        slug="study-bad-build-option",
        where=f"server {server}",
        found=found,
        expected=expected,
        to_do=to_do,
    )
