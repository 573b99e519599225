"""Every command that README and the help text show is run, shortened to two blocks of two windows."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from tests.live.conftest import QUICK, CommandLine

ROOT = Path(__file__).parents[2]
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = [
    line
    for block in FENCE.findall((ROOT / "README.md").read_text())
    for line in block.splitlines()
    if line and not line.startswith("#")
]
STUDIES = [line for line in COMMANDS if re.match(r"\.venv/bin/pgversus (studies|run|report|cache|servers)", line)]
PLANS = [line for line in COMMANDS if line.startswith(".venv/bin/pgversus plans ")]
COMPARISONS = [line for line in COMMANDS if line.startswith(".venv/bin/pgversus compare ")]


@pytest.mark.long
def test_the_study_of_readme_and_the_commands_below_it_run_one_after_another(command_line: CommandLine) -> None:
    (study,) = re.findall(r"^```toml\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
    command_line.write("study.toml", study)
    ended = command_line.run("run", "study.toml", "--dry-run")
    assert "1 comparison, 2 treatments, 1 verdict" in ended.stdout, ended.stderr
    for line in STUDIES:
        # As it stands the study takes minutes; any budget is enough to see that it runs.
        extra = ("--budget", "30s") if line.endswith("run planner-16-vs-17") else ()
        ended = command_line.run(*shlex.split(line)[1:], *extra)
        assert ended.code == 0, ended.stderr
        written = re.search(r"-o (\S+)", line)
        assert ended.stdout or (written and (command_line.directory / written[1]).stat().st_size)


def test_readme_shows_the_demo_and_comparisons_and_nothing_that_is_not_run() -> None:
    assert COMMANDS[0] == "make demo"
    assert COMMANDS[1] in COMPARISONS
    assert len(COMMANDS) == len(COMPARISONS) + len(STUDIES) + len(PLANS) + 1


@pytest.mark.parametrize("line", PLANS)
def test_the_plans_of_readme_are_shown(command_line: CommandLine, line: str) -> None:
    command_line.directory = ROOT
    ended = command_line.run(*shlex.split(line)[1:])
    assert ended.code == 0, ended.stderr
    assert "SubPlan 1 over t_corr_d d was pulled up into the main plan" in ended.stdout


def test_the_demo_is_the_comparison_that_readme_shows_below_it() -> None:
    recipe = subprocess.run(
        ["make", "-n", "demo"], cwd=ROOT, capture_output=True, text=True, check=True, env={"PATH": "/usr/bin:/bin"}
    ).stdout.splitlines()[-1]
    assert recipe == COMMANDS[1]


@pytest.mark.long
@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=pytest.mark.needs_tools if "17+" in line else ()) for line in COMPARISONS]
)
def test_a_command_of_readme_runs(command_line: CommandLine, line: str) -> None:
    arguments = shlex.split(line)[1:]
    command_line.directory = ROOT
    short = QUICK[:2] if "--operation" in arguments else QUICK
    extra = () if "--help" in arguments else (*short, "--results", str(command_line.cache / "results"))
    ended = command_line.run(*arguments, *extra)
    assert ended.code == 0 or (ended.code == 1 and "--fail-on" in arguments), ended.stderr
    assert ended.stdout
