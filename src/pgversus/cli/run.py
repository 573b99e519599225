"""`pgversus run`: a study from a file, or a bundled one; resumed by the same command."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.means import exit_code, in_asked_manner, language_shown, means_options, measure
from pgversus.cli.output import rendered, write_out
from pgversus.errors import ExitCode
from pgversus.language import speaking
from pgversus.study.quantities import parse_duration

if TYPE_CHECKING:
    from pgversus.study.study import Study


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
    from pgversus.lab.studies import open_study  # noqa: PLC0415 - `pgversus --help` does without numpy

    budget_s = None if options["budget"] is None else parse_duration(options["budget"], "--budget")
    study, results = open_study(
        options["study_name"],
        profile=options["profile"],
        budget_s=budget_s,
        seed=options["seed"],
        results=Path(options["results"]) if options["results"] else None,
        afresh=options["new"],
    )
    study = in_asked_manner(study, options)
    if options["dry_run"]:
        return _dry_run(study, results, options)
    from pgversus.lab.results_folder import EarlierResults  # noqa: PLC0415 - the same

    earlier = EarlierResults.PUT_ASIDE if options["new"] else EarlierResults.GO_ON
    answer = measure(study, options, results, earlier=earlier)
    from pgversus.report.json_pieces import json_pieces  # noqa: PLC0415 - the same
    from pgversus.report.study_document import study_document  # noqa: PLC0415 - the same
    from pgversus.report.study_terminal import print_study_answer  # noqa: PLC0415 - the same

    if options["as_json"]:
        write_out(json_pieces(study_document(answer)), answer.results)
    else:
        with speaking(language_shown(options)):
            text = rendered(lambda console, columns: print_study_answer(answer, console, columns))
        write_out(text, answer.results)
    return int(exit_code(answer, options["fail_on"]))


def _dry_run(study: "Study", results: Path, options: dict[str, Any]) -> int:
    from pgversus.host.identity import server_user  # noqa: PLC0415 - `pgversus --help` does without psutil
    from pgversus.lab.dry_run import dry_run, refuse_without_room  # noqa: PLC0415 - `pgversus --help` does without numpy
    from pgversus.report.dry_run import dry_run_text  # noqa: PLC0415 - the same

    found = dry_run(study, results, server_user(options["run_as"]), afresh=options["new"])
    text = dry_run_text(
        found.study,
        found.needs,
        downloads=found.downloads,
        to_build=found.to_build,
        free_bytes=found.free_bytes,
        blocks_there=found.blocks_there,
        results=found.results,
        with_plans=not options["no_plans"],
    )
    write_out(text, found.results)
    refuse_without_room(found)
    return int(ExitCode.DONE)
