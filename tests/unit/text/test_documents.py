"""Stored JSON contains no secrets, and JSON without secrets is stored unchanged."""

import hashlib
import json
from typing import Any

import pytest

from pgversus.study.dataset import setup_file
from pgversus.text.documents import document_without_secrets, parts_without_secrets


@pytest.mark.parametrize(
    "text", ['{"a":1.0e2,"b" : [ "password" ]}', '["user=me", NaN]', '{"text": "x", "sha256": "1"}']
)
def test_documents_without_secrets_are_unchanged(text: str) -> None:
    assert document_without_secrets(text) == text


@pytest.mark.parametrize(
    ("found", "kept"),
    [
        ({"sql": "ALTER ROLE a PASSWORD 'x'"}, {"sql": "ALTER ROLE a PASSWORD ..."}),
        ({"name": "ssl_passphrase_command", "value": "echo x"}, {"name": "ssl_passphrase_command", "value": "..."}),
        ({"name": "my.secret", "values": ["x", ""]}, {"name": "my.secret", "values": ["...", ""]}),
        ({"my.secret": "x", "jit": "on"}, {"my.secret": "...", "jit": "on"}),
        ({"variables": [["token", "x"], ["n", "1"]]}, {"variables": [["token", "..."], ["n", "1"]]}),
        ({"program": ["env", "PGPASSWORD=a b", "psql"]}, {"program": ["env", "PGPASSWORD=...", "psql"]}),
        ({"Output": ["u.password", "u.id"]}, {"Output": ["u.password", "u.id"]}),
        ({"a://u:x@h/d": {"b": ["pwd=x"]}}, {"a://h/d": {"b": ["pwd=..."]}}),
        ({"example": '{"Filter": "(pwd = \'x\'::text)"}'}, {"example": '{"Filter": "(pwd = ...::text)"}'}),
    ],
)
def test_secrets_are_hidden_at_any_depth(found: Any, kept: Any) -> None:
    assert parts_without_secrets(found) == kept
    assert json.loads(document_without_secrets(json.dumps(found))) == kept


def test_a_file_is_identified_by_its_redacted_text() -> None:
    one, other = (setup_file("a.sql", f"ALTER ROLE a PASSWORD '{word}';".encode()) for word in ("x", "y"))
    assert one.sha256 != other.sha256
    assert one.hidden_sha256 == other.hidden_sha256 == hashlib.sha256(b"ALTER ROLE a PASSWORD ...;").hexdigest()
    assert setup_file("a.sql", b"SELECT 1;").hidden_sha256 is None
    stored = parts_without_secrets({"path": "a.sql", "sha256": one.sha256, "hidden_sha256": one.hidden_sha256})
    assert stored == {"path": "a.sql", "sha256": one.hidden_sha256, "hidden_sha256": None}


def test_a_file_stored_by_an_earlier_version_is_identified_the_same_way() -> None:
    text = "ALTER ROLE a PASSWORD 'x';"
    now = setup_file("s", text.encode(), text=text)
    stored = {"path": "s", "sha256": now.sha256, "text": text}
    assert parts_without_secrets(stored)["sha256"] == now.hidden_sha256
