"""`pgversus compare`: compare two or more arms on one workload; the first is the baseline."""

import secrets
import time
from pathlib import Path
from typing import Any

import click

from pgversus.cli.answer import measure, show_dry_run
from pgversus.cli.comparison_options import COMPARISON_GROUPS, comparison_options
from pgversus.cli.options import GroupedCommand, check_options
from pgversus.cli.question import check_tables, comparison_of, study_of
from pgversus.study.comparison import Comparison
from pgversus.study.study import StudyKind


@click.command(
    cls=GroupedCommand,
    groups=COMPARISON_GROUPS,
    short_help="Compare two or more servers, or levels of a setting, on one workload.",
)
@click.argument("servers", nargs=-1, required=True, metavar="SERVER...")
@comparison_options
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
    return run_comparison(options, StudyKind.COMPARISON)


def run_comparison(options: dict[str, Any], kind: StudyKind) -> int:
    """Run the comparison that the options describe, in a new results folder; return the exit code.

    kind: a kind of study with one context.
    """
    check_options(options)
    comparison = comparison_of(options)
    check_tables(comparison)
    results = _results_folder(options["results"], comparison)
    from pgversus.lab.resume import EarlierResults  # noqa: PLC0415 - `pgversus --help` does not need numpy

    study = study_of(comparison, kind)
    if options["dry_run"]:
        return show_dry_run(study, results, options, earlier=EarlierResults.REFUSE)
    return measure(study, options, results, earlier=EarlierResults.REFUSE)


def _results_folder(given: str | None, comparison: Comparison) -> Path:
    if given is not None:
        return Path(given)
    # Comparisons that begin in the same second need different folders.
    unique = secrets.token_hex(2)
    arms = "-vs-".join("".join(c if c.isalnum() or c in ".=+" else "_" for c in arm.label) for arm in comparison.arms)
    # File systems limit the bytes of a name.
    short = arms.encode()[:80].decode(errors="ignore")
    return Path("pgversus-results") / f"{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{short}-{unique}"
