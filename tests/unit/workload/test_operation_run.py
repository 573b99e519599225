"""Programs of an operation run as given, without passwords on their command lines."""

import shlex
from pathlib import Path

import pytest

from pgversus.host.commands import CLEAN_ENVIRONMENT, run
from pgversus.workload.operation_run import PrivateCommand, private_command
from tests.builders import MYSELF

PASSWORD = "Geheim99 'x'"  # noqa: S105 - must not appear on a command line
SHOWS = (
    "tr '\\0' ' ' < /proc/$$/cmdline; printf '%s|' \"$0\" \"$@\"; PGPASSWORD="
    + shlex.quote(PASSWORD)
    + " printenv PGPASSWORD"
)


def private(program: list[str], directory: Path) -> PrivateCommand:
    return private_command(program, CLEAN_ENVIRONMENT, directory / "command.sh", MYSELF)


@pytest.mark.parametrize("shell", ["sh", "bash"])
@pytest.mark.parametrize("flags", [("-c",), ("-ec",), ("-e", "-c"), ("-o", "errexit", "-c")])
def test_the_script_of_a_shell_is_read_from_a_private_file(tmp_path: Path, shell: str, flags: tuple[str, ...]) -> None:
    command = private([shell, *flags, SHOWS, "name", "a b"], tmp_path)
    assert not any("Geheim99" in word for word in command.arguments)
    assert (tmp_path / "command.sh").stat().st_mode & 0o777 == 0o600
    ended = run(command.arguments, environment=command.environment)
    shown, _, rest = ended.stdout.partition("name|")
    assert shown.startswith(shell)
    assert "Geheim99" not in shown
    assert rest == f"a b|{PASSWORD}\n"


def test_variables_assigned_by_env_are_in_the_environment(tmp_path: Path) -> None:
    command = private(["env", f"PGPASSWORD={PASSWORD}", "A=b", "printenv", "PGPASSWORD", "A"], tmp_path)
    assert command.arguments == ["printenv", "PGPASSWORD", "A"]
    assert run(command.arguments, environment=command.environment).stdout == f"{PASSWORD}\nb\n"


@pytest.mark.parametrize(
    ("program", "arguments"),
    [
        ("psql postgresql://u:Geheim99@h/d -c 'SELECT 1'", "psql 'user=u dbname=d host=h' -c 'SELECT 1'"),
        ("/usr/bin/pg_dump --dbname=postgresql://u:Geheim99@h/d", "/usr/bin/pg_dump '--dbname=user=u dbname=d host=h'"),
        ("vacuumdb -d 'host=h password=Geheim99' -j 2", "vacuumdb -d host=h -j 2"),
        ("pgbench '-dhost=h password=Geheim99'", "pgbench -dhost=h"),
    ],
)
def test_postgresql_clients_get_the_password_in_the_environment(tmp_path: Path, program: str, arguments: str) -> None:
    command = private(shlex.split(program), tmp_path)
    assert command.arguments == shlex.split(arguments)
    assert command.environment == {**CLEAN_ENVIRONMENT, "PGPASSWORD": "Geheim99"}


@pytest.mark.parametrize(
    "program",
    [
        "psql postgresql://u@h/d -c 'SELECT 1'",
        "psql postgresql://u:a@h/d postgresql://u:b@h/d",
        "other --dsn=postgresql://u:Geheim99@h/d",
        "sh script.sh",
        "sh -c 'psql -c \"SELECT 1\"'",
    ],
)
def test_any_other_command_is_unchanged(tmp_path: Path, program: str) -> None:
    command = private(shlex.split(program), tmp_path)
    assert (command.arguments, command.environment) == (shlex.split(program), dict(CLEAN_ENVIRONMENT))
    assert list(tmp_path.iterdir()) == []
