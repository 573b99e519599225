"""docs/python.md runs from top to bottom as one program."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.live.conftest import CommandLine

PAGE = Path(__file__).parents[2] / "docs" / "python.md"


@pytest.mark.long
def test_the_page_runs_from_top_to_bottom(command_line: CommandLine) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 5
    page = "\n".join(blocks)
    whole_seconds = 'windows = 2\nwindow = "1s"\nwarm_up = "1s"\n'
    assert whole_seconds in page
    command_line.write("page.py", page.replace(whole_seconds, 'windows = 4\nwindow = "50ms"\n'))
    ended = subprocess.run(
        [sys.executable, "page.py"],
        cwd=command_line.directory,
        env=command_line.environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    assert "work_mem=16MB" in ended.stdout
