"""Differences between two verdicts that answer the same question, as text."""

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from pgversus.answers.answer import Answer
from pgversus.records.preparation import ArmFacts, origin_text
from pgversus.report.methodology import days_text, host_facts
from pgversus.report.side_by_side.agreement import DiscrepancyKind, Note
from pgversus.report.side_by_side.matching import MatchedPair, each_side
from pgversus.report.windows import windows_text
from pgversus.study.comparison import BASELINE, Arm
from pgversus.text.translation import _, listed, ngettext
from pgversus.text.units import percent, size

_MEMORY_SHARE = 0.05
"""Relative difference up to which memory sizes count as equal: kernels reserve slightly different amounts."""
_NOT_HELD = "mount_options"
"""Not compared, because many mount options name a device or path and have no effect."""


def notes(pair: MatchedPair) -> tuple[Note, ...]:
    """Return all differences, the most important first."""
    found = (
        (DiscrepancyKind.BASELINE, _arms(pair, BASELINE, BASELINE)),
        (DiscrepancyKind.CONTENDER, _arms(pair, pair.a_result.contender, pair.b_result.contender)),
        (DiscrepancyKind.SETTINGS, _settings(pair)),
        (DiscrepancyKind.DATA, _data(pair.a, pair.b)),
        (DiscrepancyKind.STATISTICS, _statistics(pair.a, pair.b)),
        (DiscrepancyKind.HOST, _host(pair.a.host, pair.b.host)),
        (DiscrepancyKind.DAYS, _days(pair.a, pair.b)),
        (DiscrepancyKind.CLIENT, _client(pair.a, pair.b)),
        (DiscrepancyKind.WINDOWS, _windows(pair.a, pair.b)),
        (DiscrepancyKind.MARGIN, _margin(pair.a, pair.b)),
        (DiscrepancyKind.CHECK, _check(pair)),
    )
    return tuple(Note(kind=kind, words=words) for kind, words in found if words)


def host_text(host: Mapping[str, Any]) -> str:
    """Return a host's description in one line; empty if nothing was reported."""
    facts = (host.get(name) for name in ("cpu_model", "cpus_usable", "memory_bytes", "kernel", "file_system"))
    model, cpus, memory, kernel, files = facts
    parts = (
        model,
        ngettext("{number} processor", "{number} processors", cpus) if cpus else None,
        _("{size} of memory", size=size(memory)) if memory else None,
        kernel,
        files,
    )
    return listed(str(part) for part in parts if part)


def _arms(pair: MatchedPair, one: int, other: int) -> str:
    """Return the differences in level and build between two matched arms."""
    a, b = pair.a.comparison.arms[one], pair.b.comparison.arms[other]
    parts = list(_levels(pair, a, b))
    parts += _builds(pair.a.arms[one], pair.b.arms[other])
    if not parts:
        return ""
    what = listed(parts)
    if one == BASELINE:
        return _(
            "baselines differ, so the ratios cannot be compared: {what}",
            what=what,
        )
    return _("contenders differ: {what}", what=what)


def _levels(pair: MatchedPair, a: Arm, b: Arm) -> Iterator[str]:
    """Yield differences in compared settings."""
    factors = {*pair.a.comparison.factors, *pair.b.comparison.factors}
    for name, (x, y) in _differing(_settings_of(a, factors), _settings_of(b, factors)).items():
        yield each_side(name, x, y)


def _builds(a: ArmFacts, b: ArmFacts) -> Iterator[str]:
    if a.sha256 is not None and a.sha256 == b.sha256 and a.version == b.version:
        return
    rows = (
        ("PostgreSQL", a.version, b.version),
        (_("origin"), origin_text(a.origin), origin_text(b.origin)),
        (_("compiler"), a.compiler, b.compiler),
        (_("flags"), a.flags, b.flags),
        (_("build options"), _options(a), _options(b)),
        (_("source"), _source(a), _source(b)),
    )
    found = [each_side(name, x or _("none"), y or _("none")) for name, x, y in rows if x != y]
    compiled = _differing(a.compiled_in, b.compiled_in)
    found += [each_side(name, x, y) for name, (x, y) in compiled.items() if name != "CONFIGURE"]
    if not found and None not in (a.sha256, b.sha256) and a.sha256 != b.sha256:
        found = [_("different files of the same version")]
    yield from found


def _options(facts: ArmFacts) -> str:
    return " ".join(facts.built_from.options) if facts.built_from is not None else ""


def _source(facts: ArmFacts) -> str:
    made = facts.built_from
    return "" if made is None else f"{made.source} {made.source_sha256[:12]}"


def _settings(pair: MatchedPair) -> str:
    """Return differences in settings that are not compared."""
    factors = {*pair.a.comparison.factors, *pair.b.comparison.factors}
    arms = (
        (pair.a.comparison.baseline, pair.b.comparison.baseline),
        (pair.a.comparison.arms[pair.a_result.contender], pair.b.comparison.arms[pair.b_result.contender]),
    )
    found: dict[str, tuple[str, str]] = {}
    for a, b in arms:
        found |= _differing(_settings_of(a, factors, others=True), _settings_of(b, factors, others=True))
    what = listed(each_side(name, x, y) for name, (x, y) in found.items())
    return _("settings differ: {what}", what=what) if what else ""


def _settings_of(arm: Arm, factors: Collection[str], *, others: bool = False) -> dict[str, str]:
    """Return settings that are factors; with `others`, those that are not."""
    return {one.name: one.value for one in arm.settings if (one.name in factors) is not others}


def _differing(a: Mapping[str, str], b: Mapping[str, str]) -> dict[str, tuple[str, str]]:
    unset = _("not set")
    names = dict.fromkeys((*a, *b))
    return {name: (a.get(name, unset), b.get(name, unset)) for name in names if a.get(name) != b.get(name)}


def _data(a: Answer, b: Answer) -> str:
    found = {facts.data for facts in (a.arms[BASELINE], b.arms[BASELINE])}
    if len(found) == 1 or "" in found:
        return ""
    return _("rows differ: the same commands loaded different rows in A and B")


def _statistics(a: Answer, b: Answer) -> str:
    full = [one.comparison.dataset.full_statistics for one in (a, b)]
    if full[0] == full[1]:
        return ""
    return _("statistics differ: ANALYZE read every row only in {side}", side="A" if full[0] else "B")


def _host(a: Mapping[str, Any], b: Mapping[str, Any]) -> str:
    others = {fact.key: fact.text for fact in host_facts(b)}
    found = [
        each_side(fact.name, fact.text, others[fact.key])
        for fact in host_facts(a)
        if fact.key in others and fact.key != _NOT_HELD and not _is_alike(fact.key, a[fact.key], b[fact.key])
    ]
    return _("host differs: {what}", what=listed(found)) if found else ""


def _is_alike(key: str, x: Any, y: Any) -> bool:
    if key == "memory_bytes":
        return bool(abs(x - y) <= _MEMORY_SHARE * max(x, y))
    return bool(x == y)


def _days(a: Answer, b: Answer) -> str:
    if a.days is None or b.days is None or a.days == b.days:
        return ""
    return _("measured on different days: {a} in A, {b} in B", a=days_text([a]), b=days_text([b]))


def _client(a: Answer, b: Answer) -> str:
    if a.client == b.client or not a.comparison.workload.runs_pgbench:
        return ""
    return _("client differs: {a} in A, {b} in B", a=a.client, b=b.client)


def _windows(a: Answer, b: Answer) -> str:
    if a.comparison.workload.runs_once:
        return ""
    words = [windows_text([one]) for one in (a, b)]
    if words[0] == words[1]:
        return ""
    return _("windows per block differ: {a} in A, {b} in B", a=words[0], b=words[1])


def _margin(a: Answer, b: Answer) -> str:
    margins = [one.comparison.design.margin for one in (a, b)]
    if margins[0] == margins[1]:
        return ""
    words = [f"±{percent(margin)}" for margin in margins]
    return _("margin differs: {a} in A, {b} in B; the larger one is used", a=words[0], b=words[1])


def _check(pair: MatchedPair) -> str:
    sides = ((pair.a, pair.a_result), (pair.b, pair.b_result))
    found = [name for name, side in zip(("A", "B"), sides, strict=True) if side[0].needs_check(side[1])]
    if not found:
        return ""
    return _("CHECK the caveats in {side}: its result may be misleading", side=listed(found))
