"""Progress of a comparison as a user sees it on a terminal."""

import fcntl
import os
import pty
import signal
import struct
import subprocess
import termios
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import pyte
import pytest

from tests.live.conftest import PROGRAM, WHOLE_SECONDS, CommandLine


@dataclass
class Terminal:
    """A terminal, and everything that its screen has shown."""

    process: subprocess.Popen[bytes]
    end: int
    screen: pyte.Screen
    seen: list[list[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._stream = pyte.ByteStream(self.screen)

    @property
    def lines(self) -> list[str]:
        """Lines currently on the screen."""
        return [line.rstrip() for line in self.screen.display if line.strip()]

    def pictures(self) -> Iterator[list[str]]:
        """Yield the screen after each piece of output, until the program has ended."""
        while True:
            try:
                piece = os.read(self.end, 65536)
            except OSError:
                # Linux reports in this way that no writer is left.
                return
            if not piece:
                return
            self._stream.feed(piece)
            self.seen.append(self.lines)
            yield self.lines

    def make_narrower(self, columns: int) -> None:
        fcntl.ioctl(self.end, termios.TIOCSWINSZ, struct.pack("HHHH", self.screen.lines, columns, 0, 0))
        self.screen.resize(columns=columns)


@contextmanager
def terminal(line: CommandLine, columns: int, lines: int, *arguments: str) -> Iterator[Terminal]:
    """Run pgversus with all of its output on one terminal."""
    end, theirs = pty.openpty()
    fcntl.ioctl(end, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
    process = subprocess.Popen(
        ["env", "--default-signal=INT,HUP", str(PROGRAM), *arguments],
        cwd=line.directory,
        env={**line.environment, "TERM": "xterm-256color", "LANG": "C.UTF-8"},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    try:
        yield Terminal(process, end, pyte.Screen(columns, lines))
    finally:
        process.kill()
        process.wait()
        os.close(end)


WAITS = "SELECT pg_sleep(0.01);\n"
"""A load that leaves the processors to other tests."""


def starting_with(words: str, pictures: list[list[str]]) -> list[str]:
    """Return each line ever shown that starts with these words."""
    return [line for picture in pictures for line in picture if line.startswith(words)]


def test_a_terminal_shows_progress_and_verdicts_so_far_and_ends_with_only_the_answer(
    command_line: CommandLine,
) -> None:
    script = command_line.write("wait.sql", WAITS)
    with terminal(command_line, 100, 50, "compare", "17.8", "17.8", "-f", script, *WHOLE_SECONDS) as shown:
        for _ in shown.pictures():
            pass
        assert shown.process.wait() == 0, shown.lines
        assert starting_with("block 1: starting 17.8", shown.seen)
        assert starting_with("block 1: measuring 17.8, window 1/2", shown.seen)
        assert starting_with("block 2: measuring 17.8 (2), window 2/2", shown.seen)
        rows = starting_with("17.8 (2)  ? undecided so far", shown.seen)
        assert [row for row in rows if row.endswith("1 block  1 block to go")]
        assert [line for picture in shown.seen for line in picture if line.endswith(" left") and "so far" in line]
        # The region is gone, and the permanent lines appear once.
        left = "\n".join(shown.lines)
        assert "verdicts so far" not in left
        assert "block 2:" not in left
        assert left.count("2 arms, blocks of 2 windows of 1 s per arm") == 1
        assert left.index("2 arms, blocks of 2 windows of 1 s per arm") < left.index("results: pgversus-results/")
        assert not shown.screen.cursor.hidden


def shows_the_region_once(picture: list[str]) -> bool:
    """Return whether the screen ends with the lines of the second block, and has none of them above."""
    *above, block, verdicts, arm, time_left = ["", "", "", "", *picture]
    return (
        block.startswith("block 2: measuring 17.8 (2)")
        and verdicts.startswith("verdicts")
        and arm.startswith("17.8")
        and time_left.startswith("at")
        and "verdicts so far" not in "\n".join(above)
    )


@pytest.mark.long
def test_nothing_of_the_region_remains_after_narrowing_the_terminal_and_interrupting(
    command_line: CommandLine,
) -> None:
    long = ("--max-blocks", "50", "--window", "1", "--windows", "2", "--warmup", "1")
    script = command_line.write("wait.sql", WAITS)
    with terminal(command_line, 60, 12, "compare", "17.8", "17.8", "-f", script, *long) as shown:
        is_narrower, is_interrupted = False, False
        for picture in shown.pictures():
            # A piece of output may end in the middle of the region, so it only has to be whole at some moment:
            # a line left behind would stay.
            if not is_narrower and any(line.startswith("verdicts so far") for line in picture):
                shown.make_narrower(30)
                is_narrower = True
            elif is_narrower and not is_interrupted and shows_the_region_once(picture):
                shown.process.send_signal(signal.SIGINT)
                is_interrupted = True
        assert is_interrupted, shown.seen[-1]
        assert shown.process.wait() == 130, shown.lines
        assert "verdicts so far" not in "\n".join(shown.lines)
        assert not shown.screen.cursor.hidden
