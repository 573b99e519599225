"""What a server is told in a file instead of on its command line; the rest needs real servers."""

import os
import stat
from pathlib import Path

import pytest

from pgversus.builds.model import Build
from pgversus.errors import ServerError
from pgversus.host.identity import ServerUser
from pgversus.postgres.cluster import Cluster
from pgversus.postgres.server import Server

SECRET = {"primary_conninfo": "host=h password='it\\'s'", "my.secret": "a\nb"}


@pytest.fixture
def server(tmp_path: Path) -> Server:
    user = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
    cluster = Cluster(
        build=Build(version="17.8", bin_directory=tmp_path, origin="test"), data_directory=tmp_path / "data", user=user
    )
    cluster.data_directory.mkdir()
    return Server(cluster, tmp_path, tmp_path / "arm-0.log", SECRET)


def test_settings_with_a_secret_are_in_a_private_file_behind_those_of_the_cluster(
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


def test_what_alter_system_has_set_in_the_data_is_not_overruled_unseen(server: Server, tmp_path: Path) -> None:
    (tmp_path / "data" / "postgresql.auto.conf").write_text("# a comment\nPrimary_Conninfo = 'host=other'\n")
    with pytest.raises(ServerError) as caught:
        server._configuration(SECRET)
    assert caught.value.found == "ALTER SYSTEM has set primary_conninfo in the data as well"
