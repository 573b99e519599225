import io
import math
import time
from dataclasses import dataclass, field, replace

import pyte
import pytest
from rich.console import ConsoleDimensions

from pgversus.cli.progress import TerminalProgress
from pgversus.cli.progress_rows import interim_text, start_text
from pgversus.engine.progress import Look, Progress, TimeEstimate
from pgversus.records.trials import Block, FailedTrial, Phase
from pgversus.report.console import SafeConsole
from pgversus.stats.analysis import InterimResult
from pgversus.stats.confidence import UNBOUNDED, Interval, Verdict
from pgversus.stats.effects import LogEstimate
from pgversus.study.study import Context
from pgversus.text.translation import Language, language_in_use
from tests.builders import comparison, rate_block, vacuum


@pytest.mark.parametrize("is_terminal", [False, True])
def test_control_characters_in_a_line_of_progress_are_escaped(
    is_terminal: bool,  # noqa: FBT001 - parametrised
) -> None:
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, force_terminal=is_terminal)) as progress:
        progress.say("a trial failed: ERROR:  \x1b]0;mine\x1b[2J")
    assert "ERROR:  \\x1b]0;mine\\x1b[2J\n" in file.getvalue()


@pytest.mark.parametrize(
    ("half_width", "shown"),
    [(0.02, "+2.0 % ±2.0 %"), (0.69, "+2.0 % ±99.4 %"), (0.7, "+2.0 %"), (15.5, "+2.0 %"), (math.inf, "+2.0 %")],
)
def test_an_uninformative_interval_is_not_shown(half_width: float, shown: str) -> None:
    interim_result = InterimResult(
        verdict=Verdict.UNDECIDED,
        log_ratio=LogEstimate(point=math.log(1.02), standard_error=half_width, n=2),
        interval=Interval(low=-half_width, high=half_width),
        blocks=2,
    )
    context = Context(number=1, levels=(), comparison=comparison())
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, width=200)) as progress:
        progress.begin_blocks(context, comparison())
        progress.block_finished(
            context, rate_block(2, 1.0, 1.0), {1: Look(interim_result=interim_result, seconds_left=None)}, 44.0
        )
    assert file.getvalue().splitlines()[-1] == f"block 2  17.8 {shown}  (44 s)"


@pytest.mark.parametrize(("seconds", "shown"), [(0.213, "213 ms"), (1.6, "2 s"), (75.0, "1 min 15 s")])
def test_the_duration_of_a_repetition_is_shown(seconds: float, shown: str) -> None:
    requested = comparison(workload=vacuum())
    requested = replace(requested, design=replace(requested.design, window_s=seconds))
    file = io.StringIO()
    with TerminalProgress(SafeConsole(file=file, width=200)) as progress:
        progress.begin_blocks(Context(number=1, levels=(), comparison=requested), requested)
    assert f"2 arms, blocks of one repetition of about {shown} per arm" in file.getvalue()


REQUESTED = comparison()


@dataclass
class Watched:
    """Progress on a terminal of this size, with a manual clock."""

    width: int = 100
    height: int = 24
    encoding: str = "utf-8"
    is_terminal: bool = True
    language: Language = Language.ENGLISH
    seconds: float = 100.0
    file: io.TextIOWrapper = field(init=False)
    console: SafeConsole = field(init=False)
    progress: TerminalProgress = field(init=False)

    def __post_init__(self) -> None:
        self.file = io.TextIOWrapper(io.BytesIO(), encoding=self.encoding, errors="backslashreplace", newline="")
        self.console = SafeConsole(
            file=self.file, force_terminal=self.is_terminal, width=self.width, height=self.height, color_system=None
        )
        self.progress = TerminalProgress(self.console, language=self.language, clock=lambda: self.seconds)
        self._screen = pyte.Screen(self.width, self.height)
        # A terminal driver translates line ends this way.
        self._screen.set_mode(pyte.modes.LNM)
        self._stream, self._fed = pyte.Stream(self._screen), 0

    @property
    def written(self) -> str:
        self.file.flush()
        buffer = self.file.buffer
        assert isinstance(buffer, io.BytesIO)
        return buffer.getvalue().decode(self.encoding)

    @property
    def screen(self) -> list[str]:
        """Non-empty lines of the screen."""
        text = self.written
        self._stream.feed(text[self._fed :])
        self._fed = len(text)
        return [line.rstrip() for line in self._screen.display if line.strip()]

    def wait(self, seconds: float) -> None:
        self.seconds += seconds

    def step(self, context: Context, block: int, phase: Phase, arm: int = 1, window: int = 0) -> None:
        """Report a step more than a second after the last one."""
        self.wait(1.5)
        self.progress.step(context, block, arm, phase, window)


def context(number: int = 1, label: str = "") -> Context:
    return Context(number=number, levels=(("load", label),) if label else (), comparison=REQUESTED)


def look(
    verdict: Verdict = Verdict.UNDECIDED,
    *,
    blocks: int = 5,
    left: int | None = 3,
    ratio: float = 1.02,
    is_open: bool | None = None,
) -> Look:
    """Return a look. is_open: whether the contender needs more blocks; None if it does while undecided."""
    if is_open is None:
        is_open = verdict is Verdict.UNDECIDED
    return Look(
        interim_result=InterimResult(
            verdict=verdict,
            log_ratio=LogEstimate(point=math.log(ratio), standard_error=0.01, n=blocks),
            interval=Interval(low=-0.01, high=0.01),
            blocks=blocks,
        ),
        seconds_left=300.0 if is_open else 0.0,
        blocks_left=left if is_open else 0,
    )


def after_a_block(watched: Watched, *contexts: Context, looks: dict[int, Look] | None = None) -> None:
    """Finish a block of each context, and report the first step of the next one."""
    for one in contexts:
        watched.progress.begin_blocks(one, REQUESTED)
    watched.progress.time_estimate(
        lambda: TimeEstimate(contexts=len(contexts), ended=0, spent_s=200.0, budget_s=900.0, seconds_left=350.0)
    )
    for one in contexts:
        watched.progress.block_finished(one, rate_block(5, 1.0, 1.0), looks or {1: look()}, 200.0)
    watched.step(contexts[-1], 6, Phase.START)


def test_the_region_shows_step_verdicts_and_time_left_and_disappears_at_the_end() -> None:
    watched = Watched()
    with watched.progress:
        after_a_block(watched, context(1, "low"), context(2, "high"))
        watched.wait(8)
        watched.step(context(2, "high"), 6, Phase.MEASURE, window=2)
        assert watched.screen[-5:] == [
            "block 6: measuring 17.8, window 2/8  load=high",
            "verdicts so far (not final)",
            "17.8  load=high  ? undecided so far  +2.0 % ±1.0 %  5 blocks  about 3 blocks to go",
            "17.8  load=low   ? undecided so far  +2.0 % ±1.0 %  5 blocks  about 3 blocks to go",
            "0 of 2 contexts done  3 min 30 s of at most 15 min  about 5 min 40 s left",
        ]
    assert all(line.startswith("load=") for line in watched.screen), "lines that stay"
    assert "\x1b[?25l\x1b[?25h" in watched.written, "the cursor is never hidden for long"


@pytest.mark.parametrize(
    ("verdict", "encoding", "shown"),
    [
        (Verdict.FASTER, "utf-8", "▲ faster  +2.0 % ±1.0 %"),
        (Verdict.SLOWER, "utf-8", "▼ slower  +2.0 % ±1.0 %"),
        (Verdict.EQUIVALENT, "utf-8", "= equivalent  +2.0 % ±1.0 %"),
        (Verdict.INVALID, "utf-8", "! invalid  5 blocks"),
        (Verdict.FASTER, "ascii", "^ faster  +2.0 % +/-1.0 %"),
        (Verdict.SLOWER, "latin-1", "v slower  +2.0 % +/-1.0 %"),
    ],
)
def test_a_verdict_has_a_mark_that_the_terminal_can_encode(verdict: Verdict, encoding: str, shown: str) -> None:
    watched = Watched(encoding=encoding)
    with watched.progress:
        after_a_block(watched, context(), looks={1: look(verdict)})
        (row,) = (line for line in watched.screen if line.startswith("17.8"))
        assert row.startswith(f"17.8  {shown}")
        assert "to go" not in row


def test_a_known_verdict_without_the_wanted_precision_has_blocks_to_go() -> None:
    watched = Watched()
    with watched.progress:
        after_a_block(watched, context(), looks={1: look(Verdict.FASTER, is_open=True)})
        (row,) = (line for line in watched.screen if line.startswith("17.8"))
    assert row == "17.8  ▲ faster  +2.0 % ±1.0 %  5 blocks  about 3 blocks to go"
    assert interim_text(look(Verdict.FASTER, is_open=True)) == "+2.0 % ±1.0 % faster about 5 min left"
    assert interim_text(look(Verdict.FASTER)) == "+2.0 % ±1.0 % faster"


def test_the_time_to_an_answer_that_is_too_far_away_is_at_most_the_rest_of_the_budget() -> None:
    far = replace(look(Verdict.UNDECIDED), blocks_left=None, seconds_left=300.0)
    assert interim_text(far) == "+2.0 % ±1.0 % at most 5 min left"


def test_the_goal_of_a_run_is_shown_at_its_beginning() -> None:
    precise = replace(REQUESTED, design=replace(REQUESTED.design, precision=0.03))
    assert start_text(REQUESTED).endswith("until the verdict is known, at most 15 min")
    assert start_text(precise).endswith("until the interval is ±3.0 % or narrower, at most 15 min")


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (look(left=1), "about 1 block to go"),
        (look(left=None), "at most 5 min to go"),
        (replace(look(left=2), is_before_first_look=True), "first check in 2 blocks"),
    ],
)
def test_the_remaining_work_is_shown_as_far_as_it_is_known(given: Look, shown: str) -> None:
    watched = Watched()
    with watched.progress:
        after_a_block(watched, context(), looks={1: given})
        assert [line for line in watched.screen if line.endswith(shown)]


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (TimeEstimate(contexts=1, ended=0, spent_s=8.0, budget_s=None, seconds_left=None), "10 s so far"),
        (
            TimeEstimate(contexts=1, ended=0, spent_s=8.0, budget_s=60.0, seconds_left=52.0, is_at_most=True),
            "10 s of at most 1 min  at most 50 s left",
        ),
    ],
)
def test_an_unknown_end_is_not_shown(given: TimeEstimate, shown: str) -> None:
    watched = Watched()
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.progress.time_estimate(lambda: given)
        watched.step(context(), 1, Phase.START)
        watched.wait(0.5)
        watched.step(context(), 1, Phase.WARM_UP)
        assert watched.screen[-1] == shown


def test_undecided_and_recently_changed_contenders_come_first_if_not_all_fit() -> None:
    watched = Watched(height=9)
    with watched.progress:
        contexts = [context(number, f"c{number}") for number in range(1, 31)]
        after_a_block(watched, *contexts[:29])
        watched.progress.begin_blocks(contexts[29], REQUESTED)
        watched.progress.block_finished(contexts[29], rate_block(5, 1.0, 1.0), {1: look(Verdict.FASTER)}, 1.0)
        watched.progress.block_finished(contexts[3], rate_block(6, 1.0, 1.0), {1: look(blocks=6)}, 1.0)
        watched.step(contexts[0], 6, Phase.MEASURE, window=1)
        names = [line[:15].strip() for line in watched.screen[-6:-1]]
        assert names == ["17.8  load=c4", "17.8  load=c29", "17.8  load=c28", "17.8  load=c27", "26 more"]


@pytest.mark.parametrize("width", [1, 2, 5, 11, 20, 40, 61, 80])
@pytest.mark.parametrize("height", [1, 2, 3, 4, 5, 10])
@pytest.mark.parametrize("encoding", ["utf-8", "ascii"])
def test_no_line_is_wider_and_no_region_taller_than_the_terminal(width: int, height: int, encoding: str) -> None:
    watched = Watched(width=width, height=height, encoding=encoding)
    with watched.progress:
        one = Context(number=1, levels=(("データ", "大きい" * 20),), comparison=REQUESTED)
        after_a_block(watched, one, looks={1: look()})
        before = len(watched.written)
        watched.step(one, 6, Phase.MEASURE, window=1)
        drawn = watched.written[before:]
        screen = pyte.Screen(200, 50)
        screen.set_mode(pyte.modes.LNM)
        pyte.Stream(screen).feed(drawn)
        lines = [line.rstrip() for line in screen.display if line.strip()]
        assert 1 <= len(lines) <= max(1, height - 1)
        # A wide character occupies one cell, followed by an empty one.
        assert max(len(line.rstrip()) for line in screen.display) <= max(1, width - 1)


def test_names_that_differ_at_the_end_remain_distinct_on_a_narrow_terminal() -> None:
    watched = Watched(width=40)
    with watched.progress:
        after_a_block(watched, context(1, "of-a-long-name-1"), context(2, "of-a-long-name-2"))
        assert [line for line in watched.screen if line.startswith("17.8") and "name-1  ?" in line]
        assert [line for line in watched.screen if line.startswith("17.8") and "name-2  ?" in line]
        assert watched.screen[-1] == "about 5 min 50 s left"


def test_nothing_is_drawn_during_a_window() -> None:
    watched = Watched()
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.step(context(), 1, Phase.START)
        watched.step(context(), 1, Phase.WARM_UP)
        for window in range(1, 5):
            watched.step(context(), 1, Phase.MEASURE, window=window)
            # Drawn when this returns; the window starts now.
            assert watched.screen[-1].endswith(f"window {window}/8")
            began = watched.written
            # In real time: a thread that draws on its own would do so meanwhile.
            time.sleep(0.3)
            assert watched.written == began
        watched.progress.time_estimate(
            lambda: TimeEstimate(contexts=1, ended=0, spent_s=20.0, budget_s=60.0, seconds_left=40.0, is_at_most=True)
        )
        watched.progress.block_finished(context(), rate_block(1, 1.0, 1.0), {1: look()}, 20.0)
        assert watched.written == began, "a block is shown with the step that follows it"


def test_windows_in_quick_succession_are_drawn_once_a_second() -> None:
    watched = Watched()
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.step(context(), 1, Phase.START)
        before = watched.written.count("block 1:")
        for window in range(1, 101):
            watched.wait(0.1)
            watched.progress.step(context(), 1, 1, Phase.MEASURE, window)
        assert watched.written.count("block 1:") - before <= 10


def test_a_warm_up_after_a_short_start_is_shown() -> None:
    watched = Watched()
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.progress.at("asking {arm} for its plans", arm="17.8")
        assert watched.screen[-1] == "asking 17.8 for its plans"
        watched.progress.step(context(), 1, 1, Phase.START, 0)
        assert "block 1: starting 17.8" in watched.screen
        watched.progress.step(context(), 1, 1, Phase.WARM_UP, 0)
        assert "block 1: warming up 17.8" in watched.screen


def test_attribution_does_not_change_a_verdict() -> None:
    watched = Watched()
    with watched.progress:
        after_a_block(watched, context(1, "low"), looks={1: look(Verdict.FASTER)})
        watched.progress.attributing("17.8 (load=low)", 1, 2)
        after_a_block(watched, context(1, "low"), looks={1: look(Verdict.SLOWER)})
        screen = watched.screen
        assert screen[-5:-1] == [
            "effect of the plans of 17.8 (load=low), 1 of 2",
            "block 6: starting 17.8  load=low",
            "verdicts",
            "17.8  load=low  ▲ faster  +2.0 % ±1.0 %  5 blocks",
        ]


def test_results_of_an_earlier_run_are_in_the_table() -> None:
    watched = Watched()
    with watched.progress:
        watched.progress.resumed(context(1, "low"), REQUESTED, {1: look(Verdict.SLOWER)})
        watched.progress.begin_blocks(context(2, "high"), REQUESTED)
        watched.step(context(2, "high"), 1, Phase.START)
        assert watched.screen[-1].startswith("17.8  load=low  ▼ slower")


def test_control_characters_in_names_are_escaped() -> None:
    watched = Watched()
    requested = comparison(labels=("a", "b\x1b]0;mine\x07\n\x1b[2Jc"))
    with watched.progress:
        watched.progress.begin_blocks(context(), requested)
        watched.progress.block_finished(context(), rate_block(1, 1.0, 1.0), {1: look()}, 1.0)
        watched.step(context(), 2, Phase.START)
        watched.wait(2)
        watched.progress.doing("VACUUM \x1b[2J{brace}")
    assert "\x1b[2J" not in watched.written
    assert "\x1b]0" not in watched.written
    assert "b\\x1b]0;mine\\x07 \\x1b[2Jc  ? undecided" in watched.written
    assert "VACUUM \\x1b[2J{brace}" in watched.written


def test_a_region_that_was_wrapped_is_erased_completely() -> None:
    watched = Watched(width=60)
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.step(context(), 1, Phase.MEASURE, window=1)
        before = len(watched.written)
        watched.step(context(), 1, Phase.MEASURE, window=2)
        usual = watched.written[before:].count("\x1b[1A")
        # Its line of 33 columns now takes three lines.
        watched.console.size = ConsoleDimensions(16, 24)
        before = len(watched.written)
        watched.step(context(), 1, Phase.MEASURE, window=3)
        assert watched.written[before:].count("\x1b[1A") == usual + 2


def test_a_terminal_without_cursor_control_gets_the_lines_of_a_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    def lines(watched: Watched) -> str:
        with watched.progress:
            after_a_block(watched, context(1, "low"), context(2, "high"))
        return watched.written

    in_a_pipe = lines(Watched(is_terminal=False))
    assert in_a_pipe.splitlines()[-1] == (
        "load=high  block 5  17.8 +2.0 % ±1.0 % about 5 min left  "
        "(3 min 20 s; 0 of 2 contexts done; about 5 min 50 s left)"
    )
    assert "\x1b" not in in_a_pipe
    monkeypatch.setenv("TERM", "dumb")
    assert lines(Watched()) == in_a_pipe


def test_forced_colors_in_a_log_do_not_move_the_cursor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("FORCE_COLOR", "1")
    watched = Watched()
    with watched.progress:
        after_a_block(watched, context())
    assert "\x1b[1A" not in watched.written
    assert "block 5  17.8 +2.0 %" in watched.written


def test_no_color_disables_colors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    file = io.StringIO()
    console = SafeConsole(file=file, force_terminal=True, width=100, height=24, color_system="standard")
    watched = Watched()
    with TerminalProgress(console) as watched.progress:
        after_a_block(watched, context(), looks={1: look(Verdict.FASTER)})
    assert "▲ faster" in file.getvalue()
    assert "\x1b[32m" not in file.getvalue()


def test_a_failed_trial_is_a_permanent_line() -> None:
    watched = Watched()
    block = Block(number=3, trials={}, failures=(FailedTrial(arm=1, phase=Phase.MEASURE, message="ERROR: no {x}"),))
    with watched.progress:
        watched.progress.begin_blocks(context(), REQUESTED)
        watched.progress.block_finished(context(), block, {}, 1.0)
    assert watched.screen[-1] == "block 3: a trial of 17.8 failed: ERROR: no {x}"


def test_an_operation_shows_its_repetition_and_the_progress_of_the_server() -> None:
    watched = Watched()
    requested = comparison(workload=vacuum())
    one = Context(number=1, levels=(), comparison=requested)
    unbounded = replace(look(), interim_result=replace(look().interim_result, interval=UNBOUNDED))
    with watched.progress:
        watched.progress.begin_blocks(one, requested)
        watched.progress.step(one, 1, 1, Phase.START, 0)
        assert watched.screen[-1] == "block 1: starting 17.8"
        watched.wait(5)
        watched.progress.step(one, 1, 1, Phase.WARM_UP, 0)
        watched.progress.step(one, 1, 1, Phase.MEASURE, 1)
        assert watched.screen[-1] == "block 1: running the operation on 17.8"
        watched.wait(5)
        watched.progress.doing("17.8: vacuuming indexes")
        assert watched.screen[-1] == "17.8: vacuuming indexes"
        watched.progress.block_finished(one, rate_block(1, 1.0, 1.0), {1: unbounded}, 1.0)
        watched.step(one, 2, Phase.MEASURE)
        assert "+2.0 %  5 blocks" in watched.screen[-1]


@pytest.mark.parametrize("is_terminal", [False, True])
def test_the_language_of_progress_does_not_affect_other_code(
    is_terminal: bool,  # noqa: FBT001 - parametrised
) -> None:
    watched = Watched(language=Language.JAPANESE, is_terminal=is_terminal)
    with watched.progress:
        after_a_block(watched, context())
        assert language_in_use() is Language.ENGLISH
    assert watched.written


@pytest.mark.parametrize("is_terminal", [False, True])
def test_lines_of_progress_contain_no_password(is_terminal: bool) -> None:  # noqa: FBT001 - parametrised
    file = io.StringIO()
    context = Context(number=1, levels=(), comparison=REQUESTED)
    failure = FailedTrial(
        arm=1, phase=Phase.MEASURE, message="a://u:Geheim99@h: LINE 1: ALTER ROLE u PASSWORD 'Geheim99'"
    )
    with TerminalProgress(SafeConsole(file=file, force_terminal=is_terminal, width=200)) as progress:
        progress.say("skipped: archive_command=PGPASSWORD=Geheim99 cp")
        progress.begin_blocks(context, REQUESTED)
        progress.doing("17.8: password=Geheim99")
        progress.block_finished(context, Block(number=1, trials={}, failures=(failure,)), {}, 44.0)
    assert "Geheim99" not in file.getvalue()
    assert "a trial of 17.8 failed: a://h: LINE 1: ALTER ROLE u PASSWORD ..." in file.getvalue()


def test_the_terminal_shows_every_event() -> None:
    events = {name for name, value in vars(Progress).items() if callable(value)}
    assert len(events) > 5
    assert events <= vars(TerminalProgress).keys()
