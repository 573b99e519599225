"""`pgversus compare`: two or more arms, one workload; the first is the baseline."""

import io
import json
import os
import secrets
import sys
import time
from pathlib import Path
from typing import Any

import click

from pgversus.cli.question import METRICS, comparison_of
from pgversus.errors import ExitCode, HostError
from pgversus.study.comparison import Comparison
from pgversus.study.design import FIRST_LOOK, MOST_BLOCKS
from pgversus.study.workload import QueryMode

_LEAST_FIXED = 2


@click.command(short_help="Compare two or more servers, or levels of a setting, on one workload.")
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="NAME=V[,V...]",
    help="A setting for all arms, or its levels to compare.",
)
@click.option("--setup", multiple=True, metavar="FILE", help="SQL file that psql runs once in each arm; repeatable.")
@click.option("-i", "--initialize", is_flag=True, help="Make pgbench's tables in each arm, before any --setup.")
@click.option(
    "-s", "--scale", type=click.IntRange(min=1), metavar="N", help="Scale factor of -i, and :scale in scripts."
)
@click.option(
    "-f", "--file", "files", multiple=True, metavar="FILE[@W]", help="pgbench script, with a weight; repeatable."
)
@click.option(
    "-b", "--builtin", "builtins", multiple=True, metavar="NAME[@W]", help="Built-in script of pgbench; repeatable."
)
@click.option("-S", "--select-only", is_flag=True, help="As -b select-only.")
@click.option("-N", "--skip-some-updates", is_flag=True, help="As -b simple-update.")
@click.option(
    "-c", "--client", "clients", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Clients."
)
@click.option(
    "-j", "--jobs", type=click.IntRange(min=1), default=1, show_default=True, metavar="N", help="Threads of pgbench."
)
@click.option(
    "-M",
    "--protocol",
    type=click.Choice([mode.value for mode in QueryMode]),
    default=QueryMode.SIMPLE.value,
    show_default=True,
    help="Query mode.",
)
@click.option(
    "-D", "--define", "variables", multiple=True, metavar="VAR=VALUE", help="Variable for the scripts; repeatable."
)
@click.option(
    "-R",
    "--rate",
    type=click.FloatRange(min=0, min_open=True),
    metavar="TPS",
    help="Schedule so many transactions per second; latency then carries the verdict.",
)
@click.option(
    "-n", "--no-vacuum", is_flag=True, help="Accepted for pgbench's sake: nothing is vacuumed between windows anyway."
)
@click.option(
    "--metric", type=click.Choice(list(METRICS)), help="What carries the verdict.  [default: tps; with -R latency_p95]"
)
@click.option(
    "--margin", metavar="PERCENT", help="The smallest difference that matters.  [default: 2%; for latency_p95 5%]"
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
@click.option("--window", metavar="TIME", help="Length of one window, in whole seconds.  [default: fitted to the load]")
@click.option(
    "--windows",
    type=click.IntRange(min=1),
    metavar="N",
    help="Windows of each arm in one block.  [default: fitted to the load]",
)
@click.option("--warm-up", metavar="TIME", help="Load thrown away after each start, in whole seconds.  [default: 2s]")
@click.option("--seed", type=click.IntRange(min=0), metavar="N", help="Of everything random; stored.  [default: drawn]")
@click.option(
    "--pgbench",
    "pgbench_path",
    type=click.Path(),
    metavar="PATH",
    help="Another pgbench than the one that comes with pgversus.",
)
@click.option("--run-as", metavar="USER", help="As root: the user that servers run as.  [default: nobody]")
@click.option(
    "--results", type=click.Path(), metavar="DIR", help="New results folder.  [default: pgversus-results/TIME-ARMS]"
)
@click.option("--keep-logs", is_flag=True, help="Keep pgbench's transaction logs among the results.")
@click.option(
    "--fail-on", multiple=True, type=click.Choice(["slower", "undecided"]), help="Exit with 1 on such a verdict."
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables.")
def compare(**options: Any) -> int:
    """Is each other SERVER faster or slower than the first, on this workload?

    SERVER is a version (17, 17.8), a bin directory, or a connection URI. With one SERVER, --set with several levels
    makes the arms. The same server twice is an A/A comparison.

    \b
    pgversus compare 16.12 17.8 --setup correlated.sql -f correlated_in.sql -c 4
    pgversus compare 17 --set work_mem=4MB,64MB -i -s 10 -f report.sql
    pgversus compare 16 17 18 -i -s 10 -b tpcb-like -c 8 -j 2
    """  # noqa: D301 - \b is the mark of click for lines that are not to be joined
    comparison = comparison_of(options)
    return _carry_out(comparison, options)


def _carry_out(comparison: Comparison, options: dict[str, Any]) -> int:
    # Imported here: `pgversus --help` and every usage error do without numpy and psycopg.
    from rich.console import Console  # noqa: PLC0415

    from pgversus.cli.progress import ProgressConsole, TerminalProgress  # noqa: PLC0415
    from pgversus.host.identity import server_user  # noqa: PLC0415
    from pgversus.lab.compare import Means  # noqa: PLC0415
    from pgversus.lab.compare import compare as run_comparison  # noqa: PLC0415
    from pgversus.postgres.client import client_at, fixed_client  # noqa: PLC0415
    from pgversus.report.document import document  # noqa: PLC0415
    from pgversus.report.terminal import print_answer  # noqa: PLC0415

    means = Means(
        user=server_user(options["run_as"]),
        client=client_at(Path(options["pgbench_path"])) if options["pgbench_path"] else fixed_client(),
        results=_results_folder(options["results"], comparison),
        keep_logs=options["keep_logs"],
    )
    with TerminalProgress(ProgressConsole()) as progress:
        answer = run_comparison(comparison, means, progress)
    if options["as_json"]:
        text = json.dumps(document(answer), indent=2, allow_nan=False) + "\n"
    else:
        # Into memory first: rich would end the process by itself where standard output cannot be written.
        page = io.StringIO()
        print_answer(answer, Console(file=page, force_terminal=sys.stdout.isatty()))
        text = page.getvalue()
    _print(text, answer.results)
    return int(_exit_code(answer, options["fail_on"]))


def _print(text: str, results: str) -> None:
    try:
        sys.stdout.write(text)
        sys.stdout.flush()
    except BrokenPipeError:
        # The reader has what it wants (pgversus ... | head). Python must not try again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        raise HostError(
            "the answer could not be printed",
            slug="host-output",
            where="standard output",
            found=error.strerror or str(error),
            expected="somewhere to write to",
            to_do=f"nothing is lost: it is in {results}",
        ) from error


def _exit_code(answer: Any, fail_on: tuple[str, ...]) -> ExitCode:
    from pgversus.study.design import StopReason  # noqa: PLC0415

    if answer.stopped is StopReason.INTERRUPTED:
        return ExitCode.INTERRUPTED
    if any(result.verdict.value in fail_on for result in answer.analysis.results):
        return ExitCode.FAIL_ON
    return ExitCode.FAILED_TRIALS if answer.failed_trials else ExitCode.DONE


def _results_folder(given: str | None, comparison: Comparison) -> Path:
    if given is not None:
        return Path(given)
    # Two that begin in the same second must not meet.
    unique = secrets.token_hex(2)
    arms = "-vs-".join("".join(c if c.isalnum() or c in ".=+" else "_" for c in arm.label) for arm in comparison.arms)
    return Path("pgversus-results") / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{arms[:80]}-{unique}"
