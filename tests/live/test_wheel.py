"""The wheel, installed into an empty environment, as by pipx."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.conftest import QUICK, CommandLine

ROOT = Path(__file__).parents[2]
UV = str(ROOT / ".uv" / "bin" / "uv")


@pytest.fixture
def installed(command_line: CommandLine, tmp_path: Path) -> CommandLine:
    wheels, environment = tmp_path / "wheels", tmp_path / "environment"
    # As `make dist`: the wheel is built from the source archive.
    subprocess.run([UV, "build", "--quiet", "--out-dir", str(wheels), str(ROOT)], check=True)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(environment)], check=True)
    (wheel,) = wheels.glob("*.whl")
    python = str(environment / "bin" / "python")
    subprocess.run([UV, "pip", "install", "--quiet", "--python", python, str(wheel)], check=True)
    command_line.program = (str(environment / "bin" / "pgversus"),)
    return command_line


@pytest.mark.long
def test_the_wheel_runs_the_demo_and_lists_the_bundled_studies(installed: CommandLine) -> None:
    assert "planner-16-vs-17" in installed.run("studies").stdout
    ended = installed.run("demo", *QUICK, "--results", "results", "--json")
    assert ended.code == 0, ended.stderr
    (verdict,) = ended.comparison["verdicts"]
    assert verdict["ratio"] > 2, "17.8 runs the statement of the demo many times as fast as 16.12"
    page = installed.run("report", "results", "--format", "html", "-o", "page.html")
    assert page.code == 0, page.stderr
    assert (installed.directory / "page.html").stat().st_size > 0
