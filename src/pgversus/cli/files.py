"""Files that flags name, read once, when the question is asked."""

import os
import sys
from collections.abc import Iterable
from pathlib import Path

from pgversus.errors import StudyError
from pgversus.study.dataset import SetupFile, setup_file


def read_text(path: str, flag: str) -> str:
    """The content of a script; StudyError when it cannot be read or is no UTF-8."""
    return _decoded(_read_bytes(path, flag), path, flag)


def read_stdin(flag: str) -> str:
    """What standard input holds; StudyError when it is no UTF-8."""
    return _decoded(b"" if sys.stdin is None else sys.stdin.buffer.read(), "-", flag)


def _decoded(content: bytes, path: str, flag: str) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        raise StudyError(
            "a script is not UTF-8",
            slug="study-script-encoding",
            where=f"{flag} {path}",
            found=str(error),
            expected="UTF-8, the encoding of the databases compared",
            to_do=f"iconv -t UTF-8 {path}",
        ) from error


def setup_files(paths: Iterable[str], flag: str) -> tuple[SetupFile, ...]:
    """Files for psql, known by the hash of their content; StudyError for one that cannot be read."""
    return tuple(setup_file(str(Path(path).absolute()), _read_bytes(path, flag)) for path in paths)


def _read_bytes(path: str, flag: str) -> bytes:
    try:
        file = Path(path)
        if file.is_file() or not file.exists():
            return file.read_bytes()
    except OSError as error:
        raise _no_file(path, flag, error.strerror or str(error)) from error
    # psql and pgbench read it again, for each arm: a pipe would be empty by then.
    raise _no_file(path, flag, "a directory, a pipe or a device")


def _no_file(path: str, flag: str, found: str) -> StudyError:
    return StudyError(
        "a file cannot be read",
        slug="study-no-file",
        where=f"{flag} {os.fsencode(path).decode(errors='replace')}",
        found=found,
        expected="a regular file",
        to_do="give its path from this directory",
    )
