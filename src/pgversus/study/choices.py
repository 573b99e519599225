"""From what the user chose of a design to the design: what is left open gets the usual value."""

from dataclasses import dataclass, replace

from pgversus.errors import StudyError
from pgversus.study.design import DEFAULT_BUDGET_S, MARGINS, MOST_BLOCKS, Design
from pgversus.study.metrics import Metric


@dataclass(frozen=True, slots=True, kw_only=True)
class DesignChoices:
    """The fields of a `Design` that the user may choose; None leaves one open."""

    metric: Metric | None = None
    margin: float | None = None
    budget_s: float | None = None
    max_blocks: int | None = None
    fixed_blocks: int | None = None
    window_s: float | None = None
    rounds: int | None = None
    warm_up_s: float | None = None
    seed: int
    """Drawn by the caller where the user gave none."""


def design_of(choices: DesignChoices, *, is_open_loop: bool) -> Design:
    """The design with these choices for a load of this kind; StudyError for choices that exclude each other."""
    refuse_two_designs(choices)
    metric = choices.metric or (Metric.LATENCY_P95 if is_open_loop else Metric.TPS)
    if metric is Metric.TPS and is_open_loop:
        raise StudyError(
            "with a rate every arm does the same tps, so tps cannot tell them apart",
            slug="study-rate-and-tps",
            where="-R with --metric tps",
            found="tps",
            expected="a latency",
            to_do="leave --metric out (p95 latency is judged), or leave -R out",
        )
    design = Design(
        metric=metric,
        margin=MARGINS[metric] if choices.margin is None else choices.margin,
        budget_s=DEFAULT_BUDGET_S if choices.budget_s is None else choices.budget_s,
        max_blocks=choices.max_blocks or MOST_BLOCKS,
        fixed_blocks=choices.fixed_blocks,
        seed=choices.seed,
    )
    if choices.rounds is not None:
        design = replace(design, rounds=choices.rounds, rounds_are_given=True)
    if choices.window_s is not None:
        design = replace(design, window_s=choices.window_s, window_is_given=True)
    if choices.warm_up_s is not None:
        design = replace(design, warm_up_s=choices.warm_up_s)
    return design


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
