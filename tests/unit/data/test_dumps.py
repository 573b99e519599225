import io
import tarfile
from pathlib import Path

import pytest

from pgversus.data.dumps import check_dump_unchanged, dump_at
from pgversus.errors import DatasetError, StudyError
from pgversus.study.dataset import DumpFormat

PLAIN = b"--\n-- PostgreSQL database dump\n--\n\nSET statement_timeout = 0;\n"


def data_directory(place: Path) -> Path:
    (place / "global").mkdir(parents=True)
    (place / "PG_VERSION").write_text("16\n")
    (place / "global" / "pg_control").write_bytes(b"control")
    return place


def test_the_format_of_a_dump_is_recognized_by_its_content(tmp_path: Path) -> None:
    (tmp_path / "custom").write_bytes(b"PGDMP\x01\x10\x00")
    (tmp_path / "plain").write_bytes(PLAIN)
    directory = tmp_path / "directory"
    directory.mkdir()
    (directory / "toc.dat").write_bytes(b"PGDMP")
    with tarfile.open(tmp_path / "tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(tarfile.TarInfo("toc.dat"), io.BytesIO())
    data_directory(tmp_path / "data directory")
    for form in DumpFormat:
        assert dump_at(str(tmp_path / form.value), "--restore").format is form


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (b"", "neither"),
        (b"CREATE TABLE t ();", "neither"),
        (b"\x1f\x8b\x08", "gzip"),
        (b"\x28\xb5\x2f\xfd", "zstd"),
        (b"--\n-- PostgreSQL database cluster dump\n--\n", "pg_dumpall"),
    ],
)
def test_a_file_that_is_not_a_dump_is_an_error(content: bytes, found: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(content)
    with pytest.raises(StudyError) as caught:
        dump_at(str(tmp_path / "file"), "--restore")
    assert caught.value.slug == "study-no-dump"
    assert found in caught.value.found


@pytest.mark.parametrize("name", ["missing", "."])
def test_a_missing_file_and_a_directory_that_is_not_a_dump_are_errors(name: str, tmp_path: Path) -> None:
    with pytest.raises(StudyError) as caught:
        dump_at(str(tmp_path / name), "--restore")
    assert caught.value.slug == "study-no-dump"


def test_a_data_directory_in_use_is_an_error(tmp_path: Path) -> None:
    place = data_directory(tmp_path / "data")
    (place / "postmaster.pid").write_text("1\n")
    with pytest.raises(StudyError) as caught:
        dump_at(str(place), "--restore")
    assert caught.value.slug == "study-data-directory-in-use"


@pytest.mark.parametrize("link", ["pg_wal", "global/elsewhere"])
def test_a_data_directory_with_a_link_to_the_original_is_an_error(link: str, tmp_path: Path) -> None:
    place = data_directory(tmp_path / "data")
    (place / link).symlink_to(tmp_path)
    with pytest.raises(StudyError) as caught:
        dump_at(str(place), "--restore")
    assert caught.value.slug == "study-no-dump"
    assert link in caught.value.found


def test_a_base_backup_in_tar_format_must_be_unpacked_first(tmp_path: Path) -> None:
    (tmp_path / "base.tar").write_bytes(b"")
    with pytest.raises(StudyError) as caught:
        dump_at(str(tmp_path), "--restore")
    assert "unpack" in caught.value.found


def test_a_database_can_be_named_only_for_a_data_directory(tmp_path: Path) -> None:
    assert dump_at(str(data_directory(tmp_path / "data")), "--restore", "app").database == "app"
    (tmp_path / "plain").write_bytes(PLAIN)
    with pytest.raises(StudyError) as caught:
        dump_at(str(tmp_path / "plain"), "--restore", "app")
    assert caught.value.slug == "study-idle-database"


def test_a_dump_that_has_changed_is_rejected(tmp_path: Path) -> None:
    file, directory, data = tmp_path / "plain", tmp_path / "directory", data_directory(tmp_path / "data")
    file.write_bytes(PLAIN)
    directory.mkdir()
    (directory / "toc.dat").write_bytes(b"PGDMP")
    dumps = [dump_at(str(path), "--restore") for path in (file, directory, data)]
    for dump in dumps:
        check_dump_unchanged(dump)
    file.write_bytes(PLAIN + b"\n")
    (directory / "3001.dat").write_bytes(b"1\n")
    (data / "global" / "pg_control").write_bytes(b"another")
    for dump in dumps:
        with pytest.raises(DatasetError) as caught:
            check_dump_unchanged(dump)
        assert caught.value.slug == "dataset-changed"
