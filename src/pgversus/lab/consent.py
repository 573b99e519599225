"""The user's consent to the requests of a study file: a flag, or a stored yes. Only this module decides.

A study file may come from anyone, and pgversus may run as root. A study that is confined to managed servers and its
own folder needs no consent.
"""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from stat import S_IWGRP, S_IWOTH

import platformdirs

from pgversus.errors import StudyError
from pgversus.host.directories import make_directory
from pgversus.lab.studies import OpenedStudy

Ask = Callable[[OpenedStudy], bool]
"""Asks the user whether a study may do what it requests."""


def opened_with_consent(open_it: Callable[..., OpenedStudy], *, trust: bool, ask: Ask | None) -> OpenedStudy:
    """Return a study that may be run; raise StudyError with everything that it requests if it may not.

    open_it: open_study() with all arguments except reads_outside.
    trust: whether the user has consented beforehand.
    ask: None without a terminal.
    """
    opened = open_it(reads_outside=trust)
    if trust:
        return opened
    has_just_agreed = _require(opened, ask)
    if not opened.has_unread_files:
        return opened
    # The files may be read now, so judge their contents as well.
    whole = open_it(reads_outside=True)
    if has_just_agreed and whole.access == opened.access:
        _remember(whole)
    else:
        _require(whole, ask)
    return whole


def has_consent(opened: OpenedStudy) -> bool:
    """Return whether a study needs no consent or has been given it before."""
    return opened.access.is_none or opened.digest in _remembered()


def _require(opened: OpenedStudy, ask: Ask | None) -> bool:
    """Require consent; return whether the user was asked now and agreed."""
    if has_consent(opened):
        return False
    if ask is None or not ask(opened):
        raise StudyError(
            "this study requires access to more than its folder and servers that pgversus starts itself",
            slug="study-not-trusted",
            where=opened.study.file_name,
            found="\n".join(opened.access.lines),
            expected="your consent",
            to_do="review the study and its files; to run it, add --trust (in Python: trust=True)",
        )
    _remember(opened)
    return True


def _state_file() -> Path:
    return platformdirs.user_state_path("pgversus") / "trusted-studies"


def _remembered() -> frozenset[str]:
    """Return the digests of all trusted studies; empty if another user could have written the file."""
    try:
        with _state_file().open(encoding="ascii") as file:
            status = os.fstat(file.fileno())
            if status.st_uid != os.geteuid() or status.st_mode & (S_IWGRP | S_IWOTH):
                return frozenset()
            return frozenset(file.read().split())
    except (OSError, UnicodeDecodeError):
        return frozenset()


def _remember(opened: OpenedStudy) -> None:
    file = _state_file()
    # If the file cannot be written, the user is asked again next time.
    with suppress(OSError):
        make_directory(file.parent, 0o700)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW
        with os.fdopen(os.open(file, flags, 0o600), "a", encoding="ascii") as lines:
            lines.write(f"{opened.digest}\n")
