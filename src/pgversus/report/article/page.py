"""The sections of an article, in order."""

import shlex
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import PurePath

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.answers.plans import ComparedPlans
from pgversus.plans.sentences import headline, sentences
from pgversus.records.plans import StatementName
from pgversus.report.article.environment import TextOf, data, environment, settings
from pgversus.report.article.figures import (
    Case,
    Form,
    Published,
    capped,
    cases,
    of_each_metric,
    published_by_verdict,
    published_columns,
    ratio_cells,
    ratio_heads,
)
from pgversus.report.article.tables import amount_tables, load_tables, operation_tables, pair_tables
from pgversus.report.markdown import bullets, escaped, fenced, folded, paragraph
from pgversus.report.methodology import load_command, method_lines, restarts
from pgversus.report.overview import not_measured, overview_sentences, shared_caveats
from pgversus.report.plans import override_text, plan_lines, statement_text
from pgversus.report.study_answer import study_sentences
from pgversus.report.values import value_text
from pgversus.report.why import why_of
from pgversus.study.comparison import BASELINE
from pgversus.study.workload import Script, Step, Workload, loads_of
from pgversus.text.translation import N_, _, ngettext, together
from pgversus.text.units import latency, significant


def summary(found: Sequence[Case], known: Published) -> Iterator[str]:
    """Yield EXPLAIN times, then measured ratios, for cases whose own tables do not show everything."""
    answers = [one for case in found if case.form is not Form.AMOUNTS for one in case.answers]
    explained = [row for one in answers for row in _explained(one)]
    if explained:
        yield paragraph(_("By EXPLAIN ANALYZE execution time:"))
        heads = (_("case"), _("baseline"), _("contender"), _("baseline time"), _("contender time"))
        yield capped((*heads, _("speed-up")), explained, names=3)
        yield paragraph(
            _(
                "Each value comes from a single execution under EXPLAIN ANALYZE, whose timing overhead slows down row "
                "processing. There is no interval, and no verdict is based on it."
            )
        )
    if len(found) > 1 and answers:
        yield paragraph(_("Measured in blocks:"))
        heads = (_("case"), _("baseline"), _("contender"), _("baseline value"), _("contender value"))
        published = (_("published ratio"), _("agreement"))
        for metric, ones in of_each_metric(answers).items():
            measured = [row for one in ones for row in _measured(one, known)]
            yield capped((*heads, *ratio_heads(metric), *published), measured, names=3)


def _explained(one: Answer) -> Iterator[tuple[str, ...]]:
    plans = one.plans()
    if plans is None:
        return
    for arm in one.comparison.contenders:
        compared = [found for found in plans.of(arm.label) if None not in _times(found)]
        for found in compared:
            old, new = _times(found)
            if old and new:
                name = _("{case}, {statement}", case=one.place, statement=statement_text(found.statement))
                case = name if len(compared) > 1 else one.place
                yield case, *found.labels, latency(old), latency(new), significant(old / new)


def _times(found: ComparedPlans) -> tuple[float | None, float | None]:
    baseline, contender = found.plans
    return baseline.execution_s, contender.execution_s


def _measured(one: Answer, known: Published) -> Iterator[tuple[str, ...]]:
    metric, labels = one.analysis.metric, [arm.label for arm in one.comparison.arms]
    for result in one.analysis.results:
        values = result.paired_values.get(metric)
        shown = [value_text(metric, value) for value in values] if values else ["", ""]
        _unused, published, agreement = published_columns(known, one, result.contender)
        names = (one.place, labels[BASELINE], labels[result.contender])
        yield *names, *shown, *ratio_cells(one, result.contender), published, agreement


_MOST_CONTEXTS = 50


def explained(answer: StudyAnswer) -> Iterator[str]:
    """Yield the explanation and both plans of each statement, for every context."""
    with_plans = [one for one in answer.answers if one.plans() is not None]
    for one in with_plans[:_MOST_CONTEXTS]:
        yield from _context(one)
    rest = len(with_plans) - _MOST_CONTEXTS
    if rest > 0:
        yield paragraph(_("The plans of {number} more contexts are omitted.", number=rest))


def _context(one: Answer) -> Iterator[str]:
    yield f"### {escaped(one.place)}"
    for why in why_of(one):
        yield paragraph(together(why.claim, *why.notes))
    plans = one.plans()
    assert plans is not None  # noqa: S101 - called for contexts with plans
    shown: set[tuple[StatementName, str]] = set()
    for found in plans.compared:
        yield from _statement(found, shown)


def _statement(found: ComparedPlans, shown: set[tuple[StatementName, str]]) -> Iterator[str]:
    """Yield the comparison of a statement. shown: statements and labels whose plans are printed, extended here."""
    level = headline(found.difference)
    lines = [*sentences(found.difference), *filter(None, [override_text(found)])]
    yield paragraph(
        _(
            "{statement}: {level} ({contender} vs {baseline})",
            statement=statement_text(found.statement),
            level=level,
            contender=found.labels[1],
            baseline=found.labels[0],
        )
    )
    yield bullets(lines)
    for label, plan in zip(found.labels, found.plans, strict=True):
        if (found.statement, label) in shown:
            continue
        shown.add((found.statement, label))
        yield folded(_("EXPLAIN ANALYZE on {server}", server=label), fenced("\n".join(plan_lines(plan))))


def reproduction(answer: StudyAnswer) -> Iterator[str]:
    """Yield the command, the seed and version, and the study file."""
    invocation = answer.invocation
    if invocation.command:
        yield fenced(invocation.command, "sh")
    else:
        yield paragraph(_("These results do not include the command that produced them."))
    yield paragraph(
        _("Seed {seed}; {program}.", seed=answer.study.seed, program=invocation.program)
        if invocation.program
        else _("Seed {seed}.", seed=answer.study.seed)
    )
    if invocation.file_text:
        yield f"{escaped(invocation.file_name)}:\n\n{fenced(invocation.file_text, 'toml')}"
    yield paragraph(_("All measurements are in the results folder:"))
    results = shlex.quote(str(answer.results))
    yield fenced(f"pgversus report {results} --format csv\npgversus report {results} --json", "sh")


def work(case: Case) -> Iterator[str]:
    """Yield the text of each script or step, then the command of each load, as code blocks."""
    shown: set[str] = set()
    for workload in case.workloads:
        for block in _texts(workload):
            if block not in shown:
                shown.add(block)
                yield block
    commands = dict.fromkeys(command for one in case.answers for command in _commands(one))
    if commands:
        yield paragraph(_("The command that runs the load of each window:"))
        yield fenced("\n".join(commands), "sh")
        yield paragraph(_windows(case.answers))


def statement(script: Script) -> str:
    """Return the text of a script, or the name of a built-in one."""
    if script.text is None:
        return paragraph(_("pgbench's built-in script {name}.", name=script.name))
    name = PurePath(script.name).name
    weight = "" if script.weight is None else _(" (weight {weight})", weight=script.weight)
    return f"{escaped(name)}{weight}:\n\n{fenced(script.text, 'sql')}"


def _texts(workload: Workload) -> Iterator[str]:
    yield from (statement(script) for script in workload.scripts)
    if workload.steps:
        yield paragraph(_("Timed in one session:"))
        yield from map(_step, workload.steps)
    if workload.verify:
        yield paragraph(_("Conditions that must hold afterwards (otherwise the trial counts as failed):"))
        yield fenced("\n".join(_ended(sql) for sql in workload.verify), "sql")


def _step(step: Step) -> str:
    if step.sql is None:
        return fenced(shlex.join(step.program), "sh")
    return fenced(_ended(step.sql), "sql")


def _ended(sql: str) -> str:
    return f"{sql.strip().rstrip('; ')};"


def _commands(one: Answer) -> Iterator[str]:
    for load in loads_of(arm.workload for arm in one.comparison.arms):
        yield load_command(load, one.comparison.design)


def _windows(answers: Sequence[Answer]) -> str:
    """Return the number of windows in a block."""
    designs = [one.comparison.design for one in answers]
    rounds = {count for one in answers for count in one.window_counts}
    if len(rounds) > 1:
        return _("Each block contains several such windows for every arm, in an order that cancels drift.")
    warm_ups = [design.warm_up_s for design in designs]
    shortest, longest = latency(min(warm_ups)), latency(max(warm_ups))
    warm_up = shortest if shortest == longest else _("{least} to {most}", least=shortest, most=longest)
    if not restarts(answers):
        return ngettext(
            "Each block contains {number} such window for every arm, after a warm-up of {warm_up}.",
            "Each block contains {number} such windows for every arm, in an order that cancels drift, after a warm-up "
            "of {warm_up}.",
            rounds.pop(),
            warm_up=warm_up,
        )
    return ngettext(
        "Each block contains {number} such window for every arm, after a server restart and a warm-up of {warm_up}.",
        "Each block contains {number} such windows for every arm, in an order that cancels drift, after a server "
        "restart and a warm-up of {warm_up}.",
        rounds.pop(),
        warm_up=warm_up,
    )


_TABLES: dict[Form, Callable[[Case, Published], Iterator[str]]] = {
    Form.OPERATION: operation_tables,
    Form.AMOUNTS: amount_tables,
    Form.PAIR: pair_tables,
    Form.LOADS: load_tables,
}
_HOW = N_(
    "A ratio is the contender divided by {baseline}, from blocks in which every server is restarted and all servers "
    "are measured in turn. The intervals hold for all verdicts of this study together. Undecided means that the "
    "interval includes both zero difference and a difference that matters."
)
_HOW_WHERE_RUNNING = N_(
    "A ratio is the contender divided by {baseline}, from blocks in which all servers are measured in turn. "
    "External servers are never restarted. The intervals hold for all verdicts of this study together. "
    "Undecided means that the interval includes both zero difference and a difference that matters."
)


def article(answer: StudyAnswer, text_of: TextOf) -> str:
    """Return the article as Markdown; user texts are escaped, or fenced so that they cannot end the fence.

    text_of: returns the text of an SQL file that is not stored with the results.
    """
    known, found = published_by_verdict(answer), cases(answer)
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        (_("Environment"), environment(answer)),
        (_("Settings"), settings(answer)),
        (_("Data"), data(answer, text_of)),
        (_("Cases"), (part for case in found for part in _case(case, known))),
        (_("Summary"), summary(found, known)),
        (_("Plans"), explained(answer)),
        (_("Caveats"), _caveats(answer)),
        (_("How it was measured"), _measuring(answer)),
        (_("How to reproduce it"), reproduction(answer)),
    )
    parts = [f"# {escaped(_title(answer))}", paragraph(answer.study.question), *_in_short(answer)]
    for head, content in sections:
        filled = [part for part in content if part]
        parts += [f"## {escaped(head)}", *filled] if filled else []
    return "\n\n".join(part for part in parts if part) + "\n"


def _title(answer: StudyAnswer) -> str:
    """Return the title of the study; for a comparison without a title, the names of its arms."""
    if not answer.is_comparison or not answer.answers:
        return answer.study.title or answer.study.name
    first = answer.answers[0].comparison
    others = ", ".join(arm.label for arm in first.contenders)
    return _(
        "{contender} vs {baseline}: {workload}",
        contender=others,
        baseline=first.baseline.label,
        workload=cases(answer)[0].name,
    )


def _in_short(answer: StudyAnswer) -> Iterator[str]:
    yield paragraph(together(*study_sentences(answer)))
    yield paragraph(together(*overview_sentences(answer)))


def _case(case: Case, known: Published) -> Iterator[str]:
    yield f"### {escaped(case.name)}"
    yield from work(case)
    yield from _TABLES[case.form](case, known)


def _caveats(answer: StudyAnswer) -> Iterator[str]:
    yield bullets(shared_caveats(answer))
    yield bullets(_("not measured: {line}", line=line) for line in not_measured(answer))


def _measuring(answer: StudyAnswer) -> Iterator[str]:
    if not answer.answers:
        return
    baselines = dict.fromkeys(one.comparison.baseline.label for one in answer.answers)
    yield paragraph(_(_HOW if restarts(answer.answers) else _HOW_WHERE_RUNNING, baseline=", ".join(baselines)))
    yield bullets(method_lines(answer))
