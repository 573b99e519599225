"""The version of a server in a bin directory."""

import os
from pathlib import Path

import pytest

from pgversus.builds.inspect import inspect_bin_directory
from pgversus.errors import BuildError
from pgversus.host.identity import ServerUser

ME = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)


def bin_directory(folder: Path, version: str) -> Path:
    for name in ("postgres", "initdb"):
        program = folder / name
        program.write_text(f"#!/bin/sh\necho 'postgres (PostgreSQL) {version}'\n")
        program.chmod(0o755)
    return folder


@pytest.mark.parametrize("version", ["12.22", "17.8 (Debian 17.8-1)", "19devel"])
def test_a_server_that_is_new_enough_is_used(tmp_path: Path, version: str) -> None:
    assert inspect_bin_directory(bin_directory(tmp_path, version), ME).version == version


@pytest.mark.parametrize("version", ["11.22", "9.6.24"])
def test_an_older_server_is_refused(tmp_path: Path, version: str) -> None:
    with pytest.raises(BuildError) as caught:
        inspect_bin_directory(bin_directory(tmp_path, version), ME)
    assert (caught.value.slug, caught.value.found) == ("build-too-old", version)
