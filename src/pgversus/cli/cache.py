"""`pgversus cache`: list and remove cached builds, sources and data."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.cli.options import names_starting
from pgversus.cli.output import pass_json_flag, write_out
from pgversus.errors import HostError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from pgversus.records.inventory import CachedKind, CachedThing

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


@click.group(invoke_without_command=True, short_help="List or remove cached builds and data.")
@_JSON
@click.pass_context
def cache(context: click.Context, *, as_json: bool) -> None:
    """List cached builds, sources, ccache files and snapshots (loaded data).

    Snapshots use up to 20 GB; set PGVERSUS_SNAPSHOTS to change this limit (such as 5GB; 0 disables caching). The least
    recently used snapshots are removed first.

    \b
    pgversus cache
    pgversus cache remove --snapshots
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    if context.invoked_subcommand is None:
        context.invoke(list_cache, as_json=as_json)
    else:
        pass_json_flag(context, as_json=as_json)


@cache.command("list", short_help="List the contents of the cache.")
@_JSON
def list_cache(*, as_json: bool) -> None:
    """List name, size, last use and kind of all entries: builds, sources, ccache files, then snapshots."""
    import time  # noqa: PLC0415 - like the others

    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.inventory import cached_things  # noqa: PLC0415 - the same
    from pgversus.report.inventory import cache_document, cache_table  # noqa: PLC0415 - the same

    here = open_cache()
    things = cached_things(here)
    if as_json:
        write_out(json.dumps(cache_document(things, str(here.root)), indent=2) + "\n", "")
    else:
        write_out(cache_table(things, str(here.root), time.time()), "")


def _things() -> list[str]:
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.inventory import cached_things  # noqa: PLC0415 - the same

    return [thing.name for thing in cached_things(open_cache())]


@cache.command("remove", short_help="Remove builds, loaded data, or everything.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=names_starting(_things))
@click.option("--snapshots", is_flag=True, help="Remove all snapshots (cached copies of loaded data).")
@click.option("--builds", is_flag=True, help="Remove all builds.")
@click.option("--sources", is_flag=True, help="Remove all source tarballs.")
@click.option("--all", "everything", is_flag=True, help="Remove everything, including the ccache files.")
def remove_from_cache(
    names: tuple[str, ...], *, snapshots: bool, builds: bool, sources: bool, everything: bool
) -> None:
    """Remove the entries with these NAMEs, as `pgversus cache` lists them. The name of a snapshot can be shortened.

    Builds in use are not removed.
    """
    if not (names or snapshots or builds or sources or everything):
        raise click.UsageError("specify what to remove: names, --snapshots, --builds, --sources or --all")
    from pgversus.records.inventory import CachedKind  # noqa: PLC0415 - not for `--help`

    requested = {CachedKind.SNAPSHOT: snapshots, CachedKind.BUILD: builds, CachedKind.SOURCE: sources}
    whole = set(CachedKind) if everything else {kind for kind, is_whole in requested.items() if is_whole}
    remove_named(names, set(CachedKind), whole=whole)


def remove_named(
    names: "Sequence[str]", kinds: "Collection[CachedKind]", *, whole: "Collection[CachedKind]" = ()
) -> None:
    """Remove the named entries of these kinds, and all entries of the `whole` kinds; print the outcome for each."""
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.inventory import cached_things, named, take_out  # noqa: PLC0415 - the same

    here = open_cache()
    things = [thing for thing in cached_things(here) if thing.kind in kinds]
    chosen = named(things, names)
    chosen += [thing for thing in things if thing.kind in whole and thing not in chosen]
    try:
        stay = take_out(here, chosen)
    except OSError as error:
        raise _not_removed(error, here.root) from error
    write_out("".join(_lines(chosen, stay)), "")


def _lines(chosen: "Sequence[CachedThing]", stay: "Sequence[CachedThing]") -> list[str]:
    from pgversus.text.units import size  # noqa: PLC0415 - not for `--help`

    return [
        f"{thing.name} was not removed: a run is using it\n"
        if thing in stay
        else f"removed {thing.name}, {size(thing.size_bytes)}\n"
        for thing in chosen
    ] or ["nothing to remove\n"]


def _not_removed(error: OSError, root: Path) -> HostError:
    return HostError(
        "a cache entry could not be removed",
        slug="host-cache-unwritable",
        where=str(error.filename or root),
        found=error.strerror or str(error),
        expected="files that this user can remove",
        to_do="run the command as the owner of the cache",
    )
