"""Files of a dataset that have changed since a study began, so that they would load a different dataset."""

from collections.abc import Callable
from pathlib import Path

from pgversus.errors import DatasetError
from pgversus.host.files import file_sha256


def check_unchanged(
    path: str, sha256: str, *, place: Path | None = None, hash_of: Callable[[Path], str] = file_sha256
) -> None:
    """Raise DatasetError unless a file or directory still has this SHA-256.

    path: as the study names it, for the message. place: the path to read, if different. hash_of: may raise OSError.
    """
    try:
        found = f"SHA-256 {hash_of(place or Path(path))}"
    except OSError as error:
        found = error.strerror or str(error)
    expected = f"SHA-256 {sha256}"
    if found != expected:
        raise DatasetError(
            "a file of the dataset has changed since the study began",
            slug="dataset-changed",
            where=path,
            found=found,
            expected=expected,
            to_do="restore the file; otherwise start a new comparison, or run the study with --new",
        )
