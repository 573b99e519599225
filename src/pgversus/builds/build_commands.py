"""Commands that build PostgreSQL, and the programs and headers that they require.

Builds take place outside of the source tree and are installed into a staging directory. It is relocatable, since
programs look for lib and share relative to themselves.
"""

import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, may_execute, run
from pgversus.host.directories import make_directory
from pgversus.host.identity import ServerUser
from pgversus.study.build_options import (
    NO_OPTIONS,
    USUAL_COMPILER,
    BuildManner,
    BuildOptions,
    BuildProfile,
    BuildSystem,
)

FORM = 1
"""Incremented whenever the same source, options and compiler would be built differently."""
PREFIX = "/pgversus"
"""The configured prefix, the same wherever a build is stored."""
_BESIDE_BIN = "-Wl,-rpath,'$ORIGIN/../lib'"

# The parts that a comparison requires, in order of dependency: the server and the modules that it loads, initdb, and
# extensions for inspecting a server. psql and pgbench come with pgversus.
_DIRECTORIES = (
    "src/common",
    "src/port",
    "src/timezone",
    "src/backend",
    "src/backend/utils/mb/conversion_procs",
    "src/backend/snowball",
    "src/include",
    "src/interfaces/libpq",
    "src/pl/plpgsql",
    "src/backend/replication/libpqwalreceiver",
    "src/bin/initdb",
    "src/bin/pg_ctl",
    "src/bin/pg_controldata",
    "src/bin/pg_config",
    "contrib/pg_stat_statements",
    "contrib/pg_prewarm",
    "contrib/pg_buffercache",
    "contrib/auto_explain",
)
_EVERYTHING = ("src", "contrib")
_OF_OPTIONS = {
    "with-llvm": "src/backend/jit/llvm",
    "with-perl": "src/pl/plperl",
    "with-python": "src/pl/plpython",
    "with-tcl": "src/pl/tcl",
}
# Compiled as dependencies of the directories above.
_ALSO_FOR_THESE = ("src/fe_utils",)
_LIBRARIES = ("icu", "lz4", "zstd", "openssl", "libxml", "zlib")
"""Optional libraries of a full build."""
_AS_MESON = {"openssl": "ssl", "perl": "plperl", "python": "plpython", "tcl": "pltcl"}
_FIRST_MAJOR_WITH = {"lz4": 14, "zstd": 15}


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One command of a build."""

    arguments: tuple[str, ...]
    step: str
    """The step that it performs, for messages."""
    environment: Mapping[str, str] = field(default_factory=dict)
    directory: Path | None = None
    """None for the build directory."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildDirectories:
    """The directories used during a build."""

    tree: Path
    build: Path
    """Directory for compilation."""
    stage: Path
    """Directory for installation, the parent of PREFIX."""


def commands(
    places: BuildDirectories, options: BuildOptions, manner: BuildManner, *, compiler: str, major: int, jobs: int
) -> Iterator[Command]:
    """Yield the commands of a build in order. major: version of the source, since options differ between versions."""
    if manner.system is BuildSystem.MESON:
        yield from _with_meson(places, options, manner, compiler, major, jobs)
    else:
        yield from _with_configure(places, options, manner, compiler, major, jobs)


def compiled_directories(manner: BuildManner) -> tuple[str, ...]:
    """Return the directories whose files are compiled."""
    return _EVERYTHING if manner.profile is BuildProfile.FULL else (*_DIRECTORIES, *_ALSO_FOR_THESE)


def _with_configure(
    places: BuildDirectories, options: BuildOptions, manner: BuildManner, compiler: str, major: int, jobs: int
) -> Iterator[Command]:
    yield Command(
        step="configuring",
        arguments=(
            str(places.tree / "configure"),
            # First, so that an unknown option is an error instead of a warning.
            *(["--enable-option-checking=fatal"] if options.handed_on else []),
            f"--prefix={PREFIX}",
            "--disable-rpath",
            *_choices_of_configure(manner, major),
            *_options_of_configure(options),
            f"CC={compiler}",
            *([f"CFLAGS={options.cflags}"] if options.cflags is not None else []),
            # make expands $$ to a single $.
            f"LDFLAGS={_BESIDE_BIN.replace('$', '$$')}",
        ),
    )
    make = ("make", f"-j{jobs}")
    directories = _EVERYTHING if manner.profile is BuildProfile.FULL else (*_DIRECTORIES, *_option_directories(options))
    if manner.profile is BuildProfile.MINIMAL:
        yield Command(step="compiling", arguments=(*make, "-C", "src/backend", "generated-headers"))
    for directory in directories:
        yield Command(step="compiling", arguments=(*make, "-C", directory, "all"))
    for directory in directories:
        arguments = ("make", "-s", "-C", directory, "install", f"DESTDIR={places.stage}")
        yield Command(step="installing", arguments=arguments)


def _option_directories(options: BuildOptions) -> list[str]:
    """Return the additional directories that the options require."""
    names = [word.partition("=")[0] for word in options.handed_on]
    return [directory for name, directory in _OF_OPTIONS.items() if name in names]


def _choices_of_configure(manner: BuildManner, major: int) -> list[str]:
    if manner.profile is BuildProfile.MINIMAL:
        return ["--without-icu", "--without-readline", "--without-zlib"]
    # readline is used by psql only; zlib is enabled by default.
    return ["--without-readline", *(f"--with-{name}" for name in _libraries(major) if name != "zlib")]


def _libraries(major: int) -> list[str]:
    """Return the optional libraries that a full build of this major can use."""
    return [name for name in _LIBRARIES if major >= _FIRST_MAJOR_WITH.get(name, 0)]


def _options_of_configure(options: BuildOptions) -> list[str]:
    given = []
    if options.block_size_kb != NO_OPTIONS.block_size_kb:
        given.append(f"--with-blocksize={options.block_size_kb}")
    if options.wal_block_size_kb != NO_OPTIONS.wal_block_size_kb:
        given.append(f"--with-wal-blocksize={options.wal_block_size_kb}")
    if options.cassert:
        given.append("--enable-cassert")
    return [*given, *(f"--{word}" for word in options.handed_on)]


def _with_meson(
    places: BuildDirectories, options: BuildOptions, manner: BuildManner, compiler: str, major: int, jobs: int
) -> Iterator[Command]:
    libraries = _libraries(major) if manner.profile is BuildProfile.FULL else []
    yield Command(
        step="configuring",
        arguments=(
            "meson",
            "setup",
            str(places.build),
            str(places.tree),
            f"--prefix={PREFIX}",
            # The default depends on the distribution.
            "--libdir=lib",
            # The optimization level of configure: buildtype release would be -O3.
            *_optimization_of_meson(options),
            "-Dauto_features=disabled",
            "-Drpath=false",
            "-Dtap_tests=disabled",
            f"-Dblocksize={options.block_size_kb}",
            f"-Dwal_blocksize={options.wal_block_size_kb}",
            f"-Dcassert={str(options.cassert).lower()}",
            f"-Dc_link_args={_BESIDE_BIN.replace(chr(39), '')}",
            *(_as_meson_has_it(f"with-{name}") for name in libraries),
            *(_as_meson_has_it(word) for word in options.handed_on),
        ),
        environment={"CC": compiler},
        directory=places.tree.parent,
    )
    yield Command(step="compiling", arguments=("ninja", f"-j{jobs}"))
    yield Command(
        step="installing", arguments=("meson", "install", "--quiet", "--no-rebuild", f"--destdir={places.stage}")
    )


def _optimization_of_meson(options: BuildOptions) -> list[str]:
    if options.cflags is None:
        return ["-Doptimization=2", "-Ddebug=false"]
    return ["--buildtype=plain", f"-Dc_args={options.cflags}"]


def _as_meson_has_it(word: str) -> str:
    """Translate an option, e.g. `with-lz4` to `-Dlz4=enabled`; meson itself rejects unknown names."""
    what, _, rest = word.partition("-")
    name, equals, value = rest.partition("=")
    is_on = what in ("with", "enable")
    if name == "openssl":
        state = "openssl" if is_on else "none"
    elif name == "debug":
        state = str(is_on).lower()
    else:
        state = value if equals else "enabled" if is_on else "disabled"
    return f"-D{_AS_MESON.get(name, name.replace('-', '_'))}={state}"


def as_typed(command: Command) -> str:
    """Return the command as typed in a shell, for the log."""
    return shlex.join([*(f"{name}={value}" for name, value in command.environment.items()), *command.arguments])


_PATH = CLEAN_ENVIRONMENT["PATH"]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Need:
    """A required program or header and the packages that provide it."""

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
_OF_LIBRARIES = {
    "icu": _Need(name="unicode/ucol.h", debian="libicu-dev", fedora="libicu-devel"),
    "lz4": _Need(name="lz4.h", debian="liblz4-dev", fedora="lz4-devel"),
    "zstd": _Need(name="zstd.h", debian="libzstd-dev", fedora="libzstd-devel"),
    "openssl": _Need(name="openssl/ssl.h", debian="libssl-dev", fedora="openssl-devel"),
    "libxml": _Need(name="libxml2/libxml/parser.h", debian="libxml2-dev", fedora="libxml2-devel"),
    "zlib": _Need(name="zlib.h", debian="zlib1g-dev", fedora="zlib-devel"),
}
_PKG_CONFIG = _Need(name="pkg-config", debian="pkg-config", fedora="pkgconf-pkg-config")
_MANAGERS = {"apt-get": "apt-get install", "dnf": "dnf install", "zypper": "zypper install"}


def compiler_of(options: BuildOptions) -> str:
    """Return the compiler command."""
    return options.compiler or USUAL_COMPILER


def compiler_version(options: BuildOptions, user: ServerUser) -> str:
    """Return the first line of the compiler's --version output; its name if it is missing or prints nothing.

    user: the user that builds.
    """
    name, *arguments = compiler_of(options).split()
    program = _found(name, user)
    if program is None:
        return compiler_of(options)
    finished = run([program, *arguments, "--version"], user=user)
    lines = finished.stdout.splitlines()
    return lines[0].strip() if finished.succeeded and lines else name


def check_tools(
    options: Iterable[BuildOptions],
    manner: BuildManner,
    systems: Iterable[BuildSystem],
    user: ServerUser,
    *,
    newest_major: int,
) -> None:
    """Raise a BuildError that lists all missing programs and headers with their packages, if there are any.

    user: the user that builds; programs that this user may not run count as missing.
    newest_major: the newest major version to build; older ones use fewer libraries.
    """
    distinct = list(dict.fromkeys(options))
    programs = [_compiler_need(one) for one in distinct] + list(_COMMON)
    programs += [need for system in dict.fromkeys(systems) for need in _OF_SYSTEM[system]]
    headers: Sequence[_Need] = (_C_LIBRARY,)
    if manner.profile is BuildProfile.FULL:
        programs.append(_PKG_CONFIG)
        headers = (_C_LIBRARY, *(_OF_LIBRARIES[name] for name in _libraries(newest_major)))
    missing = [need for need in dict.fromkeys(programs) if _found(need.name, user) is None]
    # Headers belong to the host, so one compiler is enough to look for them.
    commands = [compiler_of(one).split() for one in distinct]
    compiler = next(([path, *rest] for name, *rest in commands if (path := _found(name, user)) is not None), None)
    if compiler is not None:
        missing += [need for need in headers if not _has_header(need.name, compiler, user)]
    if missing:
        raise _missing(missing, distinct, user)


def with_ccache(directory: Path, compiler: str) -> Mapping[str, str]:
    """Return environment variables that replace the compiler with ccache; empty without ccache.

    A symbolic link to ccache with the name of the compiler comes first in PATH, so that the build reports the same
    compiler command with and without ccache.
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
    name = compiler_of(options).split()[0]
    return _Need(name=name, debian=name, fedora=name)


def _found(program: str, user: ServerUser) -> str | None:
    """Return the path of a program that builds would run; None if there is none, or none that the user may run."""
    found = shutil.which(program, path=_PATH)
    return found if found is not None and may_execute(user, Path(found).absolute()) else None


def _has_header(name: str, compiler: Sequence[str], user: ServerUser) -> bool:
    """Return whether the compiler finds a header; for libxml2, also in its usual include directory."""
    path = Path(name)
    text = f"#include <{path if path.parts[0] != 'libxml2' else path.relative_to('libxml2')}>\n"
    arguments = [*compiler, "-I/usr/include/libxml2", "-E", "-x", "c", "-"]
    return run(["/bin/sh", "-c", 'printf "%s" "$0" | "$@"', text, *arguments], user=user).succeeded


def _missing(needs: Sequence[_Need], options: Sequence[BuildOptions], user: ServerUser) -> BuildError:
    manager = next((name for name in _MANAGERS if shutil.which(name, path="/usr/bin:/bin:/usr/sbin:/sbin")), None)
    packages = [need.fedora if manager in ("dnf", "zypper") else need.debian for need in needs]
    named = [
        f"{need.name} (package {package})" if package != need.name else need.name
        for need, package in zip(needs, packages, strict=True)
    ]
    return BuildError(
        "programs or headers required to build PostgreSQL are missing on this host",
        slug="build-missing-tools",
        where=f"build from source{', '.join(text for text in map(str, options) if text)}",
        found=f"no {', no '.join(named)}",
        expected="all programs and headers that this build requires"
        + ("" if user.is_self else f', usable by "{user.name}", the user that builds'),
        to_do=f"{_MANAGERS.get(manager or '', 'install')} {' '.join(dict.fromkeys(packages))}",
    )
