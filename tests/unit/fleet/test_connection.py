"""Addresses of a fleet: encrypted, or on this host alone."""

from pathlib import Path

import pytest

from pgversus.errors import StudyError
from pgversus.fleet.certificates import AUTHORITY, KEY, make_certificates
from pgversus.fleet.connection import checked_address, security_of


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("tls://db1:1234", "tls://db1:1234"),
        ("tls://db1", "tls://db1:8786"),
        ("db1", "tls://db1:8786"),
        ("10.0.0.1:99", "tls://10.0.0.1:99"),
        ("tls://[fd00::1]:99", "tls://[fd00::1]:99"),
    ],
)
def test_with_certificates_any_host_is_accepted(text: str, address: str) -> None:
    assert checked_address(text, has_certificates=True) == address


@pytest.mark.parametrize("text", ["tcp://127.0.0.1:8786", "127.0.0.1", "tcp://localhost:1", "tcp://[::1]:1"])
def test_without_certificates_only_this_host_is_accepted(text: str) -> None:
    assert checked_address(text, has_certificates=False).startswith("tcp://")


@pytest.mark.parametrize(
    ("text", "has_certificates"),
    [
        ("tcp://10.0.0.1:8786", False),
        ("10.0.0.1", False),
        ("db1", False),
        ("tls://127.0.0.1", False),
        ("tcp://127.0.0.1", True),
        ("http://db1", True),
        ("tls://", True),
        ("tls://db1:port", True),
        ("tls://[fd00::1", True),
        ("[::1", False),
        ("tls://db1:99999", True),
        ("tls://db1/path", True),
        ("", True),
    ],
)
def test_any_other_address_is_refused(text: str, *, has_certificates: bool) -> None:
    with pytest.raises(StudyError, match="invalid fleet address"):
        checked_address(text, has_certificates=has_certificates)


def test_certificates_that_do_not_match_are_refused(tmp_path: Path) -> None:
    one, other = make_certificates(tmp_path, ["db1", "db2"])
    assert security_of(one) is not None
    (one / KEY).write_bytes((other / KEY).read_bytes())
    with pytest.raises(StudyError, match="cannot be used"):
        security_of(one)
    (one / AUTHORITY).write_text("no certificate")
    with pytest.raises(StudyError, match="cannot be used"):
        security_of(one)
