"""What is run, in its own words, and the command that runs it."""

import shlex
from collections.abc import Iterator, Sequence
from pathlib import PurePath

from pgversus.report.answer import Answer
from pgversus.report.article.cases import Case
from pgversus.report.article.fences import fenced
from pgversus.report.markdown import escaped, paragraph
from pgversus.report.small_print import load_command, restarts
from pgversus.study.workload import Operation, PgbenchWorkload, Script, Step, Workload
from pgversus.text.translation import tell, tell_number
from pgversus.text.units import duration


def work(case: Case) -> Iterator[str]:
    """The text of each script or step, then the command of each load, as blocks of code."""
    shown: set[str] = set()
    for workload in case.workloads:
        for block in _texts(workload):
            if block not in shown:
                shown.add(block)
                yield block
    commands = dict.fromkeys(command for one in case.answers for command in _commands(one))
    if commands:
        yield paragraph(tell("The load of each window, as one would type it:"))
        yield fenced("\n".join(commands), "sh")
        yield paragraph(_windows(case.answers))


def statement(script: Script) -> str:
    """The text of a script; of a built-in that pgbench has it."""
    if script.text is None:
        return paragraph(tell("pgbench's built-in script {name}.", name=script.name))
    name = PurePath(script.name).name
    weight = "" if script.weight is None else tell(" (weight {weight})", weight=script.weight)
    return f"{escaped(name)}{weight}:\n\n{fenced(script.text, 'sql')}"


def _texts(workload: Workload) -> Iterator[str]:
    if isinstance(workload, PgbenchWorkload):
        yield from (statement(script) for script in workload.scripts)
        return
    yield paragraph(tell("Timed, in one session:"))
    yield from map(_step, workload.steps)
    if workload.verify:
        yield paragraph(tell("What must hold afterwards, or the trial counts as failed:"))
        yield fenced("\n".join(_ended(sql) for sql in workload.verify), "sql")


def _step(step: Step) -> str:
    if step.sql is None:
        return fenced(shlex.join(step.program), "sh")
    return fenced(_ended(step.sql), "sql")


def _ended(sql: str) -> str:
    return f"{sql.strip().rstrip('; ')};"


def _commands(one: Answer) -> Iterator[str]:
    for arm in one.comparison.arms:
        if not isinstance(arm.workload, Operation):
            yield load_command(arm.workload, one.comparison.design)


def _windows(answers: Sequence[Answer]) -> str:
    """How often that is done."""
    designs = [one.comparison.design for one in answers]
    rounds = {count for one in answers for count in one.window_counts or {one.comparison.design.rounds}}
    if len(rounds) > 1:
        return tell("Each block has several such windows of every arm, in an order that cancels drift.")
    warm_up = duration(designs[0].warm_up_s)
    if not restarts(answers):
        return tell_number(
            "Each block has {number} such window of every arm, after it was warmed up for {warm_up}.",
            "Each block has {number} such windows of every arm, in an order that cancels drift, after it was warmed up "
            "for {warm_up}.",
            rounds.pop(),
            warm_up=warm_up,
        )
    return tell_number(
        "Each block has {number} such window of every arm, on a server just started and warmed up for {warm_up}.",
        "Each block has {number} such windows of every arm, in an order that cancels drift, on a server just started "
        "and warmed up for {warm_up}.",
        rounds.pop(),
        warm_up=warm_up,
    )
