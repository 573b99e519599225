"""Builds from source: run the commands, follow their output, install into the cache whole or not at all."""

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from filelock import Timeout
from pydantic import TypeAdapter

from pgversus.builds.build_commands import (
    PREFIX,
    BuildDirectories,
    Command,
    as_typed,
    commands,
    compiled_directories,
    compiler_of,
    with_ccache,
)
from pgversus.builds.debian import released_version
from pgversus.builds.inspect import file_hashes, open_to_all, put_in_place, read_manifest, read_version
from pgversus.builds.model import FROM_SOURCE, MANIFEST, Build, MadeFrom, Notify, NotifySteps, Order
from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, Program, kill_group
from pgversus.host.directories import Cache, in_use, make_directory, unused
from pgversus.host.identity import ServerUser
from pgversus.host.permissions import copy_tree, give_tree, make_private, private_lock
from pgversus.study.build_options import BuildSystem

_OF_NINJA = re.compile(r"^\[(\d+)/(\d+)\]")
_COMPILED = re.compile(r"(?:^|\s)-c\s+(?:-o\s+\S+\s+)?\S+\.c\b|\s-o\s+\S+\.o(?:\s|$)")
# Lines by which compilers, configure, make, meson and the linker say what is wrong, the first cause before what
# follows from it.
_CAUSES = (
    re.compile(r"^configure: error: |^\S*ERROR: |^\S*meson\.build:\d+:\d+: ERROR: "),
    re.compile(r"(?:^|[:\s])(?:fatal )?error: |undefined reference|cannot find -l|: syntax error|command not found"),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* |^FAILED: "),
)
_LINES_SHOWN = 4
_MOST_CHARACTERS = 800


class Steps:
    """How far a build has come."""

    def __init__(self, expected: int) -> None:
        """expected: files to compile, as far as one can tell beforehand."""
        self._expected = expected
        self._compiled = 0
        self._told: tuple[int, int] | None = None

    def take(self, line: str) -> bool:
        """Whether this line of its output is a step."""
        if match := _OF_NINJA.match(line):
            self._told = int(match[1]), int(match[2])
            return True
        if _COMPILED.search(line):
            self._compiled += 1
            return True
        return False

    @property
    def done(self) -> int:
        """Steps that were begun."""
        return self._told[0] if self._told else self._compiled

    @property
    def total(self) -> int:
        """About how many there are; never fewer than are done."""
        return self._told[1] if self._told else max(self._expected, self._compiled)


def first_error(lines: Iterable[str]) -> str:
    """What went wrong first, with the lines below it that belong to it; the last line where nothing says it."""
    kept = [line.rstrip() for line in lines]
    for cause in _CAUSES:
        for index, line in enumerate(kept):
            if cause.search(line):
                return "\n".join(_with_context(kept, index))[:_MOST_CHARACTERS]
    told = [line for line in kept if line]
    return told[-1][:_MOST_CHARACTERS] if told else "it said nothing"


def _with_context(lines: Sequence[str], index: int) -> list[str]:
    """A compiler shows the place below its message, indented; any other message stands alone."""
    shown = [lines[index]]
    for line in lines[index + 1 : index + _LINES_SHOWN]:
        if not re.match(r"^\s*(?:\d+\s*)?\|", line):
            break
        shown.append(line)
    return shown


@dataclass(eq=False)
class CommandFailedError(Exception):
    """A command of a build that failed."""

    words: str
    """What it was to do."""
    error: str

    def __str__(self) -> str:
        """The first error that it told."""
        return self.error


class BuildRunner:
    """Where one build is made."""

    def __init__(
        self,
        *,
        directory: Path,
        environment: Mapping[str, str],
        user: ServerUser,
        log: Path,
        expected: int,
        progress: Callable[[int, int], None],
    ) -> None:
        """environment: beside what every program of ours gets. user: who builds. log: where that user cannot write.

        expected: steps. progress: takes steps done and all.
        """
        self._directory = directory
        self._user = user
        self._environment = {**CLEAN_ENVIRONMENT, **environment}
        self._log = log
        self._steps = Steps(expected)
        self._progress = progress

    def do(self, command: Command) -> None:
        """Run one command to its end; CommandFailedError with its first error when it fails. It ends with us."""
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {as_typed(command)}\n")
            log.flush()
            from_here = log.tell()
            exit_code = self._run(command, log.write)
        if exit_code != 0:
            with self._log.open(encoding="utf-8", errors="replace") as log:
                log.seek(from_here)
                raise CommandFailedError(command.words, first_error(log))

    def _run(self, command: Command, write: Callable[[str], int]) -> int:
        process = Program(
            command.arguments,
            environment={**self._environment, **command.environment},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            directory=command.directory or self._directory,
            user=self._user,
            ends_with_us=True,
        )
        assert process.stdout is not None  # noqa: S101 - asked for above
        with io.TextIOWrapper(process.stdout, encoding="utf-8", errors="replace") as printed:
            try:
                for line in printed:
                    write(line)
                    if self._steps.take(line):
                        self._progress(self._steps.done, self._steps.total)
                return process.wait()
            except BaseException:
                kill_group(process)
                process.wait()
                raise


_MADE_FROM = TypeAdapter(MadeFrom)
_VERSION_IN = {
    "configure": re.compile(r"^PACKAGE_VERSION='(\d+)", re.MULTILINE),
    "configure.ac": re.compile(r"AC_INIT\(\[PostgreSQL\], \[(\d+)"),
    "configure.in": re.compile(r"AC_INIT\(\[PostgreSQL\], \[(\d+)"),
    "meson.build": re.compile(r"^\s*version: '(\d+)", re.MULTILINE),
}
_LOG, _HOME, _TEMPORARY = "build.log", "home", "tmp"


def built(cache: Cache, name: str) -> Build | None:
    """The build of this name if it is in the cache, whole; None otherwise."""
    directory = cache.builds / name
    manifest = read_manifest(directory)
    if manifest is None or manifest.made_from is None:
        return None
    return Build(
        version=manifest.version,
        bin_directory=directory / manifest.bin,
        origin=FROM_SOURCE,
        sha256=manifest.sha256,
        made_from=manifest.made_from,
    )


def build(order: Order, cache: Cache, user: ServerUser, notify: Notify, progress: NotifySteps) -> Build:
    """The build, from the cache or made now; two pgversus at once make it once.

    user: who runs what the source says; what comes out is not theirs. BuildError when it cannot be made; then nothing
    of it is in the cache but the log of what was tried.
    """
    with _alone(order, cache, notify):
        found = built(cache, order.name)
        if found is not None:
            _check_release(order, found.version)
            # The same files may have been built as another commit, or by another path.
            return replace(found, made_from=order.made_from)
        _sweep(cache)
        with _scratch(order, cache) as scratch:
            _make(order, scratch, cache, user, notify, progress)
    made = built(cache, order.name)
    assert made is not None  # noqa: S101 - it was moved there whole
    return made


@contextmanager
def _alone(order: Order, cache: Cache, notify: Notify) -> Iterator[None]:
    lock = private_lock(cache.staging / f"{order.name}.lock")
    try:
        lock.acquire(blocking=False)
    except Timeout:
        notify(f"another pgversus is building {order.label}: waiting for it")
        lock.acquire()
    try:
        yield
    finally:
        lock.release()


def _sweep(cache: Cache) -> None:
    """Remove what builds that were killed have left."""
    for left in cache.staging.glob(f"{FROM_SOURCE}-*"):
        if left.is_dir():
            with suppress(Timeout), private_lock(left.with_name(f"{left.name}.lock"), blocking=False):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _scratch(order: Order, cache: Cache) -> Iterator[Path]:
    """A directory that is always called the same, since its name gets into what is compiled; empty at first."""
    directory = cache.staging.resolve() / order.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    # Whoever builds enters it, and writes only where they are given a directory.
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)


def _make(order: Order, scratch: Path, cache: Cache, user: ServerUser, notify: Notify, progress: NotifySteps) -> None:
    made = order.made_from
    compiler = compiler_of(made.options)
    places = BuildDirectories(tree=scratch / "tree", build=scratch / "build", stage=scratch / "stage")
    notify(f"building {order.label} from {made.source.words}")
    order.source.lay_out(places.tree, user)
    system = made.manner.system or BuildSystem.CONFIGURE
    _check_system(order, places.tree, system)
    major, expected = _major_of(places.tree), _files_to_compile(places.tree, compiled_directories(made.manner))
    # From here on it is the user's who builds, and what is in it may be anything.
    give_tree(user, places.tree)
    for directory in (places.build, places.stage, scratch / _HOME, scratch / _TEMPORARY):
        make_private(user, directory)
    with _ccache_of(user, cache) as ccache:
        resources = BuildRunner(
            directory=places.build,
            environment=_environment(scratch, compiler, ccache),
            user=user,
            log=scratch / _LOG,
            expected=expected,
            progress=lambda done, total: progress(order.label, done, total),
        )
        jobs = len(os.sched_getaffinity(0))
        try:
            for command in commands(places, made.options, made.manner, compiler=compiler, major=major, jobs=jobs):
                resources.do(command)
        except CommandFailedError as error:
            raise _failed(order, error.words, str(error), _kept_log(order, scratch, cache)) from error
    finished = scratch / "finished"
    try:
        copy_tree(places.stage / PREFIX.strip("/"), finished, user)
    except ValueError as error:
        raise _failed(order, "taking what was installed", str(error), _kept_log(order, scratch, cache)) from error
    _finish(order, finished, scratch, cache, user)


def _environment(scratch: Path, compiler: str, ccache: Path) -> dict[str, str]:
    return {
        **with_ccache(scratch / "compiler", compiler),
        # What was compiled before, wherever that lay, is what would be compiled now.
        "CCACHE_DIR": str(ccache),
        "CCACHE_BASEDIR": str(scratch),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_COMPILERCHECK": "content",
        # Some of perl's scripts and of meson's want one.
        "HOME": str(scratch / _HOME),
        "TMPDIR": str(scratch / _TEMPORARY),
    }


@contextmanager
def _ccache_of(user: ServerUser, cache: Cache) -> Iterator[Path]:
    """What ccache keeps for this user, closed to that user between builds: commands of studies run as the same one."""
    if user.is_self:
        yield cache.ccache
        return
    make_directory(cache.ccache, 0o700)
    try:
        with in_use([cache.ccache]):
            cache.ccache.chmod(0o711)
            own = cache.ccache / user.name
            make_private(user, own)
            yield own
    finally:
        with suppress(FileNotFoundError), unused(cache.ccache) as is_free:
            if is_free:
                cache.ccache.chmod(0o700)


def _finish(order: Order, home: Path, scratch: Path, cache: Cache, user: ServerUser) -> None:
    shutil.copyfile(scratch / _LOG, home / _LOG)
    open_to_all(home)
    version = read_version(home / "bin", user)
    _check_release(order, version)
    manifest = {
        "version": version,
        "bin": "bin",
        "sha256": order.key,
        "made_from": _MADE_FROM.dump_python(order.made_from, mode="json"),
        "files_sha256": file_hashes(home),
    }
    (home / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    place = cache.builds / order.name
    shutil.rmtree(place, ignore_errors=True)
    put_in_place(home, place)


def _check_release(order: Order, version: str) -> None:
    """BuildError when a tarball that is called after one release holds another."""
    found = released_version(version)
    if order.release is not None and (found is None or not order.release.admits(found)):
        raise BuildError(
            f"what is called the source of PostgreSQL {order.release} is that of another version",
            slug="build-damaged",
            where=order.made_from.source.words,
            found=f"PostgreSQL {version}",
            expected=f"PostgreSQL {order.release}",
            to_do="give the tarball of that version",
        )


def _check_system(order: Order, tree: Path, system: BuildSystem) -> None:
    needed = "meson.build" if system is BuildSystem.MESON else "configure"
    if not (tree / needed).is_file():
        raise BuildError(
            f"this source cannot be built with {system}",
            slug="build-other-system",
            where=order.label,
            found=f"no {needed} in {order.made_from.source.words}",
            expected="a tree of 16 or newer" if system is BuildSystem.MESON else "a tree with a configure script",
            to_do=f"--build-system {BuildSystem.CONFIGURE if system is BuildSystem.MESON else BuildSystem.MESON}",
        )


def _major_of(tree: Path) -> int:
    for name, pattern in _VERSION_IN.items():
        file = tree / name
        if file.is_file() and (match := pattern.search(file.read_text(encoding="utf-8", errors="replace"))):
            return int(match[1])
    # Whatever it is, it is no old one.
    return 99


def _files_to_compile(tree: Path, directories: tuple[str, ...]) -> int:
    """About how many there are."""
    return len({path for directory in directories for path in (tree / directory).rglob("*.c")})


def _kept_log(order: Order, scratch: Path, cache: Cache) -> Path:
    """Where the log of a build that failed stays."""
    kept = cache.logs / f"{order.name}.log"
    shutil.copyfile(scratch / _LOG, kept)
    return kept


def _failed(order: Order, step: str, words: str, log: Path) -> BuildError:
    return BuildError(
        f"{order.label} could not be built",
        slug="build-failed",
        where=f"{order.made_from.source.words}, {step}",
        found=words,
        expected="a build without errors",
        to_do=f"the whole log is in {log}",
    )
