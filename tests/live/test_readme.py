"""Every command shown in the README and the cookbook runs, shortened to two blocks of two windows."""

import re
import shlex
from pathlib import Path

import pytest

from tests.live.conftest import QUICK, UNOPTIMIZED, WHOLE_SECONDS, CommandLine, with_fewer_rows

ROOT = Path(__file__).parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "cookbook.md")
FENCE = re.compile(r"^```sh\n(.*?)^```", re.MULTILINE | re.DOTALL)
COMMANDS = list(
    dict.fromkeys(
        line
        for page in PAGES
        for block in FENCE.findall(page.read_text())
        for line in block.splitlines()
        if line and not line.startswith("#")
    )
)
SETUP = ["pipx install .", "pgversus demo", "make demo"]
"""CI runs the last of these; test_wheel.py installs pgversus as pipx does, and runs the demo."""
COPIES = [line for line in COMMANDS if line.startswith("pgversus studies copy ")]
"""Commands that create the files of other commands, as after an installation without a clone."""
# A report needs the results of an earlier command.
STUDIES = [line for line in COMMANDS if re.match(r"pgversus (studies|run|report|cache|servers)", line)]
PLANS = [line for line in COMMANDS if line.startswith("pgversus plans ")]
COMPARISONS = [line for line in COMMANDS if line.startswith(("pgversus compare ", "pgversus timeline "))]


def test_the_pages_show_only_commands_that_are_run() -> None:
    assert COMMANDS[: len(SETUP)] == SETUP
    assert len(COMMANDS) == len(SETUP) + len(STUDIES) + len(PLANS) + len(COMPARISONS)


@pytest.mark.long
@pytest.mark.own_snapshots
def test_the_study_of_the_cookbook_and_its_commands_run_in_sequence(command_line: CommandLine) -> None:
    (study,) = re.findall(r"^```toml\n(.*?)^```", PAGES[1].read_text(), re.MULTILINE | re.DOTALL)
    command_line.write("study.toml", study)
    ended = command_line.run("run", "study.toml", "--dry-run")
    assert "1 comparison, 2 treatments, 1 verdict" in ended.stdout, ended.stderr
    for line in STUDIES:
        # The unchanged study takes minutes. This budget has room for a block of each context on a busy host.
        extra = ("--budget", "20s", "--no-plans") if line.endswith("run planner-16-vs-17") else ()
        ended = command_line.run(*shlex.split(line)[1:], *extra)
        assert ended.code == 0, ended.stderr
        written = re.search(r"-o (\S+)", line)
        assert ended.stdout or (written and (command_line.directory / written[1]).stat().st_size)


def copy_studies_of(line: str, command_line: CommandLine) -> None:
    """Copy the bundled studies whose files this command uses, as the pages do; give a slow one fewer rows."""
    for copy in COPIES:
        if f"{shlex.split(copy)[-1]}/" in line:
            ended = command_line.run(*shlex.split(copy)[1:])
            assert ended.code == 0, ended.stderr
    for setup in command_line.directory.glob("*/correlated.sql"):
        setup.write_text(with_fewer_rows(setup))


@pytest.mark.parametrize("line", PLANS)
def test_the_plans_of_the_cookbook_are_shown(command_line: CommandLine, line: str) -> None:
    copy_studies_of(line, command_line)
    ended = command_line.run(*shlex.split(line)[1:])
    assert ended.code == 0, ended.stderr
    assert "SubPlan 1 over t_corr_d d was pulled up into the main plan" in ended.stdout


def with_quick_builds(arguments: list[str]) -> list[str]:
    """Return a comparison of builds from source with builds that are there already."""
    if not any(one.startswith("17+") for one in arguments):
        return arguments
    return [f"{one}{UNOPTIMIZED}" if re.fullmatch(r"17(\+\S+)?", one) else one for one in arguments]


@pytest.mark.long
@pytest.mark.parametrize(
    "line", [pytest.param(line, marks=pytest.mark.needs_tools if "17+" in line else ()) for line in COMPARISONS]
)
def test_every_comparison_of_the_pages_runs(command_line: CommandLine, line: str) -> None:
    arguments = with_quick_builds(shlex.split(line)[1:])
    copy_studies_of(line, command_line)
    with_windows = WHOLE_SECONDS if "-R" in arguments else QUICK
    short = QUICK[:2] if "--operation" in arguments else with_windows
    if "--precision" in arguments:
        # A fixed number of blocks excludes a precision.
        short = ("--max-blocks", "4", *QUICK[2:])
    less = ("-s", "1") if "-i" in arguments else ()
    extra = () if "--dry-run" in arguments else (*short, *less, "--results", str(command_line.cache / "results"))
    ended = command_line.run(*arguments, *extra)
    assert ended.code == 0 or (ended.code == 1 and "--fail-on" in arguments), ended.stderr
    assert ended.stdout
