"""The statements of an application, each as a script of pgbench and a context of an upgrade check.

One more context plans all of them without executing them, so that planning time has a finding of its own. A check has
two studies. Screening runs the same few blocks of every statement. What differs there is measured again in the fresh
blocks of the confirmation, under the usual rule, before it is reported.
"""

import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import accumulate, count

from pgversus.errors import StudyError
from pgversus.statements.literals import literal, with_literals
from pgversus.statements.parsing import parsed
from pgversus.statements.statement import NO_VALUES, RecordedStatement, Sample, StatementKind
from pgversus.study.comparison import Arm, Comparison, unique_labels
from pgversus.study.dataset import Statistics
from pgversus.study.design import MOST_CONTENDERS, Design
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from pgversus.study.study import ApplicationStatement, Context, Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, Script, loads_of
from pgversus.text.sql import quoted_parts
from pgversus.text.translation import N_

_SCREENING_BLOCKS, _SCREENING_ROUNDS = 6, 2
# One quad of windows for each start. Six starts tell apart what is typical for all statements together.
DEFAULT_COVERAGE = 0.99
FACTOR = "statement"
"""The factor whose levels are the statements."""
SCRIPT = ".sql"
"""What follows the name of a statement in that of its script."""
PLANNING = "planning of all statements"
"""Name of the context that only plans them."""
_PLANNING_TEXT = "EXPLAIN of each statement"
_STATISTICS = {Statistics.NONE: "without statistics", Statistics.KEPT: "with kept statistics"}
_TOO_SMALL = N_("smaller than the coverage requires")
_BEGIN, _ROLLBACK = "BEGIN;\n", "ROLLBACK;\n"
_TABLE = re.compile(r"\b(?:FROM|INTO|UPDATE|JOIN)\s+(?:ONLY\s+)?((?:\w+\.)?\w+)", re.IGNORECASE)
_INSERT = re.compile(r"\s*INSERT\b", re.IGNORECASE)
_VARIABLE = re.compile(r"(?<!:):(?=\w)")
"""What pgbench would read as a variable; a cast has two colons."""


def with_statistics(arms: Sequence[Arm], kinds: Sequence[Statistics]) -> tuple[Arm, ...]:
    """Return the arms, and each target once more with every one of these kinds of statistics.

    StudyError if that is more than a comparison may have.
    """
    targets = [one for arm in arms[1:] for one in (arm, *(_with_other_statistics(arm, kind) for kind in kinds))]
    if len(targets) > MOST_CONTENDERS:
        raise StudyError(
            "too many targets for one check",
            slug="study-too-many-arms",
            where="servers and --statistics",
            found=f"{len(targets)} targets",
            expected=f"at most {MOST_CONTENDERS}: their verdicts share an error rate of 5 %",
            to_do="check fewer servers or kinds of statistics at a time",
        )
    return arms[0], *(replace(one, index=index) for index, one in enumerate(targets, start=1))


def _with_other_statistics(arm: Arm, kind: Statistics) -> Arm:
    label = f"{arm.label} {_STATISTICS[kind]}"
    return replace(arm, label=label, dataset=replace(arm.dataset, statistics=kind))


def contexts_of(
    statements: Sequence[RecordedStatement],
    load: PgbenchWorkload,
    arms: Sequence[Arm],
    *,
    factors: tuple[str, ...],
    design: Design,
    coverage: float = 1.0,
) -> tuple[tuple[Context, ...], tuple[ApplicationStatement, ...]]:
    """Return a context for each statement that can be executed, and what the study knows of every statement.

    The last context is the planning of all of them. The contexts have the design of a screening.
    statements: largest total time first. load: runs each statement; its scripts are replaced. arms: likewise.
    design: for what is confirmed. coverage: share of the total time from which the smaller statements are left out.
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
            # Until its values are chosen, the text stands for the script.
            text = script_text(one) if one.obstacle != NO_VALUES else one.text
            contexts.append(_context(comparison, load, name, text, number=len(contexts) + 1))
        known.append(
            ApplicationStatement(
                name=name,
                text=one.text,
                context=None if obstacle else len(contexts),
                calls=one.calls,
                seconds=one.seconds,
                obstacle=obstacle,
                needs_values=not obstacle and one.obstacle == NO_VALUES,
            )
        )
    if not contexts:
        raise _nothing_to_execute([one.obstacle for one in statements])
    contexts.append(_context(comparison, load, planning, planning_text(contexts), number=len(contexts) + 1))
    known.append(_planning(planning, context=len(contexts)))
    return tuple(contexts), tuple(known)


def with_values(study: Study, found: Mapping[str, Sequence[Sample]]) -> Study:
    """Return the study with a context for each class of values of every statement that needs values.

    found: executions that statistics suggest, by the text of the statement; statements without any are left out. The
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
                contexts.append(_with_script(context, one.name, planning_text(contexts), number=len(contexts) + 1))
                known.append(replace(one, context=len(contexts)))
            continue
        if not one.needs_values:
            contexts.append(replace(context, number=len(contexts) + 1))
            known.append(replace(one, context=len(contexts)))
            continue
        samples = found.get(one.text, ())
        for sample in samples:
            contexts.append(_of_sample(context, one.name, sample, number=len(contexts) + 1))
            known.append(_with_sample(one, sample, of=len(samples), context=len(contexts)))
        if not samples:
            known.append(replace(one, context=None, obstacle=NO_VALUES, needs_values=False))
    if not contexts:
        raise _nothing_to_execute([one.obstacle for one in known])
    return replace(study, contexts=tuple(contexts), statements=tuple(known))


def stored_values(statements: Iterable[ApplicationStatement]) -> dict[str, list[Sample]]:
    """Return the executions that statistics had suggested for the statements of a stored study, by text."""
    found: dict[str, list[Sample]] = {}
    for one in statements:
        if one.value_class is not None:
            sample = Sample(text=one.text, values=one.values, value_class=one.value_class)
            found.setdefault(one.text, []).append(sample)
    return found


def _of_sample(context: Context, name: str, sample: Sample, *, number: int) -> Context:
    """Return the context of a statement with these values. name: of the statement."""
    text = _script_text(sample, parsed(sample.text).kind)
    return _with_script(context, _with_class(name, sample), text, number=number)


def _with_script(context: Context, name: str, text: str, *, number: int) -> Context:
    """Return a context with another script."""
    (load,) = loads_of([context.comparison.baseline.workload])
    return _context(context.comparison, load, name, text, number=number)


def _context(comparison: Comparison, load: PgbenchWorkload, name: str, text: str, *, number: int) -> Context:
    """Return the context that runs a script on the arms of a comparison. name: of the statement."""
    own_load = replace(load, scripts=(Script(name=f"{name}{SCRIPT}", text=text),))
    arms = tuple(replace(arm, workload=own_load) for arm in comparison.arms)
    return Context(number=number, levels=((FACTOR, name),), comparison=replace(comparison, arms=arms))


def _planning(name: str, *, context: int) -> ApplicationStatement:
    return ApplicationStatement(
        name=name, text=_PLANNING_TEXT, context=context, calls=0, seconds=0.0, obstacle="", is_planning=True
    )


def _with_sample(one: ApplicationStatement, sample: Sample, *, of: int, context: int) -> ApplicationStatement:
    """Return a statement with values, as one of several such."""
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
    """Return the study that measures contexts of a screening again. numbers: of these, in order, at least one."""
    by_number = {one.number: one for one in study.contexts}
    contexts = []
    for place, number in enumerate(numbers, start=1):
        context = by_number[number]
        comparison = replace(context.comparison, design=confirmation(context.comparison.design))
        contexts.append(replace(context, number=place, comparison=comparison))
    return _study_beneath(study, "confirmation", f"Confirmation of {study.name}", contexts)


def script_name(context: Context) -> str:
    """Return the name of the script of a statement's context."""
    (load,) = loads_of([context.comparison.baseline.workload])
    return load.scripts[0].name


def side_effects_study(study: Study, contender: int, settings: Sequence[Setting], scripts: Collection[str]) -> Study:
    """Return the study of what settings do to some statements of a screening on one of its targets.

    contender: index of the target's arm. scripts: names of the scripts of the statements, at least one of the study.
    """
    contexts: list[Context] = []
    text = ", ".join(f"{one.name} = {one.value}" for one in settings)
    for context in study.contexts:
        target = context.comparison.arms[contender]
        if script_name(context) not in scripts:
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
    """Return a study of these contexts that follows from the screening. name: appended to that of the screening."""
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


def script_text(statement: RecordedStatement) -> str:
    """Return the script that executes a statement with values of the application; one that writes is rolled back."""
    return _script_text(_typical(statement.samples) or Sample(text=statement.text), statement.kind)


def _script_text(sample: Sample, kind: StatementKind) -> str:
    sql = pgbench_text(with_literals(sample.text, sample.values)).strip().rstrip("; \n\t")
    return f"{_BEGIN}{sql};\n{_ROLLBACK}" if kind is StatementKind.WRITES else f"{sql};\n"


def planning_text(contexts: Iterable[Context]) -> str:
    """Return the script that plans the statements of these contexts without executing them.

    An error in one of them, which its own context reports, does not keep the others from being planned.
    """
    explained = [literal(f"EXPLAIN (COSTS OFF) {_executed(context)}") for context in contexts]
    blocks = [f"BEGIN EXECUTE {text}; EXCEPTION WHEN OTHERS THEN NULL; END;\n" for text in explained]
    body = "".join(["BEGIN\n", *blocks, "END\n"])
    quote = next(text for number in count(1) if (text := f"$plan{number}$") not in body)
    return f"DO {quote}\n{body}{quote};\n"


def _executed(context: Context) -> str:
    """Return the statement that a context executes."""
    (load,) = loads_of([context.comparison.baseline.workload])
    text = load.scripts[0].text or ""
    return text.removeprefix(_BEGIN).removesuffix(_ROLLBACK).removesuffix(";\n")


def pgbench_text(sql: str) -> str:
    """Return SQL of the same meaning in which pgbench finds no variables: it looks for them even inside of strings."""
    pieces, done = [], 0
    for begin, end in quoted_parts(sql):
        pieces += [_VARIABLE.sub(": ", sql[done:begin]), _quoted_text(sql[begin:end])]
        done = end
    return "".join([*pieces, _VARIABLE.sub(": ", sql[done:])])


def _quoted_text(part: str) -> str:
    """Return a string, a quoted name or a comment without a colon that begins a variable of pgbench."""
    if part.startswith(("--", "/*")):
        return " "
    if not _VARIABLE.search(part):
        return part
    if part[0] in "eE":
        return _VARIABLE.sub(r"\\x3A", part)
    if part.startswith("$"):
        tag = part[: part.index("$", 1) + 1]
        return _escape_string(part[len(tag) : -len(tag)])
    return _escape_string(part[1:-1].replace("''", "'")) if part.startswith("'") else part


def _escape_string(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("'", "''")
    return " E'" + re.sub(_VARIABLE, r"\\x3A", escaped) + "'"


def _check_arms(arms: Sequence[Arm]) -> None:
    """Raise StudyError for external servers, on which no statement of unknown effect is executed, and without data."""
    if external := [arm.label for arm in arms if isinstance(arm.server, RunningServer)]:
        raise StudyError(
            "an upgrade check executes statements only on servers that pgversus starts itself",
            slug="study-upgrade-running-server",
            where=", ".join(external),
            found="an external server",
            expected="versions, builds or bin directories",
            to_do="pg_dump -Fc -f app.dump DATABASE, then --restore app.dump with the version of that server",
        )
    if any(arm.dataset.is_empty for arm in arms):
        raise StudyError(
            "the servers have no data",
            slug="study-no-tables",
            where="upgrade-check",
            found="none of --restore, --setup, -i",
            expected="the data that the statements read",
            to_do="pg_dump -Fc -f app.dump DATABASE, then --restore app.dump",
        )


def _obstacles(statements: Sequence[RecordedStatement], coverage: float) -> list[str]:
    """Return why each statement is left out; empty texts for those that are executed."""
    total_s = math.fsum(one.seconds for one in statements)
    before = accumulate((one.seconds for one in statements), initial=0.0)
    return [
        # How often a statement of a file runs is unknown: it is not small.
        _obstacle(one) or (_TOO_SMALL if one.calls and total_s and before_s >= coverage * total_s else "")
        for one, before_s in zip(statements, before, strict=False)
    ]


def _obstacle(one: RecordedStatement) -> str:
    """Return why a statement cannot be executed. Values may still be chosen, except for INSERT, whose keys exist."""
    may_be_chosen = one.obstacle == NO_VALUES and not _INSERT.match(one.text)
    return "" if may_be_chosen else one.obstacle


def _typical(samples: Sequence[Sample]) -> Sample | None:
    """Return the median execution."""
    return samples[(len(samples) - 1) // 2] if samples else None


def _names(statements: Iterable[RecordedStatement]) -> list[str]:
    """Return a name for each statement, its own or its number with the first table that it names, and for planning."""
    names = [one.name or _numbered(number, one) for number, one in enumerate(statements, start=1)]
    return unique_labels([*names, PLANNING])


def _numbered(number: int, statement: RecordedStatement) -> str:
    table = _TABLE.search(statement.text)
    return f"{number}-{table[1]}" if table else str(number)


def _nothing_to_execute(obstacles: Sequence[str]) -> StudyError:
    reasons = dict.fromkeys(obstacles)
    return StudyError(
        "no statement can be executed",
        slug="study-no-statement",
        where="--statements",
        found="; ".join(reasons) or "no statements",
        expected="at least one SELECT, INSERT, UPDATE, DELETE or MERGE whose values are known",
        to_do="add a log with durations and parameters (log_min_duration_statement), or a directory of .sql files: "
        "pgversus statements FILE shows what is known",
    )
