"""Exit codes of the program, whether or not its messages could be written."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from pgversus.cli.main import _check_utf8, pgversus
from pgversus.cli.options import GroupedCommand
from pgversus.errors import ExitCode

# A command with a chosen ending, next to the real ones.
PROGRAM = """
import os, signal
import click
from pgversus.cli import main
from pgversus.errors import HostError

@main.pgversus.command()
@click.argument("how")
def end(how):
    click.echo("begun", err=True)
    if how == "hangup":
        os.kill(os.getpid(), signal.SIGHUP)
    if how == "interrupt":
        raise KeyboardInterrupt
    if how == "error":
        raise HostError("it is so", slug="host-x", where="here")
    if how == "bug":
        raise ZeroDivisionError
    if how == "password":
        raise ZeroDivisionError("password=Geheim99")
    if how == "progress":
        from rich.console import Console
        from pgversus.cli.progress import TerminalProgress
        with TerminalProgress(Console(stderr=True)) as progress:
            for number in range(2000):
                progress.say(f"line {number}")

main.main()
"""
CODES = {"interrupt": 130, "error": 3, "bug": 70, "progress": 0, "unknown": 0}


def ended(how: str, *, stderr: int, before: str = "") -> int:
    """Return the exit code. before: shell code to run first."""
    command = ["/bin/sh", "-c", f'{before}\nexec "$@"', "sh", sys.executable, "-c", PROGRAM, "end", how]
    return subprocess.run(
        command,
        check=False,
        stdin=subprocess.DEVNULL,
        stderr=stderr,
        # A shell cannot reset signals ignored at its start, and under nohup the tests themselves ignore hangups.
        preexec_fn=lambda: signal.signal(signal.SIGHUP, signal.SIG_DFL),
    ).returncode


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Write crash reports to the temporary directory of the test."""
    monkeypatch.setenv("TMPDIR", str(tmp_path))


@pytest.mark.parametrize(("how", "code"), CODES.items())
def test_a_closed_stderr_pipe_does_not_change_the_exit_code(how: str, code: int) -> None:
    reader, writer = os.pipe()
    os.close(reader)
    try:
        assert ended(how, stderr=writer) == code
    finally:
        os.close(writer)


@pytest.mark.parametrize(("how", "code"), CODES.items())
def test_stderr_on_a_full_disk_does_not_change_the_exit_code(how: str, code: int) -> None:
    file = os.open("/dev/full", os.O_WRONLY)
    try:
        assert ended(how, stderr=file) == code
    finally:
        os.close(file)


def test_a_closed_stderr_does_not_change_the_exit_code() -> None:
    assert ended("error", stderr=subprocess.DEVNULL, before="exec 2>&-") == CODES["error"]


def test_a_bug_is_reported_even_if_its_crash_report_cannot_be_written() -> None:
    command = [sys.executable, "-c", f"import tempfile; tempfile.tempdir = '/proc'\n{PROGRAM}", "end", "bug"]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert process.returncode == CODES["bug"]
    assert "report: none, it could not be written" in process.stderr


def test_neither_the_message_of_a_bug_nor_its_report_contains_a_password(tmp_path: Path) -> None:
    command = [
        sys.executable,
        "-c",
        f"import tempfile; tempfile.tempdir = {str(tmp_path)!r}\n{PROGRAM}",
        "end",
        "password",
    ]
    process = subprocess.run(command, check=False, capture_output=True, text=True)
    assert process.returncode == CODES["bug"]
    assert "ZeroDivisionError: password=..." in process.stderr
    (report,) = tmp_path.iterdir()
    assert "Geheim99" not in process.stderr + process.stdout
    assert "ZeroDivisionError: password=..." in report.read_text()


def test_a_hangup_ends_the_program_unless_it_is_ignored() -> None:
    assert ended("hangup", stderr=subprocess.DEVNULL) == CODES["interrupt"]
    assert ended("hangup", stderr=subprocess.DEVNULL, before="trap '' HUP") == 0


@pytest.mark.parametrize("name", ["compare", "run"])
def test_every_option_is_in_one_group_of_the_help_text(name: str) -> None:
    command = pgversus.commands[name]
    assert isinstance(command, GroupedCommand)
    grouped = [option for names in command.groups.values() for option in names]
    options = [param.name for param in command.params if isinstance(param, click.Option)]
    assert sorted(grouped) == sorted(filter(None, options))


@pytest.mark.parametrize(
    ("flags", "hint"),
    [
        ("-T60", "--budget"),
        ("-l", "--keep-logs"),
        ("-p5433", "postgresql://"),
        ("-h localhost", "postgresql://"),
        ("-hlocalhost", "postgresql://"),
        ("-C", "--command"),
    ],
)
def test_an_unsupported_flag_of_pgbench_or_psql_is_answered_with_an_alternative(flags: str, hint: str) -> None:
    command = [sys.executable, "-m", "pgversus.cli.main", "compare", "16", "17", "-S", *flags.split()]
    ended = subprocess.run(command, check=False, capture_output=True, text=True)
    assert ended.returncode == ExitCode.USAGE
    assert hint in ended.stderr


def test_the_help_of_a_command_describes_only_that_command() -> None:
    assert "--prepare" not in CliRunner().invoke(pgversus, ["plans", "--help"]).stdout
    assert "largest statistics" not in " ".join(CliRunner().invoke(pgversus, ["compare", "--help"]).stdout.split())


def test_help_imports_no_slow_modules() -> None:
    slow = {"numpy", "psutil", "psycopg", "pydantic", "scipy"}
    code = f"import sys, pgversus.cli.main; print(*sorted({slow!r} & sys.modules.keys()))"
    ended = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert ended.stdout.split() == []


def test_an_argument_that_is_not_utf8_is_refused() -> None:
    _check_utf8("n=\u00fc")
    with pytest.raises(click.UsageError, match="an argument is not UTF-8"):
        _check_utf8("n=\udcfc")
