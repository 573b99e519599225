"""`pgversus timeline`: one workload on consecutive versions, in one picture."""

from typing import Any

import click

from pgversus.cli.compare import run_comparison
from pgversus.cli.comparison_options import COMPARISON_GROUPS, comparison_options
from pgversus.cli.options import GroupedCommand
from pgversus.study.servers import versions_of
from pgversus.study.study import StudyKind


@click.command(
    cls=GroupedCommand,
    groups=COMPARISON_GROUPS,
    short_help="Show one workload on consecutive versions, and where its plans change.",
)
@click.argument("servers", nargs=-1, required=True, metavar="FIRST..LAST")
@comparison_options
def timeline(**options: Any) -> int:
    """Measure one workload on consecutive versions, each compared with the first one.

    FIRST..LAST is a range of major versions (14..18), or of minor versions of one major (17.0..17.8). Versions and
    other servers can be added, as for pgversus compare. The answer shows each version as a bar, and lists the plans
    that change from one version to the next.

    \b
    pgversus timeline 14..18 --setup tables.sql -f report.sql
    pgversus timeline 17.0..17.8 -i -s 10 -b tpcb-like
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    servers = tuple(version for text in options["servers"] for version in versions_of(text))
    return run_comparison({**options, "servers": servers}, StudyKind.TIMELINE)
