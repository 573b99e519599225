"""Builds from source: run the commands, parse their output, install into the cache completely or not at all."""

import io
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
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
from pgversus.builds.inspect import complete_build, file_hashes, open_to_all, read_version
from pgversus.builds.model import FROM_SOURCE, MANIFEST, Build, BuildInputs, Notify, NotifySteps, Order
from pgversus.errors import BuildError
from pgversus.host.commands import CLEAN_ENVIRONMENT, Program, kill_group
from pgversus.host.directories import Cache, in_use, make_directory, unused
from pgversus.host.identity import ServerUser
from pgversus.host.on_disk import put_in_place
from pgversus.host.permissions import copy_tree, give_tree, make_private, private_lock
from pgversus.study.build_options import BuildSystem
from pgversus.study.servers import released_version

_OF_NINJA = re.compile(r"^\[(\d+)/(\d+)\]")
_COMPILED = re.compile(r"(?:^|\s)-c\s+(?:-o\s+\S+\s+)?\S+\.c\b|\s-o\s+\S+\.o(?:\s|$)")
# Error messages of configure, meson, compilers, the linker and make, with root causes before consequences.
_CAUSES = (
    re.compile(r"^configure: error: |^\S*ERROR: |^\S*meson\.build:\d+:\d+: ERROR: "),
    re.compile(r"(?:^|[:\s])(?:fatal )?error: |undefined reference|cannot find -l|: syntax error|command not found"),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* |^FAILED: "),
)
_LINES_SHOWN = 4
_MOST_CHARACTERS = 800


class Steps:
    """The progress of a build."""

    def __init__(self, expected: int) -> None:
        """expected: estimated number of files to compile."""
        self._expected = expected
        self._compiled = 0
        self._reported: tuple[int, int] | None = None

    def take(self, line: str) -> bool:
        """Parse one line of output; return whether it is a step."""
        if match := _OF_NINJA.match(line):
            self._reported = int(match[1]), int(match[2])
            return True
        if _COMPILED.search(line):
            self._compiled += 1
            return True
        return False

    @property
    def done(self) -> int:
        """Number of steps started."""
        return self._reported[0] if self._reported else self._compiled

    @property
    def total(self) -> int:
        """Estimated total number of steps, never less than `done`."""
        return self._reported[1] if self._reported else max(self._expected, self._compiled)


def first_error(lines: Iterable[str]) -> str:
    """Return the first root cause with its context lines; the last line if no error is recognized."""
    kept = [line.rstrip() for line in lines]
    for cause in _CAUSES:
        for index, line in enumerate(kept):
            if cause.search(line):
                return "\n".join(_with_context(kept, index))[:_MOST_CHARACTERS]
    lines = [line for line in kept if line]
    return lines[-1][:_MOST_CHARACTERS] if lines else "no output"


def _with_context(lines: Sequence[str], index: int) -> list[str]:
    """Return a message and the indented source excerpt that a compiler prints below it."""
    shown = [lines[index]]
    for line in lines[index + 1 : index + _LINES_SHOWN]:
        if not re.match(r"^\s*(?:\d+\s*)?\|", line):
            break
        shown.append(line)
    return shown


class BuildRunner:
    """Runs the commands of one build."""

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
        """environment: added to CLEAN_ENVIRONMENT. user: the user that builds; it cannot write to `log`.

        expected: estimated number of steps. progress: called with the steps done and the total.
        """
        self._directory = directory
        self._user = user
        self._environment = {**CLEAN_ENVIRONMENT, **environment}
        self._log = log
        self._steps = Steps(expected)
        self._progress = progress

    def do(self, command: Command) -> str:
        """Run one command to completion and return its first error; empty if it succeeds. It ends with pgversus."""
        with self._log.open("a", encoding="utf-8", errors="replace") as log:
            log.write(f"$ {as_typed(command)}\n")
            log.flush()
            from_here = log.tell()
            exit_code = self._run(command, log.write)
        if exit_code == 0:
            return ""
        with self._log.open(encoding="utf-8", errors="replace") as log:
            log.seek(from_here)
            return first_error(log)

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
        assert process.stdout is not None  # noqa: S101 - requested above
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


_BUILD_INPUTS = TypeAdapter(BuildInputs)
_VERSION_IN = {
    "configure": re.compile(r"^PACKAGE_VERSION='(\d+)", re.MULTILINE),
    "configure.ac": re.compile(r"AC_INIT\(\[PostgreSQL\], \[(\d+)"),
    "configure.in": re.compile(r"AC_INIT\(\[PostgreSQL\], \[(\d+)"),
    "meson.build": re.compile(r"^\s*version: '(\d+)", re.MULTILINE),
}
RECENT_MAJOR = 99
"""Assumed for a source of unknown version."""
_LOG, _HOME, _TEMPORARY = "build.log", "home", "tmp"


def built(cache: Cache, name: str) -> Build | None:
    """Return the build of this name if it is complete in the cache, else None."""
    found = complete_build(cache.builds / name, FROM_SOURCE)
    return None if found is None or found.made_from is None else found


def build(order: Order, cache: Cache, user: ServerUser, notify: Notify, progress: NotifySteps) -> Build:
    """Return the build from the cache, or build it; concurrent pgversus processes build it once.

    user: the user that runs the commands of the source; the result belongs to us.
    BuildError if the build fails; then only its log stays in the cache.
    """
    with _alone(order, cache, notify):
        found = built(cache, order.name)
        if found is not None:
            _check_release(order, found.version)
            # The same files may have been built from a different commit or path.
            return replace(found, made_from=order.made_from)
        _sweep(cache)
        with _scratch(order, cache) as scratch:
            _make(order, scratch, cache, user, notify, progress)
    made = built(cache, order.name)
    assert made is not None  # noqa: S101 - it was just moved there
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
    """Remove the remains of killed builds."""
    for left in cache.staging.glob(f"{FROM_SOURCE}-*"):
        if left.is_dir():
            with suppress(Timeout), private_lock(left.with_name(f"{left.name}.lock"), blocking=False):
                shutil.rmtree(left, ignore_errors=True)


@contextmanager
def _scratch(order: Order, cache: Cache) -> Iterator[Path]:
    """Yield an empty directory with a constant name, since the path ends up in the compiled files."""
    directory = cache.staging.resolve() / order.name
    shutil.rmtree(directory, ignore_errors=True)
    directory.mkdir()
    # The user that builds may enter it, but write only to the directories made for them.
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
    major, expected = major_of(places.tree), _files_to_compile(places.tree, compiled_directories(made.manner))
    # From here on the tree belongs to the user that builds, and its contents are untrusted.
    give_tree(user, places.tree)
    for directory in (places.build, places.stage, scratch / _HOME, scratch / _TEMPORARY):
        make_private(user, directory)
    with _ccache_of(user, cache) as ccache:
        runner = BuildRunner(
            directory=places.build,
            environment=_environment(scratch, compiler, ccache),
            user=user,
            log=scratch / _LOG,
            expected=expected,
            progress=lambda done, total: progress(order.label, done, total),
        )
        jobs = len(os.sched_getaffinity(0))
        for command in commands(places, made.options, made.manner, compiler=compiler, major=major, jobs=jobs):
            if problem := runner.do(command):
                raise _failed(order, command.step, problem, scratch, cache)
    finished = scratch / "finished"
    try:
        copy_tree(places.stage / PREFIX.strip("/"), finished, user)
    except ValueError as error:
        raise _failed(order, "copying the installed files", str(error), scratch, cache) from error
    _finish(order, finished, scratch, cache, user)


def _environment(scratch: Path, compiler: str, ccache: Path) -> dict[str, str]:
    return {
        **with_ccache(scratch / "compiler", compiler),
        # Share cached objects between builds in different directories.
        "CCACHE_DIR": str(ccache),
        "CCACHE_BASEDIR": str(scratch),
        "CCACHE_NOHASHDIR": "1",
        "CCACHE_COMPILERCHECK": "content",
        # Required by some scripts of perl and meson.
        "HOME": str(scratch / _HOME),
        "TMPDIR": str(scratch / _TEMPORARY),
    }


@contextmanager
def _ccache_of(user: ServerUser, cache: Cache) -> Iterator[Path]:
    """Yield this user's ccache directory; it is closed between builds, as commands of studies run as the same user."""
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
        "made_from": _BUILD_INPUTS.dump_python(order.made_from, mode="json"),
        "files_sha256": file_hashes(home),
    }
    (home / MANIFEST).write_text(json.dumps(manifest, indent=1), encoding="utf-8")
    place = cache.builds / order.name
    shutil.rmtree(place, ignore_errors=True)
    put_in_place(home, place)


def _check_release(order: Order, version: str) -> None:
    """Raise a BuildError if a tarball named after one release contains another."""
    found = released_version(version)
    if order.release is not None and (found is None or not order.release.admits(found)):
        raise BuildError(
            f"the source for PostgreSQL {order.release} contains a different version",
            slug="build-damaged",
            where=order.made_from.source.words,
            found=f"PostgreSQL {version}",
            expected=f"PostgreSQL {order.release}",
            to_do="provide a tarball of the expected version",
        )


def _check_system(order: Order, tree: Path, system: BuildSystem) -> None:
    needed = "meson.build" if system is BuildSystem.MESON else "configure"
    if not (tree / needed).is_file():
        raise BuildError(
            f"this source cannot be built with {system}",
            slug="build-other-system",
            where=order.label,
            found=f"no {needed} in {order.made_from.source.words}",
            expected="PostgreSQL 16 or later" if system is BuildSystem.MESON else "a tree with a configure script",
            to_do=f"--build-system {BuildSystem.CONFIGURE if system is BuildSystem.MESON else BuildSystem.MESON}",
        )


def major_of(tree: Path) -> int:
    """Return the major version of a source tree; RECENT_MAJOR if its files have an unknown format."""
    for name, pattern in _VERSION_IN.items():
        file = tree / name
        if file.is_file() and (match := pattern.search(file.read_text(encoding="utf-8", errors="replace"))):
            return int(match[1])
    return RECENT_MAJOR


def _files_to_compile(tree: Path, directories: tuple[str, ...]) -> int:
    """Return the estimated number of files to compile."""
    return len({path for directory in directories for path in (tree / directory).rglob("*.c")})


def _failed(order: Order, step: str, words: str, scratch: Path, cache: Cache) -> BuildError:
    """Copy the log of a failed build to the cache and return the error that refers to it."""
    log = cache.logs / f"{order.name}.log"
    shutil.copyfile(scratch / _LOG, log)
    return BuildError(
        f"{order.label} could not be built",
        slug="build-failed",
        where=f"{order.made_from.source.words}, {step}",
        found=words,
        expected="a build without errors",
        to_do=f"see the full log in {log}",
    )
