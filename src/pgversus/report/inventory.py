"""Installed servers, the contents of the cache and a dry run: as tables, and as JSON documents."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from enum import StrEnum
from typing import Any

from pgversus.study.host_access import HostAccess
from pgversus.study.needs import Needs
from pgversus.study.study import Study
from pgversus.study.workload import PgbenchWorkload
from pgversus.text.redaction import message_without_secrets, visible
from pgversus.text.units import count, duration, size


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """A line for each row, every column as wide as its widest text, none padded at the end."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join(text.ljust(width) for text, width in zip(row, widths, strict=True)).rstrip() for row in rows]


CACHE_SCHEMA = "pgversus.cache/1"
_DAY_S = 24 * 3600.0


class CachedKind(StrEnum):
    """What a cache holds."""

    BUILD = "build"
    SOURCE = "source"
    CCACHE = "ccache"
    SNAPSHOT = "snapshot"


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedThing:
    """One of them."""

    kind: CachedKind
    name: str
    size_bytes: int
    last_used: float
    """Seconds since 1970."""
    what: str
    """What it is, in words."""


def cache_table(things: Sequence[CachedThing], root: str, now: float) -> str:
    """A line for each, with the sum of each kind. now: seconds since 1970."""
    rows = [
        (
            thing.kind.value,
            visible(thing.name),
            size(thing.size_bytes),
            _ago(now - thing.last_used),
            visible(thing.what),
        )
        for thing in things
    ]
    lines = (
        [visible(root), *aligned([("kind", "name", "size", "last used", "what"), *rows])] if rows else [visible(root)]
    )
    sums = [
        f"{count(len(of_kind), kind.value)}, {size(sum(thing.size_bytes for thing in of_kind))}"
        for kind in CachedKind
        for of_kind in [[thing for thing in things if thing.kind is kind]]
        # Many hosts have no ccache.
        if of_kind or kind is not CachedKind.CCACHE
    ]
    return "\n".join([*lines, "; ".join(sums)]) + "\n"


def cache_document(things: Sequence[CachedThing], root: str) -> dict[str, Any]:
    """The same for programs; bytes, and seconds since 1970."""
    return {
        "schema": CACHE_SCHEMA,
        "directory": root,
        "things": [
            {
                "kind": thing.kind.value,
                "name": thing.name,
                "size_bytes": thing.size_bytes,
                "last_used": thing.last_used,
                "what": thing.what,
            }
            for thing in things
        ],
    }


def _ago(seconds: float) -> str:
    days = int(seconds // _DAY_S)
    return f"{count(days, 'day')} ago" if days else f"{duration(max(0.0, seconds))} ago"


SERVERS_SCHEMA = "pgversus.servers/1"
_HEADS = ("name", "version", "origin", "block", "options", "flags", "size", "from")


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerHere:
    """A server that can be compared without fetching or building anything."""

    name: str
    """In the cache; the bin directory of one that others installed."""
    version: str
    origin: str
    """zonky, wheel, source, or installed."""
    block_size_bytes: int | None
    """None where the program does not tell."""
    flags: str
    """Of the compiler, without warnings and what every build has; empty where nobody tells."""
    options: str
    """Of a build from source, as they stand behind a server's name; empty for none."""
    size_bytes: int | None
    """On disk; None of one that others installed, whose files are not told apart."""
    directory: str
    made_from: str
    """Of a build from source its source and its compiler, in words; `full` or `meson` where it was built so."""


def servers_table(servers: Sequence[ServerHere]) -> str:
    """A line for each, in their order."""
    if not servers:
        return "no server is here yet; compare, run and pgversus servers install fetch what they need\n"
    rows = [tuple(map(visible, _cells(server))) for server in servers]
    return "\n".join(aligned([_HEADS, *rows])) + "\n"


def servers_document(servers: Sequence[ServerHere], root: str) -> dict[str, Any]:
    """The same for programs; sizes in bytes, null where there is none."""
    return {"schema": SERVERS_SCHEMA, "cache": root, "servers": [asdict(server) for server in servers]}


def _cells(server: ServerHere) -> tuple[str, ...]:
    return (
        server.name,
        server.version.partition(" ")[0],
        server.origin,
        f"{server.block_size_bytes // 1024} kB" if server.block_size_bytes else "",
        server.options,
        server.flags,
        size(server.size_bytes) if server.size_bytes is not None else "",
        server.made_from,
    )


_MOST_SHOWN = 12


def dry_run_text(
    study: Study,
    needs: Needs,
    *,
    downloads: tuple[str, ...],
    to_build: tuple[str, ...],
    not_asked: tuple[str, ...] = (),
    access: HostAccess | None = None,
    free_bytes: int,
    blocks_there: int,
    results: str,
    with_plans: bool = True,
) -> str:
    """What would be done, in lines for a terminal or a pipe.

    not_asked: servers of which nothing is known. access: what needs consent. with_plans: whether they are looked at.
    """
    access = access or HostAccess()
    lines = [
        study.title or study.name,
        ", ".join(
            [
                count(len(study.contexts), "comparison"),
                count(study.treatments, "treatment"),
                "1 verdict" if study.verdicts == 1 else f"{study.verdicts} verdicts that share one error of 5 %",
            ]
        ),
        *_left_out(study),
        f"trials: {needs.least_trials} or more",
        f"downloads: {', '.join(downloads) if downloads else _no_downloads(to_build)}",
        *([f"to be built: {', '.join(to_build)}, some minutes of all processors each"] if to_build else []),
        *([f"not asked: {', '.join(not_asked)}; --ask-servers asks for versions and settings"] if not_asked else []),
        *access.lines,
        *([] if access.is_none else ["to run it with all of this, add --trust, or answer yes when you are asked"]),
        f"disk: about {size(needs.disk_bytes)}{_and_setup(needs)}{_at_once(needs)}, {size(free_bytes)} free",
        f"loading: {count(needs.snapshots, 'snapshot')}, about {duration(needs.preparation_s)} with the first try",
        f"blocks: {_blocks(needs)}",
        *(_afterwards(study, needs) if with_plans else []),
        f"results: {results}" + (f" ({count(blocks_there, 'block')} there already)" if blocks_there else ""),
    ]
    labels = [context.label for context in study.contexts if context.label]
    lines += [f"  {label}" for label in labels[:_MOST_SHOWN]]
    if len(labels) > _MOST_SHOWN:
        lines.append(f"  ... and {len(labels) - _MOST_SHOWN} more")
    return visible(message_without_secrets("\n".join(lines))) + "\n"


def _afterwards(study: Study, needs: Needs) -> list[str]:
    """Of operations there are no plans."""
    if not any(isinstance(context.comparison.workload, PgbenchWorkload) for context in study.contexts):
        return []
    most = "three times as long" if needs.most_s is None else f"{duration(needs.most_s)} more"
    return [f"afterwards: what plans account for that made a difference, at most {most} (--no-plans leaves it out)"]


def _left_out(study: Study) -> list[str]:
    if not study.skipped:
        return []
    return [f"left out: {count(len(study.skipped), 'treatment')} whose server lacks the setting"]


def _no_downloads(to_build: tuple[str, ...]) -> str:
    return "none, all source is here" if to_build else "none, all builds are in the cache"


def _and_setup(needs: Needs) -> str:
    return f" and what {count(needs.setup_files, 'dataset')} of setup files make" if needs.setup_files else ""


def _at_once(needs: Needs) -> str:
    return f" at once (measured in {needs.parts} parts one after another)" if needs.parts > 1 else ""


def _blocks(needs: Needs) -> str:
    if needs.most_s is None:
        return f"about {duration(needs.least_s)} or more (their number is fixed)"
    if needs.least_s > needs.most_s:
        least = f"about {duration(needs.least_s)} until all could be known at the first look"
        return f"{duration(needs.most_s)}, the whole budget, too little for all ({least})"
    return f"{duration(needs.least_s)} to {duration(needs.most_s)} (all known at the first look; the whole budget)"
