"""Stored and shown texts do not contain users and passwords, however they are written."""

import io
import json
import shlex
import time
from collections.abc import Callable
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table

from pgversus.cli.command import command_typed
from pgversus.errors import StudyError, StudyFileError
from pgversus.report.console import SafeConsole
from pgversus.report.markdown import escaped
from pgversus.text.redaction import (
    code_without_secrets,
    command_without_secrets,
    hide_in_error,
    message_without_secrets,
    value_without_secrets,
    visible,
    without_secrets,
    word_without_secrets,
)


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
def test_users_and_passwords_are_hidden_in_texts(typed: str, kept: str) -> None:
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
def test_a_redacted_command_can_be_pasted_into_a_shell(arguments: list[str], kept: str) -> None:
    assert command_typed(arguments) == f"pgversus {kept}"


_PART = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cs", "Zl", "Zp")), max_size=6)
_NASTY = st.lists(
    st.sampled_from([*"/?#'\"@&=%\\ :,;]}$", "''", '",', "' ", "\\'", "://", "?password=", "..."]), max_size=4
)
_CORE = "zQ7x"
PASSWORDS = st.tuples(*[st.one_of(_PART, _NASTY.map("".join))] * 2).map(
    lambda parts: f"{_CORE}{_CORE.join(parts)}{_CORE}"
)
"""Any remaining part of it is detected."""


def conninfo(text: str) -> str:
    return "'" + text.replace("\\", "\\\\").replace("'", "\\'") + "'"


def doubled(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def toml(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def bare(text: str) -> str:
    return "".join(text.split())


def forms(password: str) -> list[str]:
    """Return texts that contain the password in different ways."""
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
def test_no_part_of_a_password_remains(password: str) -> None:
    assert [text for text in kept_of(password) if _CORE in text] == []


@pytest.mark.parametrize(
    ("code", "kept"),
    [
        ("ALTER ROLE a PASSWORD 'x'; VACUUM t;", "ALTER ROLE a PASSWORD ...; VACUUM t;"),
        ("CREATE USER a WITH ENCRYPTED PASSWORD E'it\\'s' LOGIN", "CREATE USER a WITH ENCRYPTED PASSWORD ... LOGIN"),
        ("CREATE ROLE a PASSWORD'x';", "CREATE ROLE a PASSWORD...;"),
        ("PASSWORD /* a */ -- b\n 'x'; c", "PASSWORD /* a */ -- b\n ...; c"),
        ("OPTIONS (user 'u', password 'x y', port '1')", "OPTIONS (user 'u', password ..., port '1')"),
        ("OPTIONS (SET \"password\" 'x')", 'OPTIONS (SET "password" ...)'),
        (
            "CONNECTION 'host=h password=x dbname=d' PUBLICATION p",
            "CONNECTION 'host=h password=... dbname=d' PUBLICATION p",
        ),
        ("CONNECTION 'host=h password=''x y'' dbname=d' z", "CONNECTION 'host=h password=... z"),
        ("dblink('postgresql://u:x@h/d', 'SELECT 1')", "dblink('postgresql://h/d', 'SELECT 1')"),
        ("SELECT set_config('my.secret', 'x', false), 1", "SELECT set_config('my.secret', ..., false), 1"),
        ("ALTER SYSTEM SET my.secret TO 'x'; SELECT 1", "ALTER SYSTEM SET my.secret TO ...; SELECT 1"),
        ("SET my.password TO x; SELECT 1", "SET my.password TO ... SELECT 1"),
        ("ALTER ROLE a SET LOCAL my.api_key to x;", "ALTER ROLE a SET LOCAL my.api_key to ..."),
        ("SET password_encryption TO md5; SELECT 1", "SET password_encryption TO md5; SELECT 1"),
        ("-- we set the password to protect it", "-- we set the password to protect it"),
        ("\\set password x y\nSELECT 1", "\\set password ...\nSELECT 1"),
        ("\\setenv PGPASSWORD x\nSELECT 1", "\\setenv PGPASSWORD ...\nSELECT 1"),
        ("ALTER ROLE a PASSWORD :'password'; SELECT 1", "ALTER ROLE a PASSWORD :'password'; SELECT 1"),
        ("-- password: a b\nSELECT 1", "-- password: ...\nSELECT 1"),
        ("PGPASSWORD=x pg_dump -Fc", "PGPASSWORD=... pg_dump -Fc"),
        ("PGPASSWORD='a'\"'\"' b' pg_dump -Fc", "PGPASSWORD=... pg_dump -Fc"),
        ("PGPASSWORD=a'b c' pg_dump\npg_restore", "PGPASSWORD=...\npg_restore"),
        ("archive --cipher-pass=x --repo-path=/r push", "archive --cipher-pass=... --repo-path=/r push"),
        ("echo h:5432:db:u:x y > .pgpass\nb", "echo h:5432:db:u:...\nb"),
        ("psql postgresql://u:x@h/d -c 'SELECT 1'", "psql postgresql://h/d -c 'SELECT 1'"),
        ("host=h sslpassword=x dbname=d", "host=h sslpassword=... dbname=d"),
        ("(((u.password)::text = 'x'::text) AND (id = 5))", "(((u.password)::text = 'x'::text) AND (id = 5))"),
        ("((token = 'x'::text) AND (id = 5))", "((token = ...::text) AND (id = 5))"),
        ("SELECT username FROM u WHERE username = 'joe'", "SELECT username FROM u WHERE username = 'joe'"),
        ("SET password_encryption = 'md5'; SELECT 1", "SET password_encryption = 'md5'; SELECT 1"),
        ("SELECT 'the passwords' AS password, 1", "SELECT 'the passwords' AS password, 1"),
    ],
)
def test_only_the_value_is_hidden_in_code(code: str, kept: str) -> None:
    assert code_without_secrets(code) == kept
    assert code_without_secrets(kept) == kept


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("primary_conninfo", "host=h password=x application_name=a", "host=h password=... application_name=a"),
        ("archive_command", "PGPASSWORD=x cp %p /a", "PGPASSWORD=... cp %p /a"),
        ("restore_command", "get postgresql://u:x@h/d %f", "get postgresql://h/d %f"),
        ("ssl_passphrase_command", "echo x", "..."),
        ("my.api_key", "x", "..."),
        ("bench.tokens", "5", "5"),
        ("my.password", "12345", "..."),
        ("password_encryption", "scram-sha-256", "scram-sha-256"),
        ("ssl_passphrase_command_supports_reload", "on", "on"),
        ("work_mem", "4MB", "4MB"),
        ("my.secret", "", ""),
    ],
)
def test_a_value_is_hidden_because_of_its_name_or_content(name: str, value: str, kept: str) -> None:
    assert value_without_secrets(name, value) == kept


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("psql postgresql://u:x@h -c 'SELECT 1'", "psql postgresql://h -c 'SELECT 1'"),
        ("psql 'host=h password=x dbname=d' -f a.sql", "psql 'host=h password=... dbname=d' -f a.sql"),
        ("env PGPASSWORD='a b' psql -f a.sql", "env PGPASSWORD=... psql -f a.sql"),
        ("sh -c 'PGPASSWORD=x pg_dump -Fc'", "sh -c 'PGPASSWORD=... pg_dump -Fc'"),
        ("psql -c \"ALTER ROLE a PASSWORD 'x'; VACUUM\"", "psql -c 'ALTER ROLE a PASSWORD ...; VACUUM'"),
        ("load --password 'a b' --into t", "load --password ... --into t"),
        ("pg_dump -Fc 'postgresql://u:a b@h/d'", "pg_dump -Fc postgresql://h/d"),
        ("pg_dump --no-password -d mydb", "pg_dump --no-password -d mydb"),
    ],
)
def test_redacted_commands_remain_distinguishable(typed: str, kept: str) -> None:
    assert list(command_without_secrets(shlex.split(typed))) == shlex.split(kept)


def code_forms(password: str) -> list[str]:
    """Return SQL, commands and connection strings that contain the password in different ways."""
    connection = f"host=h password={conninfo(password)} dbname=d"
    return [
        f"ALTER ROLE me PASSWORD {doubled(password)}; SELECT 'a', \"b\";",
        f"DO $$ BEGIN EXECUTE {doubled(f'ALTER ROLE me PASSWORD {doubled(password)}')}; END $$; SELECT 1",
        f"OPTIONS (user 'me', password {doubled(password)}, port '1')",
        f"CREATE ROLE me PASSWORD E{conninfo(password)} LOGIN; SELECT 'a'",
        f"SELECT set_config('my.secret', {doubled(password)}, true)",
        connection,
        f"host=h password = {bare(password)} dbname=d",
        f"SELECT dblink({doubled(connection)}, 'SELECT 1'); SELECT 2",
        f"SELECT dblink({doubled(f'host=h password={bare(password)}')}, 'SELECT 1')",
        f"SELECT dblink('postgresql://me:{quote(password, safe='')}@h/d', 'SELECT 1')",
        f"PGPASSWORD={shlex.quote(password)} psql -c 'SELECT 1'",
        f"pg --password={shlex.quote(password)} --and='more'",
        f"pg --password {shlex.quote(password)} --and='more'",
        f"\\set password {doubled(password)} b\nSELECT 1",
    ]


# A part of a password that looks like a connection URI may remain, in SQL inside a string (docs/security.md).
@given(PASSWORDS.filter(lambda password: "://" not in password))
def test_no_part_of_a_password_remains_in_code(password: str) -> None:
    kept = [code_without_secrets(form) for form in (*code_forms(password), *code_forms(f" {password}"))]
    assert [text for text in kept if _CORE in text] == []
    assert [code_without_secrets(text) for text in kept] == kept


@given(PASSWORDS)
def test_redaction_is_idempotent(password: str) -> None:
    for hide in (without_secrets, message_without_secrets, code_without_secrets):
        kept = [hide(text) for text in forms(password)]
        assert [hide(text) for text in kept] == kept


@pytest.mark.parametrize(
    ("words", "kept"),
    [
        (
            'ERROR: syntax error at or near "BAD"\nLINE 1: ...cret\' BAD\n        ^',
            'ERROR: syntax error at or near "BAD"\nLINE 1: ...\n        ^',
        ),
        ("LINE 1: ...FROM t BAD", "LINE 1: ...FROM t BAD"),
        ("LINE 1: ALTER ROLE a PASSWORD 'x' BAD", "LINE 1: ALTER ROLE a PASSWORD ..."),
        ('invalid value for parameter "my.secret": "x"', 'invalid value for parameter "my.secret": ...'),
        ('password authentication failed for user "joe"', 'password authentication failed for user "joe"'),
        ("write postgresql://user@host:5432/db", "write postgresql://user@host:5432/db"),
    ],
)
def test_server_messages_keep_users_and_lose_truncated_statements(words: str, kept: str) -> None:
    assert message_without_secrets(words) == kept


def test_secrets_are_hidden_in_all_parts_of_an_error() -> None:
    parts = {"what": "password=x1", "where": "PASSWORD 'x2'", "found": "a://b:x3@c", "expected": "", "to_do": "pwd: x4"}
    problem = StudyError(slug="s", **parts)
    whole = StudyFileError("pwd=x5", slug="s", problems=(problem,))
    hide_in_error(whole)
    assert str(whole) == (
        "error[s]: password=...\n  where:    PASSWORD ...\n  found:    a://c\n  to do:    pwd: ...\n\n: pwd=..."
    )


_HOSTILE = [
    *("a /*", "password /*", "password /*password */", "password --\n", "user /*", "/**/password", "pwd--pwd\n"),
    *(
        "password=' '\"",
        "password='' ",
        "password=''a ",
        "password='a' ",
        'password="',
        "PASSWORD 'x",
        "$a$password $a$",
    ),
    *("a://", "'a://", '"a://b" ', "a://?password=", "a://b@", "x?y&", "://", "&password=a", "%6F", "password%6F=%"),
    *(
        "x:5432:",
        "x:5432:a:",
        "x:5432:a:b:c ",
        ":*:",
        "\\",
        "\\'password=\\",
        "'",
        '"',
        "''",
        "$",
        "$a",
        "token",
        "token.",
        "-pass",
    ),
    *("LINE 1: ...'\n", "LINE 1: ...", "password to ", "\\set password ", "set_config('password', ", "--password "),
    *(
        "password" + " " * 50,
        "password=a'b ",
        "password:",
        "a.b.",
        "-- password=",
        "-- password=\n",
        "password \n",
        "password\t",
    ),
]


@pytest.mark.slow
@pytest.mark.parametrize(
    "hide",
    [without_secrets, message_without_secrets, code_without_secrets, word_without_secrets],
    ids=lambda f: f.__name__,
)
def test_hostile_texts_take_linear_time(hide: Callable[[str], str]) -> None:
    slow = {}
    for unit in _HOSTILE:
        for text in (unit * (100_000 // len(unit)), "x" + unit * (100_000 // len(unit)) + "*/'\"\n"):
            begin = time.process_time()
            hide(text)
            if (seconds := time.process_time() - begin) > 1.0:
                slow[text[:20]] = seconds
    assert slow == {}


OBEYED = [*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), "\u061c", "\u200e", "\u200f", "\u2028", "\u2029"]
OBEYED += [*map(chr, range(0x202A, 0x202F)), *map(chr, range(0x2066, 0x206A)), "\ud800", "\udfff"]
KEPT = "\n\t"


@pytest.mark.parametrize("character", [one for one in OBEYED if one not in KEPT], ids=ascii)
def test_control_characters_are_made_visible(character: str) -> None:
    shown = visible(f"a{character}b")
    assert shown.isprintable()
    assert visible(shown) == shown
    assert escaped(f"a{character}b").isprintable()
    file = io.StringIO()
    SafeConsole(file=file, force_terminal=True, color_system=None).print(f"a{character}b")
    assert character not in file.getvalue().replace("\n", "")


def test_text_in_any_language_is_unchanged() -> None:
    text = "日本語 é ß \u05d0\u05d1 \u0627\u0644 🙂 µ\n\tx"
    assert visible(text) == text
    assert visible("a\r\nb") == "a\nb"


@pytest.mark.parametrize("text", ["[red]x", "[/]", "[/red]", "[link=http://x/]y[/link]", ":smile:", "[@click=x]y"])
def test_brackets_are_not_interpreted_as_markup(text: str) -> None:
    file = io.StringIO()
    table = Table(text, box=None)
    table.add_row(text)
    console = SafeConsole(file=file, force_terminal=True, width=200, highlight=False)
    console.print(table)
    console.print(text)
    assert file.getvalue().count(text) == 3
    assert "\x1b]8" not in file.getvalue()
