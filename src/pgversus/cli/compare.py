"""`pgversus compare`: compare two or more arms on one workload; the first is the baseline."""

import secrets
import time
from pathlib import Path
from typing import Any

import click

from pgversus.cli.answer import measure, show_dry_run
from pgversus.cli.options import (
    ANSWER_GROUP,
    PROGRAMS_GROUP,
    Count,
    GroupedCommand,
    WholeNumber,
    check_options,
    shared_options,
)
from pgversus.cli.question import arms_options, check_tables, comparison_of, study_of, variables_option
from pgversus.study.comparison import Comparison
from pgversus.study.design import FIRST_LOOK, LEAST_FIXED, MOST_BLOCKS
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.workload import LEAST_RATE, QueryMode

_GROUPS = {
    "Data": ("initialize", "scale", "restore", "setup", "full_statistics", "prepare", "variables"),
    "Load (as in pgbench)": (
        *("files", "builtins", "select_only", "skip_some_updates", "clients", "jobs", "protocol", "rate", "no_vacuum"),
    ),
    "Operation, instead of a load": ("operations", "commands", "verify"),
    "Arms": ("settings", "rewrite"),
    "Design": (
        *("metric", "margin", "precision", "budget", "max_blocks", "blocks"),
        *("window", "windows", "warmup", "pin", "seed"),
    ),
    "Run": ("results", "dry_run", "ask_servers"),
    **ANSWER_GROUP,
    **PROGRAMS_GROUP,
}


@click.command(
    cls=GroupedCommand,
    groups=_GROUPS,
    short_help="Compare two or more servers, or levels of a setting, on one workload.",
)
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@arms_options
@click.option(
    "-c",
    "--client",
    "--clients",
    "clients",
    type=Count(min=1),
    metavar="N",
    help="Number of concurrent clients.  [default: 1]",
)
@click.option(
    "-j",
    "--jobs",
    "--threads",
    "jobs",
    type=Count(min=1),
    metavar="N",
    help="Number of pgbench threads.  [default: one per client, at most one per processor]",
)
@click.option(
    "-M",
    "--protocol",
    type=click.Choice([mode.value for mode in QueryMode]),
    help="Query mode.  [default: simple]",
)
@variables_option("scripts, or for --prepare")
@click.option(
    "-R",
    "--rate",
    type=click.FloatRange(min=LEAST_RATE),
    metavar="TPS",
    help="Target rate in transactions per second; the verdict is then about latency.",
)
@click.option(
    "--rewrite",
    metavar="FILE",
    help="Script equivalent to the only -f, for which a contender chooses the plan that the baseline chooses for -f. "
    "It is used to measure the effect of a changed plan, and is not compared itself.",
)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    metavar="SQL",
    help="Time this statement, run once per block on a fresh copy of the data; repeatable.",
)
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="Time this program instead of a statement; PGHOST, PGPORT, PGUSER, PGDATABASE and PGDATA point to its "
    "server; repeatable.",
)
@click.option(
    "--prepare",
    multiple=True,
    metavar="FILE",
    help="SQL file that psql runs once after loading; each repetition of the operation starts from the resulting "
    "state; repeatable.",
)
@click.option(
    "--verify",
    multiple=True,
    metavar="SQL",
    help="Query that must return at least one row, with all values true, after the operation; repeatable.",
)
@click.option(
    "-n",
    "--no-vacuum",
    is_flag=True,
    help="Accepted for compatibility with pgbench; pgversus never vacuums between windows.",
)
@click.option(
    "--metric",
    type=click.Choice(list(JUDGED_BY_NAME)),
    help="Metric on which the verdict is based.  [default: tps; latency_p95 with -R; time for an operation]",
)
@click.option(
    "--margin",
    metavar="PERCENT",
    help="Smallest difference that matters.  [default: 2%; 5% for latency_p95 and time]",
)
@click.option(
    "--precision",
    metavar="PERCENT",
    help="Determine the size of the difference: measure until the 95 % interval extends at most PERCENT to each side.  "
    "[default: stop as soon as the verdict is known]",
)
@click.option(
    "--budget",
    metavar="TIME",
    help="Time limit for all blocks (90s, 15m, 2h); a verdict that is not known by then is undecided.  [default: 15m]",
)
@click.option(
    "--max-blocks",
    type=WholeNumber(FIRST_LOOK, MOST_BLOCKS),
    metavar="N",
    help=f"Maximum number of blocks; a verdict that is not known by then is undecided.  [default: {MOST_BLOCKS}]",
)
@click.option(
    "--blocks",
    type=Count(min=LEAST_FIXED),
    metavar="N",
    help="Run exactly N blocks and analyze once at the end.",
)
@click.option(
    "--window",
    metavar="LENGTH",
    help="Length of a window: 50ms, 2s (or 2), or 20tx (transactions per client).  [default: fitted to the load]",
)
@click.option(
    "--windows",
    type=Count(min=1),
    metavar="N",
    help="Windows per arm and block.  [default: fitted to the load]",
)
@click.option(
    "--pin",
    metavar="auto|off|CPUS",
    help="Processors for pgbench (CPUS, such as 0 or 0-1); the servers use the others.  [default: auto; no effect with "
    "fewer than four processors]",
)
@click.option(
    "--warmup",
    metavar="TIME",
    help="Warm-up after each server start, in whole seconds (2s or 2). A warm-up of 2s or more is extended until the "
    "load is steady.  [default: 2s; 0.1s before short windows]",
)
@click.option(
    "--seed", type=WholeNumber(min=0), metavar="N", help="Random seed, stored with the results.  [default: random]"
)
@click.option(
    "--results", type=click.Path(), metavar="DIR", help="New results folder.  [default: pgversus-results/TIME-ARMS]"
)
@shared_options
def compare(**options: Any) -> int:
    """Compare every other SERVER with the first one on the same workload.

    Each server, or each value of --set, is an arm. In each block, all arms are started and measured in turn, in random
    order; each measurement under load is a window.

    SERVER is a version (17, 17.8), a bin directory or a connection URI. pgversus also builds servers from source: a
    version with options (17+blocksize=16, 17+cassert, 17+cflags=-O3), a source tree, a commit (./postgres@REF), or a
    tarball. With a single SERVER, the values of --set are the arms. The same server twice is an A/A comparison.

    \b
    pgversus compare 16.12 17.8 --setup correlated.sql -f correlated_in.sql -c 4
    pgversus compare 17 --set work_mem=4MB,64MB -i -s 10 -f report.sql
    pgversus compare 16 17 18 -i -s 10 -b tpcb-like -c 8 -j 2
    pgversus compare 15.10 16.6 -i -s 10 --prepare dirty.sql --operation 'VACUUM pgbench_accounts'
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    check_options(options)
    comparison = comparison_of(options)
    check_tables(comparison)
    results = _results_folder(options["results"], comparison)
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - `pgversus --help` does not need numpy

    study = study_of(comparison)
    if options["dry_run"]:
        return show_dry_run(study, results, options, earlier=EarlierResults.REFUSE)
    return measure(study, options, results, earlier=EarlierResults.REFUSE)


def _results_folder(given: str | None, comparison: Comparison) -> Path:
    if given is not None:
        return Path(given)
    # Two that begin in the same second must not meet.
    unique = secrets.token_hex(2)
    arms = "-vs-".join("".join(c if c.isalnum() or c in ".=+" else "_" for c in arm.label) for arm in comparison.arms)
    return Path("pgversus-results") / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{arms[:80]}-{unique}"
