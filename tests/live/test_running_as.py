"""User-supplied programs run as the servers' user: nobody under root, otherwise the current user."""

import getpass
from pathlib import Path

import psycopg
import pytest

from pgversus.host.identity import server_user
from tests.live.conftest import QUICK, CommandLine, somebodys_server

USER = server_user()


@pytest.fixture
def notes(open_directory: Path) -> Path:
    """A directory that all users can write to."""
    notes = open_directory / "notes"
    notes.mkdir()
    notes.chmod(0o777)
    return notes


def ran_as(notes: Path) -> dict[str, set[str]]:
    """Return the user ids that ran each program."""
    return {note.name: set(note.read_text().split()) for note in notes.iterdir()}


@pytest.mark.long
@pytest.mark.parametrize("window", [("--window", "4tx"), ("--window", "1", "--warmup", "1")])
def test_psql_and_pgbench_run_programs_as_the_servers_user(
    command_line: CommandLine, notes: Path, window: tuple[str, ...]
) -> None:
    setup = command_line.write("setup.sql", f"\\! id -u >> {notes}/setup\nCREATE TABLE t AS SELECT 1 AS id;\n")
    script = command_line.write(
        "script.sql",
        f"\\sleep 50 ms\n\\setshell uid sh -c 'id -u | tee -a {notes}/setshell'\n"
        f"\\shell sh -c 'id -u >> {notes}/shell'\nSELECT id FROM t WHERE id <> :uid;\n",
    )
    few = ("--blocks", "2", "--windows", "2")
    ended = command_line.compare("17.8", "17.8", "--setup", setup, "-f", script, *window, *few)
    assert ended.code == 0, ended.stderr
    assert ran_as(notes) == {name: {str(USER.uid)} for name in ("setup", "setshell", "shell")}


def test_prepare_files_and_commands_of_an_operation_run_as_the_servers_user(
    command_line: CommandLine, notes: Path
) -> None:
    prepare = command_line.write("prepare.sql", f"\\! id -u >> {notes}/prepare\nCREATE TABLE t AS SELECT 1 AS id;\n")
    command = f"sh -c 'id -u >> {notes}/command; pg_dump -f all.sql && test -r \"$PGDATA/PG_VERSION\"'"
    ended = command_line.compare("17.8", "17.8", "--prepare", prepare, "--command", command, "--blocks", "2")
    assert ended.code == 0, ended.stderr
    assert ran_as(notes) == {name: {str(USER.uid)} for name in ("prepare", "command")}


def test_a_command_that_its_user_cannot_execute_is_reported(command_line: CommandLine) -> None:
    program = command_line.directory / "program"
    program.write_text("#!/bin/sh\nexit 0\n")
    program.chmod(0o700)
    ended = command_line.compare("17.8", "17.8", "--command", str(program), "--blocks", "2")
    if USER.is_self:
        assert ended.code == 0, ended.stderr
    else:
        assert ended.code == 4
        assert f'programs run as user "{USER.name}", who is not permitted to execute {program}' in ended.stderr


def test_files_read_by_a_setup_file_are_read_as_the_servers_user(
    command_line: CommandLine, open_directory: Path
) -> None:
    script = command_line.write("script.sql", "SELECT count(*) FROM t;\n")
    for directory in (command_line.directory, open_directory):
        (directory / "tables.sql").write_text(f"CREATE TABLE t (id int);\n\\copy t FROM '{directory}/rows.csv'\n")
        (directory / "rows.csv").write_text("1\n2\n")
        (directory / "setup.sql").write_text("\\ir tables.sql\n")
    (open_directory / "setup.sql").chmod(0o644)
    ended = command_line.compare("17.8", "17.8", "--setup", str(open_directory / "setup.sql"), "-f", script, *QUICK)
    assert ended.code == 0, ended.stderr
    # pytest's own directory is closed to other users, like root's home.
    refused = {"setup.sql": "error[dataset-not-readable]", "tables.sql": "error[dataset-load-failed]"}
    for name, error in refused.items():
        ended = command_line.run("plans", "17.8", "17.8", "--setup", str(command_line.directory / name), "-f", script)
        if USER.is_self:
            assert ended.code == 0, ended.stderr
        else:
            assert ended.code == 2
            assert error in ended.stderr
            assert f"{command_line.directory}/{name}" in ended.stderr
            assert "--run-as USER" in ended.stderr


@pytest.mark.long
def test_an_external_server_is_reached_with_a_password_that_other_users_cannot_read(
    command_line: CommandLine, tmp_path: Path
) -> None:
    script = command_line.write("script.sql", "SELECT count(*) FROM t;\n")
    with somebodys_server("17.8", "CREATE TABLE t AS SELECT 1 AS id") as uri:
        with psycopg.connect(uri, autocommit=True) as connection:
            connection.execute("CREATE ROLE u LOGIN SUPERUSER PASSWORD 'Geheim99'")
            (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
            Path(rules).write_text("local all u scram-sha-256\nlocal all all trust\n")
            connection.execute("SELECT pg_reload_conf()")
        secret = uri.replace("postgres@", "u@")
        passwords = tmp_path / "passwords"
        passwords.write_text("*:*:*:u:Geheim99\n")
        passwords.chmod(0o600)
        command = ("compare", secret, secret, "-f", script, *QUICK, "--results", "results")
        ended = command_line.run(*command, PGPASSFILE=str(passwords))
        assert ended.code == 0, ended.stderr
        assert "Geheim99" not in ended.stdout + ended.stderr


def test_an_external_server_that_admits_only_root_is_rejected_before_loading(command_line: CommandLine) -> None:
    with somebodys_server("17.8", "CREATE TABLE t AS SELECT 1 AS id") as uri:
        with psycopg.connect(uri, autocommit=True) as connection:
            (rules,) = connection.execute("SHOW hba_file").fetchone() or ("",)
            (maps,) = connection.execute("SHOW ident_file").fetchone() or ("",)
            Path(rules).write_text("local all all peer map=mine\n")
            Path(maps).write_text(f"mine {getpass.getuser()} postgres\n")
            connection.execute("SELECT pg_reload_conf()")
        script = command_line.write("script.sql", "SELECT count(*) FROM t;\n")
        ended = command_line.compare(uri, uri, "-f", script, *QUICK)
    if USER.is_self:
        assert ended.code == 0, ended.stderr
    else:
        assert ended.code == 3
        assert "error[server-refuses-user]" in ended.stderr
        assert "Peer authentication failed" in ended.stderr
        assert "--run-as USER" in ended.stderr
