"""Measured results of the quick profiles of the five published studies."""

from pathlib import Path

from pgversus.builds.unpacking import unpack
from pgversus.host.identity import server_user
from tests.builders import DATA

PUBLISHED = ("planner-16-vs-17", "versions-15-to-18", "vacuum-15-to-17", "block-size", "io-combine-limit")
STUDIES = (*PUBLISHED, *(f"quick/{name}" for name in PUBLISHED))
"""Results of earlier quick profiles, and those of the present ones on an idle host."""


def unpacked(study: str, folder: Path) -> Path:
    """Unpack the archive of this study and return its results folder."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    unpack(DATA / "results" / f"{study}.tar.xz", folder, server_user())
    return folder
