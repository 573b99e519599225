"""The options of `pgversus compare` and `pgversus timeline`."""

import click

from pgversus.cli.options import (
    ANSWER_GROUP,
    PROGRAMS_GROUP,
    Command,
    Count,
    WholeNumber,
    shared_options,
    with_options,
)
from pgversus.cli.question import arms_options, variables_option
from pgversus.study.design import FIRST_LOOK, LEAST_FIXED, MOST_BLOCKS
from pgversus.study.metrics import JUDGED_BY_NAME
from pgversus.study.workload import LEAST_RATE, MOST_RATE, QueryMode

COMPARISON_GROUPS = {
    "Data": ("initialize", "scale", "restore", "database", "setup", "full_statistics", "prepare", "variables"),
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
_OPTIONS = (
    click.option(
        "-c",
        "--client",
        "--clients",
        "clients",
        type=Count(min=1),
        metavar="N",
        help="Number of concurrent clients.  [default: 1]",
    ),
    click.option(
        "-j",
        "--jobs",
        "--threads",
        "jobs",
        type=Count(min=1),
        metavar="N",
        help="Number of pgbench threads.  [default: one per client, at most one per processor]",
    ),
    click.option(
        "-M",
        "--protocol",
        type=click.Choice([mode.value for mode in QueryMode]),
        help="Query mode.  [default: simple]",
    ),
    variables_option("scripts, or for --prepare"),
    click.option(
        "-R",
        "--rate",
        type=click.FloatRange(min=LEAST_RATE, max=MOST_RATE),
        metavar="TPS",
        help="Target rate in transactions per second; the verdict is then about latency.",
    ),
    click.option(
        "--rewrite",
        metavar="FILE",
        help="Equivalent of the single -f script, written so that a contender runs it with the plan that the baseline "
        "uses for the original. It is used only to measure the effect of a changed plan.",
    ),
    click.option(
        "--operation",
        "operations",
        multiple=True,
        metavar="SQL",
        help="Time this statement, each time on a fresh copy of the data; repeatable.",
    ),
    click.option(
        "--command",
        "commands",
        multiple=True,
        metavar="COMMAND",
        help="Time this program instead of a statement; PGHOST, PGPORT, PGUSER, PGDATABASE and PGDATA point to its "
        "server; repeatable.",
    ),
    click.option(
        "--prepare",
        multiple=True,
        metavar="FILE",
        help="SQL file that psql runs once after loading; each repetition of the operation starts from the resulting "
        "state; repeatable.",
    ),
    click.option(
        "--verify",
        multiple=True,
        metavar="SQL",
        help="Query that must return at least one row, with all values true, after the operation; repeatable.",
    ),
    click.option(
        "-n",
        "--no-vacuum",
        is_flag=True,
        help="Accepted for compatibility with pgbench; pgversus never vacuums between windows.",
    ),
    click.option(
        "--metric",
        type=click.Choice(list(JUDGED_BY_NAME)),
        help="Metric on which the verdict is based.  [default: tps; latency_p95 with -R; time for an operation]",
    ),
    click.option(
        "--margin",
        metavar="PERCENT",
        help="Smallest difference that matters.  [default: 2%; 5% for latency_p95 and time]",
    ),
    click.option(
        "--precision",
        metavar="PERCENT",
        help="Determine the size of the difference: measure until the 95 % interval extends at most PERCENT to each "
        "side.  [default: stop as soon as the verdict is known]",
    ),
    click.option(
        "--budget",
        metavar="TIME",
        help="Time limit for all blocks (90s, 15m, 2h); a verdict that is not known by then is undecided.  "
        "[default: 15m]",
    ),
    click.option(
        "--max-blocks",
        type=WholeNumber(FIRST_LOOK, MOST_BLOCKS),
        metavar="N",
        help=f"Maximum number of blocks; a verdict that is not known by then is undecided.  [default: {MOST_BLOCKS}]",
    ),
    click.option(
        "--blocks",
        type=Count(min=LEAST_FIXED),
        metavar="N",
        help="Run exactly N blocks and analyze once at the end.",
    ),
    click.option(
        "--window",
        metavar="LENGTH",
        help="Length of a window: 50ms, 2s (or 2), or 20tx (transactions per client).  [default: fitted to the load]",
    ),
    click.option(
        "--windows",
        type=Count(min=1),
        metavar="N",
        help="Windows per arm and block.  [default: fitted to the load]",
    ),
    click.option(
        "--pin",
        metavar="auto|off|CPUS",
        help="Processors for pgbench (CPUS, such as 0 or 0-1); the servers use the others.  [default: auto; no effect "
        "with fewer than four processors]",
    ),
    click.option(
        "--warmup",
        metavar="TIME",
        help="Warm-up after each server start, in whole seconds (2s or 2). A warm-up of 2s or more is extended until "
        "the load is steady.  [default: 2s; 0.1s before short windows]",
    ),
    click.option(
        "--seed", type=WholeNumber(min=0), metavar="N", help="Random seed, stored with the results.  [default: random]"
    ),
    click.option(
        "--results", type=click.Path(), metavar="DIR", help="New results folder.  [default: pgversus-results/TIME-ARMS]"
    ),
)


def comparison_options(command: Command) -> Command:
    """Add all options for one comparison, except its servers."""
    return arms_options(with_options(shared_options(command), _OPTIONS))
