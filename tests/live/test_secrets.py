"""Passwords of a study appear in no results, reports, messages or command lines."""

import sqlite3
import stat
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from tests.live.conftest import CommandLine, Ended, somebodys_server

MARKER = "Zq7xGeheim"
"""A password that is used in every place that can contain one."""
PREPARE = r"""
CREATE ROLE lent PASSWORD 'MARKER' LOGIN;
ALTER ROLE lent PASSWORD :'pw_secret';
CREATE FOREIGN DATA WRAPPER far;
CREATE SERVER away FOREIGN DATA WRAPPER far;
CREATE USER MAPPING FOR postgres SERVER away OPTIONS (user 'u', password 'MARKER');
CREATE SUBSCRIPTION sub CONNECTION 'host=nowhere password=MARKER' PUBLICATION p WITH (connect = false);
SELECT :'pw_secret' = 'MARKER' AND :'odd' = 'it''s \ b' AS is_given \gset
\if :is_given
\else
DO $$ BEGIN RAISE 'the variable is another one'; END $$;
\endif
"""
OPERATION = r'''
title = "Secrets"
[factors]
server = ["17.8", "17.8"]
[settings]
primary_conninfo = "host=nowhere user=u password=MARKER sslpassword=MARKER"
archive_command = "PGPASSWORD=MARKER true"
restore_command = "psql postgresql://u:MARKER@nowhere/d"
ssl_passphrase_command = "echo MARKER"
log_statement = "all"
"my.secret" = "it's \\ MARKER"
[dataset]
sql = "CREATE ROLE loaded PASSWORD 'MARKER'; CREATE TABLE t AS SELECT 1 AS id;"
[workload]
prepare = ["prepare.sql"]
prepare_sql = "CREATE ROLE prepared PASSWORD 'MARKER';"
variables = { pw_secret = "MARKER", odd = "it's \\ b" }
verify = """
SELECT current_setting('my.secret') LIKE 'it''s _ __________',
    current_setting('primary_conninfo') LIKE 'host=nowhere user=u %=__________ %=__________'
"""
steps = [
    { sql = "ALTER ROLE lent PASSWORD 'MARKER'" },
    { command = "psql -Xqc 'SELECT pg_sleep(0.3)' postgresql://postgres:MARKER@/postgres" },
    { name = "shell", command = "sh -c 'PGPASSWORD=MARKER psql -Xqc \"SELECT pg_sleep(.3)\"; echo said pwd=MARKER'" },
    { name = "file", command = "sh -ec 'echo nowhere:5432:d:u:MARKER > .pgpass; sleep 0.1'" },
    { name = "env", command = "env PGPASSWORD=MARKER psql -Xqc 'SELECT pg_sleep(0.3)'" },
]
[design]
blocks = 2
'''
LOAD = """
title = "Secrets"
compare = "archive_command"
[factors]
server = ["17.8"]
archive_command = ["PGPASSWORD=MARKER true", "PGPASSWORD=MARKER false"]
[dataset]
setup = ["setup.sql"]
[workload]
script = "query.sql"
[design]
blocks = 2
window = "50ms"
windows = 4
"""
SETUP = """
ALTER ROLE postgres PASSWORD 'MARKER';
CREATE TABLE t AS SELECT 'x' || g AS note FROM generate_series(1, 99) AS g;
"""
QUERY = (
    "SELECT count(*) FROM t WHERE note <> 'host=nowhere password=MARKER' AND note <> 'postgresql://u:MARKER@nowhere';"
)
REPORTS = (
    *((form,) for form in ("terminal", "html", "csv", "trials-csv", "json", "markdown")),
    ("markdown", "--style", "article"),
)


@contextmanager
def command_lines() -> Iterator[set[str]]:
    """Collect every command line on this host that contains the marker."""
    seen: set[str] = set()
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.005):
            for process in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    line = (process / "cmdline").read_bytes()
                    if MARKER.encode() in line:
                        seen.add(line.decode(errors="replace"))

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield seen
    finally:
        over.set()
        thread.join()


def with_password(text: str, password: str = MARKER) -> str:
    return text.replace("MARKER", password)


def said_by(line: CommandLine, results: Path) -> Iterator[str]:
    """Yield everything that is reported about results, in every format."""
    for form, *style in REPORTS:
        ended = line.run("report", str(results), "--format", form, *style)
        assert ended.code == 0, ended.stderr
        yield ended.stdout + ended.stderr


def check_results(line: CommandLine, folder: Path, ended: Ended) -> None:
    assert MARKER not in ended.stdout + ended.stderr
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert [path for path in files if MARKER.encode() in path.read_bytes()] == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    folders = [folder, *(path for path in folder.rglob("*") if path.is_dir())]
    assert {stat.S_IMODE(path.stat().st_mode) for path in folders} == {0o700}
    assert [text for text in said_by(line, folder) if MARKER in text] == []
    records = list((line.cache / "snapshots").glob("*/snapshot.json"))
    assert [path for path in records if MARKER in path.read_text()] == []


@pytest.mark.long
def test_an_operation_with_passwords_in_all_inputs_shows_none(command_line: CommandLine) -> None:
    command_line.write("s.toml", with_password(OPERATION))
    command_line.write("prepare.sql", with_password(PREPARE))
    # Stored files are private whatever the umask allows.
    command_line.umask = 0o000
    results = command_line.directory / "pgversus-results" / "s"
    with command_lines() as seen:
        ended = command_line.run("run", "s.toml", "--trust", "--seed", "5")
    assert ended.code == 0, ended.stderr
    assert seen == set()
    check_results(command_line, results, ended)
    logs = "".join(log.read_text() for log in results.glob("arm-*.log"))
    assert "statement: ALTER ROLE lent PASSWORD ..." in logs
    outputs = sqlite3.connect(results / "results.sqlite").execute("SELECT raw_output FROM window").fetchall()
    assert all("said pwd=..." in output for (output,) in outputs)
    # A different password does not make a different study.
    for name, text in (("s.toml", OPERATION), ("prepare.sql", PREPARE)):
        command_line.write(name, with_password(text, "Ganz-ander"))
    again = command_line.run("run", "s.toml", "--trust", "--seed", "5")
    assert again.code == 0, again.stderr
    command_line.write("s.toml", with_password(OPERATION, "Ganz-ander").replace("pg_sleep(0.3)", "pg_sleep(0.2)"))
    other = command_line.run("run", "s.toml", "--trust", "--seed", "5")
    assert (other.code, "store-other-study" in other.stderr, MARKER in other.stderr) == (5, True, False)


@pytest.mark.long
def test_a_load_and_its_plans_show_no_password(command_line: CommandLine) -> None:
    command_line.write("s.toml", with_password(LOAD))
    command_line.write("query.sql", with_password(QUERY))
    command_line.write("setup.sql", with_password(SETUP))
    # The servers' user can read its own files whatever the umask forbids.
    command_line.umask = 0o077
    with command_lines() as seen:
        ended = command_line.run("run", "s.toml", "--trust", "--seed", "5", "--keep-logs", "--sample-plans")
        plans = command_line.run(
            "plans", "17.8", "--set", "geqo=on,off", "--setup", "setup.sql", "-f", "query.sql", "--format", "markdown"
        )
    assert (ended.code, plans.code) == (0, 0), ended.stderr + plans.stderr
    assert seen == set()
    check_results(command_line, command_line.directory / "pgversus-results" / "s", ended)
    assert MARKER not in plans.stdout + plans.stderr
    assert "password=..." in plans.stdout


def test_failures_are_reported_without_passwords(command_line: CommandLine) -> None:
    long = "x" * 40
    command_line.write("setup.sql", f"CREATE ROLE a{long} WITH NOCREATEDB LOGIN PASSWORD '{MARKER}' BAD;\n")
    ended = command_line.run("compare", "17.8", "17.8", "--setup", "setup.sql", "-S")
    assert ended.code == 2
    assert 'unrecognized role option "bad"' in ended.stderr
    assert "LINE 1: ...\n" in ended.stderr
    assert MARKER not in ended.stderr
    command_line.write("prepare.sql", with_password(PREPARE))
    command_line.write("s.toml", with_password(OPERATION).replace("ALTER ROLE lent", "ALTER ROLE nobody"))
    failing = command_line.run("run", "s.toml", "--trust")
    assert failing.code == 4
    assert 'role "nobody" does not exist' in failing.stderr
    assert MARKER not in failing.stderr + failing.stdout


@pytest.mark.long
def test_passwords_in_settings_of_an_external_server_are_on_no_command_line(command_line: CommandLine) -> None:
    with somebodys_server("17.8") as uri, command_lines() as seen:
        command_line.write(
            "s.toml",
            f'title = "t"\n[factors]\nserver = ["{uri}"]\n"my.secret" = ["{MARKER}1", "{MARKER}2"]\n[dataset]\n'
            "scale = 1\n[workload]\nsql = \"SELECT 1 / (current_setting('my.secret') LIKE '%Geheim_')::int;\"\n"
            '[design]\nblocks = 2\nwindow = "50ms"\nwindows = 4\n',
        )
        ended = command_line.run("run", "s.toml", "--trust", "--no-plans")
    assert ended.code == 0, ended.stderr
    assert seen == set()
    assert MARKER not in ended.stdout + ended.stderr
