"""The statements of an application, each as a pgbench script and as a context of an upgrade check.

One more context plans all of them without executing them, so that planning time has a finding of its own. A check has
two studies. Screening runs the same few blocks of every statement. Statements that differ there are measured again in
the fresh blocks of the confirmation, under the usual rule; those that are not confirmed are only likely.
"""

import math
import re
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate

from pgversus.errors import StudyError
from pgversus.statements.parsing import parsed
from pgversus.statements.statement import NO_VALUES, REJECTED, RecordedStatement, Sample, Suggestion
from pgversus.study.comparison import Arm, Comparison, unique_labels
from pgversus.study.design import Design
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from pgversus.study.statement_scripts import (
    IS_NEW,
    executed,
    planning_script,
    rolled_back,
    script_of,
    script_of_sample,
    values_of,
    with_literals_instead,
)
from pgversus.study.study import ApplicationStatement, Context, Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, PlannedStatement, QueryMode, Script, loads_of
from pgversus.text.redaction import code_without_secrets
from pgversus.text.sql import NAME, unquoted_name
from pgversus.text.translation import N_

_SCREENING_BLOCKS, _SCREENING_ROUNDS = 6, 2
"""One quad of windows for each start. Six starts are enough to estimate the noise of all statements together."""
DEFAULT_COVERAGE = 0.99
FACTOR = "statement"
"""The factor whose levels are the statements."""
PLANNING = "planning of all statements"
"""Name of the context that only plans the statements."""
_PLANNING_TEXT = "EXPLAIN of each statement"
_TOO_SMALL = N_("not needed to reach the coverage")
_TABLE = re.compile(rf"\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:ONLY\s+)?(?:({NAME})\.)?({NAME})", re.IGNORECASE)
_INSERT = re.compile(r"\s*INSERT\b", re.IGNORECASE)


def contexts_of(
    statements: Sequence[RecordedStatement],
    load: PgbenchWorkload,
    arms: Sequence[Arm],
    *,
    factors: tuple[str, ...],
    design: Design,
    coverage: float = 1.0,
    as_recorded: bool = False,
) -> tuple[tuple[Context, ...], tuple[ApplicationStatement, ...]]:
    """Return a context for each statement that can be executed, and a record of every statement.

    The last context is the planning of all of them. The contexts have the design of a screening.
    statements: largest total time first. load: runs each statement; its scripts are replaced. arms: their workload is
    replaced. design: the design of the confirmation. coverage: share of the time of all executable statements after
    which the remaining, smaller statements are left out. as_recorded: whether the logs decide which statements are
    prepared, not the query mode of the load.
    StudyError if no statement can be executed, for external servers, or without data.
    """
    _check_arms(arms)
    contexts: list[Context] = []
    known: list[ApplicationStatement] = []
    obstacles = _obstacles(statements, coverage)
    comparison = Comparison(arms=tuple(arms), factors=factors, design=screening(design))
    *names, planning = _names(statements)
    for name, one, obstacle in zip(names, statements, obstacles, strict=True):
        if not obstacle:
            own_load = replace(load, query_mode=_recorded_mode(one)) if as_recorded else load
            script = script_of(one, name, own_load.query_mode)
            contexts.append(_context(comparison, own_load, name, script, number=len(contexts) + 1))
        known.append(
            ApplicationStatement(
                name=name,
                text=one.text,
                context=None if obstacle else len(contexts),
                calls=one.calls,
                seconds=one.seconds,
                obstacle=obstacle,
                values=() if obstacle else values_of(one),
                needs_values=not obstacle and one.obstacle == NO_VALUES,
                rows_per_call=one.rows / one.calls if one.rows is not None and one.calls else None,
            )
        )
    if not contexts:
        raise _nothing_to_execute(obstacles)
    script = planning_script(map(script_in, contexts), planning, _without_values(known))
    contexts.append(_context(comparison, load, planning, script, number=len(contexts) + 1))
    known.append(_planning(planning, context=len(contexts)))
    return _with_shares(contexts, known), tuple(known)


def _recorded_mode(statement: RecordedStatement) -> QueryMode:
    return QueryMode.PREPARED if statement.is_prepared else QueryMode.SIMPLE


def with_values(study: Study, found: Mapping[str, Suggestion]) -> Study:
    """Return the study with a context for each class of values of every statement that needs values.

    found: what statistics suggest, by the text of the statement; statements without any values are left out. The
    classes share the time of the statement equally. StudyError if no statement is left.
    """
    by_number = {one.number: one for one in study.contexts}
    contexts: list[Context] = []
    known: list[ApplicationStatement] = []
    for one in study.statements:
        if one.context is None:
            known.append(one)
            continue
        context = by_number[one.context]
        if one.is_planning:
            if contexts:
                script = planning_script(map(script_in, contexts), one.name, _without_values(known))
                contexts.append(_with_script(context, one.name, script, number=len(contexts) + 1))
                known.append(replace(one, context=len(contexts)))
            continue
        if not one.needs_values:
            contexts.append(replace(context, number=len(contexts) + 1))
            known.append(replace(one, context=len(contexts)))
            continue
        # Stored texts are without secrets.
        suggested = found.get(one.text) or found.get(code_without_secrets(one.text), Suggestion())
        samples = suggested.samples
        for own, sample in zip(contexts_of_samples(one, context, samples), samples, strict=True):
            contexts.append(replace(own, number=len(contexts) + 1))
            known.append(_with_sample(one, sample, of=len(samples), context=len(contexts)))
        if not samples:
            known.append(replace(one, context=None, obstacle=suggested.obstacle, needs_values=False))
    if not contexts:
        raise _nothing_to_execute([one.obstacle for one in known])
    return replace(study, contexts=_with_shares(contexts, known), statements=tuple(known))


def _with_shares(contexts: Sequence[Context], known: Sequence[ApplicationStatement]) -> tuple[Context, ...]:
    """Return the contexts with their shares of the load; an unknown one counts like the mean, and planning like all."""
    times = [one.seconds for one in known if one.context is not None and one.seconds]
    total_s = math.fsum(times)
    if not total_s:
        return tuple(replace(one, share=1.0) for one in contexts)
    classes = Counter(one.text for one in known)
    usual_s = total_s / len(times)
    seconds = {one.context: total_s if one.is_planning else one.seconds or usual_s / classes[one.text] for one in known}
    return tuple(replace(one, share=seconds[one.number] / total_s) for one in contexts)


def prepared_texts(contexts: Iterable[Context]) -> dict[str, str]:
    """Return the statements with parameters that scripts prepare, by the label of their context."""
    scripts = {one.label: script_in(one) for one in contexts if not one.comparison.workload.runs_once}
    return {label: script.prepared.text for label, script in scripts.items() if script.prepared is not None}


def with_literals_in(study: Study, labels: Collection[str]) -> Study:
    """Return the study with values in place of the parameters in the contexts with these labels."""
    contexts = [_with_literals(one) if one.label in labels else one for one in study.contexts]
    return replace(study, contexts=tuple(contexts))


def _with_literals(context: Context) -> Context:
    ((_, name),) = context.levels
    return _with_script(context, name, with_literals_instead(script_in(context)), number=context.number)


def queries_in(study: Study) -> dict[int, str]:
    """Return the queries that are not rolled back, with their values, by number of their context."""
    numbers = {one.context for one in study.statements if not one.is_planning and not one.needs_values}
    contexts = [one for one in study.contexts if one.number in numbers]
    return {one.number: executed(script_in(one)) for one in contexts if not script_in(one).is_rolled_back}


def with_queries_rolled_back(study: Study, functions: Mapping[int, Sequence[str]]) -> Study:
    """Return the study with the queries of some contexts in transactions that are rolled back.

    functions: those that each of these queries calls and that may write, by number of its context.
    """
    contexts = [_rolled_back(one) if one.number in functions else one for one in study.contexts]
    statements = [
        one if one.context is None else replace(one, volatile_functions=tuple(functions.get(one.context, ())))
        for one in study.statements
    ]
    return replace(study, contexts=tuple(contexts), statements=tuple(statements))


def stored_functions(statements: Iterable[ApplicationStatement]) -> dict[int, tuple[str, ...]]:
    """Return the functions that may write in a stored study, by number of the context that calls them."""
    found = {one.context: one.volatile_functions for one in statements if one.volatile_functions}
    return {number: functions for number, functions in found.items() if number is not None}


def _rolled_back(context: Context) -> Context:
    script = rolled_back(script_in(context))
    arms = tuple(
        replace(arm, workload=replace(load, scripts=(script,)))
        for arm, load in zip(
            context.comparison.arms, loads_of([arm.workload for arm in context.comparison.arms]), strict=True
        )
    )
    return replace(context, comparison=replace(context.comparison, arms=arms))


def stored_values(statements: Iterable[ApplicationStatement]) -> dict[str, Suggestion]:
    """Return what statistics had suggested for the statements of a stored study, by text."""
    found: dict[str, Suggestion] = {}
    for one in statements:
        if one.value_class is not None:
            sample = Sample(text=one.text, values=one.values, value_class=one.value_class)
            found[one.text] = Suggestion(samples=(*found.get(one.text, Suggestion()).samples, sample))
        elif one.context is None and one.obstacle != NO_VALUES:
            found[one.text] = Suggestion(rejection=one.obstacle.removeprefix(f"{REJECTED}: "))
    return found


def contexts_of_samples(one: ApplicationStatement, context: Context, samples: Iterable[Sample]) -> list[Context]:
    """Return the context of a statement with each of these values, all with the number of the given context."""
    return [_of_sample(context, one.name, replace(sample, text=one.text)) for sample in samples]


def _of_sample(context: Context, name: str, sample: Sample) -> Context:
    """Return the context of a statement with these values. name: the name of the statement."""
    own_name = _with_class(name, sample)
    (load,) = loads_of([context.comparison.baseline.workload])
    script = script_of_sample(sample, parsed(sample.text).kind, own_name, load.query_mode)
    return _with_script(context, own_name, script, number=context.number)


def _with_script(context: Context, name: str, script: Script, *, number: int) -> Context:
    """Return a context with another script, in the query mode of the application."""
    (load,) = loads_of([context.comparison.baseline.workload])
    if script_in(context).prepared is not None:
        load = replace(load, query_mode=QueryMode.PREPARED, variables=())
    return replace(_context(context.comparison, load, name, script, number=number), share=context.share)


def _context(comparison: Comparison, load: PgbenchWorkload, name: str, script: Script, *, number: int) -> Context:
    """Return the context that runs a script on the arms of a comparison. name: the name of the statement."""
    own_load = replace(load, scripts=(script,), is_of_application=True)
    if script.prepared is not None:
        own_load = replace(own_load, query_mode=QueryMode.SIMPLE, variables=((IS_NEW, "1"),))
    arms = tuple(replace(arm, workload=own_load) for arm in comparison.arms)
    return Context(number=number, levels=((FACTOR, name),), comparison=replace(comparison, arms=arms))


def _planning(name: str, *, context: int) -> ApplicationStatement:
    return ApplicationStatement(
        name=name, text=_PLANNING_TEXT, context=context, calls=0, seconds=0.0, obstacle="", is_planning=True
    )


def _without_values(known: Iterable[ApplicationStatement]) -> Iterator[PlannedStatement]:
    """Yield the statements that are not executed because the values of their parameters are unknown."""
    for one in known:
        if one.context is None and one.obstacle == NO_VALUES:
            yield PlannedStatement(name=one.name, text=one.text)


def _with_sample(one: ApplicationStatement, sample: Sample, *, of: int, context: int) -> ApplicationStatement:
    """Return the statement with the values of a sample. of: number of samples that share its calls and time."""
    return replace(
        one,
        name=_with_class(one.name, sample),
        context=context,
        calls=one.calls // of,
        seconds=one.seconds / of,
        values=sample.values,
        value_class=sample.value_class,
        needs_values=False,
    )


def _with_class(name: str, sample: Sample) -> str:
    return f"{name}, {sample.value_class}"


def confirmation_study(study: Study, numbers: Sequence[int]) -> Study:
    """Return the study that measures contexts of a screening again. numbers: their numbers, in order, at least one."""
    by_number = {one.number: one for one in study.contexts}
    contexts = []
    for place, number in enumerate(numbers, start=1):
        context = by_number[number]
        comparison = replace(context.comparison, design=confirmation(context.comparison.design))
        contexts.append(replace(context, number=place, comparison=comparison))
    return _study_beneath(study, "confirmation", f"Confirmation of {study.name}", contexts)


def script_in(context: Context) -> Script:
    """Return the script of a statement's context."""
    (load,) = loads_of([context.comparison.baseline.workload])
    return load.scripts[0]


def side_effects_study(study: Study, contender: int, settings: Sequence[Setting], scripts: Collection[str]) -> Study:
    """Return the study of the effect of settings on some statements of a screening, on one of its targets.

    contender: index of the target's arm. scripts: names of the statements' scripts, at least one of them in the study.
    """
    contexts: list[Context] = []
    text = ", ".join(f"{one.name} = {one.value}" for one in settings)
    for context in study.contexts:
        target = context.comparison.arms[contender]
        if script_in(context).name not in scripts:
            continue
        own = {one.name: one for one in (*target.settings, *settings)}
        arms = (
            replace(target, index=0),
            replace(target, index=1, label=f"{target.label} with {text}", settings=tuple(own.values())),
        )
        comparison = replace(context.comparison, arms=arms, factors=tuple(setting.name for setting in settings))
        contexts.append(replace(context, number=len(contexts) + 1, comparison=comparison))
    return _study_beneath(study, "side effects", f"Side effects of {text}", contexts)


def _study_beneath(study: Study, name: str, title: str, contexts: Sequence[Context]) -> Study:
    """Return a study of these contexts that follows from the screening. name: appended to the screening's name."""
    return replace(
        study,
        name=f"{study.name}: {name}",
        title=title,
        contexts=tuple(contexts),
        kind=StudyKind.STUDY,
        statements=(),
    )


def screening(design: Design) -> Design:
    """Return the design of the first pass over all statements: a fixed number of blocks, each of one quad."""
    return replace(design, fixed_blocks=_SCREENING_BLOCKS, rounds=_SCREENING_ROUNDS, rounds_are_given=True)


def confirmation(design: Design) -> Design:
    """Return the usual design, with the margin, the budget and the seed of a screening."""
    return replace(design, fixed_blocks=None, rounds=Design().rounds, rounds_are_given=False)


def _check_arms(arms: Sequence[Arm]) -> None:
    """Raise StudyError for arms without data, and for external servers, since statements may have any effect."""
    if external := [arm.label for arm in arms if isinstance(arm.server, RunningServer)]:
        raise StudyError(
            "an upgrade check executes statements only on servers that pgversus starts itself",
            slug="study-upgrade-running-server",
            where=", ".join(external),
            found="an external server",
            expected="versions, builds or bin directories",
            to_do="dump the database (pg_dump -Fc -f app.dump DATABASE), then use --restore app.dump and name the "
            "server by its version",
        )
    if any(arm.dataset.is_empty for arm in arms):
        raise StudyError(
            "the servers have no data",
            slug="study-no-tables",
            where=arms[0].label,
            found="none of --restore, --setup, -i",
            expected="the data that the statements read",
            to_do="dump the database (pg_dump -Fc -f app.dump DATABASE), then use --restore app.dump",
        )


def _obstacles(statements: Sequence[RecordedStatement], coverage: float) -> list[str]:
    """Return the reason why each statement is left out; an empty text if it is executed."""
    known = [_obstacle(one) for one in statements]
    # The time of statements that cannot be executed neither counts nor has to be covered.
    seconds = [0.0 if obstacle else one.seconds for one, obstacle in zip(statements, known, strict=True)]
    total_s, before = math.fsum(seconds), accumulate(seconds, initial=0.0)
    return [
        # Statements from files have no number of calls, so they cannot count as small.
        obstacle or (_TOO_SMALL if one.calls and coverage < 1 and before_s >= coverage * total_s > 0 else "")
        for one, obstacle, before_s in zip(statements, known, before, strict=False)
    ]


def _obstacle(one: RecordedStatement) -> str:
    """Return why a statement cannot be executed. Values can be chosen later, except for INSERT, whose keys exist."""
    may_be_chosen = one.obstacle == NO_VALUES and not _INSERT.match(one.text)
    return "" if may_be_chosen else one.obstacle


def _names(statements: Iterable[RecordedStatement]) -> list[str]:
    """Return a name for each statement (its own, or its number and first table), and last the name of the planning."""
    names = [one.name or _numbered(number, one) for number, one in enumerate(statements, start=1)]
    return unique_labels([*names, PLANNING])


def _numbered(number: int, statement: RecordedStatement) -> str:
    table = _TABLE.search(statement.text)
    return f"{number}-{'.'.join(unquoted_name(part) for part in table.groups() if part)}" if table else str(number)


def _nothing_to_execute(obstacles: Sequence[str]) -> StudyError:
    reasons = dict.fromkeys(obstacles)
    return StudyError(
        "no statement can be executed",
        slug="study-no-statement",
        where="--statements",
        found="; ".join(reasons) or "no statements",
        expected="at least one SELECT, INSERT, UPDATE, DELETE or MERGE whose values are known",
        to_do="add a log with durations and parameters (log_min_duration_statement), or .sql files: "
        "pgversus statements FILE shows what is known",
    )
