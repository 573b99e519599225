"""`pgversus compare`: two or more arms, one workload; the first is the baseline."""

import json
import secrets
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.options import exit_code, in_asked_manner, language_shown, means_options, measure
from pgversus.cli.output import rendered, write_out
from pgversus.cli.question import METRICS, arms_options, comparison_of, study_of, variable_options
from pgversus.study.comparison import Comparison
from pgversus.study.design import FIRST_LOOK, MOST_BLOCKS
from pgversus.study.workload import QueryMode
from pgversus.text.translation import use_language

if TYPE_CHECKING:
    from pgversus.report.answer import Answer

_LEAST_FIXED = 2


@click.command(short_help="Compare two or more servers, or levels of a setting, on one workload.")
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@arms_options
@click.option("-c", "--client", "clients", type=click.IntRange(min=1), metavar="N", help="Clients.  [default: 1]")
@click.option("-j", "--jobs", type=click.IntRange(min=1), metavar="N", help="Threads of pgbench.  [default: 1]")
@click.option(
    "-M",
    "--protocol",
    type=click.Choice([mode.value for mode in QueryMode]),
    help="Query mode.  [default: simple]",
)
@variable_options
@click.option(
    "-R",
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="TPS",
    help="Schedule so many transactions per second; latency then carries the verdict.",
)
@click.option(
    "--operation",
    "operations",
    multiple=True,
    metavar="SQL",
    help="Instead of a load: a statement that is run once in each block, on a fresh copy of the data, and timed; "
    "repeatable.",
)
@click.option(
    "--command",
    "commands",
    multiple=True,
    metavar="COMMAND",
    help="The same with a program, which finds its arm by PGHOST, PGPORT, PGUSER, PGDATABASE and PGDATA, and runs in a "
    "directory of its own; repeatable.",
)
@click.option(
    "--prepare",
    multiple=True,
    metavar="FILE",
    help="SQL file that psql runs once on what was loaded, to make the state that an operation needs; repeatable.",
)
@click.option(
    "--verify", multiple=True, metavar="SQL", help="Must return nothing but true after an operation; repeatable."
)
@click.option(
    "-n", "--no-vacuum", is_flag=True, help="Accepted for pgbench's sake: nothing is vacuumed between windows anyway."
)
@click.option(
    "--metric",
    type=click.Choice(list(METRICS)),
    help="What carries the verdict.  [default: tps; with -R latency_p95; of an operation time]",
)
@click.option(
    "--margin",
    metavar="PERCENT",
    help="The smallest difference that matters.  [default: 2%; for latency_p95 and time 5%]",
)
@click.option("--budget", metavar="TIME", help="Stop undecided after so much time (90s, 15m, 2h).  [default: 15m]")
@click.option(
    "--max-blocks",
    type=click.IntRange(FIRST_LOOK, MOST_BLOCKS),
    metavar="N",
    help=f"Stop undecided after so many blocks.  [default: {MOST_BLOCKS}]",
)
@click.option(
    "--blocks",
    type=click.IntRange(min=_LEAST_FIXED),
    metavar="N",
    help="Exactly so many blocks and one look at the end.",
)
@click.option(
    "--window",
    metavar="LENGTH",
    help="Length of one window: 50ms, 2s, or 20tx (transactions of each client).  [default: fitted to the load]",
)
@click.option(
    "--windows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Windows of each arm in one block.  [default: fitted to the load]",
)
@click.option(
    "--pin",
    metavar="auto|off|CPUS",
    help="Processors of their own for the client (CPUS, such as 0 or 0-1) and for the servers (the rest).  "
    "[default: auto, on hosts with four or more]",
)
@click.option(
    "--warm-up",
    metavar="TIME",
    help="Load thrown away after each start, in whole seconds; more until it is steady.  [default: 2s]",
)
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Of everything random; stored.  [default: drawn]")
@click.option(
    "--results", type=click.Path(), metavar="DIR", help="New results folder.  [default: pgversus-results/TIME-ARMS]"
)
@means_options
def compare(**options: Any) -> int:
    """Is each other SERVER faster or slower than the first, on this workload?

    SERVER is a version (17, 17.8), a bin directory, or a connection URI; or what is built from source: a version with
    options (17+blocksize=16, 17+cassert, 17+cflags=-O3), a source tree, a commit of one (./postgres@REF), a tarball.
    With one SERVER, --set with several levels makes the arms. The same server twice is an A/A comparison.

    \b
    pgversus compare 16.12 17.8 --setup correlated.sql -f correlated_in.sql -c 4
    pgversus compare 17 --set work_mem=4MB,64MB -i -s 10 -f report.sql
    pgversus compare 16 17 18 -i -s 10 -b tpcb-like -c 8 -j 2
    pgversus compare 15.10 16.6 -i -s 10 --prepare dirty.sql --operation 'VACUUM pgbench_accounts'
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    comparison = comparison_of(options)
    results = _results_folder(options["results"], comparison)
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - `pgversus --help` does without numpy

    study = in_asked_manner(study_of(comparison), options)
    whole = measure(study, options, results, earlier=EarlierResults.REFUSE)
    with use_language(language_shown(options)):
        text = _text(whole.answers[0], as_json=options["as_json"])
    write_out(text, whole.results)
    return int(exit_code(whole, options["fail_on"]))


def _text(answer: "Answer", *, as_json: bool) -> str:
    from pgversus.report.json_document import document  # noqa: PLC0415 - `pgversus --help` does without numpy
    from pgversus.report.terminal import print_answer  # noqa: PLC0415 - the same

    if as_json:
        return json.dumps(document(answer), indent=2, allow_nan=False) + "\n"
    return rendered(lambda console, columns: print_answer(answer, console, columns))


def _results_folder(given: str | None, comparison: Comparison) -> Path:
    if given is not None:
        return Path(given)
    # Two that begin in the same second must not meet.
    unique = secrets.token_hex(2)
    arms = "-vs-".join("".join(c if c.isalnum() or c in ".=+" else "_" for c in arm.label) for arm in comparison.arms)
    return Path("pgversus-results") / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{arms[:80]}-{unique}"
