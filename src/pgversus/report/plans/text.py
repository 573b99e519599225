"""Compared plans for a terminal or a pipe: sentences first, then both plans."""

from collections.abc import Iterator

from pgversus.plans.sentences import headline, sentences
from pgversus.report.plans.compared import NOTHING_COMPARED, ComparedPlans, PlansAnswer
from pgversus.report.plans.tree import plan_lines
from pgversus.report.plans.undoing import undoing
from pgversus.text.redaction import visible
from pgversus.text.translation import tell
from pgversus.text.units import latency


def plans_text(answer: PlansAnswer) -> str:
    """What has to be known first, then a part for each comparison."""
    warnings = [tell("caveat: {caveat}", caveat=text) for text in answer.warnings]
    parts = [warnings] if warnings else []
    parts += [list(_part(one)) for one in answer.compared] or [[tell(NOTHING_COMPARED)]]
    return "\n".join(visible("\n".join(lines)) + "\n" for lines in parts)


def _part(one: ComparedPlans) -> Iterator[str]:
    baseline, contender = one.labels
    yield one.statement
    yield f"{baseline} -> {contender}: {headline(one.difference.level)}"
    yield from (f"  - {text}" for text in sentences(one.difference))
    if undone := undoing(one):
        yield f"  {undone}"
    if one.difference.time is not None:
        yield f"  {times(one)}"
    for label, plan in zip(one.labels, one.plans, strict=True):
        yield ""
        yield f"{label}:"
        yield from (f"  {line}" for line in plan_lines(plan))


def times(one: ComparedPlans) -> str:
    """Where EXPLAIN's clock saw a difference. It slows rows down, unequally: speed is what is measured without it."""
    time = one.difference.time
    assert time is not None  # noqa: S101 - asked of plans that were run
    return tell(
        "by EXPLAIN's clock: {changed} in nodes that changed, {unchanged} in the others",
        changed=_signed(time.changed_s),
        unchanged=_signed(time.unchanged_s),
    )


def _signed(seconds: float) -> str:
    # What is below a nanosecond comes of adding and taking away.
    seconds = round(seconds, 9)
    return f"{'+' if seconds > 0 else '-' if seconds < 0 else ''}{latency(abs(seconds))}"
