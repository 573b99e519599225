"""What was typed is kept without users and passwords."""

import pytest

from pgversus.cli.command import command_typed
from pgversus.study.asked import without_secrets


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("postgresql://me:secret@db1:5432/x", "postgresql://db1:5432/x"),
        ("postgres://me@db1/x", "postgres://db1/x"),
        ("postgresql://db1/x?user=me&password=secret&sslmode=on", "postgresql://db1/x?user=me&password=...&sslmode=on"),
        ("postgresql://db1/x?SSLPASSWORD=secret", "postgresql://db1/x?SSLPASSWORD=..."),
        ('server = ["17", "postgresql://me:s3c@db1/x"]', 'server = ["17", "postgresql://db1/x"]'),
        ("postgresql://a:p@h1,h2/x and postgresql://b:q@h3/y", "postgresql://h1,h2/x and postgresql://h3/y"),
        ("17.8", "17.8"),
        ("me@example.org", "me@example.org"),
    ],
)
def test_a_connection_is_kept_without_its_user_and_password(typed: str, kept: str) -> None:
    assert without_secrets(typed) == kept


def test_a_command_can_be_pasted_into_a_shell() -> None:
    typed = ["compare", "postgresql://me:secret@db1/x", "17.8", "-f", "my query.sql"]
    assert command_typed(typed) == "pgversus compare postgresql://db1/x 17.8 -f 'my query.sql'"
