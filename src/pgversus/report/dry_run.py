"""A dry run, in lines for a terminal or a pipe."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from pgversus.records.dry_run import DryRun
from pgversus.report.methodology import load_command
from pgversus.report.sentences import metric_text
from pgversus.report.windows import window_length
from pgversus.study.comparison import BASELINE, Comparison
from pgversus.study.design import Design, WindowKind
from pgversus.study.host_access import HostAccess
from pgversus.study.needs import Needs
from pgversus.study.servers import Release, RunningServer, ServerName, released_version
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import Operation, PgbenchWorkload
from pgversus.text.redaction import message_without_secrets, visible
from pgversus.text.units import count, duration, percent, size

_MOST_SHOWN = 12

_MOST_SKIPPED = 10


def dry_run_text(found: DryRun, *, access: HostAccess | None = None, with_plans: bool = True) -> str:
    """Return a description of a dry run, in lines for a terminal or a pipe.

    access: host access that needs consent. with_plans: whether plans are captured.
    """
    study, needs, to_build = found.study, found.needs, found.to_build
    access = access or HostAccess()
    lines = [
        study.title or study.name,
        ", ".join(
            [
                count(len(study.contexts), "comparison"),
                count(study.treatments, "treatment"),
                "1 verdict" if study.verdicts == 1 else f"{study.verdicts} verdicts that share one error rate of 5 %",
            ]
        ),
        *_left_out(study),
        *(_comparison(study.contexts[0].comparison, found) if study.kind.has_one_context else []),
        f"trials: {needs.least_trials} or more",
        f"downloads: {', '.join(found.downloads) if found.downloads else _no_downloads(to_build)}",
        *([f"builds: {', '.join(to_build)} (several minutes each, on all processors)"] if to_build else []),
        *(
            [f"not queried: {', '.join(found.not_queried)} (add --ask-servers for versions and settings)"]
            if found.not_queried
            else []
        ),
        *([f"not reachable: {', '.join(found.unreachable)}"] if found.unreachable else []),
        *access.lines,
        *([] if access.is_none else ["to allow all of this, add --trust, or answer yes when asked"]),
        f"disk: about {size(needs.disk_bytes)}{_and_setup(needs)}{_at_once(needs)}, {size(found.free_bytes)} free",
        f"loading: {count(needs.snapshots, 'snapshot')}, about {duration(needs.preparation_s)} with the first runs",
        f"blocks: {_blocks(needs, _what_is_known(study))}",
        *(_afterwards(study, needs) if with_plans else []),
        f"results: {found.results}"
        + (f" ({count(found.blocks_there, 'block')} already measured)" if found.blocks_there else ""),
    ]
    lines += _first([context.label for context in study.contexts if context.label])
    if found.refused:
        lines += ["not measured, because it would be rejected:", *_first(found.refused)]
    return visible(message_without_secrets("\n".join(lines))) + "\n"


def _first(lines: Sequence[str]) -> list[str]:
    more = [f"... and {len(lines) - _MOST_SHOWN} more"] if len(lines) > _MOST_SHOWN else []
    return [f"  {line}" for line in (*lines[:_MOST_SHOWN], *more)]


def _comparison(comparison: Comparison, found: DryRun) -> Iterator[str]:
    """Yield the arms, workload and design of a comparison from the command line."""
    for arm in comparison.arms:
        role = "baseline" if arm.index == BASELINE else "contender"
        yield f"{role}: {arm.label} ({_version_text(arm.server, found)})"
    design = comparison.design
    match comparison.workload:
        case PgbenchWorkload() as load:
            # A length that is yet to be fitted is not shown.
            known = design if design.window_is_given else replace(design, window_kind=WindowKind.SLICE)
            yield f"load: {load_command(load, known)} ({count(load.clients, 'client')})"
            measured = _windows(design)
        case Operation(name=name):
            yield f"operation: {name}"
            measured = "one operation on a fresh copy"
    yield f"design: {', '.join(_design(design, measured))}"


def _version_text(server: ServerName, found: DryRun) -> str:
    if isinstance(server, RunningServer):
        return "external server"
    if server in found.versions:
        return found.versions[server]
    if str(server) in found.to_build:
        return "to be built from source"
    # As in DryRun.downloads: `zonky 17.8`.
    for family, version in (one.split(" ", 1) for one in found.downloads if not one.startswith("source ")):
        release = released_version(version)
        if not isinstance(server, Release) or release is None:
            continue
        if server.admits(release) and server.family in (None, family):
            return f"{version}, {family}, to be downloaded"
    return "version unknown before the run"


def _windows(design: Design) -> str:
    rounds = count(design.rounds, "window") if design.rounds_are_given else "windows"
    length = window_length(design) if design.window_is_given else "a length fitted to the load"
    return f"{rounds} of {length}"


def _design(design: Design, measured: str) -> Iterator[str]:
    yield metric_text(design.metric)
    yield f"margin ±{percent(design.margin)}"
    if design.precision is not None:
        yield f"precision ±{percent(design.precision)}"
    yield f"{measured} per arm and block"
    least = design.stopping_rule.first_look
    yield f"{least} blocks" if design.fixed_blocks is not None else f"{least} to {design.max_blocks} blocks"
    yield f"seed {design.seed}"


def _afterwards(study: Study, needs: Needs) -> list[str]:
    """Return the line about attribution; empty for operations, which have no plans."""
    if not any(context.comparison.workload.has_plans for context in study.contexts):
        return []
    if study.kind is StudyKind.UPGRADE_CHECK:
        most = duration(study.budget_s)
        follow_ups = f"confirmation of differences, at most {most}, and the effect of their plans, at most {most}"
        return [f"afterwards: {follow_ups} (skip the latter with --no-plans)"]
    most = "three times as long" if needs.most_s is None else f"{duration(needs.most_s)} more"
    return [f"afterwards: the effect of changed plans, at most {most} (skip with --no-plans)"]


def _left_out(study: Study) -> list[str]:
    lines = [f"skipped: {one.label} ({one.reason})" for one in study.skipped[:_MOST_SKIPPED]]
    rest = len(study.skipped) - len(lines)
    return [*lines, *([f"skipped: {rest} more"] if rest else [])]


def _no_downloads(to_build: tuple[str, ...]) -> str:
    return "none, all sources are available" if to_build else "none"


def _and_setup(needs: Needs) -> str:
    return f" or more, as {count(needs.setup_files, 'dataset')} from files may be larger" if needs.setup_files else ""


def _at_once(needs: Needs) -> str:
    return f" at a time (measured in {needs.parts} consecutive parts)" if needs.parts > 1 else ""


def _what_is_known(study: Study) -> str:
    """Return the condition that ends measuring: known verdicts, or intervals of the precision of all contexts."""
    precision = next((context.comparison.design.precision for context in study.contexts), None)
    return "verdicts known" if precision is None else f"intervals within ±{percent(precision)}"


def _blocks(needs: Needs, known: str) -> str:
    if needs.most_s is None:
        return f"about {duration(needs.least_s)} or more (fixed number of blocks)"
    if needs.least_s > needs.most_s:
        least = f"about {duration(needs.least_s)} for the first checks alone"
        return f"{duration(needs.most_s)}, the whole budget, too short for all verdicts ({least})"
    return f"{duration(needs.least_s)} (all {known} at the first check) to {duration(needs.most_s)} (budget)"
