"""The environment of a study, and the refusal to mix blocks of different clients, machines or builds.

Client, machine and builds are stored as facts with the results. A ratio compares two arms in one block; blocks from a
different environment answer a different question.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from pgversus.builds.compile import built
from pgversus.builds.model import FROM_SOURCE, Build, name_of_key
from pgversus.builds.orders import normalized_name
from pgversus.errors import StoreError, StudyError
from pgversus.host.directories import Cache
from pgversus.host.files import readable_sha256
from pgversus.postgres.client import Client
from pgversus.study.servers import (
    BuildFamily,
    Release,
    RunningServer,
    ServerName,
    SourceBuild,
    name_in_full,
    parse_server,
)

Fact = Mapping[str, Any]

_HOST = ("machine", "cpu_model", "cpus", "cpus_usable", "file_system")
_MEMORY_SHARE = 0.05
# An update may change the kernel's share of memory by a few megabytes; another machine differs by more.
_WORTH_A_LINE = ("kernel", "libc", "governor", "transparent_hugepage")


def build_facts(builds: Mapping[ServerName, Build | None]) -> dict[str, Fact]:
    """Return the properties of each server's program, by the server's full name; external servers have none."""
    return {
        name_in_full(name): {
            "origin": build.origin,
            "version": build.version,
            "artifact_sha256": build.sha256,
            # If it is not readable, its version has to suffice.
            "postgres_sha256": readable_sha256(build.program("postgres")),
        }
        for name, build in builds.items()
        if build is not None and not isinstance(name, RunningServer)
    }


def client_facts(client: Client) -> Fact:
    """Return the properties of the pgbench that generates the load."""
    return {"version": client.version, "origin": client.origin, "sha256": readable_sha256(client.pgbench)}


def as_measured_before(names: Sequence[ServerName], earlier: Mapping[str, Any]) -> list[ServerName]:
    """Return the same servers, with each release pinned to the version and family that were measured before.

    In the meantime, 17 may mean a newer version, or another family may provide it. earlier: the facts of the results.
    """
    before = earlier.get("builds", {})
    return [_as_measured(name, before) for name in names]


def compilers_before(
    names: Sequence[ServerName], meant: Sequence[ServerName], earlier: Mapping[str, Any], cache: Cache
) -> dict[ServerName, str]:
    """Return the compiler of each server that was measured before and is still in the cache.

    The compiler of this host may have been updated since; a resumed run uses the earlier build. names: of the study.
    meant: the result of as_measured_before for them.
    """
    before = earlier.get("builds", {})
    found: dict[ServerName, str] = {}
    for name, one in zip(names, meant, strict=True):
        fact = {} if isinstance(name, RunningServer) else before.get(name_in_full(name), {})
        key = fact.get("artifact_sha256") if fact.get("origin") == FROM_SOURCE else None
        build = built(cache, name_of_key(key)) if key is not None else None
        if build is not None and build.made_from is not None:
            # A plain release is built from source if another server of the study is.
            found[SourceBuild(source=one) if isinstance(one, Release) else normalized_name(one)] = (
                build.made_from.compiler
            )
    return found


def _as_measured(name: ServerName, before: Mapping[str, Fact]) -> ServerName:
    if isinstance(name, RunningServer):
        return name
    known = before.get(name_in_full(name), {})
    version = _released(known.get("version") or "")
    if version is None:
        return name
    origin = known.get("origin")
    match name:
        case Release() if origin in [family.value for family in BuildFamily]:
            return replace(version, family=BuildFamily(origin))
        case Release() if origin == FROM_SOURCE:
            # Built from source because another server of the study is, which still holds.
            return version
        case SourceBuild(source=Release()):
            return replace(name, source=version)
        case _:
            return name


def _released(text: str) -> Release | None:
    """Return the release with this version; None if the text is not a version."""
    try:
        version = parse_server(text)
    except StudyError:
        return None
    return version if isinstance(version, Release) and version.minor is not None else None


def check_same_builds(earlier: Mapping[str, Any], now: Mapping[str, Fact], folder: Path) -> None:
    """Raise StoreError if a server is not the one measured before.

    earlier: the facts of the results. now: build_facts().
    """
    before = earlier.get("builds", {})
    for name, build in now.items():
        if name in before and _identity(before[name]) != _identity(build):
            raise _another(
                f"{name} is a different build from the one measured before",
                folder,
                slug="store-other-build",
                before=before[name],
                now=build,
                to_do="restore the earlier build, or start again with --new",
            )


def _identity(build: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the facts by which a build is recognized."""
    if build.get("origin") == FROM_SOURCE and build.get("artifact_sha256"):
        # It contains the path of its source tree, so equal builds in different directories have different programs.
        return {name: value for name, value in build.items() if name != "postgres_sha256"}
    return build


def check_same_client(earlier: Mapping[str, Any], now: Fact, folder: Path) -> None:
    """Raise StoreError if a different pgbench generates the load."""
    before = earlier.get("client", now)
    if before != now:
        raise _another(
            "this pgbench is not the one that measured the earlier blocks, and its load may differ",
            folder,
            slug="store-other-client",
            before=before,
            now=now,
            to_do="use the same pgbench (--pgbench) and the same release of pgversus, or start again with --new",
        )


def check_same_host(earlier: Mapping[str, Any], now: Fact, folder: Path) -> None:
    """Raise StoreError if this is not the machine of the earlier blocks, or its size has changed."""
    before = earlier.get("host", now)
    names = [name for name in _HOST if before.get(name) != now.get(name)]
    if _is_another_size(before.get("memory_bytes"), now.get("memory_bytes")):
        names.append("memory_bytes")
    if names:
        raise _another(
            "this host differs from the one of the earlier blocks, and blocks of different hosts cannot be combined",
            folder,
            slug="store-other-host",
            before={name: before.get(name) for name in names},
            now={name: now.get(name) for name in names},
            to_do="resume on that host, with the same processors, memory and file system, or start again with --new",
        )


def check_same_load_hosts(earlier: Mapping[str, Any], now: Sequence[str] | None, folder: Path) -> None:
    """Raise StoreError if other hosts send the load. now: their names; None if this host alone sends it."""
    before = earlier.get("load_hosts")
    if before != (None if now is None else list(now)):
        raise StoreError(
            "other hosts sent the load of the earlier blocks",
            slug="store-other-load-hosts",
            where=str(folder),
            found="this host" if now is None else ", ".join(now),
            expected="this host" if before is None else ", ".join(before),
            to_do="let the same hosts send the load (--fleet), or start again with --new",
        )


def changes_of_host(earlier: Mapping[str, Any], now: Fact) -> Iterator[str]:
    """Yield changes of the machine by an update or a reboot, which are reported but not refused."""
    before = earlier.get("host", now)
    for name in _WORTH_A_LINE:
        if before.get(name) != now.get(name):
            yield f"{name} was {before.get(name)} for the earlier blocks and is {now.get(name)} now"


def _is_another_size(before: int | None, now: int | None) -> bool:
    return before is not None and now is not None and abs(now - before) > _MEMORY_SHARE * before


def _another(what: str, folder: Path, *, slug: str, before: Fact, now: Fact, to_do: str) -> StoreError:
    return StoreError(
        what,
        slug=slug,
        where=str(folder),
        found=_differing_text(before, now),
        expected=_differing_text(now, before),
        to_do=to_do,
    )


def _differing_text(other: Fact, one: Fact) -> str:
    """Return the version in `one`, and everything in which it differs from `other`."""
    shown = [f"{name} {value}" for name, value in one.items() if name == "version" or other.get(name) != value]
    return ", ".join(shown)
