"""File hashes and sizes, reflinks, and frozen directory trees.

A frozen tree is duplicated with hard links at no cost. The copies are independent, provided that no file in them is
ever written to.
"""

import fcntl
import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal

from pgversus.errors import HostError
from pgversus.host.commands import run
from pgversus.host.full_disk import full_disk, full_disk_text


def file_sha256(file: Path) -> str:
    """Return the SHA-256 of a file's content in hexadecimal; OSError if it cannot be read."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def readable_sha256(file: Path) -> str | None:
    """Return the SHA-256 of a file's content; None if it cannot be read, like a program that is only executable."""
    try:
        return file_sha256(file)
    except OSError:
        return None


def tree_bytes(directory: Path) -> int:
    """Return the size of everything in a directory in bytes; symbolic links are not followed.

    What vanishes meanwhile is left out.
    """
    found = (Path(folder, name) for folder, *names in os.walk(directory) for name in chain.from_iterable(names))
    return sum(state.st_size for state in states_of(found))


def states_of(paths: Iterable[Path]) -> Iterator[os.stat_result]:
    """Yield the states of these paths without following symbolic links; those that have vanished are left out."""
    for path in paths:
        try:
            state = path.lstat()
        except FileNotFoundError:
            continue
        yield state


_BYTES = 64 * 1024
# More than one block of any file system, so that blocks can be shared.
_FICLONE = 0x40049409
# Of ioctl_ficlone(2), which `cp --reflink` uses; fcntl has it from Python 3.12 on.


def way_of_copying(directory: Path) -> Literal["reflink", "copy"]:
    """Return how `cp --reflink=auto` copies files in a directory, by trying it with a small file.

    The files have no names if the file system allows that, so that nothing is left if pgversus is killed.
    """
    try:
        with tempfile.TemporaryFile(dir=directory) as one, tempfile.TemporaryFile(dir=directory) as other:
            one.write(bytes(_BYTES))
            one.flush()
            # Some file systems cannot share blocks that are not on disk yet.
            os.fsync(one.fileno())
            fcntl.ioctl(other.fileno(), _FICLONE, one.fileno())
    except OSError:
        return "copy"
    return "reflink"


_ASIDE = frozenset({"postmaster.pid", "postmaster.opts"})
# Written by a server about its own start: not part of the data.


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file or directory in a tree."""

    path: str
    """Relative to the root of the tree."""
    size: int = 0
    mtime_ns: int = 0
    """0 for a directory, whose time changes with every file created or removed in it."""
    sha256: str | None = None
    """Hash of the content; None for a directory."""


def manifest(directory: Path) -> tuple[TreeEntry, ...]:
    """Return all entries of a tree with hashes, by path; ValueError for anything but files and directories."""
    return tuple(
        TreeEntry(path=path)
        if stat.S_ISDIR(found.st_mode)
        else TreeEntry(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=file_sha256(directory / path))
        for path, found in _walk(directory)
    )


def first_change(directory: Path, entries: Sequence[TreeEntry], uid: int) -> str:
    """Describe the first difference between a tree and its manifest without reading files; empty if they agree.

    uid: the expected owner of all entries.
    """
    expected = {entry.path: entry for entry in entries}
    try:
        for path, found in _walk(directory):
            entry = expected.pop(path, None)
            if entry is None:
                return f"{path} is new"
            if found.st_uid != uid:
                return f"{path} is owned by user id {found.st_uid}, not {uid}"
            if stat.S_ISDIR(found.st_mode) != (entry.sha256 is None):
                return f"{path} has a different type"
            if entry.sha256 and (found.st_size, found.st_mtime_ns) != (entry.size, entry.mtime_ns):
                return f"{path} was modified"
    except (OSError, ValueError) as error:
        return str(error)
    return f"{min(expected)} is missing" if expected else ""


def take_tree(source: Path, target: Path) -> None:
    """Duplicate a tree with hard links, owned by us; on failure, remove `target` and raise HostError.

    The files are copied if hard links are impossible (another file system, no support), or if the source belongs to
    another user, who could keep writing to linked files.
    """
    copy = ["--recursive", "--no-dereference", "--preserve=mode,timestamps", "--reflink=auto"]
    is_ours = source.is_dir() and source.stat().st_uid == os.geteuid()
    problem = not is_ours or _copied(["--archive", "--link"], source, target)
    problem = problem and _copied(copy, source, target)
    if problem:
        if said := full_disk_text(problem):
            raise full_disk(target, said)
        raise HostError(
            "loaded data could not be copied",
            slug="host-copy",
            where=str(target),
            found=problem,
            expected=f"a copy of {source}",
            to_do="free space on that file system, or set PGVERSUS_CACHE to a directory on another one",
        )


def is_linked(directory: Path) -> bool:
    """Return whether files of a tree have further hard links, so that removing it frees no space."""
    try:
        return any(found.st_nlink > 1 for _, found in _walk(directory) if stat.S_ISREG(found.st_mode))
    except (OSError, ValueError):
        return False


def _copied(how: Sequence[str], source: Path, target: Path) -> str:
    """Copy a tree with cp; on failure remove `target` and return the error message, else an empty string."""
    finished = run(["cp", *how, "--", str(source), str(target)], ends_with_us=True)
    if finished.succeeded:
        return ""
    shutil.rmtree(target, ignore_errors=True)
    return finished.stderr.strip() or f"exit code {finished.exit_code}"


def _walk(directory: Path, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Yield path and status of all entries, ordered by name; ValueError for symbolic links and devices."""
    with os.scandir(directory) as found:
        entries = sorted(found, key=lambda entry: entry.name)
    for entry in entries:
        path = f"{below}{entry.name}"
        if path in _ASIDE:
            continue
        state = entry.stat(follow_symlinks=False)
        if not (stat.S_ISDIR(state.st_mode) or stat.S_ISREG(state.st_mode)):
            raise ValueError(f"{path} is neither a file nor a directory")
        yield path, state
        if stat.S_ISDIR(state.st_mode):
            yield from _walk(directory / entry.name, f"{path}/")
