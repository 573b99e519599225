import io

import pytest

from pgversus.cli.progress import TerminalProgress
from pgversus.report.console import SafeConsole


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_of_progress_shows_what_a_terminal_would_obey(
    is_terminal: bool,  # noqa: FBT001 - a case
) -> None:
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, force_terminal=is_terminal)) as progress:
        progress.say("a trial failed: ERROR:  \x1b]0;mine\x1b[2J")
    assert "ERROR:  \\x1b]0;mine\\x1b[2J\n" in file.getvalue()
