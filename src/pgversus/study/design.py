"""The measurement design: blocks, windows, margin, precision and budget.

Defaults and their reasons: docs/statistics.md. A design is fixed before the first block: study/windows.py fits its
windows to the load. Only the number of windows per block may depend on earlier blocks (stats/block_model.py).
"""

import math
from dataclasses import dataclass, replace
from enum import StrEnum

from pgversus.errors import StudyError
from pgversus.study.metrics import MARGINS, Metric
from pgversus.text.units import AUTO, WindowLength

FIRST_LOOK = 4
# With three blocks the interval would be wider than 15 standard errors and decide nothing.
LEAST_FIXED = 2
MOST_BLOCKS = 100
# The error over all looks is calibrated only for 4 to 100 blocks (stats/confidence.py).
MOST_CONTENDERS = 50
# The error is calibrated for at most this many contenders.
DEFAULT_BUDGET_S = 15 * 60.0
WARM_UP_S = 2.0
_ROUNDS = 8
_MOST_REPETITIONS = 2


class WindowKind(StrEnum):
    """Ways to run pgbench for windows (docs/adr/0015-windows.md)."""

    RUN = "run"
    """Each window is one pgbench run of whole seconds (-T)."""
    TRANSACTIONS = "transactions"
    """Each window is one pgbench run of a number of transactions (-t)."""
    SLICE = "slice"
    """Windows are slices of a longer pgbench run, which is paused between them."""


class StopReason(StrEnum):
    """Why measuring stopped."""

    DECIDED = "decided"
    PRECISE = "precise"
    """The design's precision was reached."""
    BLOCKS = "blocks"
    """The design's number of blocks was reached."""
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    FAILED = "failed"
    """Trials of one arm failed repeatedly."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoppingRule:
    """When measuring stops: as soon as the answer is known or a limit is reached, or after a fixed number of blocks.

    The answer is known with the verdict or, if a precision is given, with an interval that is narrow enough.
    """

    looks_once: bool
    """Whether the number of blocks is fixed, so that there is one look."""
    first_look: int
    """Blocks before the first look."""
    last_look: int
    """Blocks at the last possible look."""
    budget_s: float
    reason_at_end: StopReason
    """Why measuring stops once no contender needs more blocks."""
    most_blocks: int
    reason_at_most: StopReason
    """Why measuring stops after most_blocks although a contender needs more."""

    def reason_to_give_up(self, blocks: int) -> StopReason | None:
        """Return why measuring stops after this many blocks although a contender needs more; None to continue."""
        return self.reason_at_most if blocks >= self.most_blocks else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """The measurement plan of one comparison."""

    window_s: float = 1.0
    """Seconds of load per window; an expected value for windows that end after a number of transactions."""
    window_kind: WindowKind = WindowKind.RUN
    slice_s: float = 0.0
    """Seconds after which the clients of a slice are stopped; transactions in flight then belong to the slice."""
    window_transactions: int | None = None
    """Transactions per client and window (pgbench's -t); None for windows with a duration."""
    rounds: int = _ROUNDS
    """Windows per arm and block (for two arms: pairs)."""
    rounds_per_session: int = 1
    """Rounds between reconnections. Each new session may place processes on other CPUs."""
    window_is_given: bool = False
    """True if the user chose the window length, so that it is not fitted to the load."""
    rounds_are_given: bool = False
    """True if the user chose the number of rounds."""
    metric: Metric = Metric.TPS
    """The metric that decides the verdict."""
    margin: float = 0.02
    """The smallest relevant difference: ratio minus one."""
    precision: float | None = None
    """Measure until the interval reaches at most this far to each side: ratio minus one. None: until the verdict."""
    budget_s: float = DEFAULT_BUDGET_S
    """Wall-clock budget for blocks, in seconds."""
    max_blocks: int = MOST_BLOCKS
    fixed_blocks: int | None = None
    """The number of blocks, however long they take; None to measure until the answer is known."""
    seed: int = 0
    """Seed for everything random: order of arms, pgbench's keys."""
    warm_up_s: float = WARM_UP_S
    """Seconds of load discarded after each start."""
    warm_up_is_given: bool = False
    """True if the user chose the length of the warm-up."""

    pin: str = "auto"
    """Whether client and servers use separate CPUs: auto, off, or a CPU list for the client."""
    client_processors: tuple[int, ...] = ()
    server_processors: tuple[int, ...] = ()
    """CPUs assigned on this host; empty without pinning."""

    @property
    def stopping_rule(self) -> StoppingRule:
        """When measuring stops."""
        if self.fixed_blocks is not None:
            return StoppingRule(
                looks_once=True,
                first_look=self.fixed_blocks,
                last_look=self.fixed_blocks,
                budget_s=math.inf,
                reason_at_end=StopReason.BLOCKS,
                # Blocks with a failed trial are repeated, up to a limit.
                most_blocks=_MOST_REPETITIONS * self.fixed_blocks,
                reason_at_most=StopReason.FAILED,
            )
        return StoppingRule(
            looks_once=False,
            first_look=FIRST_LOOK,
            last_look=self.max_blocks,
            budget_s=self.budget_s,
            reason_at_end=StopReason.DECIDED if self.precision is None else StopReason.PRECISE,
            most_blocks=self.max_blocks,
            reason_at_most=StopReason.BLOCKS,
        )

    @property
    def log_margin(self) -> float:
        """The margin on the log scale, the scale of the analysis."""
        return math.log1p(self.margin)

    @property
    def log_precision(self) -> float | None:
        """The largest half width of the interval on the log scale; None if measuring stops at the verdict."""
        return None if self.precision is None else math.log1p(self.precision)

    @property
    def most_repeats(self) -> int:
        """The number of repeated rounds after which a block repeats no further disturbed session.

        The single round of an operation may be repeated. The only window of a load may not: the user chose its length.
        """
        is_long_load = self.window_kind is WindowKind.RUN and self.metric is not Metric.TIME
        return self.rounds // 2 if is_long_load else max(1, self.rounds // 2)

    @property
    def measured_s_per_block(self) -> float:
        """Seconds of measured load per arm and block."""
        return self.window_s * self.rounds


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignChoices:
    """The fields of a `Design` that the user may set; None uses the default."""

    metric: Metric | None = None
    margin: float | None = None
    precision: float | None = None
    budget_s: float | None = None
    max_blocks: int | None = None
    fixed_blocks: int | None = None
    window: WindowLength | None = None
    rounds: int | None = None
    warm_up_s: float | None = None
    pin: str | None = None
    seed: int
    """Drawn at random by the caller if the user gave none."""

    @property
    def other_stopping_rules(self) -> list[str]:
        """Names of given options that would end the measurement earlier although the number of blocks is fixed."""
        others = {"budget": self.budget_s, "max_blocks": self.max_blocks, "precision": self.precision}
        return [name for name, value in others.items() if value is not None and self.fixed_blocks is not None]


def design_of(choices: DesignChoices, *, is_open_loop: bool = False, is_operation: bool = False) -> Design:
    """Return the design for this kind of workload; StudyError for choices that exclude each other."""
    _check_stopping_rule(choices)
    if is_operation:
        _check_windows(choices)
    metric = choices.metric or (Metric.TIME if is_operation else Metric.LATENCY_P95 if is_open_loop else Metric.TPS)
    _check_metric(metric, is_open_loop=is_open_loop, is_operation=is_operation)
    design = Design(
        metric=metric,
        margin=MARGINS[metric] if choices.margin is None else choices.margin,
        precision=choices.precision,
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
    """Return the design with the window length that the user chose."""
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
            "with a rate every arm has the same tps, so tps cannot be compared",
            slug="study-rate-and-tps",
            where="-R with --metric tps",
            found="tps",
            expected="a latency",
            to_do="remove --metric to compare p95 latency, or remove -R",
        )
    if is_operation != (metric is Metric.TIME):
        name = metric.value.removesuffix("_s")
        kind, others = ("an operation", "time") if is_operation else ("a load", "tps or a latency")
        raise StudyError(
            f"{kind} does not have the metric {name}",
            slug="study-metric-of-other-kind",
            where=f"--metric {name}",
            found=name,
            expected=others,
            to_do="remove --metric",
        )


def _check_windows(choices: DesignChoices) -> None:
    """Raise StudyError for window options, because an operation runs as a whole, however long it takes."""
    flags = {"--window": choices.window, "--windows": choices.rounds, "--warmup": choices.warm_up_s}
    given = [flag for flag, value in flags.items() if value is not None]
    if given:
        raise StudyError(
            "an operation runs as a whole, on a fresh copy of the data: it has neither windows nor a warm-up",
            slug="study-windows-of-operation",
            where=", ".join(given),
            found="an operation",
            expected="a load",
            to_do=f"remove {' and '.join(given)}",
        )


def _check_stopping_rule(choices: DesignChoices) -> None:
    if choices.other_stopping_rules:
        given = [f"--{name.replace('_', '-')}" for name in choices.other_stopping_rules]
        raise StudyError(
            "--blocks fixes the number of blocks, so neither a limit nor a precision can end the measurement",
            slug="study-two-designs",
            where=f"--blocks with {' and '.join(given)}",
            found=f"--blocks {choices.fixed_blocks} and {' and '.join(given)}",
            expected=f"--blocks alone, or {' and '.join(given)} without --blocks",
            to_do="remove --blocks to stop as soon as the answer is known",
        )
