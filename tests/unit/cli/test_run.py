"""`pgversus run` on the command line: rejections, questions, and the list of a dry run."""

import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

STUDY = """
title = "A dump"
[factors]
server = ["./bin", "./bin"]
[workload]
command = "pg_dump -f \\u001b[2Jx.sql"
"""
LISTED = "runs programs: the server in ./bin; pg_dump -f '\\x1b[2Jx.sql'"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "study.toml").write_text(STUDY)
    (tmp_path / "bin").mkdir()
    for name in ("postgres", "initdb"):
        (tmp_path / "bin" / name).write_text(f"#!/bin/sh\n: > {tmp_path}/ran\nexit 1\n")
        (tmp_path / "bin" / name).chmod(0o755)
    return tmp_path


def environment(folder: Path) -> dict[str, str]:
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PGVERSUS_CACHE": str(folder / "cache")}


def typed(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run without a terminal on which to ask."""
    return subprocess.run(
        [sys.executable, "-m", "pgversus.cli.main", "run", "study.toml", *arguments],
        cwd=folder,
        env=environment(folder),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def at_a_terminal(folder: Path, answer: str) -> tuple[int, str]:
    """Run on a terminal with this answer, and return the exit code and the output."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "pgversus.cli.main", "run", "study.toml"],
        cwd=folder,
        env=environment(folder),
        stdin=theirs,
        stdout=subprocess.DEVNULL,
        stderr=theirs,
    )
    os.close(theirs)
    os.write(ours, f"{answer}\n".encode())
    shown = b""
    while True:
        try:
            piece = os.read(ours, 4096)
        except OSError:
            # Linux reports this way that the terminal is closed.
            break
        shown += piece
    os.close(ours)
    return process.wait(), shown.decode()


def test_without_a_terminal_an_untrusted_study_is_rejected_with_the_programs_it_runs(folder: Path) -> None:
    ended = typed(folder)
    assert ended.returncode == 2
    assert "error[study-not-trusted]" in ended.stderr
    assert LISTED in ended.stderr
    assert "--trust" in ended.stderr
    assert {path.name for path in folder.iterdir()} == {"bin", "study.toml"}, "nothing was run, nothing was made"


def test_the_trust_flag_accepts_a_study(folder: Path) -> None:
    ended = typed(folder, "--trust")
    assert (ended.returncode, "study-not-trusted" in ended.stderr) == (3, False)
    assert not (folder / "state").exists()


def test_answering_no_at_the_terminal_rejects_the_study(folder: Path) -> None:
    code, shown = at_a_terminal(folder, "n")
    assert code == 2
    assert LISTED in shown
    assert "error[study-not-trusted]" in shown
    assert {path.name for path in folder.iterdir()} == {"bin", "study.toml"}


def test_answering_yes_at_the_terminal_is_remembered(folder: Path) -> None:
    code, shown = at_a_terminal(folder, "y")
    assert (code, "study-not-trusted" in shown) == (3, False)
    again = typed(folder)
    assert (again.returncode, "study-not-trusted" in again.stderr) == (3, False)


@pytest.mark.parametrize("flag", ["--dry-run", "-v", "-q"])
def test_json_cannot_be_combined_with_dry_run_verbose_or_quiet(folder: Path, flag: str) -> None:
    ended = typed(folder, "--json", flag)
    assert ended.returncode == 2
    assert "--json and --" in ended.stderr


def test_ask_servers_requires_a_dry_run(folder: Path) -> None:
    ended = typed(folder, "--ask-servers")
    assert (ended.returncode, "error[usage]" in ended.stderr) == (2, True)
    assert "--dry-run" in ended.stderr
