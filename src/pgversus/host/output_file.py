"""Safe writing of a file named by the user.

A regular file is replaced atomically: readers see either the old content or the new one, even if we are killed. Any
other writable target (a device, a FIFO, /dev/stdout) is not replaced but receives the bytes.
"""

import errno
import os
import secrets
import stat
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from pgversus.errors import HostError
from pgversus.host.on_disk import sync_to_disk

_MOST_LINKS = 40
# The limit of the Linux kernel (path_resolution(7)).
_PRIVATE = 0o600
_DESCRIPTORS = ("/dev/fd", "/proc/self/fd")


def write_file(file: Path, content: str | bytes | Iterable[str], *, with_folder: bool = False) -> None:
    """Write a file completely or not at all; HostError if it cannot be written.

    Symbolic links are followed; an existing file keeps its mode and owner.
    content: the whole content, or its pieces.
    with_folder: create missing parent directories.
    """
    pieces: Iterable[str | bytes] = (content,) if isinstance(content, str | bytes) else content
    encoded = (piece.encode() if isinstance(piece, str) else piece for piece in pieces)
    try:
        target = _target(file)
        if isinstance(target, int):
            _write_through(os.dup(target), encoded)
        elif target.exists() and not _is_replaceable(target.stat()):
            _write_through(os.open(target, os.O_WRONLY | os.O_TRUNC), encoded)
        else:
            if with_folder:
                target.parent.mkdir(parents=True, exist_ok=True)
            _replace(target, encoded)
    except OSError as error:
        raise _not_written(file, error) from error


def check_output(file: Path) -> None:
    """Raise HostError if a file of this name could not be written later: its folder is missing, or it is a folder."""
    try:
        target = _target(file)
        if isinstance(target, Path):
            if target.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            # Check only its folder: do not open a device or a FIFO; a full disk may have room by then.
            if not os.access(target.parent.resolve(strict=True), os.W_OK | os.X_OK) and not os.access(target, os.W_OK):
                raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except OSError as error:
        raise _not_written(file, error) from error


def _not_written(file: Path, error: OSError) -> HostError:
    return HostError(
        "the output file could not be written",
        slug="host-output",
        where=str(file),
        found=error.strerror or str(error),
        expected="a file in a folder writable by this user",
        to_do="specify a file in a directory that you can write to",
    )


def _target(file: Path) -> Path | int:
    """Return the path after resolving all symbolic links, or the number of an open file descriptor (/dev/stdout).

    OSError for a component that another user created in a directory in which everyone may create files. The kernel
    rejects only some of them, and only if fs.protected_symlinks and fs.protected_regular are on.
    """
    names = list(reversed(file.absolute().parts))
    descriptors = {Path(os.path.realpath(one)) for one in _DESCRIPTORS}
    path, links = Path(), 0
    while names:
        name = names.pop()
        if path in descriptors and name.isdecimal() and not names:
            return int(name)
        if name == "..":
            path = path.parent
            continue
        _check_owner(path / name, path)
        if (path / name).is_symlink():
            links += 1
            if links > _MOST_LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            names += reversed((path / name).readlink().parts)
        else:
            # "/", the first part of an absolute path, replaces everything before it.
            path /= name
    return path


def _check_owner(component: Path, directory: Path) -> None:
    try:
        state, above = component.lstat(), directory.stat()
    except FileNotFoundError:
        return
    if above.st_mode & stat.S_IWOTH and state.st_uid not in {os.geteuid(), 0, above.st_uid}:
        kind = "a symbolic link" if stat.S_ISLNK(state.st_mode) else component.name
        problem = f"{kind} owned by user id {state.st_uid} in {directory}, where everyone may create files"
        raise PermissionError(errno.EACCES, problem)


def _is_replaceable(state: os.stat_result) -> bool:
    """Return whether a new file can take over the owner and group; False for a directory, which then fails to open."""
    is_root = os.geteuid() == 0
    keeps_owner = is_root or (state.st_uid == os.geteuid() and state.st_gid in {os.getegid(), *os.getgroups()})
    return stat.S_ISREG(state.st_mode) and keeps_owner


def _write_through(descriptor: int, pieces: Iterable[bytes]) -> None:
    with os.fdopen(descriptor, "wb") as stream:
        stream.writelines(pieces)


def _replace(target: Path, pieces: Iterable[bytes]) -> None:
    """Write a temporary file next to the target, then rename it."""
    # Not named after the target, whose name may already have the maximum length.
    part = target.parent / f".{secrets.token_hex(8)}.part"
    state = target.stat() if target.exists() else None
    # The umask applies to a new file, as to every file that the user creates.
    descriptor = os.open(
        part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o666 if state is None else _PRIVATE
    )
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.writelines(pieces)
            stream.flush()
            if state is not None:
                # Last, and in this order: writing and a change of owner both clear the set-user-ID bit.
                os.fchown(descriptor, state.st_uid, state.st_gid)
                os.fchmod(descriptor, stat.S_IMODE(state.st_mode))
            os.fsync(descriptor)
        part.replace(target)
        sync_to_disk(target.parent)
    finally:
        # Missing after success; removed after an error or an interruption.
        with suppress(OSError):
            part.unlink()
