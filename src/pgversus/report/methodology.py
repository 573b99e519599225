"""The measurement method in a few lines, so that a reader can judge and reproduce the numbers."""

import math
import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from pgversus.answers.answer import Answer, StudyAnswer
from pgversus.records.preparation import RUNNING_SERVER, ArmFacts, origin_text
from pgversus.records.trials import Phase
from pgversus.report.windows import windows_text
from pgversus.stats.analysis import ContenderResult, smallest_difference, spread_of_blocks
from pgversus.stats.block_model import noise_parts
from pgversus.study.build_options import USUAL_MANNER, BuildSystem
from pgversus.study.design import Design, WindowKind
from pgversus.study.metrics import Metric
from pgversus.study.workload import PgbenchWorkload, Step, loads_of
from pgversus.text.translation import N_, _, either, listed, ngettext, shortened_list
from pgversus.text.units import duration, latency, percent, size

_COPY_WORDS = {"reflink": N_("reflink"), "copy": N_("full copy")}


def _copies_text(copies: Any) -> str:
    return _(_COPY_WORDS[copies]) if copies in _COPY_WORDS else str(copies)


_FACTS: Mapping[str, tuple[str, Callable[[Any], str]]] = {
    "cpu_model": (N_("processor"), str),
    "cpus_usable": (N_("usable processors"), str),
    "memory_bytes": (N_("memory"), size),
    "kernel": (N_("kernel"), str),
    "machine": (N_("architecture"), str),
    "libc": (N_("C library"), str),
    "file_system": (N_("file system"), str),
    "mount_options": (N_("mount options"), str),
    "governor": (N_("frequency governor"), str),
    "transparent_hugepage": (N_("transparent huge pages"), str),
    "copies": (N_("copy method"), _copies_text),
}


class HostFact(NamedTuple):
    """A row of a table of host facts."""

    key: str
    """The stored key."""
    name: str
    """In the current language."""
    text: str


def host_facts(host: Mapping[str, Any]) -> Iterator[HostFact]:
    """Yield the facts that the host reported, in the order of the table."""
    for key, (name, shown) in _FACTS.items():
        value = host.get(key)
        if value not in (None, ""):
            yield HostFact(key, _(name), shown(value))


_WORDS = {Phase.START: N_("start"), Phase.WARM_UP: N_("warm-up"), Phase.MEASURE: N_("measurement")}


def phase_word(phase: Phase) -> str:
    """Return the phase in the current language."""
    return _(_WORDS[phase])


@dataclass(frozen=True, slots=True, kw_only=True)
class Sensitivity:
    """Spreads and smallest detectable difference of a verdict, as shares; None if unknown."""

    spread_of_blocks: float | None
    spread_of_windows: float | None
    """Spread that blocks would have if servers were not restarted between them."""
    spread_of_starts: float | None
    """Additional spread, from server starts."""
    smallest_difference: float | None


def sensitivity(answer: Answer, result: ContenderResult) -> Sensitivity:
    """Return the sensitivity of one verdict: all None if invalid, no smallest difference without an interval."""
    estimate, ratio = result.log_ratio, result.ratios.get(answer.analysis.metric)
    if estimate is None or ratio is None:
        return Sensitivity(
            spread_of_blocks=None, spread_of_windows=None, spread_of_starts=None, smallest_difference=None
        )
    has_interval = ratio.low is not None and ratio.high is not None
    # Windows have a ratio of throughput, which is also that of mean latencies in a closed loop.
    of_windows = {Metric.TPS} if answer.comparison.workload.is_open_loop else {Metric.TPS, Metric.LATENCY_MEAN}
    is_known = answer.analysis.metric in of_windows
    parts = noise_parts(estimate, answer.blocks, result.contender) if is_known else None
    return Sensitivity(
        spread_of_blocks=spread_of_blocks(estimate),
        spread_of_windows=None if parts is None else math.expm1(parts.windows),
        spread_of_starts=None if parts is None else math.expm1(parts.starts),
        smallest_difference=smallest_difference(estimate, answer.rule) if has_interval else None,
    )


_COPIES = {"reflink": N_("data copied by reflink"), "copy": N_("data copied in full")}
_OWN_BLOCKS = N_("values use all blocks of an arm; changes use only the blocks that include both arms")
_OWN_BLOCKS_OF_STUDY = N_(
    "means use all blocks of an arm; differences and ratios use only the blocks that include both arms"
)


def comparison_lines(answer: Answer) -> list[str]:
    """Return lines on one comparison: the load command, builds, host, blocks and windows, and the results folder."""
    comparison, design = answer.comparison, answer.comparison.design
    arms = listed(f"{arm.label} = {build_text(facts)}" for arm, facts in zip(comparison.arms, answer.arms, strict=True))
    blocks = ngettext(
        "{number} block of {windows} per arm",
        "{number} blocks of {windows} per arm",
        len(answer.blocks),
        windows=windows_text([answer]),
    )
    margin = _goals(f"±{percent(design.margin)}", design.precision, design.seed)
    return [
        *_work(answer),
        arms,
        *_changed_source([answer]),
        *_host(answer),
        _(
            _ONE_LOOK if design.stopping_rule.looks_once else _MANY_LOOKS,
            how=listed([blocks, *_restarts([answer]), margin]),
        ),
        *_own_blocks([answer], _OWN_BLOCKS),
        *_processors([answer]),
        *_load_hosts([answer]),
        *_noise(answer),
        *_measuring([answer]),
        *_repeated([answer]),
        _("results: {folder}", folder=answer.results),
    ]


_ONE_LOOK = N_("{how}; one check after a fixed number of blocks")
_MANY_LOOKS = N_("{how}; chance of a wrong verdict at most 1 in 20, over all checks")


def study_lines(answer: StudyAnswer) -> list[str]:
    """Return the lines on a study. Facts that its contexts share are listed only once."""
    answers = answer.answers
    if not answers:
        return []
    builds = (build_text(facts) for one in answers for facts in one.arms)
    clients = [one.client for one in answers if one.comparison.workload.runs_pgbench]
    margins = (f"±{percent(one.comparison.design.margin)}" for one in answers)
    blocks = _("blocks of {windows} per arm", windows=windows_text(answers))
    margin = _goals(shortened_list(margins, either), answers[0].comparison.design.precision, answer.study.seed)
    return [
        shortened_list(builds),
        *_changed_source(answers),
        *([shortened_list(clients)] if clients else []),
        *_host(answers[0]),
        listed([blocks, *_restarts(answers), margin]),
        *_own_blocks(answers, _OWN_BLOCKS_OF_STUDY),
        *_processors(answers),
        *_load_hosts(answers),
        *_measuring(answers),
        *_repeated(answers),
    ]


def method_lines(answer: StudyAnswer) -> list[str]:
    """Return the lines on a study, or on the only comparison if it is from the command line."""
    return comparison_lines(answer.answers[0]) if answer.is_comparison and answer.answers else study_lines(answer)


def days_text(answers: Iterable[Answer]) -> str:
    """Return the first and the last day of measurement, as `2026-05-01`; empty if not recorded."""
    days = [day for one in answers for day in one.days or ()]
    if not days:
        return ""
    first, last = min(days), max(days)
    return first if first == last else _("{first} to {last}", first=first, last=last)


def _goals(margin: str, precision: float | None, seed: int) -> str:
    """Return the margin and the seed, and the precision if one is set, which all contexts share."""
    if precision is None:
        return _("margin {margin}, seed {seed}", margin=margin, seed=seed)
    return _(
        "margin {margin}, precision {precision}, seed {seed}",
        margin=margin,
        precision=f"±{percent(precision)}",
        seed=seed,
    )


def build_text(facts: ArmFacts) -> str:
    """Return `PostgreSQL 17.11 (source, gcc 12.2.0, +cassert)`; with the source for a build from source."""
    made = facts.built_from
    if made is None:
        return f"PostgreSQL {facts.version} ({origin_text(facts.origin)}, {facts.compiler})"
    parts = [origin_text(facts.origin), facts.compiler, *(f"+{word}" for word in made.options), made.source]
    parts += [_("{profile} build", profile=made.profile)] if made.profile != USUAL_MANNER.profile else []
    parts += [made.system] if made.system != BuildSystem.CONFIGURE else []
    return f"PostgreSQL {facts.version} ({', '.join(parts)})"


def _changed_source(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield the size of the change between two commits of one repository, once per pair."""
    lines = (
        _(
            "{contender} vs {baseline}: {statistics}",
            contender=arm.label,
            baseline=one.comparison.baseline.label,
            statistics=made.diff_stat.splitlines()[-1].strip(),
        )
        for one in answers
        for arm, facts in zip(one.comparison.arms, one.arms, strict=True)
        if (made := facts.built_from) is not None and made.diff_stat
    )
    yield from dict.fromkeys(lines)


def _work(answer: Answer) -> Iterator[str]:
    """Yield the load or the timed steps, and the files that prepared the initial state."""
    workload, dataset = answer.comparison.workload, answer.comparison.dataset
    for load in loads_of([workload]):
        yield f"{load_command(load, answer.comparison.design)} ({answer.client})"
    if not workload.steps:
        return
    for step in workload.steps:
        yield _("timed: {step}", step=_typed(step))
    if dataset.prepare:
        given = shlex.join(f"{name}={value}" for name, value in dataset.variables)
        files = ", ".join(file.path for file in dataset.prepare)
        if given:
            yield _("prepared by {files} with {variables}", files=files, variables=given)
        else:
            yield _("prepared by {files}", files=files)


def _typed(step: Step) -> str:
    """Return the statement as typed into psql, or the program as typed into a shell."""
    if step.sql is None:
        return shlex.join(step.program)
    return f"{' '.join(step.sql.split()).rstrip('; ')};"


def load_command(workload: PgbenchWorkload, design: Design) -> str:
    """Return the load as typed into a shell, without the database and the length of slices."""
    scripts: list[str] = []
    for script in workload.scripts:
        weight = "" if script.weight is None else f"@{script.weight}"
        scripts += ["-b" if script.is_builtin else "-f", f"{script.name}{weight}"]
    length = {
        WindowKind.RUN: ["-T", f"{design.window_s:g}"],
        WindowKind.TRANSACTIONS: ["-t", str(design.window_transactions)],
        WindowKind.SLICE: [],
    }
    return shlex.join(["pgbench", "-n", *length[design.window_kind], *workload.pgbench_arguments(scripts)])


def _host(answer: Answer) -> Iterator[str]:
    """Yield a line of facts that the host reported, if any."""
    host = answer.host
    cpus, memory = host.get("cpus_usable"), host.get("memory_bytes")
    parts = [
        ngettext("{number} processor", "{number} processors", cpus) if cpus else None,
        host.get("cpu_model"),
        _("{size} of memory", size=size(memory)) if memory else None,
        host.get("kernel"),
        host.get("file_system"),
        _(_COPIES[str(host["copies"])]) if host.get("copies") in _COPIES else None,
    ]
    if known := [str(part) for part in parts if part]:
        yield _("host: {facts}", facts=listed(known))


def _own_blocks(answers: Sequence[Answer], words: str) -> Iterator[str]:
    """Yield a note on values and ratios if arms have different numbers of blocks, because some were decided earlier."""
    if any(
        len({sum(block.has(arm.index) for block in one.blocks) for arm in one.comparison.arms}) > 1 for one in answers
    ):
        yield _(words)


def _measuring(answers: Sequence[Answer]) -> Iterator[str]:
    wall_s = sum(one.wall_s for one in answers)
    measured_s = sum(trial.seconds for one in answers for block in one.blocks for trial in block.trials.values())
    if wall_s > 0:
        yield _(
            "{share} of {duration} was spent measuring, the rest on copies, starts and warm-up",
            share=f"{100 * measured_s / wall_s:.0f} %",
            duration=duration(wall_s),
        )


def _processors(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield the processors of client and servers, if separate."""
    divided = {(one.comparison.design.client_processors, one.comparison.design.server_processors) for one in answers}
    for clients, servers in sorted(divided):
        if clients and not servers:
            yield _("the client ran on processors {clients}", clients=", ".join(map(str, clients)))
        elif clients:
            yield _(
                "the client ran on processors {clients}, the servers on {servers}",
                clients=", ".join(map(str, clients)),
                servers=", ".join(map(str, servers)),
            )


def _load_hosts(answers: Sequence[Answer]) -> Iterator[str]:
    """Yield the number of hosts that sent load together, if any, and how well their clocks agreed."""
    counters = [trial.counters for one in answers for block in one.blocks for trial in block.trials.values()]
    hosts = [int(one["load_hosts"]) for one in counters if "load_hosts" in one]
    errors = [one["load_clock_error_s"] for one in counters if "load_clock_error_s" in one]
    if hosts and errors:
        yield _(
            "the load came from {hosts} at once, whose clocks agree with that of this host within {error}",
            hosts=ngettext("{number} host", "{number} hosts", max(hosts)),
            error=latency(max(errors)),
        )


def _noise(answer: Answer) -> Iterator[str]:
    """Yield the block-to-block noise of each contender, if known."""
    for result in answer.analysis.results:
        found = sensitivity(answer, result)
        if found.spread_of_windows is not None and found.spread_of_starts is not None:
            yield _(
                "block-to-block noise of {arm}: ±{windows} from windows, ±{starts} from server starts",
                arm=answer.comparison.arms[result.contender].label,
                windows=percent(found.spread_of_windows),
                starts=percent(found.spread_of_starts),
            )


def _repeated(answers: Sequence[Answer]) -> Iterator[str]:
    repeated = sum(block.repeated_rounds for one in answers for block in one.blocks)
    if not repeated:
        return
    if not all(one.comparison.workload.runs_once for one in answers):
        yield ngettext(
            "{number} round of windows measured again after a disturbance",
            "{number} rounds of windows measured again after a disturbance",
            repeated,
        )
    else:
        yield ngettext(
            "{number} round measured again after a disturbance",
            "{number} rounds measured again after a disturbance",
            repeated,
        )


def restarts(answers: Iterable[Answer]) -> bool:
    """Return whether all servers are restarted for each block, that is, none is external."""
    return all(facts.origin != RUNNING_SERVER for one in answers for facts in one.arms)


def _restarts(answers: Iterable[Answer]) -> Iterator[str]:
    if restarts(answers):
        yield _("servers restarted for each block")
