"""File hashes, shared blocks, and frozen directory trees.

A frozen tree taken by hard links exists a second time at no cost, and removing the first one does not disturb the
second. This holds as long as no file of it is written to.
"""

import hashlib
import os
import shutil
import stat
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pgversus.errors import HostError
from pgversus.host.commands import run
from pgversus.host.full_disk import full_disk, words_of_full_disk


def file_sha256(file: Path) -> str:
    """SHA-256 of a file's content, in hexadecimal; OSError when it cannot be read."""
    with file.open("rb") as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


_BYTES = 64 * 1024
# More than one block of any file system, so that there is something to share.


def way_of_copying(directory: Path) -> Literal["reflink", "copy"]:
    """How `cp --reflink=auto` copies files here: tried once, on a small file."""
    try:
        with tempfile.TemporaryDirectory(prefix="reflink-", dir=directory) as name:
            one = Path(name) / "one"
            with one.open("wb") as file:
                file.write(bytes(_BYTES))
                file.flush()
                # Some cannot share what is not on disk yet.
                os.fsync(file.fileno())
            shared = run(["cp", "--reflink=always", "--", str(one), str(one.with_name("other"))])
    except OSError:
        return "copy"
    return "reflink" if shared.succeeded else "copy"


_ASIDE = frozenset({"postmaster.pid", "postmaster.opts"})
# What a server leaves of where and how it was started: no part of what a tree holds.


@dataclass(frozen=True, slots=True, kw_only=True)
class TreeEntry:
    """A file or a directory of a tree."""

    path: str
    """Below the tree's root."""
    size: int = 0
    mtime_ns: int = 0
    """0 for a directory: it changes with every file that is made in it or taken out."""
    sha256: str | None = None
    """Of a file's content; None for a directory."""


def manifest(directory: Path) -> tuple[TreeEntry, ...]:
    """Everything in a tree, hashed, by path; ValueError where something is neither file nor directory."""
    return tuple(
        TreeEntry(path=path)
        if stat.S_ISDIR(found.st_mode)
        else TreeEntry(path=path, size=found.st_size, mtime_ns=found.st_mtime_ns, sha256=file_sha256(directory / path))
        for path, found in _walk(directory)
    )


def tree_sha256(entries: Sequence[TreeEntry]) -> str:
    """One SHA-256 over the names and contents of a tree: equal trees have equal ones, whenever they were written."""
    lines = "".join(f"{entry.sha256 or 'directory'} {entry.path}\n" for entry in entries)
    return hashlib.sha256(os.fsencode(lines)).hexdigest()


def first_change(directory: Path, entries: Sequence[TreeEntry], uid: int) -> str:
    """In what a tree is not the one of this manifest, in words; empty where it is. Nothing is read but the directories.

    uid: the owner that everything in it must have.
    """
    expected = {entry.path: entry for entry in entries}
    try:
        for path, found in _walk(directory):
            entry = expected.pop(path, None)
            if entry is None:
                return f"{path} was not there"
            if found.st_uid != uid:
                return f"{path} belongs to user id {found.st_uid}, not {uid}"
            if stat.S_ISDIR(found.st_mode) != (entry.sha256 is None):
                return f"{path} is something else"
            if entry.sha256 and (found.st_size, found.st_mtime_ns) != (entry.size, entry.mtime_ns):
                return f"{path} was written to"
    except (OSError, ValueError) as error:
        return str(error)
    return f"{min(expected)} is missing" if expected else ""


def take_tree(source: Path, target: Path) -> None:
    """Make the same tree a second time, ours; HostError, and nothing there, when it fails.

    It is made of hard links. From one file system to another, or on one without hard links, it is a copy; and if the
    source belongs to another user, who could go on writing to a file that was only linked.
    """
    copy = ["--recursive", "--no-dereference", "--preserve=mode,timestamps", "--reflink=auto"]
    is_ours = source.is_dir() and source.stat().st_uid == os.geteuid()
    problem = not is_ours or _copied(["--archive", "--link"], source, target)
    problem = problem and _copied(copy, source, target)
    if problem:
        if said := words_of_full_disk(problem):
            raise full_disk(target, said)
        raise HostError(
            "loaded data could not be taken to another place",
            slug="host-copy",
            where=str(target),
            found=problem,
            expected=f"what is in {source}",
            to_do="make room on that file system, or name another one in PGVERSUS_CACHE",
        )


def is_linked(directory: Path) -> bool:
    """Whether somebody has taken this tree by hard links and still has it: removing it then gives no room."""
    try:
        return any(found.st_nlink > 1 for _, found in _walk(directory) if stat.S_ISREG(found.st_mode))
    except (OSError, ValueError):
        return False


def _copied(how: Sequence[str], source: Path, target: Path) -> str:
    """The words of cp where it failed; nothing is left then."""
    finished = run(["cp", *how, "--", str(source), str(target)], ends_with_us=True)
    if finished.succeeded:
        return ""
    shutil.rmtree(target, ignore_errors=True)
    return finished.stderr.strip() or f"exit code {finished.exit_code}"


def _walk(directory: Path, below: str = "") -> Iterator[tuple[str, os.stat_result]]:
    """Path and state of everything, in the order of names; a symbolic link or a device is a ValueError."""
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
