"""Compared plans as Markdown that fits into a pull request."""

import re
from collections.abc import Iterator

from pgversus.plans.sentences import headline, sentences
from pgversus.report.markdown import escaped, paragraph
from pgversus.report.plans.compared import NOTHING_COMPARED, ComparedPlans, PlansAnswer
from pgversus.report.plans.text import times
from pgversus.report.plans.tree import plan_lines
from pgversus.report.plans.undoing import undoing
from pgversus.text.redaction import visible
from pgversus.text.translation import tell

_FENCE = 3


def plans_markdown(answer: PlansAnswer) -> str:
    """What has to be known first; a heading for each comparison, its sentences as a list, both plans to be unfolded."""
    caveats = (tell("caveat: {caveat}", caveat=escaped(text)) for text in answer.warnings)
    warnings = "\n".join(f"- {caveat}" for caveat in caveats)
    parts = [part for one in answer.compared for part in _parts(one)] or [tell(NOTHING_COMPARED)]
    return "\n\n".join([warnings, *parts] if warnings else parts) + "\n"


def _parts(one: ComparedPlans) -> Iterator[str]:
    baseline, contender = (escaped(label) for label in one.labels)
    yield f"### {escaped(one.statement)}"
    yield paragraph(f"{baseline} → {contender}: {headline(one.difference.level)}")
    if told := sentences(one.difference):
        yield "\n".join(f"- {escaped(text)}" for text in told)
    if undone := undoing(one):
        yield paragraph(undone)
    if one.difference.time is not None:
        yield paragraph(times(one))
    for label, plan in zip((baseline, contender), one.plans, strict=True):
        lines = visible("\n".join(plan_lines(plan)))
        # Longer than any in it.
        fence = "`" * max(_FENCE, *(len(run) + 1 for run in re.findall("`+", lines)), 0)
        yield f"<details><summary>{label}</summary>\n\n{fence}\n{lines}\n{fence}\n\n</details>"
