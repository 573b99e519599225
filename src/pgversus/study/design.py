"""How the answer is sought: blocks, windows, margin and budget.

Defaults and their reasons: docs/statistics.md. A design is fixed before the first block: study/windows.py fits its
windows to the load. Only the number of windows in a block may follow from the blocks before (stats/block_model.py).
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from pgversus.errors import StudyError
from pgversus.study.metrics import Metric
from pgversus.text.units import AUTO, WindowLength

FIRST_LOOK = 4
# With three blocks the interval would be wider than 15 standard errors: no decision could come of it.
MOST_BLOCKS = 100
# The error over all looks is calibrated for 4..100 (stats/confidence.py); beyond that nothing is promised.
MOST_CONTENDERS = 50
# The same: so many can share the error.
DEFAULT_BUDGET_S = 15 * 60.0
MARGINS = {
    Metric.TPS: 0.02,
    Metric.LATENCY_MEAN: 0.02,
    Metric.LATENCY_P50: 0.02,
    Metric.LATENCY_P95: 0.05,
    Metric.TIME: 0.05,
}
WARM_UP_S = 2.0
_ROUNDS = 8


class WindowKind(StrEnum):
    """How pgbench is driven to give windows (docs/adr/0015-windows.md)."""

    RUN = "run"
    """Each window is one run of pgbench for whole seconds (-T)."""
    TRANSACTIONS = "transactions"
    """Each window is one run of pgbench for a number of transactions (-t)."""
    SLICE = "slice"
    """Windows are slices of a longer run of pgbench, which is stopped between them."""


class StopReason(StrEnum):
    """Why no further block was run."""

    DECIDED = "decided"
    BLOCKS = "blocks"
    """The design's number of blocks is reached."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """An arm's trials failed again and again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The plan of measurement of one comparison."""

    window_s: float = 1.0
    """Seconds of load in one window; an expectation where a window ends with its transactions."""
    window_kind: WindowKind = WindowKind.RUN
    slice_s: float = 0.0
    """Seconds after which the clients are stopped where a window is a slice; what is in flight then belongs to it."""
    window_transactions: int | None = None
    """Transactions of each client in one window, as pgbench's -t; None where a window is a length of time."""
    rounds: int = _ROUNDS
    """Windows of each arm in one block (for two arms: pairs)."""
    rounds_per_session: int = 1
    """Rounds for which sessions stay connected. Where processes land on processors is drawn anew with each session."""
    window_is_given: bool = False
    """True when the user chose the length of a window, so that it is not fitted to the load."""
    rounds_are_given: bool = False
    """The same for their number."""
    metric: Metric = Metric.TPS
    """The metric that carries the verdict."""
    margin: float = 0.02
    """The smallest ratio minus one that matters to the user."""
    budget_s: float = DEFAULT_BUDGET_S
    """Wall-clock seconds for blocks."""
    max_blocks: int = MOST_BLOCKS
    fixed_blocks: int | None = None
    """Exactly so many blocks and one look at the end; None looks after every block and stops at the answer."""
    seed: int = 0
    """Of everything random: order of arms, pgbench's keys."""
    warm_up_s: float = WARM_UP_S
    """Seconds of load thrown away after each start."""
    warm_up_is_given: bool = False
    """True when the user chose the length of the warm-up."""

    pin: str = "auto"
    """Whether client and servers have processors of their own: auto, off, or a list for the client."""
    client_processors: tuple[int, ...] = ()
    server_processors: tuple[int, ...] = ()
    """As they were divided on this host; empty where nothing is pinned."""

    @property
    def log_margin(self) -> float:
        """The margin on the log scale, where differences are judged."""
        return math.log1p(self.margin)

    @property
    def most_repeats(self) -> int:
        """How many rounds of a block may be measured again because they were disturbed.

        A block of an operation has one round, which may be; the only window of a load was asked to be as long as it is.
        """
        is_long_load = self.window_kind is WindowKind.RUN and self.metric is not Metric.TIME
        return self.rounds // 2 if is_long_load else max(1, self.rounds // 2)

    @property
    def measured_s_per_block(self) -> float:
        """Seconds of counted load of one arm in one block."""
        return self.window_s * self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignChoices:
    """The fields of a `Design` that the user may choose; None leaves one open."""

    metric: Metric | None = None
    margin: float | None = None
    budget_s: float | None = None
    max_blocks: int | None = None
    fixed_blocks: int | None = None
    window: WindowLength | None = None
    rounds: int | None = None
    warm_up_s: float | None = None
    pin: str | None = None
    seed: int
    """Drawn by the caller where the user gave none."""


def design_of(choices: DesignChoices, *, is_open_loop: bool = False, is_operation: bool = False) -> Design:
    """The design with these choices for a workload of this kind; StudyError for choices that exclude each other."""
    check_one_design(choices)
    if is_operation:
        _check_windows(choices)
    metric = choices.metric or (Metric.TIME if is_operation else Metric.LATENCY_P95 if is_open_loop else Metric.TPS)
    _check_metric(metric, is_open_loop=is_open_loop, is_operation=is_operation)
    design = Design(
        metric=metric,
        margin=MARGINS[metric] if choices.margin is None else choices.margin,
        budget_s=DEFAULT_BUDGET_S if choices.budget_s is None else choices.budget_s,
        max_blocks=choices.max_blocks or MOST_BLOCKS,
        fixed_blocks=choices.fixed_blocks,
        seed=choices.seed,
        pin=choices.pin or AUTO,
    )
    if is_operation:
        return replace(design, rounds=1, warm_up_s=0.0)
    if choices.rounds is not None:
        design = replace(design, rounds=choices.rounds, rounds_are_given=True)
    if choices.window is not None:
        design = with_window(design, choices.window)
    if choices.warm_up_s is not None:
        design = replace(design, warm_up_s=choices.warm_up_s, warm_up_is_given=True)
    return design


def with_window(design: Design, length: WindowLength) -> Design:
    """Return the design with windows of a length that the user chose."""
    if length.seconds is None:
        return replace(
            design,
            window_kind=WindowKind.TRANSACTIONS,
            window_transactions=length.transactions,
            window_is_given=True,
        )
    kind = WindowKind.SLICE if length.seconds < 1 else WindowKind.RUN
    return replace(design, window_kind=kind, window_s=length.seconds, window_transactions=None, window_is_given=True)


def _check_metric(metric: Metric, *, is_open_loop: bool, is_operation: bool) -> None:
    if metric is Metric.TPS and is_open_loop:
        raise StudyError(
            "with a rate every arm does the same tps, so tps cannot tell them apart",
            slug="study-rate-and-tps",
            where="-R with --metric tps",
            found="tps",
            expected="a latency",
            to_do="leave --metric out (p95 latency is judged), or leave -R out",
        )
    if is_operation != (metric is Metric.TIME):
        name = metric.value.removesuffix("_s")
        kind, others = ("an operation", "time") if is_operation else ("a load", "tps or a latency")
        raise StudyError(
            f"{kind} has no {name}",
            slug="study-metric-of-other-kind",
            where=f"--metric {name}",
            found=name,
            expected=others,
            to_do="leave --metric out",
        )


def _check_windows(choices: DesignChoices) -> None:
    """An operation runs once, however long it takes."""
    flags = {"--window": choices.window, "--windows": choices.rounds, "--warmup": choices.warm_up_s}
    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        raise StudyError(
            "an operation runs once in each block, on a fresh copy: it has neither windows nor a warm-up",
            slug="study-windows-of-operation",
            where=", ".join(given),
            found="an operation",
            expected="a load",
            to_do=f"leave {' and '.join(given)} out",
        )


def check_one_design(choices: DesignChoices) -> None:
    """StudyError when the number of blocks is fixed and limited at once."""
    if choices.fixed_blocks is not None and (choices.budget_s is not None or choices.max_blocks is not None):
        raise StudyError(
            "--blocks fixes the number of blocks, so there is nothing to limit",
            slug="study-two-designs",
            where="--blocks with --budget or --max-blocks",
            found="both",
            expected="one of them",
            to_do="leave --blocks out to stop when the answer is known",
        )
