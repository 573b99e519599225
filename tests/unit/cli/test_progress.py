import io
import math
from dataclasses import replace

import pytest

from pgversus.cli.progress import TerminalProgress
from pgversus.lab.progress import Look
from pgversus.report.console import SafeConsole
from pgversus.stats.analysis import Standing
from pgversus.stats.effects import LogEstimate
from pgversus.stats.verdict import Interval, Verdict
from pgversus.study.study import Context
from tests.builders import comparison, rate_block, vacuum


@pytest.mark.parametrize("is_terminal", [False, True])
def test_a_line_of_progress_shows_what_a_terminal_would_obey(
    is_terminal: bool,  # noqa: FBT001 - a case
) -> None:
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, force_terminal=is_terminal)) as progress:
        progress.say("a trial failed: ERROR:  \x1b]0;mine\x1b[2J")
    assert "ERROR:  \\x1b]0;mine\\x1b[2J\n" in file.getvalue()


@pytest.mark.parametrize(
    ("half_width", "shown"),
    [(0.02, "+2.0 % ±2.0 %"), (0.69, "+2.0 % ±99.4 %"), (0.7, "+2.0 %"), (15.5, "+2.0 %"), (math.inf, "+2.0 %")],
)
def test_an_interval_that_says_nothing_is_not_shown(half_width: float, shown: str) -> None:
    standing = Standing(
        verdict=Verdict.UNDECIDED,
        log_ratio=LogEstimate(point=math.log(1.02), standard_error=half_width, n=2),
        interval=Interval(low=-half_width, high=half_width),
        blocks=2,
    )
    context = Context(number=1, levels=(), comparison=comparison())
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, width=200)) as progress:
        progress.begin_blocks(context, comparison())
        progress.block_finished(context, rate_block(2, 1.0, 1.0), {1: Look(standing=standing, seconds_left=None)}, 44.0)
    assert file.getvalue().splitlines()[-1] == f"block 2  17.8 {shown}  (44 s)"


@pytest.mark.parametrize(("seconds", "shown"), [(0.213, "213 ms"), (1.6, "2 s"), (75.0, "1 min 15 s")])
def test_a_repetition_is_as_long_as_it_is(seconds: float, shown: str) -> None:
    asked = comparison(workload=vacuum())
    asked = replace(asked, design=replace(asked.design, window_s=seconds))
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, width=200)) as progress:
        progress.begin_blocks(Context(number=1, levels=(), comparison=asked), asked)
    assert f"blocks of one repetition of about {shown} for each of 2 arms" in file.getvalue()
