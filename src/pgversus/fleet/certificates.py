"""The certificate authority of a fleet, and the certificates of its hosts.

A host of a fleet runs what the driver sends, so everyone who holds a certificate of the authority may run programs on
all of its hosts. The authority is therefore a private one, made for one fleet.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from cryptography.x509.oid import NameOID

from pgversus.errors import StoreError, StudyError
from pgversus.host.directories import make_directory
from pgversus.host.permissions import PRIVATE_DIRECTORY, write_private

AUTHORITY, CERTIFICATE, KEY = "ca.pem", "certificate.pem", "key.pem"
"""The files in the folder of each host: the authority's certificate, its own, and its private key."""
_AUTHORITY_FOLDER = "authority"
_AUTHORITY_YEARS, _YEARS = 10, 2
_MOST_LETTERS = 64
# The longest common name of a certificate (RFC 5280, ub-common-name).
_EARLIER = timedelta(hours=1)
# Clocks of hosts may differ.


@dataclass(frozen=True, slots=True, kw_only=True)
class Certificates:
    """The three files of one host."""

    authority: Path
    certificate: Path
    key: Path


def certificates_in(folder: Path) -> Certificates:
    """Return the files of a host; StudyError if one is missing."""
    found = Certificates(authority=folder / AUTHORITY, certificate=folder / CERTIFICATE, key=folder / KEY)
    for path in (found.authority, found.certificate, found.key):
        if not path.is_file():
            raise StudyError(
                "this folder does not contain the certificates of a host",
                slug="fleet-no-certificates",
                where=str(folder),
                found=f"no {path.name}",
                expected=f"{AUTHORITY}, {CERTIFICATE} and {KEY}",
                to_do="run pgversus fleet certificates DIR NAME..., then copy DIR/NAME to the host",
            )
    return found


def make_certificates(folder: Path, names: Sequence[str]) -> list[Path]:
    """Make a folder with three files for each name, and the authority if it is missing; return these folders.

    StudyError if a folder exists already; StoreError if one cannot be written.
    """
    try:
        for name in names:
            _check_name(name, names)
            _check_new(folder / name)
        make_directory(folder, PRIVATE_DIRECTORY)
        authority, key = _authority(folder / _AUTHORITY_FOLDER)
        return [_issue(folder / name, name, authority, key) for name in names]
    except OSError as error:
        raise StoreError(
            "the certificates could not be written",
            slug="fleet-certificates-unwritable",
            where=str(error.filename or folder),
            found=error.strerror or str(error),
            expected="a writable folder",
            to_do="specify a different folder",
        ) from error


def _check_new(folder: Path) -> None:
    if folder.exists():
        raise StudyError(
            "this host already has certificates",
            slug="fleet-certificates-exist",
            where=str(folder),
            found="a folder of that name",
            expected="a new name",
            to_do="use the existing certificates, or remove the folder first",
        )


def _check_name(name: str, names: Sequence[str]) -> None:
    is_plain = name.replace("-", "").replace("_", "").replace(".", "").isalnum() and name.isascii()
    is_repeated = names.count(name) > 1
    is_long = len(name) > _MOST_LETTERS
    if not is_plain or is_long or name.startswith(".") or name == _AUTHORITY_FOLDER or is_repeated:
        raise StudyError(
            "duplicate host name" if is_repeated else "invalid host name",
            slug="fleet-host-name",
            where="pgversus fleet certificates",
            found=f"{name!r} twice" if is_repeated else repr(name),
            expected=f"at most {_MOST_LETTERS} letters, digits, - _ and ., a different name for each host",
            to_do="use the name of the host, for example db1",
        )


def _authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    """Return the authority in this folder; make it if it is missing. StudyError if it cannot be read."""
    if folder.exists():
        return _read_authority(folder)
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name("pgversus fleet")
    made = (
        _unsigned(name, name, key, years=_AUTHORITY_YEARS)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_usage(is_authority=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder, {AUTHORITY: _pem(made), KEY: _private(key)})
    return made, key


def _read_authority(folder: Path) -> tuple[x509.Certificate, ec.EllipticCurvePrivateKey]:
    try:
        key = load_pem_private_key((folder / KEY).read_bytes(), password=None)
        certificate = x509.load_pem_x509_certificate((folder / AUTHORITY).read_bytes())
        if isinstance(key, ec.EllipticCurvePrivateKey) and certificate.public_key() == key.public_key():
            return certificate, key
        found = "a key and a certificate that do not match"
    except (ValueError, TypeError, FileNotFoundError) as error:
        found = str(error)
    raise StudyError(
        "the certificate authority of the fleet is damaged",
        slug="fleet-authority-damaged",
        where=str(folder),
        found=found,
        expected=f"{KEY} and {AUTHORITY} as pgversus created them",
        to_do="restore both files, or create a new authority in another folder, with new certificates for all hosts",
    )


def _issue(folder: Path, name: str, authority: x509.Certificate, key: ec.EllipticCurvePrivateKey) -> Path:
    own = ec.generate_private_key(ec.SECP256R1())
    made = (
        _unsigned(_name(name), authority.subject, own, years=_YEARS)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_usage(is_authority=False), critical=True)
        .add_extension(x509.SubjectAlternativeName([x509.DNSName(name)]), critical=False)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(own.public_key()), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    _write(folder, {AUTHORITY: _pem(authority), CERTIFICATE: _pem(made), KEY: _private(own)})
    return folder


def _unsigned(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, years: int
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _EARLIER)
        .not_valid_after(now + timedelta(days=365 * years))
    )


def _usage(*, is_authority: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not is_authority,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=is_authority,
        crl_sign=is_authority,
        encipher_only=False,
        decipher_only=False,
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(certificate: x509.Certificate) -> str:
    return certificate.public_bytes(Encoding.PEM).decode()


def _private(key: ec.EllipticCurvePrivateKey) -> str:
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _write(folder: Path, files: dict[str, str]) -> None:
    make_directory(folder, PRIVATE_DIRECTORY)
    for name, text in files.items():
        write_private(folder / name, text)
