"""From names of servers to what is to be built: each looked at, found and checked before the first compiler runs."""

from collections.abc import Iterable, Mapping
from pathlib import Path

from pgversus.errors import BuildError
from pgversus.host.directories import Cache
from pgversus.host.identity import ServerUser
from pgversus.postgres.builds.model import Notify, NotifyBytes
from pgversus.postgres.builds.source.archive import archive_source, is_archive
from pgversus.postgres.builds.source.build import built
from pgversus.postgres.builds.source.download import DownloadError, downloaded, name_of, place_of
from pgversus.postgres.builds.source.known import release_source, source_here
from pgversus.postgres.builds.source.order import Order, order_of
from pgversus.postgres.builds.source.source import Source
from pgversus.postgres.builds.source.stored import stored_source
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


def orders_here(
    names: Iterable[SourceBuild],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    compilers: Mapping[ServerName, str],
) -> dict[SourceBuild, Order | None]:
    """What is to be built for each server, nothing fetched; None where its source is not on this host yet.

    user: who builds. compilers: by which some were built before, where those builds are still there; the others by that
    of today. BuildError when one is no source, or that names all that is missing on this host to build those that are
    not in the cache.
    """
    sources = {name: _source_here(name, cache) for name in dict.fromkeys(names)}
    orders = {
        name: None if source is None else _order(name, source, manner, user, compilers)
        for name, source in sources.items()
    }
    _refuse_missing_tools(orders, manner, cache, user)
    return orders


def fetched_orders(
    here: Mapping[SourceBuild, Order | None],
    manner: BuildManner,
    cache: Cache,
    user: ServerUser,
    notify: Notify,
    progress: NotifyBytes,
    compilers: Mapping[ServerName, str],
) -> dict[SourceBuild, Order]:
    """The same with the sources that are not on this host fetched, and the newest of a major where one is asked for.

    BuildError when one cannot be had, or when what was fetched cannot be built here.
    """
    orders = {}
    for name, order in here.items():
        if order is not None and isinstance(name.source, LocalPath | Checkout):
            orders[name] = order
        else:
            orders[name] = _order(name, _fetched(name, cache, notify, progress), manner, user, compilers)
    _refuse_missing_tools(orders, manner, cache, user)
    return orders


def _order(
    name: SourceBuild, source: Source, manner: BuildManner, user: ServerUser, compilers: Mapping[ServerName, str]
) -> Order:
    compiler = compilers.get(name) or compiler_version(name.options, user)
    release = name.source if isinstance(name.source, Release) else None
    return order_of(str(name), source, name.options, manner, compiler, release)


def _refuse_missing_tools(
    orders: Mapping[SourceBuild, Order | None], manner: BuildManner, cache: Cache, user: ServerUser
) -> None:
    lacking = [(name, order) for name, order in orders.items() if order is None or built(cache, order.name) is None]
    if lacking:
        # What is not here yet is a release or a tarball of one, and those have a configure.
        systems = [order.made_from.manner.system if order is not None else manner.system for _, order in lacking]
        options = [name.options for name, _ in lacking]
        refuse_missing_tools(options, manner, [system or BuildSystem.CONFIGURE for system in systems], user)


def _source_here(name: SourceBuild, cache: Cache) -> Source | None:
    match name.source:
        case Release() as release:
            return source_here(release, cache)
        case Download() as download:
            place = place_of(download, cache)
            return stored_source(place, name_of(place))
        case LocalPath() | Checkout() as local:
            return _local(local)


def _fetched(name: SourceBuild, cache: Cache, notify: Notify, progress: NotifyBytes) -> Source:
    match name.source:
        case Release() as release:
            return release_source(release, cache, notify, progress)
        case Download() as download:
            try:
                return downloaded(download, cache, progress)
            except DownloadError as error:
                raise _not_downloaded(download, error) from error
        case LocalPath() | Checkout() as local:
            return _local(local)


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


def _not_downloaded(download: Download, error: DownloadError) -> BuildError:
    return BuildError(
        "a tarball of PostgreSQL's source could not be fetched",
        slug="build-no-source",
        where=str(download),
        found=str(error),
        expected="a tarball at this address, and its hash beside it in a file that ends with .sha256",
        to_do="see whether the address is right; give a hash that is published elsewhere: "
        f"{download.address}#sha256=HASH; "
        "or give a tarball on this host: ./postgresql-17.8.tar.bz2",
    )
