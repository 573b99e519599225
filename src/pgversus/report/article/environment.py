"""On what it was measured: host, servers, client."""

from collections.abc import Iterator, Mapping
from typing import Any

from pgversus.records.preparation import ArmFacts, origin_words
from pgversus.report.answer import StudyAnswer
from pgversus.report.article.figures import capped
from pgversus.report.host_facts import host_facts
from pgversus.report.small_print import build_words
from pgversus.study.workload import Operation
from pgversus.text.translation import listed, tell


def environment(answer: StudyAnswer) -> Iterator[str]:
    """The machine and the client, then a row for each server."""
    yield capped((tell("environment"), ""), list(_machine(answer)), names=2)
    yield capped(
        (tell("server"), tell("version"), tell("origin"), tell("compiler"), tell("flags"), tell("built from")),
        list(_servers(answer)),
        names=6,
    )


def _machine(answer: StudyAnswer) -> Iterator[tuple[str, str]]:
    host: Mapping[str, Any] = answer.answers[0].host if answer.answers else {}
    yield from ((fact.name, fact.text) for fact in host_facts(host))
    loads = [one for one in answer.answers if not isinstance(one.comparison.workload, Operation)]
    if loads:
        yield tell("client"), listed(dict.fromkeys(one.client for one in loads))
    if answer.asked.program:
        yield tell("measured by"), answer.asked.program
    days = [one.days for one in answer.answers if one.days is not None]
    if days:
        first, last = min(day for day, _ in days), max(day for _, day in days)
        yield tell("measured on"), first if first == last else tell("{first} to {last}", first=first, last=last)


def _servers(answer: StudyAnswer) -> Iterator[tuple[str, ...]]:
    """Each build once, by the label under which it was first compared."""
    seen: dict[str, str] = {}
    for one in answer.answers:
        for arm, facts in zip(one.comparison.arms, one.arms, strict=True):
            words = f"{build_words(facts)} {facts.sha256} {facts.flags}"
            if words not in seen:
                seen[words] = arm.label
                yield arm.label, facts.version, origin_words(facts.origin), facts.compiler, facts.flags, _source(facts)


def _source(facts: ArmFacts) -> str:
    made = facts.built_from
    if made is None:
        return ""
    return listed([made.source, *made.options, f"sha256 {made.source_sha256[:16]}"])
