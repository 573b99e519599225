"""A tarball is what was published, or nothing is built from it; what is no source of PostgreSQL is said to be none."""

import os
from pathlib import Path

import pytest

from pgversus.builds.tarballs import archive_source, is_archive
from pgversus.errors import BuildError, ExitCode
from pgversus.host.identity import server_user
from tests.unit.builds.archives import link, packed
from tests.unit.builds.source_tarballs import FILES, publish, sha256, tarball


def refused(path: Path) -> str:
    """What was found, of a tarball that cannot be laid out; nothing of it is."""
    target = path.with_name("tree")
    with pytest.raises(BuildError) as caught:
        archive_source(path).lay_out(target, server_user())
    error = caught.value
    assert (error.slug, error.exit_code, error.where) == ("build-no-tarball", ExitCode.HOST, str(path))
    assert "postgresql-17.8.tar.bz2" in error.expected
    assert not target.exists()
    return error.found


@pytest.mark.parametrize("name", ["p.tar.bz2", "p.tar.gz", "p.tar.xz", "p.tgz", "p.tar"])
def test_a_tarball_is_laid_out_however_it_is_packed(tmp_path: Path, name: str) -> None:
    path = tarball(tmp_path / name)
    assert is_archive(path)
    source = archive_source(path)
    assert (source.facts.words, source.facts.sha256, source.facts.checked) == (name, sha256(path), None)
    source.lay_out(tmp_path / "tree", server_user())
    assert {name: (tmp_path / "tree" / name).read_text() for name in FILES} == FILES
    assert (tmp_path / "tree" / "configure").stat().st_mode & 0o100


@pytest.mark.parametrize("name", ["postgresql-17.8", "p.zip", "tar", "p.tar.bz2.sha256"])
def test_what_is_not_called_as_a_tarball_is_none(name: str) -> None:
    assert not is_archive(Path(name))


def test_a_tarball_without_a_directory_of_its_own_is_laid_out_as_well(tmp_path: Path) -> None:
    archive_source(tarball(tmp_path / "p.tar", top="")).lay_out(tmp_path / "tree", server_user())
    assert (tmp_path / "tree" / "src" / "backend" / "main.c").is_file()


def test_the_checksum_beside_it_is_what_it_was_held_against(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, sha256(path).upper())
    assert archive_source(path).facts.checked == "p.tar.gz.sha256"
    assert archive_source(path, name="other").facts.words == "other"
    assert archive_source(path, checked="elsewhere").facts.checked == "elsewhere"


def test_a_tarball_that_is_not_what_was_published_is_refused(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, "0" * 64)
    with pytest.raises(BuildError) as caught:
        archive_source(path)
    error = caught.value
    assert (error.slug, error.where) == ("build-damaged", str(path))
    assert error.found == f"SHA-256 {sha256(path)}"
    assert error.expected == f"SHA-256 {'0' * 64} ({path}.sha256)"


def test_a_checksum_file_without_a_checksum_vouches_for_nothing(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar.gz")
    publish(path, "see the web page")
    with pytest.raises(BuildError) as caught:
        archive_source(path)
    assert (caught.value.slug, caught.value.expected) == ("build-damaged", f"a SHA-256 in {path}.sha256")


def test_a_tarball_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert refused(tmp_path / "p.tar.gz") == "No such file or directory"


@pytest.mark.parametrize("name", ["p.tar.bz2", "p.tar.gz", "p.tar.xz", "p.tar"])
def test_half_a_tarball_is_none(tmp_path: Path, name: str) -> None:
    # Nothing that can be packed, so that half of it is within the file.
    text = "".join(chr(33 + number * number * 7919 % 90) for number in range(20_000))
    path = tarball(tmp_path / name, {**FILES, "src/backend/big.c": text})
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    assert refused(path)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>" * 100])
def test_a_file_that_is_no_tarball_is_said(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "p.tar.bz2"
    path.write_bytes(content)
    assert refused(path) == "this is not a tar archive, or it is cut off or damaged"


def test_a_tarball_of_something_else_is_said_with_what_is_in_it(tmp_path: Path) -> None:
    path = tarball(tmp_path / "p.tar", {"Cargo.toml": "", "src/main.rs": ""}, top="other/")
    assert refused(path) == "a tarball with Cargo.toml, src in it"


@pytest.mark.parametrize("name", ["../../outside", "../../../outside", "src/../../../outside"])
def test_nothing_is_written_outside_of_where_it_is_laid_out(tmp_path: Path, name: str) -> None:
    path = tarball(tmp_path / "deep" / "er" / "p.tar", {**FILES, name: "mine"})
    assert "leads outside of the archive" in refused(path)
    assert list(tmp_path.rglob("outside")) == []


def test_a_name_that_is_absolute_is_refused(tmp_path: Path) -> None:
    outside = tmp_path / "outside" / "file"
    path = tarball(tmp_path / "p.tar", {str(outside): "mine"}, top="")
    assert "leads outside of the archive" in refused(path)
    assert not outside.exists()


def test_a_link_that_leads_outside_is_refused(tmp_path: Path) -> None:
    assert "outside" in refused(packed(tmp_path / "p.tar", link("p/src", "../../..")))


def test_a_tarball_without_anything_in_it_is_none(tmp_path: Path) -> None:
    assert refused(tarball(tmp_path / "p.tar", {})) == "a tarball with nothing in it"


def test_a_tarball_of_one_file_is_none(tmp_path: Path) -> None:
    assert refused(tarball(tmp_path / "p.tar", {"README": "read me"}, top="")) == "a tarball with README in it"


@pytest.mark.parametrize("name", ["p.tar.gz", "p.tar.xz", "p.tar.bz2"])
def test_a_tarball_that_is_damaged_in_the_middle_is_none(tmp_path: Path, name: str) -> None:
    noise = "".join(chr(33 + (7 * n * n + n // 3) % 90) for n in range(200_000))
    path = tarball(tmp_path / name, {**FILES, "src/backend/noise.c": noise})
    content = bytearray(path.read_bytes())
    middle = len(content) // 2
    content[middle : middle + 40] = bytes(40)
    path.write_bytes(bytes(content))
    assert refused(path)


def test_what_is_laid_out_belongs_to_us_whoever_has_unpacked_it(tmp_path: Path) -> None:
    archive_source(tarball(tmp_path / "p.tar")).lay_out(tmp_path / "tree", server_user())
    found = [path.lstat() for path in (tmp_path / "tree", *(tmp_path / "tree").rglob("*"))]
    assert {(state.st_uid, state.st_mode & 0o022) for state in found} == {(os.geteuid(), 0)}
