"""Results of the quick profiles of the five published studies, as they were measured once."""

import sys
from pathlib import Path

if sys.version_info >= (3, 12):
    import tarfile
else:  # early releases of 3.11 have no filters
    from backports import tarfile

from tests.builders import DATA

STUDIES = ("planner-16-vs-17", "versions-15-to-18", "vacuum-15-to-17", "block-size", "io-combine-limit")


def unpacked(study: str, folder: Path) -> Path:
    """A results folder, made of the archive of this study."""
    with tarfile.open(DATA / "results" / f"{study}.tar.xz") as archive:
        archive.extractall(folder, filter="data")
    return folder
