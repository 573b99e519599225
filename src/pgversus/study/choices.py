"""From what the user chose of a design to the design: what is left open gets the usual value."""

from dataclasses import dataclass, replace

from pgversus.errors import StudyError
from pgversus.study.design import DEFAULT_BUDGET_S, MARGINS, MOST_BLOCKS, Design, WindowKind
from pgversus.study.metrics import Metric
from pgversus.text.units import AUTO, WindowLength


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
    refuse_two_designs(choices)
    if is_operation:
        _refuse_windows(choices)
    metric = choices.metric or (Metric.TIME if is_operation else Metric.LATENCY_P95 if is_open_loop else Metric.TPS)
    _refuse_metric(metric, is_open_loop=is_open_loop, is_operation=is_operation)
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


def _refuse_metric(metric: Metric, *, is_open_loop: bool, is_operation: bool) -> None:
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


def _refuse_windows(choices: DesignChoices) -> None:
    """An operation runs once, however long it takes."""
    flags = {"--window": choices.window, "--windows": choices.rounds, "--warm-up": choices.warm_up_s}
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


def refuse_two_designs(choices: DesignChoices) -> None:
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
