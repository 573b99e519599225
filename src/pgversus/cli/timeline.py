"""`pgversus timeline`: one workload on consecutive versions, in one picture."""

from collections.abc import Sequence
from typing import Any

import click

from pgversus.cli.compare import run_comparison
from pgversus.cli.comparison_options import COMPARISON_GROUPS, comparison_options
from pgversus.cli.options import GroupedCommand
from pgversus.cli.output import write_error
from pgversus.study.servers import Release, parse_server, versions_of
from pgversus.study.study import StudyKind

_RANGE = 3
"""Versions of the shortest range with one in between."""


@click.command(
    cls=GroupedCommand,
    groups=COMPARISON_GROUPS,
    short_help="Show one workload on consecutive versions, and where its plans change.",
)
@click.argument("servers", nargs=-1, required=True, metavar="FIRST..LAST")
@comparison_options
def timeline(**options: Any) -> int:
    """Measure one workload on consecutive versions, each compared with the first one.

    FIRST..LAST is a range of major versions (14..18), or of minor versions of one major (17.0..17.8). Versions in
    between that are not available are skipped. Versions and other servers can be added, as for pgversus compare. The
    answer shows each version as a bar, and lists the plans that change from one version to the next.

    \b
    pgversus timeline 14..18 --setup tables.sql -f report.sql
    pgversus timeline 17.0..17.8 -i -s 10 -b tpcb-like
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    servers = tuple(version for text in options["servers"] for version in _available(versions_of(text)))
    return run_comparison({**options, "servers": servers}, StudyKind.TIMELINE)


def _available(versions: Sequence[str]) -> list[str]:
    """Return the versions of a range without those in between that are not available, which are reported."""
    names = [parse_server(version) for version in versions]
    releases = [name for name in names if isinstance(name, Release)]
    if len(versions) < _RANGE or len(releases) < len(versions):
        return list(versions)
    # Imported here: `pgversus --help` needs neither.
    from pgversus.builds.provide import not_offered  # noqa: PLC0415
    from pgversus.host.directories import open_cache  # noqa: PLC0415

    missing = not_offered(releases, open_cache())
    if missing:
        names_of_missing = ", ".join(map(str, missing))
        write_error(f"skipped: {names_of_missing} (no ready-made builds of the same family as the other versions)")
    return [version for version, release in zip(versions, releases, strict=True) if release not in missing]
