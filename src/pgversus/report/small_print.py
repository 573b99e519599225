"""How it was measured, in a few lines: what a reader needs to believe a number or to repeat it."""

import shlex
from collections.abc import Iterable, Iterator, Sequence

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.units import count, duration, percent, size
from pgversus.study.build_options import USUAL_MANNER, BuildSystem
from pgversus.study.comparison import Comparison
from pgversus.study.operation import Operation, Step
from pgversus.study.preparation import RUNNING_SERVER, ArmFacts
from pgversus.study.workload import PgbenchWorkload

_MOST_SHOWN = 8
_COPIES = {"reflink": "data copied by reflink", "copy": "data copied in full"}


def comparison_lines(answer: Answer) -> list[str]:
    """Of one comparison: the command of a window, builds, host, blocks and windows, and where the results are."""
    comparison, design = answer.comparison, answer.comparison.design
    arms = ", ".join(
        f"{arm.label} = {build_words(facts)}" for arm, facts in zip(comparison.arms, answer.arms, strict=True)
    )
    looks = (
        "one look after a fixed number of blocks"
        if design.fixed_blocks is not None
        else "wrong at most 1 time in 20, however often one looked"
    )
    return [
        *_work(answer),
        arms,
        *_changed_source([answer]),
        *_host(answer),
        (
            f"{count(len(answer.blocks), 'block')} of {_windows(comparison)} for each arm, {_restarts([answer])}"
            f"margin ±{percent(design.margin)}, seed {design.seed}; {looks}"
        ),
        *_own_blocks([answer], "values are of all blocks of an arm, changes of the blocks that hold both arms"),
        *_measuring([answer]),
        *_repeated([answer]),
        f"results: {answer.results}",
    ]


def study_lines(answer: StudyAnswer) -> list[str]:
    """The same of a study: what its contexts have in common is said once."""
    answers = answer.answers
    if not answers:
        return []
    builds = (build_words(facts) for one in answers for facts in one.arms)
    windows = (_windows(one.comparison) for one in answers)
    clients = [one.client for one in answers if isinstance(one.comparison.workload, PgbenchWorkload)]
    margins = (f"±{percent(one.comparison.design.margin)}" for one in answers)
    return [
        _listed(builds),
        *_changed_source(answers),
        *([_listed(clients)] if clients else []),
        *_host(answers[0]),
        (
            f"blocks of {_listed(windows, ' or ')} for each arm, {_restarts(answers)}"
            f"margin {_listed(margins, ' or ')}, seed {answer.study.seed}"
        ),
        *_own_blocks(
            answers, "means of an arm are of all its blocks, differences and ratios of those that hold both arms"
        ),
        *_measuring(answers),
        *_repeated(answers),
    ]


def build_words(facts: ArmFacts) -> str:
    """`PostgreSQL 17.11 (source, gcc 12.2.0, +cassert)`; where it is no release, also what it was built from."""
    made = facts.built_from
    if made is None:
        return f"PostgreSQL {facts.version} ({facts.origin}, {facts.compiler})"
    parts = [facts.origin, facts.compiler, *(f"+{word}" for word in made.options), made.source]
    parts += [f"{made.profile} build"] if made.profile != USUAL_MANNER.profile else []
    parts += [made.system] if made.system != BuildSystem.CONFIGURE else []
    return f"PostgreSQL {facts.version} ({', '.join(parts)})"


def _changed_source(answers: Sequence[Answer]) -> Iterator[str]:
    """Between two commits of one repository: how much has changed, each pair once."""
    lines = (
        f"{arm.label} against {one.comparison.baseline.label}: {made.diff_stat.splitlines()[-1].strip()}"
        for one in answers
        for arm, facts in zip(one.comparison.arms, one.arms, strict=True)
        if (made := facts.built_from) is not None and made.diff_stat
    )
    yield from dict.fromkeys(lines)


def _work(answer: Answer) -> Iterator[str]:
    """What was timed, and what made the state in which it began."""
    workload, dataset = answer.comparison.workload, answer.comparison.dataset
    if isinstance(workload, PgbenchWorkload):
        yield f"{_command(workload, answer.comparison.design.window_s)} ({answer.client})"
        return
    for step in workload.steps:
        yield f"timed: {_typed(step)}"
    if dataset.prepare:
        given = shlex.join(f"{name}={value}" for name, value in dataset.variables)
        files = ", ".join(file.path for file in dataset.prepare)
        yield f"prepared by {files}{f' with {given}' if given else ''}"


def _typed(step: Step) -> str:
    """The statement as one would type it into psql, or the program as one would type it into a shell."""
    if step.sql is None:
        return shlex.join(step.program)
    return f"{' '.join(step.sql.split()).rstrip('; ')};"


def _command(workload: PgbenchWorkload, seconds: float) -> str:
    """The load of one window as one would type it into a shell; which database is left to the reader."""
    scripts: list[str] = []
    for script in workload.scripts:
        weight = "" if script.weight is None else f"@{script.weight}"
        scripts += ["-b" if script.is_builtin else "-f", f"{script.name}{weight}"]
    return shlex.join(["pgbench", "-n", "-T", f"{seconds:g}", *workload.pgbench_arguments(scripts)])


def _host(answer: Answer) -> Iterator[str]:
    """What the host told of itself; nothing of a host that told nothing."""
    host = answer.host
    cpus, memory = host.get("cpus_usable"), host.get("memory_bytes")
    parts = [
        f"{count(cpus, 'processor')}" if cpus else None,
        host.get("cpu_model"),
        f"{size(memory)} of memory" if memory else None,
        host.get("kernel"),
        host.get("file_system"),
        _COPIES.get(str(host.get("copies"))),
    ]
    if told := [str(part) for part in parts if part]:
        yield f"host: {', '.join(told)}"


def _own_blocks(answers: Sequence[Answer], words: str) -> Iterator[str]:
    """How to read values of arms beside ratios where an arm that was decided got no more blocks."""
    if any(
        len({sum(block.has(arm.index) for block in one.blocks) for arm in one.comparison.arms}) > 1 for one in answers
    ):
        yield words


def _measuring(answers: Sequence[Answer]) -> Iterator[str]:
    wall_s = sum(one.wall_s for one in answers)
    measured_s = sum(trial.seconds for one in answers for block in one.blocks for trial in block.trials.values())
    if wall_s > 0:
        share = f"{100 * measured_s / wall_s:.0f} %"
        yield f"measuring {share} of the {duration(wall_s)}; the rest went into copies, starts and warm-up"


def _repeated(answers: Sequence[Answer]) -> Iterator[str]:
    repeated = sum(block.repeated_rounds for one in answers for block in one.blocks)
    if repeated:
        has_windows = any(isinstance(one.comparison.workload, PgbenchWorkload) for one in answers)
        what = f"{count(repeated, 'round')}{' of windows' if has_windows else ''}"
        yield f"{what} measured again, because something else had the host"


def _windows(comparison: Comparison) -> str:
    design = comparison.design
    if isinstance(comparison.workload, Operation):
        return "one operation on a fresh copy"
    return f"{count(design.rounds, 'window')} of {duration(design.window_s)}"


def _restarts(answers: Iterable[Answer]) -> str:
    is_ours = all(facts.origin != RUNNING_SERVER for one in answers for facts in one.arms)
    return "servers restarted for each block, " if is_ours else ""


def _listed(texts: Iterable[str], joint: str = ", ") -> str:
    """Each once, in order; of many only the first."""
    different = list(dict.fromkeys(texts))
    rest = len(different) - _MOST_SHOWN
    return joint.join(different[:_MOST_SHOWN]) + (f" and {rest} more" if rest > 0 else "")
