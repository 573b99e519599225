"""A list of statements without secrets holds the same statements."""

import json

import pytest

from pgversus.report.statements import statements_document
from pgversus.statements.collection import Collection
from pgversus.statements.parsing import parsed
from pgversus.statements.secrets import has_secrets, text_without_secrets
from pgversus.statements.sources import read_source
from pgversus.statements.statement import RecordedStatement, Sample


@pytest.mark.parametrize(
    "text",
    [
        'SELECT "users".* FROM "users" WHERE "users"."reset_password_token" = $1 LIMIT $2',
        "UPDATE users SET password = $1, name = 'x' WHERE id = $2",
        "SELECT FROM sessions s JOIN users u ON s.token = u.token WHERE u.api_key = 'abcdef'",
        "SELECT FROM t WHERE a = 5",
        "SELECT 1 /* postgresql://u:abcdef@db/app */",
        "/* password='abcdef' */ SELECT 1",
    ],
)
def test_a_text_without_its_secrets_is_the_same_statement(text: str) -> None:
    shown = text_without_secrets(text)
    assert parsed(shown).fingerprint == parsed(text).fingerprint
    assert "abcdef" not in shown


def test_a_text_that_is_no_statement_has_its_secrets_hidden() -> None:
    assert "abcdef" not in text_without_secrets("SELECT ( FROM t WHERE password = 'abcdef'")
    assert "abcdef" not in text_without_secrets("ALTER ROLE a PASSWORD 'abcdef'")


def test_secret_values_are_not_in_the_list() -> None:
    collection = Collection()
    text = "SELECT FROM users WHERE token = $1"
    collection.add_counters(text, calls=3, seconds=1.0, rows=3)
    collection.add_execution(Sample(text=text, values=("abcdef",), seconds=0.1), has_values=True)
    collection.add_execution(Sample(text="SELECT FROM t WHERE a = 7", seconds=0.1), has_values=True)
    document = json.dumps(statements_document(collection.statements, []))
    assert "abcdef" not in document
    assert has_secrets(Sample(text=text, values=("abcdef",)))
    again = Collection()
    read_source("list", iter([document]), again)

    def shown(statements: list[RecordedStatement]) -> list[tuple[str, int, int]]:
        return [(one.fingerprint, one.calls, one.parameters) for one in statements]

    assert shown(again.statements) == shown(collection.statements)
    assert [len(one.samples) for one in again.statements] == [0, 1]
