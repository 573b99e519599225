"""The certificates of a fleet."""

import ssl
import stat
from pathlib import Path

import pytest
from cryptography import x509

from pgversus.errors import StudyError
from pgversus.fleet.certificates import AUTHORITY, CERTIFICATE, KEY, certificates_in, make_certificates


def test_each_host_gets_three_private_files(tmp_path: Path) -> None:
    folders = make_certificates(tmp_path / "fleet", ["db1", "driver"])
    assert [one.name for one in folders] == ["db1", "driver"]
    for folder in folders:
        assert sorted(path.name for path in folder.iterdir()) == sorted([AUTHORITY, CERTIFICATE, KEY])
        assert all(stat.S_IMODE(path.stat().st_mode) == 0o600 for path in folder.iterdir())
    keys = {(folder / KEY).read_text() for folder in folders}
    assert len(keys) == 2
    assert not (folders[0] / "ca-key.pem").exists()


def test_later_certificates_are_signed_by_the_same_authority(tmp_path: Path) -> None:
    (first,) = make_certificates(tmp_path, ["db1"])
    (later,) = make_certificates(tmp_path, ["db2"])
    assert (first / AUTHORITY).read_bytes() == (later / AUTHORITY).read_bytes()
    authority = x509.load_pem_x509_certificate((first / AUTHORITY).read_bytes())
    for folder in (first, later):
        x509.load_pem_x509_certificate((folder / CERTIFICATE).read_bytes()).verify_directly_issued_by(authority)


def test_certificates_are_accepted_by_openssl(tmp_path: Path) -> None:
    (folder,) = make_certificates(tmp_path, ["db1"])
    files = certificates_in(folder)
    context = ssl.create_default_context(cafile=str(files.authority))
    context.load_cert_chain(files.certificate, files.key)


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "authority", "ü", ".hidden", "a b", 65 * "a"])
def test_a_host_name_that_is_not_plain_is_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(StudyError, match="invalid host name"):
        make_certificates(tmp_path / "fleet", [name])
    assert not (tmp_path / "fleet").exists()


def test_a_name_given_twice_is_rejected_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="'db1' twice"):
        make_certificates(tmp_path / "fleet", ["db1", "db2", "db1"])
    assert not (tmp_path / "fleet").exists()


@pytest.mark.parametrize("damaged", [AUTHORITY, KEY])
@pytest.mark.parametrize("damage", ["", "text", None, "another"])
def test_a_damaged_authority_is_an_error_and_signs_nothing(tmp_path: Path, damaged: str, damage: str | None) -> None:
    for fleet in ("one", "another"):
        make_certificates(tmp_path / fleet, ["db1"])
    path = tmp_path / "one" / "authority" / damaged
    if damage is None:
        path.unlink()
    else:
        path.write_text((tmp_path / "another" / "authority" / damaged).read_text() if damage == "another" else damage)
    # Without its key an authority is made again; it must not replace the one whose certificate is still there.
    with pytest.raises(StudyError, match="damaged"):
        make_certificates(tmp_path / "one", ["db2"])
    assert not (tmp_path / "one" / "db2").exists()


def test_existing_certificates_are_kept(tmp_path: Path) -> None:
    (folder,) = make_certificates(tmp_path, ["db1"])
    before = (folder / KEY).read_bytes()
    with pytest.raises(StudyError, match="already"):
        make_certificates(tmp_path, ["db2", "db1"])
    assert (folder / KEY).read_bytes() == before
    assert not (tmp_path / "db2").exists()


def test_a_folder_without_certificates_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StudyError, match="does not contain the certificates"):
        certificates_in(tmp_path)
