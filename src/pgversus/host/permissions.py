"""Private files and directories, and handover of files between root and the servers' user.

A user with write permission to a directory can place a link in it at any moment. Root therefore writes only to
directories that the servers' user cannot write to, opens files of that user without following links, and keeps copies
of them instead of the files themselves, which a running program may have open. None of this affects an ordinary user,
who runs everything under the same account.
"""

import errno
import os
import shutil
import stat
from pathlib import Path
from typing import IO, BinaryIO

from filelock import FileLock

from pgversus.host.directories import make_directory
from pgversus.host.identity import ServerUser

PRIVATE_DIRECTORY, PRIVATE_FILE = 0o700, 0o600


def open_private(file: Path, mode: str) -> IO[bytes]:
    """Open a file in binary mode; a new file is private, an existing one keeps its mode."""
    return open(file, f"{mode}b", opener=_private)


def write_private(file: Path, text: str) -> None:
    """Write a private file, replacing the content of an existing one."""
    with open_private(file, "w") as private:
        os.fchmod(private.fileno(), PRIVATE_FILE)
        private.write(text.encode())


def private_lock(file: Path, *, blocking: bool = True) -> FileLock:
    """Return a lock with a private lock file."""
    return FileLock(file, mode=PRIVATE_FILE, blocking=blocking)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, PRIVATE_FILE)


_OPEN = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
# Without O_NONBLOCK, opening a named pipe would wait for a writer.


def make_private(user: ServerUser, directory: Path) -> None:
    """Create a directory that only this user and root can enter; an existing one changes owner."""
    make_directory(directory, 0o700)
    user.change_owner(directory)


def write_for(user: ServerUser, path: Path, content: bytes) -> None:
    """Write a file that only this user and root can read, replacing an existing one.

    path: in a directory to which the user cannot write.
    """
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600), "wb") as file:  # noqa: PTH123
        file.write(content)
    user.change_owner(path)


def give_tree(user: ServerUser, top: Path) -> None:
    """Make a user the owner of a directory tree; the top comes last, so that the tree cannot change meanwhile.

    Files with several hard links are left alone: the other links may be anywhere.
    """
    if user.is_self:
        return
    for _, directories, files, here in os.fwalk(top, topdown=False, follow_symlinks=False):
        for name in (*directories, *files):
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode) or found.st_nlink == 1:
                os.chown(name, user.uid, user.gid, dir_fd=here, follow_symlinks=False)
    user.change_owner(top)


def open_regular(path: Path | str, *, owner: int | None = None, dir_fd: int | None = None) -> BinaryIO:
    """Open a file that another user may have created; ValueError unless it is a regular file.

    owner: the required owner, which also excludes hard links to files of other users; None for any.
    """
    try:
        file = os.open(path, _OPEN, dir_fd=dir_fd)
    except OSError as error:
        if error.errno in (errno.ELOOP, errno.ENXIO):
            raise ValueError(f"{path} is not a regular file") from error
        raise
    found = os.fstat(file)
    if stat.S_ISREG(found.st_mode) and owner in (None, found.st_uid):
        return open(file, "rb")  # noqa: PTH123 - a descriptor
    os.close(file)
    if stat.S_ISREG(found.st_mode):
        raise ValueError(f"{path} is owned by user id {found.st_uid}, not {owner}")
    raise ValueError(f"{path} is not a regular file")


def copy_tree(source: Path, target: Path, user: ServerUser) -> None:
    """Copy a tree of another user to a new private directory.

    ValueError if it contains anything but directories, regular files of that user, and links that stay inside.
    """
    target.mkdir(mode=0o700)
    links = []
    for path, directories, files, here in os.fwalk(source, follow_symlinks=False):
        below = target / Path(path).relative_to(source)
        if below.is_symlink():
            raise ValueError(f"{path} was replaced while it was copied")
        for name in (*directories, *files):
            found = os.stat(name, dir_fd=here, follow_symlinks=False)
            if stat.S_ISDIR(found.st_mode):
                (below / name).mkdir(mode=0o700)
            elif stat.S_ISLNK(found.st_mode):
                links.append(below / name)
                links[-1].symlink_to(os.readlink(name, dir_fd=here))
            else:
                _copy_file(name, here, below / name, user)
    # Checked last, since a link may lead through other links.
    for link in links:
        if not Path(os.path.realpath(link)).is_relative_to(os.path.realpath(target)):
            raise ValueError(f"{link.relative_to(target)} is a link to {link.readlink()}, which is outside of the tree")


def _copy_file(name: str, directory: int, target: Path, user: ServerUser) -> None:
    with open_regular(name, owner=user.uid, dir_fd=directory) as file:
        mode = 0o700 if os.fstat(file.fileno()).st_mode & stat.S_IXUSR else 0o600
        with open(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as copy:  # noqa: PTH123
            shutil.copyfileobj(file, copy)
