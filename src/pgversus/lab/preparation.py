"""From an arm's name to a loaded server, and the proof that all arms hold the same."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path

from pgversus.errors import DatasetError
from pgversus.host.facts import shared_memory_is_small
from pgversus.lab.arms import ArmServer, OwnServer, SomebodysServer, server_settings
from pgversus.lab.progress import Progress
from pgversus.lab.run_directory import RunDirectory
from pgversus.postgres import catalog, dataset
from pgversus.postgres.builds.model import Build
from pgversus.postgres.catalog import SettingValue
from pgversus.postgres.client import Client
from pgversus.postgres.fingerprint import Fingerprint, gather, refuse_unequal_data
from pgversus.postgres.session import connect
from pgversus.report.answer import RUNNING_SERVER, ArmFacts
from pgversus.study.comparison import Comparison
from pgversus.study.servers import RunningServer
from pgversus.study.workload import Dataset
from pgversus.workload.pgbench import initialize_command

_USUAL_CONNECTIONS = 100
_SPARE_CONNECTIONS = 10
# For pgversus' own sessions and the reserved ones; more clients than fit raise max_connections on every arm.


def make_servers(
    comparison: Comparison, builds: Sequence[Build | None], directory: RunDirectory, stack: ExitStack
) -> tuple[ArmServer, ...]:
    """A server for each arm, with an empty cluster where it is ours; `stack` stops them all at its end."""
    common = _common_settings(comparison)
    servers: list[ArmServer] = []
    for arm, build in zip(comparison.arms, builds, strict=True):
        server: ArmServer
        if isinstance(arm.server, RunningServer):
            server = SomebodysServer(arm, arm.server.uri)
        else:
            assert build is not None  # noqa: S101 - only running servers have no build
            server = OwnServer(arm, build, directory, server_settings(arm, common))
        stack.callback(server.stop)
        servers.append(server)
    return tuple(servers)


def load(servers: Sequence[ArmServer], data: Dataset, client: Client, progress: Progress) -> tuple[Fingerprint, ...]:
    """Load each arm once and return what each then holds; DatasetError when one fails or they are not equal."""
    fingerprints = []
    for server in servers:
        progress.say(f"loading {server.arm.label}" if not data.is_empty else f"looking at {server.arm.label}")
        with server.loading():
            _load_one(server, data, client)
            fingerprints.append(gather(server.target))
    refuse_unequal_data([server.arm.label for server in servers], fingerprints)
    return tuple(fingerprints)


def with_settings_of_load(servers: Sequence[ArmServer], loaded: Sequence[Fingerprint]) -> tuple[Fingerprint, ...]:
    """The fingerprints with the settings of the load itself: while loading, servers of ours run with others."""
    return tuple(
        Fingerprint(
            tables=fingerprint.tables,
            indexes=fingerprint.indexes,
            settings=_settings(server),
            properties=fingerprint.properties,
        )
        for server, fingerprint in zip(servers, loaded, strict=True)
    )


def arm_facts(build: Build | None, fingerprint: Fingerprint) -> ArmFacts:
    """What an arm turned out to be."""
    return ArmFacts(
        version=fingerprint.settings["server_version"].value,
        origin=build.origin if build else RUNNING_SERVER,
        compiler=fingerprint.compiler,
        flags=fingerprint.build_flags,
        sha256=build.sha256 if build else None,
    )


def _common_settings(comparison: Comparison) -> Mapping[str, str]:
    common = {}
    clients = comparison.workload.clients
    if clients + _SPARE_CONNECTIONS > _USUAL_CONNECTIONS:
        common["max_connections"] = str(clients + _SPARE_CONNECTIONS)
    if shared_memory_is_small():
        common["dynamic_shared_memory_type"] = "mmap"
    return common


def _load_one(server: ArmServer, data: Dataset, client: Client) -> None:
    label, target = server.arm.label, server.target
    if data.pgbench_scale is not None:
        if not target.is_ours:
            _refuse_to_drop_tables(server)
        arguments = initialize_command(pgbench=client.pgbench, conninfo=target.conninfo, scale=data.pgbench_scale)
        dataset.make_pgbench_tables(target, arguments, label)
    for file in data.setup_files:
        dataset.run_setup_file(target, client, Path(file.path), label)
    if target.is_ours or not data.is_empty:
        dataset.settle(target)


def _refuse_to_drop_tables(server: ArmServer) -> None:
    """pgbench -i drops its tables first; in somebody's database they may be somebody's."""
    with connect(server.target) as connection:
        if catalog.has_pgbench_tables(connection):
            raise DatasetError(
                "this database has pgbench's tables already, and -i would drop them",
                slug="dataset-would-drop",
                where=server.arm.label,
                found="pgbench_accounts",
                expected="no table of pgbench's",
                to_do="leave -i out to use them as they are, or drop them yourself",
            )


def _settings(server: ArmServer) -> Mapping[str, SettingValue]:
    with connect(server.target, as_the_load=True) as connection:
        return catalog.session_settings(connection)
