"""Tarballs are verified against their published checksum; files that are not PostgreSQL's source are rejected."""

import os
from pathlib import Path

import pytest

from pgversus.builds.tarballs import archive_source, is_archive
from pgversus.errors import BuildError, ExitCode
from pgversus.host.identity import server_user
from tests.unit.builds.archives import link, packed
from tests.unit.builds.source_tarballs import FILES, publish, sha256, tarball


def refused(path: Path) -> str:
    """Return what was found in a tarball that is rejected, without any file written."""
    target = path.with_name("tree")
    with pytest.raises(BuildError) as caught:
        archive_source(path).lay_out(target, server_user())
    error = caught.value
    assert (error.slug, error.exit_code, error.where) == ("build-no-tarball", ExitCode.HOST, str(path))
    assert "postgresql-17.8.tar.bz2" in error.expected
    assert not target.exists()
    return error.found


@pytest.mark.parametrize("name", ["p.tar.bz2", "p.tar.gz", "p.tar.xz", "p.tgz", "p.tar"])
def test_a_tarball_is_laid_out_with_any_compression(tmp_path: Path, name: str) -> None:
    path = tarball(tmp_path / name)
    assert is_archive(path)
    source = archive_source(path)
    assert (source.facts.words, source.facts.sha256, source.facts.checked) == (name, sha256(path), None)
    source.lay_out(tmp_path / "tree", server_user())
    assert {name: (tmp_path / "tree" / name).read_text() for name in FILES} == FILES
    assert (tmp_path / "tree" / "configure").stat().st_mode & 0o100


@pytest.mark.parametrize("name", ["postgresql-17.8", "p.zip", "tar", "p.tar.bz2.sha256"])
def test_a_file_not_named_like_a_tarball_is_not_one(name: str) -> None:
    assert not is_archive(Path(name))


def test_a_tarball_without_a_top_directory_is_laid_out(tmp_path: Path) -> None:
    archive_source(tarball(tmp_path / "p.tar", top="")).lay_out(tmp_path / "tree", server_user())
    assert (tmp_path / "tree" / "src" / "backend" / "main.c").is_file()


def test_a_tarball_is_verified_against_its_checksum_file(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, sha256(path).upper())
    assert archive_source(path).facts.checked == "p.tar.gz.sha256"
    assert archive_source(path, name="other").facts.words == "other"
    assert archive_source(path, checked="elsewhere").facts.checked == "elsewhere"


def test_a_tarball_with_a_wrong_checksum_is_rejected(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, "0" * 64)
    with pytest.raises(BuildError) as caught:
        archive_source(path)
    error = caught.value
    assert (error.slug, error.where) == ("build-damaged", str(path))
    assert error.found == f"SHA-256 {sha256(path)}"
    assert error.expected == f"SHA-256 {'0' * 64} ({path}.sha256)"


def test_a_checksum_file_without_a_checksum_is_an_error(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, "see the web page")
    with pytest.raises(BuildError) as caught:
        archive_source(path)
    assert (caught.value.slug, caught.value.expected) == ("build-damaged", f"a SHA-256 hash in {path}.sha256")
    assert caught.value.to_do.startswith("append #sha256=HASH")


def test_a_missing_tarball_is_reported(tmp_path: Path) -> None:
    assert refused(tmp_path / "p.tar.gz") == "No such file or directory"


@pytest.mark.parametrize("name", ["p.tar.bz2", "p.tar.gz", "p.tar.xz", "p.tar"])
def test_half_a_tarball_is_rejected(tmp_path: Path, name: str) -> None:
    # Incompressible, so that half of the tarball is inside the file.
    text = "".join(chr(33 + number * number * 7919 % 90) for number in range(20_000))
    path = tarball(tmp_path / name, {**FILES, "src/backend/big.c": text})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert refused(path)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>" * 100])
def test_a_file_that_is_not_a_tarball_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.tar.bz2"
    path.write_bytes(content)
    assert refused(path) == "this is not a tar archive, or it is truncated or damaged"


def test_a_tarball_of_something_else_is_reported_with_its_contents(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar", {"Cargo.toml": "", "src/main.rs": ""}, top="other/")
    assert refused(path) == "a tarball that contains Cargo.toml, src"


@pytest.mark.parametrize("name", ["../../outside", "../../../outside", "src/../../../outside"])
def test_no_file_is_written_outside_of_the_target(tmp_path: Path, name: str) -> None:
    path = tarball(tmp_path / "deep" / "er" / "p.tar", {**FILES, name: "mine"})
    assert "leads outside of the archive" in refused(path)
    assert list(tmp_path.rglob("outside")) == []


def test_an_absolute_name_is_rejected(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "file"
    path = tarball(tmp_path / "p.tar", {str(outside): "mine"}, top="")
    assert "leads outside of the archive" in refused(path)
    assert not outside.exists()


def test_a_link_that_leads_outside_is_rejected(tmp_path: Path) -> None:
    assert "outside" in refused(packed(tmp_path / "p.tar", link("p/src", "../../..")))


def test_an_empty_tarball_is_rejected(tmp_path: Path) -> None:
    assert refused(tarball(tmp_path / "p.tar", {})) == "a tarball that contains nothing"


def test_a_tarball_of_one_file_is_rejected(tmp_path: Path) -> None:
    assert refused(tarball(tmp_path / "p.tar", {"README": "read me"}, top="")) == "a tarball that contains README"


@pytest.mark.parametrize("name", ["p.tar.gz", "p.tar.xz", "p.tar.bz2"])
def test_a_tarball_damaged_in_the_middle_is_rejected(tmp_path: Path, name: str) -> None:
    noise = "".join(chr(33 + (7 * n * n + n // 3) % 90) for n in range(200_000))
    path = tarball(tmp_path / name, {**FILES, "src/backend/noise.c": noise})
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(bytes(content))
    assert refused(path)


def test_files_laid_out_belong_to_us_whichever_user_unpacked_them(tmp_path: Path) -> None:
    archive_source(tarball(tmp_path / "p.tar")).lay_out(tmp_path / "tree", server_user())
    found = [path.lstat() for path in (tmp_path / "tree", *(tmp_path / "tree").rglob("*"))]
    assert {(state.st_uid, state.st_mode & 0o022) for state in found} == {(os.geteuid(), 0)}
