"""A cache for each test of the command line: what a test removes by mistake is not a build of the user."""

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def _private_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGVERSUS_CACHE", str(tmp_path / "private-cache"))
