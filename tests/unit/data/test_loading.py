"""The path from which psql reads a setup file, which its user may not be able to read in place."""

import hashlib
import stat
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from pgversus.data.loading import Loading, _check_tablespaces, _failed
from pgversus.errors import DatasetError
from pgversus.host.commands import Finished
from pgversus.host.identity import server_user
from pgversus.host.run_directory import RunDirectory
from pgversus.postgres.client import Client
from pgversus.study.dataset import SetupFile
from tests.builders import comparison

if TYPE_CHECKING:
    from pgversus.postgres.cluster import Cluster

USER = server_user()
CLIENT = Client(pgbench=Path("/pgbench"), psql=Path("/psql"), version="18.6", origin="here", user=USER)


@pytest.fixture
def loading(tmp_path: Path) -> Loading:
    root = tmp_path / "run"
    root.mkdir()
    return Loading(RunDirectory(root=root, sockets=root, user=USER), CLIENT)


def setup_file(directory: Path, text: str) -> SetupFile:
    """Create a file that no other user can read."""
    path = directory / "setup.sql"
    path.write_text(text)
    path.chmod(0o600)
    return SetupFile(path=str(path), sha256=hashlib.sha256(text.encode()).hexdigest())


def test_a_file_that_psqls_user_cannot_read_is_copied_for_that_user_only(loading: Loading, tmp_path: Path) -> None:
    file = setup_file(tmp_path, "SELECT 1;\n\\copy t from 'rows.csv'\n")
    for _ in range(2):
        found = loading._path_of(file)
        assert (found == Path(file.path)) == USER.is_self
        assert found.read_text() == Path(file.path).read_text()
        state = found.stat()
        assert (state.st_uid, stat.S_IMODE(state.st_mode)) == (USER.uid, 0o600)


def test_a_file_with_relative_includes_is_read_in_place_or_rejected(loading: Loading, tmp_path: Path) -> None:
    file = setup_file(tmp_path, "\\ir tables.sql\n")
    if USER.is_self:
        assert loading._path_of(file) == Path(file.path)
        return
    with pytest.raises(DatasetError) as caught:
        loading._path_of(file)
    error = caught.value
    assert (error.slug, error.where) == ("dataset-not-readable", file.path)
    assert USER.name in error.found
    assert "--run-as" in error.to_do
    assert list(loading.directory.root.iterdir()) == []


def test_a_file_that_all_users_can_read_is_read_in_place(loading: Loading) -> None:
    passwd = Path("/etc/passwd")
    file = SetupFile(path=str(passwd), sha256=hashlib.sha256(passwd.read_bytes()).hexdigest())
    assert loading._path_of(file) == passwd


def test_a_changed_file_is_rejected(loading: Loading, tmp_path: Path) -> None:
    file = setup_file(tmp_path, "SELECT 1;\n")
    Path(file.path).write_text("SELECT 2;\n")
    with pytest.raises(DatasetError) as caught:
        loading._path_of(file)
    assert caught.value.slug == "dataset-changed"


def test_a_file_that_needs_pgbenchs_tables_is_answered_with_the_option_that_creates_them() -> None:
    for relation, to_do in (("pgbench_accounts", "add -i"), ("accounts", "load only SQL")):
        words = f'psql:setup.sql:1: ERROR:  relation "{relation}" does not exist'
        finished = Finished(exit_code=3, stdout="", stderr=words, cpu_s=0, cpu_user_s=0)
        assert to_do in _failed("the setup file failed", "setup.sql", "17.8", finished, CLIENT).to_do


def test_data_in_a_tablespace_is_refused(tmp_path: Path) -> None:
    data, place = tmp_path / "data", tmp_path / "elsewhere"
    (data / "pg_tblspc").mkdir(parents=True)
    cluster, arm = cast("Cluster", SimpleNamespace(data_directory=data)), comparison().arms[0]
    _check_tablespaces(cluster, arm)
    (data / "pg_tblspc" / "16384").symlink_to(place)
    with pytest.raises(DatasetError) as caught:
        _check_tablespaces(cluster, arm)
    assert (caught.value.slug, caught.value.found) == ("dataset-tablespace", str(place))
