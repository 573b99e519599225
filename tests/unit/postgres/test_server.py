"""Settings passed to a server in a file, and cleanup after a failed start; the rest needs real servers."""

import os
import stat
from pathlib import Path

import pytest

from pgversus.builds.model import Build
from pgversus.errors import ServerError
from pgversus.host.guard import processes_in
from pgversus.host.identity import ServerUser, server_user
from pgversus.postgres.cluster import Cluster
from pgversus.postgres.server import Server

# A postmaster that ends before it is ready and leaves a process behind.
KILLED = """#!/bin/sh
cd "$2"
sleep 300 &
exit 1
"""
SECRET = {"primary_conninfo": "host=h password='it\\'s'", "my.secret": "a\nb"}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    user = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
    cluster = Cluster(
        build=Build(version="17.8", bin_directory=tmp_path, origin="test"), data_directory=tmp_path / "data", user=user
    )
    cluster.data_directory.mkdir()
    return Server(cluster, tmp_path, tmp_path / "arm-0.log", SECRET)


def test_settings_with_a_secret_are_in_a_private_file_after_those_of_the_cluster(
    server: Server, tmp_path: Path
) -> None:
    file = server._configuration(SECRET)
    assert file == tmp_path / "arm-0.conf"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert file.read_text().splitlines() == [
        f"include '{tmp_path}/data/postgresql.conf'",
        r"primary_conninfo = 'host=h password=''it\\''s'''",
        r"my.secret = 'a\nb'",
    ]


def test_a_setting_overridden_by_alter_system_is_an_error(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data" / "postgresql.auto.conf").write_text("# a comment\nPrimary_Conninfo = 'host=other'\n")
    with pytest.raises(ServerError) as caught:
        server._configuration(SECRET)
    assert caught.value.found == "ALTER SYSTEM has also set primary_conninfo in the data directory"


@pytest.fixture
def killed(open_directory: Path) -> Server:
    user = server_user()
    program = open_directory / "postgres"
    program.write_text(KILLED)
    program.chmod(0o755)
    build = Build(version="17.8", bin_directory=open_directory, origin="test")
    cluster = Cluster(build=build, data_directory=open_directory / "data", user=user)
    cluster.data_directory.mkdir()
    os.chown(cluster.data_directory, user.uid, user.gid)
    return Server(cluster, open_directory, open_directory / "arm-0.log", {})


def test_a_server_killed_during_its_start_leaves_no_processes(killed: Server) -> None:
    with pytest.raises(ServerError):
        killed.start()
    assert processes_in(killed.cluster.data_directory) == []
