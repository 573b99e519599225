"""Whether two contexts ask the same: by what is run, on what, and what is judged, never by what it is called."""

from collections.abc import Collection, Hashable, Iterator
from pathlib import PurePath

from pgversus.report.answer import Answer
from pgversus.report.sentences import metric_words
from pgversus.report.side_by_side.put import Unlike
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.workload import Operation, PgbenchWorkload, Script, Step, Workload, threads_used
from pgversus.text.translation import listed, tell

NAMES = frozenset({"workload", "load", "dataset", "scale", "cache"})
"""Factors whose levels are names of something whose content is looked at."""

Reason = tuple[Unlike, str]


def question_key(one: Answer, common: Collection[str]) -> Hashable:
    """Equal for two contexts that ask the same. common: factors that both studies fix, by whose levels it must be."""
    comparison = one.comparison
    return (
        work_key(comparison.baseline),
        one.analysis.metric,
        comparison.cache,
        tuple(sorted((name, level) for name, level in one.context.levels if name in common)),
    )


def work_key(arm: Arm) -> Hashable:
    """Equal for two arms that do the same work on the same data."""
    return _workload_key(arm.workload), _dataset_key(arm)


def common_factors(ones: Collection[Answer], others: Collection[Answer]) -> set[str]:
    """Those that both studies fix and whose levels are more than names."""
    return (_factors(ones) & _factors(others)) - NAMES


def reasons(one: Answer, other: Answer, common: Collection[str]) -> Iterator[Reason]:
    """In what two contexts do not ask the same, A's first."""
    a, b = one.comparison, other.comparison
    yield from _of_workloads(a, b)
    yield from _of_datasets(a, b)
    if one.analysis.metric is not other.analysis.metric:
        names = [metric_words(found.analysis.metric) for found in (one, other)]
        yield Unlike.METRIC, tell("metric differs: {a} in A, {b} in B", a=names[0], b=names[1])
    if a.cache is not b.cache:
        yield Unlike.CACHE, tell("cache differs: {a} in A, {b} in B", a=a.cache.value, b=b.cache.value)
    levels = dict(other.context.levels)
    for name, level in one.context.levels:
        if name in common and levels.get(name, level) != level:
            words = tell("{name} differs: {a} in A, {b} in B", name=name, a=level, b=levels[name])
            yield Unlike.LEVELS, words


def _factors(answers: Collection[Answer]) -> set[str]:
    return {name for one in answers for name, _ in one.context.levels}


def _workload_key(workload: Workload) -> Hashable:
    if isinstance(workload, Operation):
        return "operation", tuple(map(_step_key, workload.steps))
    return (
        "load",
        tuple((_script_key(script), script.weight or 1) for script in workload.scripts),
        workload.clients,
        threads_used(workload.threads, workload.clients),
        workload.query_mode,
        tuple(sorted(workload.variables)),
        workload.rate,
    )


def _script_key(script: Script) -> Hashable:
    """What it says; of a built-in its name."""
    return (script.name, None) if script.text is None else (None, script.text.strip())


def _step_key(step: Step) -> Hashable:
    return None if step.sql is None else " ".join(step.sql.split()).rstrip("; "), step.program


def _dataset_key(arm: Arm) -> Hashable:
    data = arm.dataset
    return (_scale(arm), _hashes(data.setup_files), _hashes(data.prepare), tuple(sorted(data.variables)))


def _scale(arm: Arm) -> int | None:
    """Of pgbench's tables, or what a script is told of it."""
    told = arm.workload.scale if isinstance(arm.workload, PgbenchWorkload) else None
    return arm.dataset.pgbench_scale if arm.dataset.pgbench_scale is not None else told


def _hashes(files: Collection[SetupFile]) -> tuple[str, ...]:
    return tuple(file.sha256 for file in files)


def _of_workloads(a: Comparison, b: Comparison) -> Iterator[Reason]:
    if _workload_key(a.workload) == _workload_key(b.workload):
        return
    if isinstance(a.workload, Operation) or isinstance(b.workload, Operation):
        what = tell("an operation is not a load, nor another operation")
    else:
        what = listed(_of_loads(a.workload, b.workload))
    yield Unlike.WORKLOAD, tell("workload differs: {what}", what=what)


def _of_loads(a: PgbenchWorkload, b: PgbenchWorkload) -> Iterator[str]:
    if len(a.scripts) != len(b.scripts):
        yield _each(tell("scripts"), len(a.scripts), len(b.scripts))
    else:
        for one, other in zip(a.scripts, b.scripts, strict=True):
            if _script_key(one) != _script_key(other):
                yield tell("the text of the script ({a} in A, {b} in B)", a=_name(one.name), b=_name(other.name))
            elif (one.weight or 1) != (other.weight or 1):
                yield _each(tell("weight of {script}", script=_name(one.name)), one.weight or 1, other.weight or 1)
    of_pgbench = (
        (tell("clients"), a.clients, b.clients),
        (tell("threads"), threads_used(a.threads, a.clients), threads_used(b.threads, b.clients)),
        (tell("query mode"), a.query_mode.value, b.query_mode.value),
        (tell("variables"), _variables(a.variables), _variables(b.variables)),
        (tell("rate"), _rate(a), _rate(b)),
    )
    yield from (_each(*row) for row in of_pgbench if row[1] != row[2])


def _of_datasets(a: Comparison, b: Comparison) -> Iterator[Reason]:
    one, other = a.baseline, b.baseline
    if _dataset_key(one) == _dataset_key(other):
        return
    what = [_each(tell("scale"), _scale(one) or tell("none"), _scale(other) or tell("none"))] * (
        _scale(one) != _scale(other)
    )
    for name, first, second in _files(one.dataset, other.dataset):
        if _hashes(first) != _hashes(second):
            what.append(tell("{content} ({a} in A, {b} in B)", content=name, a=_paths(first), b=_paths(second)))
    variables = _variables(one.dataset.variables), _variables(other.dataset.variables)
    if variables[0] != variables[1]:
        what.append(_each(tell("variables"), *variables))
    yield Unlike.DATASET, tell("dataset differs: {what}", what=listed(what))


def _files(one: Dataset, other: Dataset) -> Iterator[tuple[str, tuple[SetupFile, ...], tuple[SetupFile, ...]]]:
    yield tell("the content of setup files"), one.setup_files, other.setup_files
    yield tell("the content of files that prepare the state"), one.prepare, other.prepare


def _each(name: str, a: object, b: object) -> str:
    return tell("{name} {a} in A, {b} in B", name=name, a=a, b=b)


def _name(path: str) -> str:
    return PurePath(path).name


def _paths(files: Collection[SetupFile]) -> str:
    return listed(_name(file.path) for file in files) or tell("none")


def _variables(variables: Collection[tuple[str, str]]) -> str:
    return listed(f"{name}={value}" for name, value in sorted(variables)) or tell("none")


def _rate(workload: PgbenchWorkload) -> str:
    return tell("none") if workload.rate is None else f"{workload.rate:g}"
