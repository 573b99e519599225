"""`pgversus run`: run a study file or a bundled study; the same command resumes it."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

from pgversus.cli.answer import known_findings, measure, show_dry_run
from pgversus.cli.fleet import check_fleet_options
from pgversus.cli.options import (
    ANSWER_GROUP,
    KNOWN,
    PROGRAMS_GROUP,
    GroupedCommand,
    WholeNumber,
    check_options,
    shared_options,
)
from pgversus.cli.output import write_error
from pgversus.host.output_file import check_output
from pgversus.text.units import parse_duration

if TYPE_CHECKING:
    from pgversus.lab.studies import OpenedStudy


def complete_study(context: click.Context, parameter: click.Parameter, typed: str) -> list[CompletionItem]:
    """Complete the name of a bundled study, or let the shell complete a path."""
    from pgversus.lab.studies import bundled_names  # noqa: PLC0415 - not for `--help`

    found = [CompletionItem(name) for name in bundled_names() if name.startswith(typed)]
    return found or click.Path().shell_complete(context, parameter, typed)


_GROUPS = {
    "Study": ("profile", "budget", "seed", "trust", "new", "results", "dry_run", "ask_servers"),
    "Fleet": ("fleet", "certificates", "max_noise"),
    "Progress": ("live_page",),
    "Answer": (*ANSWER_GROUP["Answer"], "known"),
    **PROGRAMS_GROUP,
}


@click.command(
    cls=GroupedCommand,
    groups=_GROUPS,
    short_help="Run a study file or a bundled study; run it again to resume.",
)
@click.argument("study_name", metavar="STUDY", shell_complete=complete_study)
@click.option("--profile", metavar="NAME", help="Profile of the study.  [default: quick, if it has one]")
@click.option("--budget", metavar="TIME", help="Time limit for all blocks (90s, 15m, 2h).  [default: from the study]")
@click.option("--seed", type=WholeNumber(min=0), metavar="N", help="Random seed.  [default: from the study, or random]")
@click.option(
    "--trust",
    is_flag=True,
    help="Without asking, allow the study file to run programs, connect to servers, build source and read files "
    "outside its folder. --dry-run lists the required access.",
)
@click.option("--new", is_flag=True, help="Start again; earlier results are renamed, not deleted.")
@click.option(
    "--results", type=click.Path(), metavar="DIR", help="Results folder.  [default: pgversus-results/STUDY-PROFILE]"
)
@click.option(
    "--fleet",
    metavar="ADDRESS",
    help="Measure on the hosts of a fleet with this scheduler; see pgversus fleet. If the study compares external "
    "servers, all hosts send load to them at once.",
)
@click.option("--certificates", type=click.Path(), metavar="DIR", help="Folder with the certificates of this host.")
@click.option(
    "--max-noise",
    metavar="PERCENT",
    help="Exclude hosts of the fleet on which ratios of identical windows of 50 ms vary by more than this.",
)
@click.option(
    "--live-page",
    type=click.Path(),
    metavar="FILE",
    help="Write the progress of the study to this HTML file, and update it during the run.",
)
@KNOWN
@shared_options
def run(**options: Any) -> int:
    """Run the STUDY: a TOML file, a folder that contains study.toml, or the name of a bundled study.

    Results are stored block by block: after Ctrl-C, a kill, a reboot or a full disk, run the same command
    again to resume.

    \b
    pgversus run planner-16-vs-17
    pgversus run my-study.toml --budget 2h --dry-run
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    check_options(options)
    check_fleet_options(options)
    if options["live_page"] is not None:
        check_output(Path(options["live_page"]))
    # Imported here: `pgversus --help` does not need numpy.
    from pgversus.lab.consent import has_consent, opened_with_consent  # noqa: PLC0415
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415
    from pgversus.lab.studies import open_study  # noqa: PLC0415

    open_it = partial(
        open_study,
        options["study_name"],
        profile=options["profile"],
        budget_s=None if options["budget"] is None else parse_duration(options["budget"], "--budget"),
        seed=options["seed"],
        results=Path(options["results"]) if options["results"] else None,
        restarts=options["new"],
    )
    options = {**options, "known": known_findings(options["known"])}
    earlier = EarlierResults.MOVE_AWAY if options["new"] else EarlierResults.RESUME
    if options["dry_run"]:
        opened = open_it(reads_outside=options["trust"])
        _check_known(opened, options)
        return show_dry_run(
            opened.study,
            opened.results,
            options,
            access=opened.access,
            is_trusted=options["trust"] or has_consent(opened),
            earlier=earlier,
        )
    opened = opened_with_consent(open_it, trust=options["trust"], ask=_ask if _can_ask() else None)
    _check_known(opened, options)
    return measure(opened.study, options, opened.results, earlier=earlier)


def _check_known(opened: "OpenedStudy", options: dict[str, Any]) -> None:
    from pgversus.study.study import StudyKind  # noqa: PLC0415 - not for `--help`

    if options["known"] is not None and opened.study.kind is not StudyKind.UPGRADE_CHECK:
        raise click.UsageError("--known is only for upgrade checks ([application] in a study file)")


def _can_ask() -> bool:
    """Return whether a user can be asked: standard input and standard error are terminals."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _ask(opened: "OpenedStudy") -> bool:
    """Ask the user on the terminal whether to allow the access that a study requires."""
    lines = [
        f"{opened.study.file_name} requires access to more than its folder and servers that pgversus starts itself. It",
        *opened.access.lines,
    ]
    write_error("\n  ".join(lines))
    return click.confirm("Allow this, and remember the answer for this file?", default=False, err=True)
