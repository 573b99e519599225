"""A timeline: one workload on consecutive versions, as bars, with the changes of its plans."""

from collections.abc import Iterator, Sequence

from pgversus.answers.answer import Answer
from pgversus.answers.timeline import PlanStep, plan_steps
from pgversus.plans.sentences import headline, sentences
from pgversus.report.answer_table import AnswerTable
from pgversus.report.plans import statement_text
from pgversus.report.sentences import interval_heading, metric_text
from pgversus.report.values import change_texts, mean_text, uses_factors
from pgversus.report.verdicts import verdict_in_table
from pgversus.study.comparison import BASELINE
from pgversus.text.translation import _

_WIDTH = 30
"""Width of the longest bar, in characters."""
_PARTS = "▏▎▍▌▋▊▉█"
"""Eighths of a character."""
_MOST_CHANGES = 2
"""Maximum number of changes named for each statement."""


def timeline_table(answer: Answer) -> AnswerTable:
    """Return a row for each version, in order; the notes name the plans that change from one to the next."""
    comparison, metric = answer.comparison, answer.analysis.metric
    steps = [[], *plan_steps(answer)]
    values = [answer.analysis.arm_values[arm.index].get(metric) for arm in comparison.arms]
    largest = max((found.value for found in values if found is not None), default=0.0)
    rows: list[tuple[str, ...]] = []
    for arm, own, found in zip(comparison.arms, steps, values, strict=True):
        bar = _bar(found.value / largest) if found is not None and largest > 0 else ""
        plan = _("changed") if any(step.has_changed for step in own) else ""
        rows.append((arm.label, bar, plan, mean_text(answer, arm.index, metric), *_verdict_cells(answer, arm.index)))
    against = _("vs {baseline}", baseline=comparison.baseline.label)
    scripts = ", ".join(dict.fromkeys(script.name for script in comparison.workload.scripts))
    return AnswerTable(
        title=scripts or comparison.workload.short_name,
        heads=(_("version"), "", _("plan"), metric_text(metric), against, interval_heading(), _("verdict")),
        rows=rows,
        names=3,
        notes=list(_notes([arm.label for arm in comparison.arms], steps)),
    )


def _verdict_cells(answer: Answer, arm: int) -> tuple[str, str, str]:
    """Return the change from the first version, its interval, and the verdict."""
    if arm == BASELINE:
        return "", "", ""
    result = answer.analysis.result_of(arm)
    shown = change_texts(result.ratios.get(answer.analysis.metric), as_factors=uses_factors([answer]))
    return shown.value, shown.interval, verdict_in_table(answer, result)


def _notes(labels: Sequence[str], steps: Sequence[Sequence[PlanStep]]) -> Iterator[str]:
    """Yield a sentence for each plan that changes from one version to the next."""
    for place, own in enumerate(steps):
        for step in own:
            if step.has_changed:
                changed = "; ".join(sentences(step.difference)[:_MOST_CHANGES]) or headline(step.difference)
                yield _(
                    "{old} to {new}: {changed}",
                    old=step.since,
                    new=labels[place],
                    changed=changed if len(own) == 1 else f"{statement_text(step.statement)}: {changed}",
                )


def _bar(share: float) -> str:
    """Return a bar. share: share of the longest bar, from 0 to 1."""
    eighths = round(share * _WIDTH * len(_PARTS))
    whole, rest = divmod(eighths, len(_PARTS))
    return _PARTS[-1] * whole + (_PARTS[rest - 1] if rest else "")
