"""What is kept and shown is without users and passwords, however they are written."""

import json
import shlex
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgversus.cli.command import command_typed
from pgversus.study.hidden import without_secrets, word_without_secrets


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("postgresql://me:secret@db1:5432/x", "postgresql://db1:5432/x"),
        ("postgres://me@db1/x", "postgres://db1/x"),
        (
            "postgresql://db1/x?user=me&password=secret&sslmode=on",
            "postgresql://db1/x?user=...&password=...&sslmode=on",
        ),
        ("postgresql://db1/x?SSLPASSWORD=secret", "postgresql://db1/x?SSLPASSWORD=..."),
        ("postgresql://db1/x?passw%6Frd=secret&port=1", "postgresql://db1/x?passw%6Frd=...&port=1"),
        ('server = ["17", "postgresql://me:s3c@db1/x"]', 'server = ["17", "postgresql://db1/x"]'),
        ('["postgresql://me:a@h1/x","postgresql://b@h2/x"]', '["postgresql://h1/x","postgresql://h2/x"]'),
        ("['postgresql://me:a b@h1/x?password=c d', '17']", "['postgresql://h1/x?password=...', '17']"),
        ("postgresql://a:p@h1,h2/x and postgresql://b:q@h3/y", "postgresql://h1,h2/x and postgresql://h3/y"),
        ("postgresql://me:p@ss/w?r#d'\"@db1/x", "postgresql://db1/x"),
        ("postgresql://me:p?password=q@db1/x", "postgresql://..."),
        ("postgresql://db1/x?password=p@q", "postgresql://..."),
        ("postgresql://token-db:5432/x", "postgresql://token-db:5432/x"),
        ("17.8", "17.8"),
        ("me@example.org", "me@example.org"),
        ("host=db user=me port=1 password='it''s' dbname=x\ny", "host=db user=... port=1 password=...\ny"),
        ("ALTER ROLE me\nPASSWORD 'it''s\nlong';\nVACUUM;", "ALTER ROLE me\nPASSWORD ...\nVACUUM;"),
        ("ALTER ROLE me PASSWORD/* new */$a$p$a$;\nVACUUM;", "ALTER ROLE me PASSWORD/* new */...\nVACUUM;"),
        ('db_password = """\nsecret"""\nclients = 2', "db_password = ...\nclients = 2"),
        ("# PGUSER=me PGPASSWORD=x psql", "# PGUSER=... PGPASSWORD=..."),
        ('title = "What a token costs"\nx = 1', 'title = "What a token costs"\nx = 1'),
        ("api_token: a b\nx", "api_token: ...\nx"),
        ("vault kv put kv/password=a", "vault kv put kv/password=..."),
    ],
)
def test_a_text_is_kept_without_users_and_passwords(typed: str, kept: str) -> None:
    assert without_secrets(typed) == kept


@pytest.mark.parametrize(
    ("arguments", "kept"),
    [
        (
            ["compare", "postgresql://me:secret@db1/x", "17.8", "-f", "my query.sql"],
            "compare postgresql://db1/x 17.8 -f 'my query.sql'",
        ),
        (["postgresql://me:a%20b@db1/x", "postgres://db1/x?passw%6Frd=a"], "postgresql://db1/x postgresql://db1/x"),
        (["postgresql://me:a/b@db1/x", "postgresql://me:a@b@db1/x"], "postgresql://... postgresql://..."),
        (["postgresql://me:a/b?host=c@db1/x", "postgresql://me:a b@%zz"], "postgresql://... postgresql://..."),
        (["postgresql://db1/x?dbname=password%3Dabc"], "postgresql://..."),
        (
            ["-D", "Db_Password=a b", "-Dtoken=x", "--define=SECRET=a\nb"],
            "-D Db_Password=... -Dtoken=... --define=SECRET=...",
        ),
        (["-D", "naccounts=5", "--set", "work_mem=4MB,8MB"], "-D naccounts=5 --set work_mem=4MB,8MB"),
        (["./postgres@master", "-f", "a.sql@2"], "./postgres@master -f a.sql@2"),
    ],
)
def test_a_command_can_be_pasted_into_a_shell(arguments: list[str], kept: str) -> None:
    assert command_typed(arguments) == f"pgversus {kept}"


_PART = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=6)
_NASTY = st.lists(
    st.sampled_from([*"/?#'\"@&=%\\ :,;]}$", "''", '",', "' ", "\\'", "://", "?password=", "..."]), max_size=4
)
_CORE = "zQ7x"
PASSWORDS = st.tuples(*[st.one_of(_PART, _NASTY.map("".join))] * 2).map(
    lambda parts: f"{_CORE}{_CORE.join(parts)}{_CORE}"
)
"""Whatever part of it is left shows."""


def conninfo(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bare(text: str) -> str:
    return "".join(text.split())


def forms(password: str) -> list[str]:
    """Texts that hold it, each in the way of its own."""
    encoded = quote(password, safe="")
    return [
        f"postgresql://me:{encoded}@db1/x",
        f"postgresql://me:{bare(password)}@db1/x",
        f"postgresql://{bare(password)}@db1/x",
        f"postgresql://db1/x?password={encoded}&port=1",
        f"postgresql://db1/x?sslmode=on&passw%6Frd={encoded}",
        f"postgresql://db1/x?SSLPassword={bare(password).replace('&', '')}",
        f"host=db1 password={conninfo(password)} dbname=x",
        f"host=db1 password={doubled(password)} dbname=x",
        f"host=db1 password = {bare(password)} dbname=x",
        f"ALTER ROLE me PASSWORD {doubled(password)};",
        f"ALTER ROLE me PASSWORD {doubled(password.replace(' ', chr(10)))};",
        f"CREATE ROLE me ENCRYPTED password E{conninfo(password)};",
        f"OPTIONS (user 'me', password {doubled(password)})",
        f"PGPASSWORD={shlex.quote(password)} psql",
        f"PGUSER=me PGPASSWORD={bare(password)} psql",
        f"my_secret: {password}",
    ]


def kept_of(password: str) -> list[str]:
    texts = forms(password)
    kept = [without_secrets(text) for text in texts]
    kept += [without_secrets(f"a = 1 # {text} {toml('x')}\nb = 2") for text in texts]
    kept += [without_secrets(f'a = "x"\nserver = ["17", {toml(text)}, {toml("18")}]\nb = 2') for text in texts]
    kept += [without_secrets(f"server = ['''{text}''']") for text in texts]
    kept += [word_without_secrets(text) for text in texts]
    kept += [word_without_secrets(f"--command={text}") for text in texts]
    raw = f"postgresql://me:{password}@db1/x"
    kept += [without_secrets(f"server = [{toml(raw)}, '18']"), without_secrets(f"--server={toml(raw)}")]
    kept += [command_typed([word]) for word in (*texts, raw, f"-x={raw}", f"{raw}?password={password}")]
    kept += [command_typed(["-D", f"a_token={password}", f"-DDB_PASSWD={password}", f"--define=password={password}"])]
    return kept


@given(PASSWORDS)
def test_no_part_of_a_password_is_kept(password: str) -> None:
    assert [text for text in kept_of(password) if _CORE in text] == []
