"""A fleet whose worker is a job of Slurm, started by the program in docs/fleet.md."""

import re
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from tests.live.conftest import CommandLine, own_command_line
from tests.live.fleets import Fleet
from tests.live.slurm import is_installed, slurm_cluster, slurm_output
from tests.live.test_fleet import STUDY

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"


def program() -> str:
    """The program of the page, for one job and any free port of this host."""
    (text,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    changes = {
        '"port": 8786': '"port": 0, "host": "127.0.0.1"',
        "worker_extra_args=[": 'worker_extra_args=["--host", "127.0.0.1", ',
        "minimum_jobs=3, maximum_jobs=3": "minimum_jobs=1, maximum_jobs=1",
    }
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    return str(text)


@pytest.fixture
def slurm() -> Iterator[dict[str, str]]:
    if not is_installed():
        pytest.skip("a Slurm cluster needs root, slurm-wlm and munge")
    with slurm_cluster() as environment:
        yield dict(environment)


@pytest.fixture
def fleet(command_line: CommandLine, shared_cache: Path, tmp_path: Path, slurm: dict[str, str]) -> Iterator[Fleet]:
    command_line.write("study.toml", STUDY)
    command_line.write("jobs.py", program())
    made = command_line.run("fleet", "certificates", "fleet", "scheduler", "driver")
    assert made.code == 0, made.stderr
    with ExitStack() as stack:
        node = stack.enter_context(own_command_line(shared_cache, tmp_path))
        node = replace(node, program=(sys.executable,), environment={**node.environment, **slurm})
        jobs = stack.enter_context(node.start("jobs.py", stderr=subprocess.DEVNULL))
        stack.callback(jobs.terminate)
        assert jobs.stdout is not None
        found = Fleet(command_line, {"node": node}, address=jobs.stdout.readline().strip())
        assert found.address.startswith("tls://")
        yield found
        slurm_output(["scancel", "--user=root"], slurm)
        node.wait_for(lambda: node.leftovers() == [])


@pytest.mark.long
def test_a_job_that_is_cancelled_is_replaced_and_the_study_is_completed(fleet: Fleet, slurm: dict[str, str]) -> None:
    driver = fleet.run_driver()
    fleet.driver.wait_for(lambda: len(fleet.blocks()) >= 2, 120)
    first = slurm_output(["squeue", "--noheader", "--format=%i"], slurm)
    assert first.isdecimal()
    slurm_output(["scancel", first], slurm)
    fleet.complete(driver, contexts=2, blocks=4)
    jobs = slurm_output(["squeue", "--noheader", "--format=%i", "--states=RUNNING"], slurm)
    assert jobs.isdecimal()
    assert jobs != first
