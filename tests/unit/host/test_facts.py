"""Fonts for a language are looked up with fontconfig, and the mount of a directory in the list of all mounts."""

from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pgversus.host.commands import CLEAN_ENVIRONMENT
from pgversus.host.facts import has_font_for, mount_of
from pgversus.text.translation import Language


@pytest.mark.parametrize(
    ("script", "has"),
    [("echo 'Noto Sans CJK JP'", True), ("exit 0", False), ("exit 1", True), (None, True)],
)
def test_a_font_is_missing_only_if_fontconfig_reports_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, script: str | None, *, has: bool
) -> None:
    if script is not None:
        program = tmp_path / "fc-list"
        program.write_text(f'#!/bin/sh\n[ "$1" = :lang=ja ] || exit 9\n{script}\n')
        program.chmod(0o755)
    monkeypatch.setitem(CLEAN_ENVIRONMENT, "PATH", f"{tmp_path}:/bin" if script else str(tmp_path))
    assert has_font_for(Language.JAPANESE) is has


def test_of_two_mounts_on_one_directory_the_last_is_visible(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parts = [SimpleNamespace(mountpoint=str(tmp_path), fstype=kind) for kind in ("autofs", "zfs")]
    monkeypatch.setattr(psutil, "disk_partitions", lambda **_: parts)
    found = mount_of(tmp_path)
    assert found is not None
    assert found.fstype == "zfs"
