"""`pgversus upgrade-check`: check the statements of an application on newer versions of PostgreSQL."""

import hashlib
import secrets
from pathlib import Path
from typing import Any

import click

from pgversus.cli.answer import known_findings, measure, show_dry_run
from pgversus.cli.configuration import CONF, carried_settings, not_carried
from pgversus.cli.options import (
    ANSWER_GROUP,
    KNOWN,
    PROGRAMS_GROUP,
    GroupedCommand,
    WholeNumber,
    check_options,
    shared_options,
)
from pgversus.cli.question import data_options, dataset_of
from pgversus.cli.statements import collected
from pgversus.errors import StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.study.comparison import expand_arms, with_equal_bytes
from pgversus.study.dataset import Statistics
from pgversus.study.design import DesignChoices, design_of
from pgversus.study.settings import SettingLevels, check_repeated_names, parse_setting
from pgversus.study.study import Study, StudyKind
from pgversus.study.workload import PgbenchWorkload, QueryMode
from pgversus.text.units import parse_coverage, parse_duration, parse_share

_LONGEST_NAME_BYTES, _DIGITS = 100, 8
_RECORDED = "recorded"
_GROUPS = {
    "Data": ("restore", "database", "setup", "initialize", "scale", "full_statistics", "statistics"),
    "Statements": ("sources", "coverage", "protocol"),
    "Servers": ("settings", "conf", "new_defaults"),
    "Design": ("margin", "budget", "seed"),
    "Run": ("results", "new", "dry_run", "ask_servers"),
    "Answer": (*ANSWER_GROUP["Answer"], "known"),
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
    metavar="SOURCE",
    help="Statements of the application: an export of pg_stat_statements, a log, a .sql file (which may be a pgbench "
    "script) or a directory of them, the URI of a database, or a list by pgversus statements --json; repeatable.",
)
@click.option(
    "-M",
    "--protocol",
    type=click.Choice([_RECORDED, *(mode.value for mode in QueryMode)]),
    default=_RECORDED,
    show_default=True,
    help="Query mode of the application; recorded: prepared for the statements that a log shows as prepared by name, "
    "simple for all others.",
)
@click.option(
    "--coverage",
    default="99%",
    show_default=True,
    metavar="PERCENT",
    help="Check the statements with the largest shares of time until together they account for this much of the time "
    "of all executable statements; leave out the rest.",
)
@CONF
@click.option(
    "--new-defaults",
    is_flag=True,
    help="Also check each target with its own defaults in place of those settings of --conf that only repeat a default "
    "of FROM.",
)
@click.option(
    "--statistics",
    multiple=True,
    type=click.Choice([Statistics.NONE.value, Statistics.KEPT.value]),
    help="Also check each target with the statistics that it has right after pg_upgrade: none (17 and older), or kept "
    "(18 and newer: all but extended ones); repeatable.",
)
@click.option("--margin", metavar="PERCENT", help="Smallest difference that matters.  [default: 2%]")
@click.option(
    "--budget",
    default="10m",
    show_default=True,
    metavar="TIME",
    help="Time limit for confirming the findings of the screening (90s, 15m, 2h).",
)
@KNOWN
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
    hold the same data. Every statement is screened in a few blocks, and differences are confirmed in fresh blocks.
    Statements that write are rolled back. Results are stored block by block: run the same command again to resume.

    \b
    pgversus upgrade-check 16 17 18 --restore app.dump --statements statements.csv --statements server.csv
    pgversus upgrade-check 15 18 --setup schema.sql --statements queries/
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    check_options(options)
    if options["sample_plans"]:
        raise click.UsageError("--sample-plans cannot be used with upgrade-check")
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - `pgversus --help` does not need numpy
    from pgversus.lab.studies import seed_of  # noqa: PLC0415 - the same

    results = Path(options["results"] or Path("pgversus-results") / _name(options["servers"]))
    seed = options["seed"]
    if seed is None and not options["new"]:
        seed = seed_of(results)
    study = _study(options, secrets.randbelow(2**31) if seed is None else seed)
    earlier = EarlierResults.MOVE_AWAY if options["new"] else EarlierResults.RESUME
    options = {**options, "known": known_findings(options["known"])}
    if options["dry_run"]:
        return show_dry_run(study, results, options, earlier=earlier)
    return measure(study, options, results, earlier=earlier)


def _study(options: dict[str, Any], seed: int) -> Study:
    """Return the study that the options describe; StudyError for the first problem."""
    from pgversus.study.application import contexts_of  # noqa: PLC0415 - not for `--help`
    from pgversus.study.targets import with_new_defaults, with_statistics  # noqa: PLC0415 - the same

    settings = [parse_setting(text) for text in options["settings"]]
    check_repeated_names(settings)
    carried = carried_settings(options["conf"], {one.name.lower() for one in settings})
    settings += [SettingLevels(name=one.name, values=(one.value,)) for one in carried.settings]
    servers = [labelled_server(text) for text in options["servers"]]
    as_recorded = options["protocol"] == _RECORDED
    mode = QueryMode.SIMPLE if as_recorded else QueryMode(options["protocol"])
    load = PgbenchWorkload(scripts=(), query_mode=mode, scale=options["scale"])
    arms, factors = expand_arms(servers, settings, workload=load, dataset=dataset_of(options))
    if options["new_defaults"] and options["conf"] is None:
        raise _no_configuration()
    if options["new_defaults"]:
        arms, factors = with_new_defaults(arms, factors, {one.name for one in carried.settings})
    arms, factors = with_statistics(arms, factors, options["statistics"])
    choices = DesignChoices(
        seed=seed,
        margin=None if options["margin"] is None else parse_share(options["margin"], "--margin"),
        budget_s=parse_duration(options["budget"], "--budget"),
    )
    design = design_of(choices)
    contexts, statements = contexts_of(
        collected(options["sources"]),
        load,
        with_equal_bytes(arms),
        factors=factors,
        design=design,
        coverage=parse_coverage(options["coverage"], "--coverage"),
        as_recorded=as_recorded,
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
        skips_missing_settings=bool(carried.settings),
        carried_settings=frozenset(one.name for one in carried.settings),
        skipped=not_carried(carried.left_out, options["conf"]),
    )


def _no_configuration() -> StudyError:
    return StudyError(
        "--new-defaults requires --conf",
        slug="study-no-new-defaults",
        where="--new-defaults",
        found="no --conf, so every server has its own defaults",
        expected="the postgresql.conf of the application's server, which may have old defaults",
        to_do="omit --new-defaults, or add --conf FILE",
    )


def _name(servers: tuple[str, ...]) -> str:
    plain = ("".join(c if c.isalnum() or c in ".=+" else "_" for c in one) for one in servers)
    whole = "-".join(["upgrade-check", *plain])
    if len(whole.encode()) <= _LONGEST_NAME_BYTES:
        return whole
    # Names that differ at their ends have different folders.
    ending = hashlib.sha256(whole.encode()).hexdigest()[:_DIGITS]
    return f"{whole.encode()[: _LONGEST_NAME_BYTES - _DIGITS - 1].decode(errors='ignore')}-{ending}"
