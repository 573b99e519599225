"""What a build from source needs on this host: programs and headers, asked for all at once before anything begins."""

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, may_execute, run
from pgversus.host.directories import make_directory
from pgversus.host.identity import ServerUser
from pgversus.study.build_options import USUAL_COMPILER, BuildManner, BuildOptions, BuildProfile, BuildSystem

_PATH = CLEAN_ENVIRONMENT["PATH"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """A program, or a header, and the package that has it."""

    name: str
    debian: str
    fedora: str


_COMMON = (
    _Need(name="bison", debian="bison", fedora="bison"),
    _Need(name="flex", debian="flex", fedora="flex"),
    _Need(name="m4", debian="m4", fedora="m4"),
    _Need(name="perl", debian="perl", fedora="perl"),
)
_OF_SYSTEM = {
    BuildSystem.CONFIGURE: (_Need(name="make", debian="make", fedora="make"),),
    BuildSystem.MESON: (
        _Need(name="meson", debian="meson", fedora="meson"),
        _Need(name="ninja", debian="ninja-build", fedora="ninja-build"),
    ),
}
_C_LIBRARY = _Need(name="stdio.h", debian="libc6-dev", fedora="glibc-devel")
_OF_FULL = (
    _Need(name="unicode/ucol.h", debian="libicu-dev", fedora="libicu-devel"),
    _Need(name="lz4.h", debian="liblz4-dev", fedora="lz4-devel"),
    _Need(name="zstd.h", debian="libzstd-dev", fedora="libzstd-devel"),
    _Need(name="openssl/ssl.h", debian="libssl-dev", fedora="openssl-devel"),
    _Need(name="libxml2/libxml/parser.h", debian="libxml2-dev", fedora="libxml2-devel"),
    _Need(name="zlib.h", debian="zlib1g-dev", fedora="zlib-devel"),
)
_PKG_CONFIG = _Need(name="pkg-config", debian="pkg-config", fedora="pkgconf-pkg-config")
_MANAGERS = {"apt-get": "apt-get install", "dnf": "dnf install", "zypper": "zypper install"}


def compiler_of(options: BuildOptions) -> str:
    """The compiler as it is called."""
    return options.compiler or USUAL_COMPILER


def compiler_version(options: BuildOptions, user: ServerUser) -> str:
    """The first line of what it says of itself; its name where it says nothing, or is not there.

    user: who builds.
    """
    words = compiler_of(options).split()
    if not words or not _is_there(words[0], user):
        return compiler_of(options)
    finished = run([*words, "--version"], user=user)
    lines = finished.stdout.splitlines()
    return lines[0].strip() if finished.succeeded and lines else words[0]


def refuse_missing_tools(
    options: Iterable[BuildOptions], manner: BuildManner, systems: Iterable[BuildSystem], user: ServerUser
) -> None:
    """BuildError that names every program and header that these builds lack, with the packages that have them.

    user: who builds; a program that this user may not run is missing as well.
    """
    asked = list(dict.fromkeys(options))
    programs = [_compiler_need(one) for one in asked] + list(_COMMON)
    programs += [need for system in dict.fromkeys(systems) for need in _OF_SYSTEM[system]]
    headers: Sequence[_Need] = (_C_LIBRARY,)
    if manner.profile is BuildProfile.FULL:
        programs.append(_PKG_CONFIG)
        headers = (_C_LIBRARY, *_OF_FULL)
    missing = [need for need in dict.fromkeys(programs) if not _is_there(need.name, user)]
    compiler = compiler_of(asked[0])
    if _is_there(compiler.split()[0], user):
        missing += [need for need in headers if not _has_header(need.name, compiler, user)]
    if missing:
        raise _missing(missing, asked, user)


def with_ccache(directory: Path, compiler: str) -> Mapping[str, str]:
    """Variables with which ccache stands in for the compiler, under its name; without any where there is no ccache.

    A link that is called as the compiler is first in the path: so what the build says of itself is the same with
    ccache and without.
    """
    ccache = shutil.which("ccache", path=_PATH)
    name = compiler.split(maxsplit=1)[0]
    if ccache is None or "/" in name:
        return {}
    make_directory(directory, 0o755)
    mask = directory / name
    mask.unlink(missing_ok=True)
    mask.symlink_to(ccache)
    return {"PATH": f"{directory}:{_PATH}"}


def _compiler_need(options: BuildOptions) -> _Need:
    name = compiler_of(options).split()[0] if compiler_of(options).split() else USUAL_COMPILER
    return _Need(name=name, debian=name, fedora=name)


def _is_there(program: str, user: ServerUser) -> bool:
    found = shutil.which(program, path=_PATH)
    return found is not None and may_execute(user, Path(found).absolute())


def _has_header(name: str, compiler: str, user: ServerUser) -> bool:
    """Whether the compiler finds it; of what lies in a folder of its own, whether it is where systems have it."""
    path = Path(name)
    text = f"#include <{path if path.parts[0] != 'libxml2' else path.relative_to('libxml2')}>\n"
    arguments = [*compiler.split(), "-I/usr/include/libxml2", "-E", "-x", "c", "-"]
    return run(["/bin/sh", "-c", 'printf "%s" "$0" | "$@"', text, *arguments], user=user).succeeded


def _missing(needs: Sequence[_Need], options: Sequence[BuildOptions], user: ServerUser) -> BuildError:
    manager = next((name for name in _MANAGERS if shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")), None)
    packages = [need.fedora if manager in ("dnf", "zypper") else need.debian for need in needs]
    named = [
        f"{need.name} (package {package})" if package != need.name else need.name
        for need, package in zip(needs, packages, strict=True)
    ]
    return BuildError(
        "programs that build PostgreSQL are missing on this host",
        slug="build-missing-tools",
        where=f"build from source{', '.join(text for text in map(str, options) if text)}",
        found=f"no {', no '.join(named)}",
        expected="a compiler, its headers, and what makes PostgreSQL's parsers"
        + ("" if user.is_self else f", for {user.name}, who builds"),
        to_do=f"{_MANAGERS.get(manager or '', 'install')} {' '.join(dict.fromkeys(packages))}",
    )
