"""`pgversus run`: a study from a file, or a bundled one; resumed by the same command."""

import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.options import exit_code, in_asked_manner, language_shown, means_options, measure
from pgversus.cli.output import rendered, write_error, write_out
from pgversus.errors import ExitCode
from pgversus.text.translation import use_language
from pgversus.text.units import parse_duration

if TYPE_CHECKING:
    from pgversus.lab.studies import OpenedStudy


@click.command(short_help="Run a study file, or a bundled study; the same command goes on after any end.")
@click.argument("study_name", metavar="STUDY")
@click.option("--profile", metavar="NAME", help="A profile of the study.  [default: quick, where there is one]")
@click.option("--budget", metavar="TIME", help="Time for all blocks, in place of the study's: 90s, 15m, 2h.")
@click.option(
    "--seed", type=click.IntRange(min=0), metavar="N", help="Of everything random.  [default: the study's, or drawn]"
)
@click.option(
    "--dry-run", is_flag=True, help="Say what would be done, fetched and stored, and for how long; do nothing."
)
@click.option(
    "--ask-servers",
    is_flag=True,
    help="With --dry-run: also ask the servers that the study names, which runs their programs or connects to them.",
)
@click.option(
    "--trust",
    is_flag=True,
    help="Run a study file although it runs programs, connects to servers, builds source of its choice, or reads files "
    "outside of its folder; without it you are asked. --dry-run lists what it does.",
)
@click.option("--new", is_flag=True, help="Begin afresh; earlier results are put aside, not removed.")
@click.option(
    "--results", type=click.Path(), metavar="DIR", help="Results folder.  [default: pgversus-results/STUDY-PROFILE]"
)
@means_options
def run(**options: Any) -> int:
    """Run the STUDY: a TOML file, a folder with a study.toml in it, or the name of a bundled study.

    What has been measured is kept; after Ctrl-C, a kill, a reboot or a full disk the same command goes on from there.

    \b
    pgversus run planner-16-vs-17
    pgversus run my-study.toml --budget 2h --dry-run
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    if options["ask_servers"] and not options["dry_run"]:
        raise click.UsageError("--ask-servers is for --dry-run: a run asks its servers anyway")
    from pgversus.lab.consent import opened_with_consent  # noqa: PLC0415 - `pgversus --help` does without numpy
    from pgversus.lab.studies import open_study  # noqa: PLC0415 - the same

    open_it = partial(
        open_study,
        options["study_name"],
        profile=options["profile"],
        budget_s=None if options["budget"] is None else parse_duration(options["budget"], "--budget"),
        seed=options["seed"],
        results=Path(options["results"]) if options["results"] else None,
        afresh=options["new"],
    )
    if options["dry_run"]:
        return _dry_run(open_it(reads_outside=options["trust"]), options)
    opened = opened_with_consent(open_it, trust=options["trust"], ask=_ask if _can_ask() else None)
    study = in_asked_manner(opened.study, options)
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - the same

    earlier = EarlierResults.MOVE_AWAY if options["new"] else EarlierResults.RESUME
    answer = measure(study, options, opened.results, earlier=earlier)
    from pgversus.report.json_document import json_pieces, study_document  # noqa: PLC0415 - the same
    from pgversus.report.terminal import print_study_answer  # noqa: PLC0415 - the same

    if options["as_json"]:
        write_out(json_pieces(study_document(answer)), answer.results)
    else:
        with use_language(language_shown(options)):
            text = rendered(lambda console, columns: print_study_answer(answer, console, columns))
        write_out(text, answer.results)
    return int(exit_code(answer, options["fail_on"]))


def _can_ask() -> bool:
    """Whether there is somebody to ask: input and the question are on a terminal."""
    return sys.stdin is not None and sys.stdin.isatty() and sys.stderr.isatty()


def _ask(opened: "OpenedStudy") -> bool:
    """Ask on the terminal whether a study may do what it asks for."""
    lines = [f"{opened.study.file_name} asks for more than servers and files of its own. It", *opened.access.lines]
    write_error("\n  ".join(lines))
    return click.confirm("Run it, and remember that this file may do so?", default=False, err=True)


def _dry_run(opened: "OpenedStudy", options: dict[str, Any]) -> int:
    from pgversus.host.identity import server_user  # noqa: PLC0415 - `pgversus --help` does without psutil
    from pgversus.lab.consent import has_consent  # noqa: PLC0415 - `pgversus --help` does without numpy
    from pgversus.lab.estimates import check_disk_space, dry_run  # noqa: PLC0415 - the same
    from pgversus.report.inventory import dry_run_text  # noqa: PLC0415 - the same

    found = dry_run(
        in_asked_manner(opened.study, options),
        opened.results,
        server_user(options["run_as"]),
        afresh=options["new"],
        asks_servers=options["ask_servers"],
        is_trusted=options["trust"] or has_consent(opened),
    )
    text = dry_run_text(
        found.study,
        found.needs,
        downloads=found.downloads,
        to_build=found.to_build,
        not_asked=found.not_asked,
        access=opened.access,
        free_bytes=found.free_bytes,
        blocks_there=found.blocks_there,
        results=found.results,
        with_plans=not options["no_plans"],
    )
    write_out(text, found.results)
    check_disk_space(found)
    return int(ExitCode.DONE)
