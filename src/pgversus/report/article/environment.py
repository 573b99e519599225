"""Host, servers, settings and data in an article."""

import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.preparation import ArmFacts, origin_text
from pgversus.report.article.figures import capped
from pgversus.report.markdown import escaped, fenced, paragraph
from pgversus.report.methodology import build_text, days_text, host_facts
from pgversus.report.sentences import shortened
from pgversus.study.comparison import Arm
from pgversus.study.dataset import Dataset, Dump, DumpFormat, SetupFile
from pgversus.text.translation import _, listed


def environment(answer: StudyAnswer) -> Iterator[str]:
    """Yield the machine and the client, then a row for each server."""
    yield capped((_("environment"), ""), list(_machine(answer)), names=2)
    yield capped(
        (_("server"), _("version"), _("origin"), _("compiler"), _("flags"), _("built from")),
        list(_servers(answer)),
        names=6,
    )


def _machine(answer: StudyAnswer) -> Iterator[tuple[str, str]]:
    host: Mapping[str, Any] = answer.answers[0].host if answer.answers else {}
    yield from ((fact.name, fact.text) for fact in host_facts(host))
    clients = dict.fromkeys(one.client for one in answer.answers if one.comparison.workload.runs_pgbench)
    if clients:
        yield _("client"), listed(clients)
    if answer.invocation.program:
        yield _("measured with"), answer.invocation.program
    if days := days_text(answer.answers):
        yield _("measured on"), days


def _servers(answer: StudyAnswer) -> Iterator[tuple[str, ...]]:
    """Yield each build once, with the label under which it was first compared."""
    seen: set[str] = set()
    for one in answer.answers:
        for arm, facts in zip(one.comparison.arms, one.arms, strict=True):
            words = f"{build_text(facts)} {facts.sha256} {facts.flags}"
            if words not in seen:
                seen.add(words)
                yield arm.label, facts.version, origin_text(facts.origin), facts.compiler, facts.flags, _source(facts)


def _source(facts: ArmFacts) -> str:
    made = facts.built_from
    if made is None:
        return ""
    return listed([made.source, *made.options, f"sha256 {made.source_sha256[:16]}"])


Pair = tuple[str, str]
"""A setting's name and value."""


def settings(answer: StudyAnswer) -> Iterator[str]:
    """Yield common settings, varied ones, settings of single cases, and differences that the study did not request."""
    if not answer.answers:
        return
    common = _common(answer)
    if common:
        yield paragraph(_("Set on every server, as in postgresql.conf:"))
        yield fenced("\n".join(f"{name} = {_quoted(value)}" for name, value in common), "ini")
    else:
        yield paragraph(_("No setting is common to all servers. All other settings have their default values."))
    yield capped((_("varied"), _("levels")), list(_varied(answer)), names=2)
    yield capped((_("applies only to"), _("settings")), list(_own(answer, {*common})), names=2)
    yield from _differences(answer)


def _common(answer: StudyAnswer) -> list[Pair]:
    first, *others = (_pairs(arm) for one in answer.answers for arm in one.comparison.arms)
    shared = set(first).intersection(*others)
    return [pair for pair in first if pair in shared]


def _quoted(value: str) -> str:
    return "'" + value.replace("'", "''") + "'"


def _varied(answer: StudyAnswer) -> Iterator[tuple[str, str]]:
    """Yield the compared factors with their levels, the baseline first; then the factors fixed in each context."""
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
    """Yield settings of single contexts or arms, without common settings and factors."""
    varied = {factor for one in answer.answers for factor, _unused in one.context.levels}
    of_contexts: dict[str, list[str]] = {}
    of_arms: dict[tuple[str, str], list[str]] = {}
    for one in answer.answers:
        known = varied | set(one.comparison.factors)
        own = [
            [pair for pair in _pairs(arm) if pair not in common and pair[0] not in known] for arm in one.comparison.arms
        ]
        shared = set(own[0]).intersection(*own[1:])
        if shared:
            of_contexts.setdefault(_settings_text(pair for pair in own[0] if pair in shared), []).append(
                one.context.label
            )
        for arm, pairs in zip(one.comparison.arms, own, strict=True):
            if left := _settings_text(pair for pair in pairs if pair not in shared):
                of_arms.setdefault((arm.label, left), []).append(one.context.label)
    for words, places in of_contexts.items():
        yield shortened(places), words
    everywhere = Counter(label for one in answer.answers for label in {*_labels(one)})
    for (label, words), places in of_arms.items():
        is_everywhere = len(places) == everywhere[label]
        yield label if is_everywhere else _("{server}: {contexts}", server=label, contexts=shortened(places)), words


def _pairs(arm: Arm) -> list[Pair]:
    return [(setting.name, setting.value) for setting in arm.settings]


def _settings_text(pairs: Iterable[Pair]) -> str:
    return listed(f"{name}={value}" for name, value in pairs)


def _differences(answer: StudyAnswer) -> Iterator[str]:
    """Yield other differences between servers: settings other than defaults first, then defaults."""
    for is_default, head in (
        (False, _("Other differences between the servers:")),
        (True, _("Defaults that differ between the versions or builds:")),
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
            yield capped((_("setting"), *labels), rows, names=1)


def _labels(one: Answer) -> tuple[str, ...]:
    return tuple(arm.label for arm in one.comparison.arms)


TextOf = Callable[[SetupFile], str | None]
"""Returns the text of a file that is not stored with the results; None if the file is gone or has changed."""


def data(answer: StudyAnswer, text_of: TextOf) -> Iterator[str]:
    """Yield every dataset once, with its contexts if there are several datasets."""
    found: dict[Dataset, list[str]] = {}
    for one in answer.answers:
        for arm in one.comparison.arms:
            places = found.setdefault(arm.dataset, [])
            if one.context.label not in places:
                places.append(one.context.label)
    texts: set[str] = set()
    for dataset, places in found.items():
        if len(found) > 1:
            yield f"**{escaped(shortened(places))}**"
        yield from _dataset(dataset, text_of, texts)
    if found:
        yield paragraph(
            _("All servers hold the same rows: row counts and hashes of all tables are compared before measuring.")
        )


def _restoring(dump: Dump) -> list[str]:
    name = PurePath(dump.path).name
    if dump.format is DumpFormat.PLAIN:
        return [shlex.join(["psql", "-f", name])]
    if dump.format is DumpFormat.DATA_DIRECTORY:
        made = f"{name}.dump"
        database = [dump.database] if dump.database else []
        return [shlex.join(["pg_dump", "-Fd", "-f", made, *database]), shlex.join(["pg_restore", made])]
    return [shlex.join(["pg_restore", name])]


def _dataset(dataset: Dataset, text_of: TextOf, texts: set[str]) -> Iterator[str]:
    """Yield one dataset. texts: hashes of the files shown so far, extended here."""
    if dataset.is_empty:
        yield paragraph(_("No data is loaded: the statements need none, or the servers already contain it."))
        return
    commands = []
    if dataset.restore is not None:
        commands += _restoring(dataset.restore)
    if dataset.pgbench_scale is not None:
        commands.append(shlex.join(["pgbench", "-i", "-s", str(dataset.pgbench_scale)]))
    commands += [shlex.join(["psql", "-f", _name(file)]) for file in dataset.setup_files]
    if commands:
        commands.append("psql -c 'VACUUM ANALYZE'")
    variables = [word for name, value in dataset.variables for word in ("-v", f"{name}={value}")]
    commands += [shlex.join(["psql", *variables, "-f", _name(file)]) for file in dataset.prepare]
    yield fenced("\n".join(commands), "sh")
    if dataset.full_statistics:
        yield paragraph(_("Then ANALYZE reads every row of every table, so that no plan differs because of sampling."))
    if dataset.prepare:
        yield paragraph(_("This state is frozen. Each repetition starts on a fresh copy of it."))
    for file in (*dataset.setup_files, *dataset.prepare):
        if file.sha256 not in texts:
            texts.add(file.sha256)
            yield from _file(file, text_of)


def _file(file: SetupFile, text_of: TextOf) -> Iterator[str]:
    text = file.text if file.text is not None else text_of(file)
    if text is None:
        yield paragraph(
            _(
                "{file} (sha256 {sha256}) was moved, deleted or changed. Insert its text here.",
                file=_name(file),
                sha256=file.sha256,
            )
        )
        return
    yield f"{escaped(_name(file))}:\n\n{fenced(text, 'sql')}"


def _name(file: SetupFile) -> str:
    return PurePath(file.path).name
