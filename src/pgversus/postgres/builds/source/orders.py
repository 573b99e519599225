"""From names of servers to what is to be built: each looked at, found and checked before the first compiler runs."""

from collections.abc import Iterable
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.postgres.builds.model import Notify, NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.build import built
from pgversus.postgres.builds.source.download import DownloadError, downloaded, name_of, place_of
from pgversus.postgres.builds.source.known import release_source, source_here
from pgversus.postgres.builds.source.order import Order, order_of
from pgversus.postgres.builds.source.source import Source
from pgversus.postgres.builds.source.tools import compiler_version, refuse_missing_tools
from pgversus.postgres.builds.source.tree import commit_source, is_tree, no_tree, tree_source
from pgversus.study.build_options import BuildManner, BuildSystem
from pgversus.study.servers import Checkout, Download, LocalPath, Release, ServerName, SourceBuild


def as_asked(name: ServerName) -> ServerName:
    """The same; a path that holds source as what is to be built from it.

    What looks like a commit and is a directory that is there, /opt/postgresql@17/bin, is that directory.
    """
    if isinstance(name, SourceBuild) and isinstance(name.source, Checkout) and Path(str(name)).is_dir():
        return as_asked(LocalPath(path=str(name)))
    if isinstance(name, LocalPath) and _holds_source(Path(name.path)):
        return SourceBuild(source=name)
    return name


def order_for(
    name: SourceBuild,
    manner: BuildManner,
    cache: Cache,
    notify: Notify,
    progress: NotifyBytes,
    compiler: str | None = None,
) -> Order:
    """What is to be built for a server, its source fetched; BuildError when it cannot be had, or not be built here.

    compiler: by which it was built before, where that build is still there; None for the one of today.
    """
    compiler = compiler or compiler_version(name.options, manner)
    match name.source:
        case Release() as release:
            source = release_source(release, cache, notify, progress)
        case Download(address=address):
            try:
                source = downloaded(address, cache, progress)
            except DownloadError as error:
                raise _not_downloaded(address, error) from error
        case LocalPath() | Checkout() as local:
            source = _local(local)
    return order_of(str(name), source, name.options, manner, compiler, _release_of(name))


def order_here(name: SourceBuild, manner: BuildManner, cache: Cache, compiler: str | None = None) -> Order | None:
    """The same without fetching anything; None where its source is not on this host yet."""
    compiler = compiler or compiler_version(name.options, manner)
    match name.source:
        case Release() as release:
            source = source_here(release, cache)
        case Download(address=address):
            place = place_of(address, cache)
            source = archive_source(place, name=name_of(place)) if place.exists() else None
        case LocalPath() | Checkout() as local:
            source = _local(local)
    if source is None:
        return None
    return order_of(str(name), source, name.options, manner, compiler, _release_of(name))


def check_orders(orders: Iterable[Order], manner: BuildManner, cache: Cache) -> None:
    """BuildError that names all that is missing on this host for those that are not in the cache yet."""
    missing = [order.made_from for order in orders if built(cache, order.name) is None]
    if missing:
        systems = [made.manner.system or BuildSystem.CONFIGURE for made in missing]
        refuse_missing_tools([made.options for made in missing], manner, systems)


def _release_of(name: SourceBuild) -> Release | None:
    return name.source if isinstance(name.source, Release) else None


def _local(name: LocalPath | Checkout) -> Source:
    path = Path(name.path)
    if isinstance(name, Checkout):
        return commit_source(path, name.ref)
    if path.is_file() or (is_archive(path) and not path.is_dir()):
        return archive_source(path)
    if is_tree(path):
        return tree_source(path)
    found = "a directory without src/backend in it" if path.is_dir() else "nothing of that name"
    raise no_tree(str(path.absolute()), found)


def _holds_source(path: Path) -> bool:
    try:
        return is_tree(path) or (is_archive(path) and not path.is_dir())
    except OSError:
        # Whoever looks into it says why it cannot be.
        return False


def _not_downloaded(address: str, error: DownloadError) -> BuildError:
    return BuildError(
        "a tarball of PostgreSQL's source could not be fetched",
        slug="build-no-source",
        where=address,
        found=str(error),
        expected="a tarball at this address",
        to_do="see whether the address is right; a tarball on this host does as well: ./postgresql-17.8.tar.bz2",
    )
