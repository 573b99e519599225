"""Settings that the study sets, those that it varies, and what else differs between its servers."""

from collections import Counter
from collections.abc import Iterable, Iterator

from pgversus.report.answer import Answer, StudyAnswer
from pgversus.report.article.fences import fenced
from pgversus.report.article.figures import capped, shortened
from pgversus.report.markdown import paragraph
from pgversus.study.comparison import Arm
from pgversus.text.translation import listed, tell

Pair = tuple[str, str]
"""A setting's name and value."""


def settings(answer: StudyAnswer) -> Iterator[str]:
    """What every server has, what is varied, what one case alone has, and what differs by itself."""
    if not answer.answers:
        return
    common = _common(answer)
    if common:
        yield paragraph(tell("Set on every server, as in postgresql.conf:"))
        yield fenced("\n".join(f"{name} = {_quoted(value)}" for name, value in common), "ini")
    else:
        yield paragraph(tell("Nothing is set alike on every server: all else is as each version has it by default."))
    yield capped((tell("varied"), tell("levels")), list(_varied(answer)), names=2)
    yield capped((tell("only in"), tell("settings")), list(_own(answer, {*common})), names=2)
    yield from _differences(answer)


def _common(answer: StudyAnswer) -> list[Pair]:
    first, *others = (_pairs(arm) for one in answer.answers for arm in one.comparison.arms)
    shared = set(first).intersection(*others)
    return [pair for pair in first if pair in shared]


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _varied(answer: StudyAnswer) -> Iterator[tuple[str, str]]:
    """What is compared first, its baseline at the head; then what is fixed in each context."""
    compared = dict.fromkeys(factor for one in answer.answers for factor in one.comparison.factors)
    arms = dict.fromkeys(arm.label for one in answer.answers for arm in one.comparison.arms)
    if compared:
        labels = [
            label.removeprefix(f"{factor}=") if len(compared) == 1 else label for factor in compared for label in arms
        ]
        yield listed(compared), listed(dict.fromkeys(labels))
    levels: dict[str, dict[str, None]] = {}
    for one in answer.answers:
        for factor, level in one.context.levels:
            levels.setdefault(factor, {})[level] = None
    yield from ((factor, listed(found)) for factor, found in levels.items())


def _own(answer: StudyAnswer, common: set[Pair]) -> Iterator[tuple[str, str]]:
    """Settings that are neither of all nor what a factor says: of a context, or of an arm in it."""
    varied = {factor for one in answer.answers for factor, _ in one.context.levels}
    of_contexts: dict[str, list[str]] = {}
    of_arms: dict[tuple[str, str], list[str]] = {}
    for one in answer.answers:
        known = varied | set(one.comparison.factors)
        own = [
            [pair for pair in _pairs(arm) if pair not in common and pair[0] not in known] for arm in one.comparison.arms
        ]
        shared = set(own[0]).intersection(*own[1:])
        if shared:
            of_contexts.setdefault(_words(pair for pair in own[0] if pair in shared), []).append(one.context.label)
        for arm, pairs in zip(one.comparison.arms, own, strict=True):
            if left := _words(pair for pair in pairs if pair not in shared):
                of_arms.setdefault((arm.label, left), []).append(one.context.label)
    for words, places in of_contexts.items():
        yield shortened(places), words
    everywhere = Counter(label for one in answer.answers for label in {*_labels(one)})
    for (label, words), places in of_arms.items():
        is_everywhere = len(places) == everywhere[label]
        yield label if is_everywhere else tell("{server}: {contexts}", server=label, contexts=shortened(places)), words


def _pairs(arm: Arm) -> list[Pair]:
    return [(setting.name, setting.value) for setting in arm.settings]


def _words(pairs: Iterable[Pair]) -> str:
    return listed(f"{name}={value}" for name, value in pairs)


def _differences(answer: StudyAnswer) -> Iterator[str]:
    """What servers have otherwise besides what is compared: their defaults, and what is no default."""
    for is_default, head in (
        (False, tell("Not equal on the servers, besides what is compared:")),
        (True, tell("Defaults that differ between the versions or builds:")),
    ):
        found: dict[tuple[str, ...], dict[tuple[str, ...], None]] = {}
        for one in answer.answers:
            for difference in one.differences:
                if difference.is_default is is_default:
                    found.setdefault(_labels(one), {})[difference.name, *difference.values] = None
        if not found:
            continue
        yield paragraph(head)
        for labels, differences in found.items():
            rows = [(name, *(value or "-" for value in values)) for name, *values in differences]
            yield capped((tell("setting"), *labels), rows, names=1)


def _labels(one: Answer) -> tuple[str, ...]:
    return tuple(arm.label for arm in one.comparison.arms)
