"""`pgversus upgrade-check`: check the statements of an application on newer versions of PostgreSQL."""

import secrets
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.answer import measure, show_dry_run
from pgversus.cli.options import (
    ANSWER_GROUP,
    PROGRAMS_GROUP,
    GroupedCommand,
    WholeNumber,
    check_options,
    shared_options,
)
from pgversus.cli.question import data_options, dataset_of
from pgversus.cli.statements import read_sources
from pgversus.errors import StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.study.comparison import expand_arms, with_equal_bytes
from pgversus.study.design import DesignChoices, design_of
from pgversus.study.servers import RunningServer
from pgversus.study.settings import check_repeated_names, parse_setting
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, QueryMode
from pgversus.text.units import parse_duration, parse_share

if TYPE_CHECKING:
    from pgversus.study.comparison import Arm

_GROUPS = {
    "Data": ("restore", "setup", "initialize", "scale", "full_statistics"),
    "Statements": ("sources", "coverage", "protocol"),
    "Servers": ("settings",),
    "Design": ("margin", "budget", "seed"),
    "Run": ("results", "new", "dry_run", "ask_servers"),
    **ANSWER_GROUP,
    **PROGRAMS_GROUP,
}


@click.command(
    name="upgrade-check",
    cls=GroupedCommand,
    groups=_GROUPS,
    short_help="Check which statements of an application get slower on newer versions.",
)
@click.argument("servers", nargs=-1, required=True, metavar="FROM TO...")
@data_options
@click.option(
    "--statements",
    "sources",
    multiple=True,
    required=True,
    metavar="FILE",
    help="Statements of the application: an export of pg_stat_statements, a log, a .sql file or a directory of them, "
    "as for pgversus statements; repeatable.",
)
@click.option(
    "-M",
    "--protocol",
    type=click.Choice([mode.value for mode in QueryMode]),
    default=QueryMode.SIMPLE.value,
    show_default=True,
    help="Query mode of the application.",
)
@click.option(
    "--coverage",
    default="99%",
    show_default=True,
    metavar="PERCENT",
    help="Share of the total time that the executed statements have to cover; smaller statements are left out.",
)
@click.option("--margin", metavar="PERCENT", help="Smallest difference that matters.  [default: 2%]")
@click.option(
    "--budget",
    default="10m",
    show_default=True,
    metavar="TIME",
    help="Time limit for confirming what the screening of all statements finds (90s, 15m, 2h).",
)
@click.option("--seed", type=WholeNumber(min=0), metavar="N", help="Random seed.  [default: random]")
@click.option("--new", is_flag=True, help="Start again; earlier results are renamed, not deleted.")
@click.option(
    "--results",
    type=click.Path(),
    metavar="DIR",
    help="Results folder.  [default: pgversus-results/upgrade-check-SERVERS]",
)
@shared_options
def upgrade_check(**options: Any) -> int:
    """Check every statement of an application on version FROM and on each version TO.

    For each statement: does it return the same rows, does its plan change, and is it faster or slower? All servers
    hold the same data. Every statement is screened in a few blocks, and what differs is confirmed in fresh blocks.
    Statements that write are rolled back. Results are stored block by block: run the same command again to resume.

    \b
    pgversus upgrade-check 16 17 18 --restore app.dump --statements statements.csv --statements server.csv
    pgversus upgrade-check 15 18 --setup schema.sql --statements queries/
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    check_options(options)
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - `pgversus --help` does not need numpy
    from pgversus.lab.studies import seed_of  # noqa: PLC0415 - the same

    results = Path(options["results"] or Path("pgversus-results") / _name(options["servers"]))
    seed = options["seed"]
    if seed is None and not options["new"]:
        seed = seed_of(results)
    study = _study(options, secrets.randbelow(2**31) if seed is None else seed)
    earlier = EarlierResults.MOVE_AWAY if options["new"] else EarlierResults.RESUME
    options = {**options, "check_rows": True}
    if options["dry_run"]:
        return show_dry_run(study, results, options, earlier=earlier)
    return measure(study, options, results, earlier=earlier)


def _study(options: dict[str, Any], seed: int) -> Study:
    """Return the study that the options describe; StudyError for the first problem."""
    from pgversus.statements.collection import Collection  # noqa: PLC0415 - not for `--help`
    from pgversus.study.application import contexts_of  # noqa: PLC0415 - the same

    settings = [parse_setting(text) for text in options["settings"]]
    check_repeated_names(settings)
    servers = [labelled_server(text) for text in options["servers"]]
    load = PgbenchWorkload(scripts=(), query_mode=QueryMode(options["protocol"]), scale=options["scale"])
    arms, factors = expand_arms(servers, settings, workload=load, dataset=dataset_of(options))
    _check_arms(arms)
    choices = DesignChoices(
        seed=seed,
        margin=None if options["margin"] is None else parse_share(options["margin"], "--margin"),
        budget_s=parse_duration(options["budget"], "--budget"),
    )
    design = design_of(choices)
    collection = Collection()
    read_sources(options["sources"], collection)
    contexts, statements = contexts_of(
        collection.statements,
        load,
        with_equal_bytes(arms),
        factors=factors,
        design=design,
        coverage=parse_share(options["coverage"], "--coverage"),
    )
    return Study(
        name=_name(options["servers"]),
        title=f"Upgrade check: {', '.join(arm.label for arm in arms)}",
        question="",
        contexts=contexts,
        seed=seed,
        budget_s=design.budget_s,
        kind=StudyKind.UPGRADE_CHECK,
        statements=statements,
    )


def _name(servers: tuple[str, ...]) -> str:
    plain = ("".join(c if c.isalnum() or c in ".=+" else "_" for c in one) for one in servers)
    return "-".join(["upgrade-check", *plain])[:100]


def _check_arms(arms: "tuple[Arm, ...]") -> None:
    """Raise StudyError for external servers, on which no statement of unknown effect is executed, and without data."""
    if external := [arm.label for arm in arms if isinstance(arm.server, RunningServer)]:
        raise StudyError(
            "an upgrade check executes statements only on servers that pgversus starts itself",
            slug="study-upgrade-running-server",
            where=", ".join(external),
            found="an external server",
            expected="versions, builds or bin directories",
            to_do="pg_dump -Fc -f app.dump DATABASE, then --restore app.dump with the version of that server",
        )
    if arms[0].dataset.is_empty:
        raise StudyError(
            "the servers have no data",
            slug="study-no-tables",
            where="upgrade-check",
            found="none of --restore, --setup, -i",
            expected="the data that the statements read",
            to_do="pg_dump -Fc -f app.dump DATABASE, then --restore app.dump",
        )
