"""Match the contexts and contenders of two studies, and explain why the others do not match.

Contexts match by workload, data and judged metric, never by name.
"""

from collections import defaultdict
from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import PurePath

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.report.sentences import metric_text, unanswered_text
from pgversus.report.side_by_side.agreement import MismatchReason, NotComparable
from pgversus.stats.analysis import ContenderResult
from pgversus.study.comparison import Arm, Comparison
from pgversus.study.dataset import SetupFile
from pgversus.study.workload import Operation, PgbenchWorkload, Script, Step, Workload, threads_used
from pgversus.text.translation import _, both, listed

NAMES = frozenset({"workload", "load", "dataset", "scale", "cache"})
"""Factors whose levels are only names; their content is compared instead."""

Reason = tuple[MismatchReason, str]


def question_key(one: Answer, common: Collection[str]) -> Hashable:
    """Return a key that is equal for matching contexts. common: factors fixed by both studies, with equal levels."""
    comparison = one.comparison
    return (
        work_key(comparison.baseline),
        one.analysis.metric,
        comparison.cache,
        tuple(sorted((name, level) for name, level in one.context.levels if name in common)),
    )


def work_key(arm: Arm) -> Hashable:
    """Return a key that is equal for two arms with the same work on the same data."""
    return _workload_key(arm.workload), _dataset_key(arm)


def reasons(one: Answer, other: Answer, common: Collection[str]) -> Iterator[Reason]:
    """Yield the reasons why two contexts do not match; `one` is from A."""
    a, b = one.comparison, other.comparison
    yield from _of_workloads(a, b)
    yield from _of_datasets(a, b)
    if one.analysis.metric is not other.analysis.metric:
        names = [metric_text(found.analysis.metric) for found in (one, other)]
        yield MismatchReason.METRIC, _("metric differs: {a} in A, {b} in B", a=names[0], b=names[1])
    if a.cache is not b.cache:
        yield MismatchReason.CACHE, _("cache differs: {a} in A, {b} in B", a=a.cache.value, b=b.cache.value)
    levels = dict(other.context.levels)
    for name, level in one.context.levels:
        if name in common and levels.get(name, level) != level:
            words = _("{name} differs: {a} in A, {b} in B", name=name, a=level, b=levels[name])
            yield MismatchReason.LEVELS, words


def _factors(answers: Collection[Answer]) -> set[str]:
    return {name for one in answers for name, _unused in one.context.levels}


def _workload_key(workload: Workload) -> Hashable:
    match workload:
        case Operation(steps=steps):
            return "operation", tuple(map(_step_key, steps))
        case PgbenchWorkload(scripts=scripts, clients=clients, threads=threads):
            return (
                "load",
                tuple((_script_key(script), _weight(script)) for script in scripts),
                clients,
                threads_used(threads, clients),
                workload.query_mode,
                tuple(sorted(workload.variables)),
                workload.rate,
            )


def _script_key(script: Script) -> Hashable:
    """Return the text of a script, or the name of a built-in one."""
    return (script.name, None) if script.text is None else (None, script.text.strip())


def _weight(script: Script) -> int:
    return 1 if script.weight is None else script.weight


def _step_key(step: Step) -> Hashable:
    return None if step.sql is None else " ".join(step.sql.split()).rstrip("; "), step.program


def _dataset_key(arm: Arm) -> Hashable:
    data = arm.dataset
    dump = None if data.restore is None else (data.restore.sha256, data.restore.database)
    return (dump, _scale(arm), _hashes(data.setup_files), _hashes(data.prepare), tuple(sorted(data.variables)))


def _scale(arm: Arm) -> int | None:
    """Return the scale of pgbench's tables, or the one passed to scripts."""
    return arm.dataset.pgbench_scale if arm.dataset.pgbench_scale is not None else arm.workload.scale


def _hashes(files: Collection[SetupFile]) -> tuple[str, ...]:
    return tuple(file.sha256 for file in files)


def _of_workloads(a: Comparison, b: Comparison) -> Iterator[Reason]:
    if _workload_key(a.workload) == _workload_key(b.workload):
        return
    match a.workload, b.workload:
        case PgbenchWorkload() as load, PgbenchWorkload() as other:
            what = listed(_of_loads(load, other))
        case _:
            what = _("an operation can be compared only with the same operation")
    yield MismatchReason.WORKLOAD, _("workload differs: {what}", what=what)


def _of_loads(a: PgbenchWorkload, b: PgbenchWorkload) -> Iterator[str]:
    if len(a.scripts) != len(b.scripts):
        yield each_side(_("scripts"), len(a.scripts), len(b.scripts))
    else:
        for one, other in zip(a.scripts, b.scripts, strict=True):
            if _script_key(one) != _script_key(other):
                yield _("the script text ({a} in A, {b} in B)", a=_name(one.name), b=_name(other.name))
            elif _weight(one) != _weight(other):
                yield each_side(_("weight of {script}", script=_name(one.name)), _weight(one), _weight(other))
    of_pgbench = (
        (_("clients"), a.clients, b.clients),
        (_("threads"), threads_used(a.threads, a.clients), threads_used(b.threads, b.clients)),
        (_("query mode"), a.query_mode.value, b.query_mode.value),
        (_("variables"), _variables(a.variables), _variables(b.variables)),
        (_("rate"), _rate(a), _rate(b)),
    )
    yield from (each_side(*row) for row in of_pgbench if row[1] != row[2])


def _of_datasets(a: Comparison, b: Comparison) -> Iterator[Reason]:
    one, other = a.baseline, b.baseline
    if _dataset_key(one) == _dataset_key(other):
        return
    what = []
    if one.dataset.restore != other.dataset.restore:
        what.append(_("the restored dump"))
    if _scale(one) != _scale(other):
        what.append(each_side(_("scale"), _scale(one) or _("none"), _scale(other) or _("none")))
    files = (
        (_("the content of setup files"), one.dataset.setup_files, other.dataset.setup_files),
        (_("the content of prepare files"), one.dataset.prepare, other.dataset.prepare),
    )
    for name, first, second in files:
        if _hashes(first) != _hashes(second):
            what.append(_("{content} ({a} in A, {b} in B)", content=name, a=_paths(first), b=_paths(second)))
    variables = _variables(one.dataset.variables), _variables(other.dataset.variables)
    if variables[0] != variables[1]:
        what.append(each_side(_("variables"), *variables))
    yield MismatchReason.DATASET, _("dataset differs: {what}", what=listed(what))


def each_side(name: str, a: object, b: object) -> str:
    """Return a value of each side, in words."""
    return _("{name} {a} in A, {b} in B", name=name, a=a, b=b)


def _name(path: str) -> str:
    return PurePath(path).name


def _paths(files: Collection[SetupFile]) -> str:
    return listed(_name(file.path) for file in files) or _("none")


def _variables(variables: Collection[tuple[str, str]]) -> str:
    return listed(f"{name}={value}" for name, value in sorted(variables)) or _("none")


def _rate(workload: PgbenchWorkload) -> str:
    return _("none") if workload.rate is None else f"{workload.rate:g}"


_MOST_TRIED = 50
"""Maximum number of candidates that are compared by settings: the first ones in order."""
_MOST_HELD = 10_000
"""Maximum number of pairs of contexts searched for probable counterparts."""
_MOST_REASONS = 2
"""Maximum number of reasons for a mismatch with which a context still counts as a probable counterpart."""

Meant = dict[int, tuple[Answer, tuple[Reason, ...]]]
"""For context numbers of A, the probable counterpart in B, and why the two cannot be compared."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedPair:
    """Two verdicts that answer the same question."""

    a: Answer
    a_result: ContenderResult
    b: Answer
    b_result: ContenderResult
    by_role: bool
    """Whether they are matched by role only."""


def match(a: StudyAnswer, b: StudyAnswer) -> tuple[list[MatchedPair], list[NotComparable]]:
    """Match contexts by question, and contenders by name or else by role.

    Returns the pairs in the order of A, and everything without a match.
    """
    # Fixed by both studies, with levels that are more than names.
    common = (_factors(a.answers) & _factors(b.answers)) - NAMES
    pairs = _pairs_of_contexts(a.answers, b.answers, common)
    together: list[MatchedPair] = []
    alone: list[NotComparable] = []
    for one, other in pairs:
        found, left = _contenders(one, other)
        together += found
        alone += left
    taken = {one.context.number for one, _unused in pairs}, {other.context.number for _unused, other in pairs}
    rest = [one for one in a.answers if one.context.number not in taken[0]]
    others = [one for one in b.answers if one.context.number not in taken[1]]
    alone += _not_the_same(rest, others, common, a, b)
    return together, alone


def _pairs_of_contexts(
    ones: Sequence[Answer], others: Sequence[Answer], common: Collection[str]
) -> list[tuple[Answer, Answer]]:
    """Return pairs of matching contexts; among several candidates, the one with the most similar settings."""
    by_key: dict[Hashable, list[Answer]] = defaultdict(list)
    for other in others:
        by_key[question_key(other, common)].append(other)
    pairs = []
    for one in ones:
        candidates = by_key.get(question_key(one, common), [])
        if candidates:
            best = min(candidates[:_MOST_TRIED], key=lambda other: _distance(one, other))
            candidates.remove(best)
            pairs.append((one, best))
    return pairs


def _distance(one: Answer, other: Answer) -> tuple[int, int]:
    """Return the number of contenders with different names, and of different settings."""
    labels = [{arm.label for arm in found.comparison.contenders} for found in (one, other)]
    settings = [{(setting.name, setting.value) for setting in x.comparison.baseline.settings} for x in (one, other)]
    return len(labels[0] - labels[1]), len(settings[0] ^ settings[1])


def _contenders(one: Answer, other: Answer) -> tuple[list[MatchedPair], list[NotComparable]]:
    """Match the contenders of two matching contexts."""
    found: list[MatchedPair] = []
    theirs = {_called(other, result): result for result in other.analysis.results}
    is_same_baseline = one.comparison.baseline.label == other.comparison.baseline.label
    left: list[ContenderResult] = []
    for result in one.analysis.results:
        named = theirs.pop(_called(one, result), None)
        if named is None:
            left.append(result)
        else:
            by_role = not is_same_baseline
            found.append(MatchedPair(a=one, a_result=result, b=other, b_result=named, by_role=by_role))
    rest = list(theirs.values())
    if not left and not rest:
        return found, []
    is_alike = set(one.comparison.factors) == set(other.comparison.factors)
    if is_alike and len(left) == len(rest) and _same_work(one, left, other, rest):
        pairs = zip(left, rest, strict=True)
        found += [MatchedPair(a=one, a_result=x, b=other, b_result=y, by_role=True) for x, y in pairs]
        found.sort(key=lambda pair: pair.a_result.contender)
        return found, []
    if not is_alike:
        return found, [_other_factors(one, other)]
    return found, [*(_alone(one, result, "A") for result in left), *(_alone(other, result, "B") for result in rest)]


def _called(one: Answer, result: ContenderResult) -> Hashable:
    arm = one.comparison.arms[result.contender]
    return arm.label, work_key(arm)


def _same_work(
    one: Answer, results: Sequence[ContenderResult], other: Answer, others: Sequence[ContenderResult]
) -> bool:
    """Return whether the contenders do the same work in the same order. Work differs if workloads are compared."""
    keys = [work_key(one.comparison.arms[result.contender]) for result in results]
    return keys == [work_key(other.comparison.arms[result.contender]) for result in others]


def _other_factors(one: Answer, other: Answer) -> NotComparable:
    a, b = (both(found.comparison.factors) or _("none") for found in (one, other))
    words = _("the compared factors differ: {a} in A, {b} in B", a=a, b=b)
    return NotComparable(a=one.place, b=other.place, reasons=((MismatchReason.COMPARED, words),))


def _alone(one: Answer, result: ContenderResult, side: str) -> NotComparable:
    words = _("the other result has no contender with this name, and it is unclear which one corresponds to it")
    called = f"{one.place}: {one.comparison.arms[result.contender].label}"
    reasons_ = ((MismatchReason.COMPARED, words),)
    return NotComparable(a=called if side == "A" else None, b=called if side == "B" else None, reasons=reasons_)


def _not_the_same(
    ones: Sequence[Answer], others: Sequence[Answer], common: Collection[str], a: StudyAnswer, b: StudyAnswer
) -> Iterator[NotComparable]:
    """Yield the contexts without a match, with their probable counterpart, if any, and the reasons."""
    meant = _of_one_place(ones, others, common)
    taken = {other.context.number for other, _unused in meant.values()}
    rest = [one for one in ones if one.context.number not in meant]
    meant |= _nearest(rest, [other for other in others if other.context.number not in taken], common)
    lost_in_a, lost_in_b = _lost(a), _lost(b)
    for one in ones:
        if one.context.number in meant:
            other, found = meant[one.context.number]
            yield NotComparable(a=one.place, b=other.place, reasons=found)
        else:
            yield NotComparable(a=one.place, b=None, reasons=(_only("A", one, lost_in_b),))
    taken = {other.context.number for other, _unused in meant.values()}
    for other in others:
        if other.context.number not in taken:
            yield NotComparable(a=None, b=other.place, reasons=(_only("B", other, lost_in_a),))


def _of_one_place(ones: Sequence[Answer], others: Sequence[Answer], common: Collection[str]) -> Meant:
    """Return counterparts with the same levels."""
    by_place = {_place_key(other): other for other in others}
    found: Meant = {}
    for one in ones:
        other = by_place.get(_place_key(one))
        if other is not None and (why := tuple(reasons(one, other, common))):
            found[one.context.number] = other, why
    return found


def _nearest(ones: Sequence[Answer], others: Sequence[Answer], common: Collection[str]) -> Meant:
    """Return counterparts with the same workload name and the fewest differences, each used once."""
    if len(ones) * len(others) > _MOST_HELD:
        return {}
    pairs = [
        (why, one, other)
        for one in ones
        for other in others
        if _workload_name(one) == _workload_name(other)
        and 0 < len(why := tuple(reasons(one, other, common))) <= _MOST_REASONS
    ]
    pairs.sort(key=lambda pair: len(pair[0]))
    found: Meant = {}
    taken: set[int] = set()
    for why, one, other in pairs:
        if one.context.number not in found and other.context.number not in taken:
            found[one.context.number] = other, why
            taken.add(other.context.number)
    return found


def _place_key(one: Answer) -> Hashable:
    return tuple(sorted(one.context.levels))


def _workload_name(one: Answer) -> str:
    return dict(one.context.levels).get("workload", one.comparison.workload.name)


def _lost(answer: StudyAnswer) -> dict[Hashable, str]:
    """Return why contexts were not measured, by levels."""
    # Reversed, so that the first of equal ones is used.
    return {lost.context.levels: unanswered_text(lost) for lost in reversed(answer.unanswered)}


def _only(side: str, one: Answer, lost_elsewhere: Mapping[Hashable, str]) -> Reason:
    """Return the reason for a context without a counterpart: not measured in the other result, or not part of it."""
    reason = lost_elsewhere.get(one.context.levels)
    if reason is not None:
        where = "B" if side == "A" else "A"
        return MismatchReason.NOT_MEASURED, _("not measured in {side}: {reason}", side=where, reason=reason)
    return MismatchReason.ONLY_HERE, _("only in {side}", side=side)
