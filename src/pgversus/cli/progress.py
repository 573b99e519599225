"""What is shown while a comparison runs: one live line on a terminal, plain lines in a pipe, all on standard error.

Nothing is drawn inside a window of load: the client shares the host with the servers, and a spinner would be load too.
"""

import math
from collections.abc import Mapping
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.text import Text

from pgversus.lab.progress import Look
from pgversus.report.units import change, count, duration, latency, percent
from pgversus.stats.trials import Block, Phase
from pgversus.stats.verdict import Verdict
from pgversus.study.comparison import Comparison
from pgversus.study.operation import Operation
from pgversus.study.study import Context

_MEGABYTE = 1e6
_WIDEST = math.log(2)
"""Half the widest interval that is shown, as a log-ratio: ±100 %. Beyond it, as after 2 blocks, it says nothing."""
_PHASES = {Phase.START: "starting", Phase.WARM_UP: "warming up", Phase.MEASURE: "measuring"}


class TerminalProgress:
    """One line that is rewritten, and lines above it that stay."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = Live(Text(""), console=console, auto_refresh=False, transient=True)
        self._comparisons: dict[int, Comparison] = {}
        self._standing: dict[int, str] = {}
        self._fetching = ""
        self._built: dict[str, int] = {}

    def __enter__(self) -> Self:
        if self._console.is_terminal:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._live.stop()

    def say(self, line: str) -> None:
        """A line that stays."""
        self._console.print(Text(line), soft_wrap=True)

    def fetching(self, name: str, size: int) -> None:
        """A download on the live line; in a pipe the line at its beginning is enough."""
        if self._console.is_terminal:
            self._show(f"fetching {name}: {size / _MEGABYTE:.1f} MB")
        elif self._fetching != name:
            self._fetching = name
            self.say(f"fetching {name}")

    def building(self, name: str, done: int, total: int) -> None:
        """A build on the live line; in a pipe a line at each tenth of it."""
        if self._console.is_terminal:
            self._show(f"building {name}: {done} of about {total} steps")
        elif (tenth := 10 * done // max(1, total)) != self._built.get(name, 0):
            self._built[name] = tenth
            self.say(f"building {name}: {done} of about {total} steps")

    def begin_blocks(self, context: Context, comparison: Comparison) -> None:
        """Say what will be done, and for how long at most."""
        self._comparisons[context.number] = comparison
        design = comparison.design
        limit = (
            count(design.fixed_blocks, "block")
            if design.fixed_blocks is not None
            else f"until the answer is known, at most {duration(design.budget_s)}"
        )
        work = f"{count(design.rounds, 'window')} of {duration(design.window_s)}"
        if isinstance(comparison.workload, Operation):
            took_s = design.window_s
            work = f"one repetition of about {latency(took_s) if took_s < 1 else duration(took_s)}"
        self.say(f"{_prefix(context)}blocks of {work} for each of {len(comparison.arms)} arms, {limit}")

    def step(self, context: Context, block: int, arm: int, phase: Phase, round_number: int) -> None:
        """The next thing that runs, on the live line."""
        if not self._console.is_terminal:
            return
        comparison = self._comparisons[context.number]
        position = f" {round_number}/{comparison.design.rounds}" if round_number else ""
        standing = self._standing.get(context.number, "")
        doing = f"{_PHASES[phase]} {comparison.arms[arm].label}{position}"
        self._show(f"{_prefix(context)}block {block}  {doing}   {standing}")

    def doing(self, line: str) -> None:
        """What a long operation is at, on the live line; nothing in a pipe."""
        if self._console.is_terminal:
            self._show(line)

    def block_finished(self, context: Context, block: Block, looks: Mapping[int, Look], elapsed_s: float) -> None:
        """How each contender stands; on a terminal beside what runs, in a pipe as a line."""
        arms, prefix = self._comparisons[context.number].arms, _prefix(context)
        for failure in block.failures:
            self.say(f"{prefix}block {block.number}: a trial of {arms[failure.arm].label} failed: {failure.words}")
        standing = "   ".join(f"{arms[arm].label} {_stands(look)}" for arm, look in sorted(looks.items()))
        self._standing[context.number] = standing
        if not self._console.is_terminal:
            self.say(f"{prefix}block {block.number}  {standing}  ({duration(elapsed_s)})")

    def _show(self, line: str) -> None:
        self._live.update(Text(line, no_wrap=True, overflow="ellipsis"), refresh=True)


def _prefix(context: Context) -> str:
    return f"{context.label}  " if context.label else ""


def _stands(look: Look) -> str:
    stands = look.standing
    if stands.verdict is Verdict.INVALID:
        return "invalid"
    if stands.log_ratio is None:
        return "no block yet"
    parts = [change(math.exp(stands.log_ratio.point))]
    if stands.interval.half_width <= _WIDEST:
        parts.append(f"±{percent(math.expm1(stands.interval.half_width))}")
    if stands.verdict is not Verdict.UNDECIDED:
        parts.append(stands.verdict.value)
    elif look.seconds_left:
        parts.append(f"about {duration(look.seconds_left)} left")
    return " ".join(parts)
