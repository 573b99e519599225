"""The part of a host that sends load to external servers, at the same time as other hosts."""

from collections.abc import Mapping
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError
from pgversus.fleet.messages import SendLoad, Sent
from pgversus.host.directories import open_cache
from pgversus.host.guard import sweep
from pgversus.host.identity import ServerUser
from pgversus.host.run_directory import run_directory
from pgversus.lab.resume_checks import client_facts
from pgversus.lab.study_host import check_external_servers
from pgversus.postgres.client import fixed_client
from pgversus.postgres.session import connect, uri_target
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study
from pgversus.workload.aligned_run import run_aligned
from pgversus.workload.pgbench_run import PgbenchLoad, write_scripts

if TYPE_CHECKING:
    from pathlib import Path

    from pgversus.study.workload import PgbenchWorkload


class LoadWork:
    """The loads of one run on this host."""

    def __init__(self, user: ServerUser, stack: ExitStack) -> None:
        """stack: removes its files at its end."""
        cache = open_cache()
        sweep(cache.runs)
        self._user = user
        self._client = fixed_client(user)
        self._directory = stack.enter_context(run_directory(cache, user))
        self._scripts: dict[PgbenchWorkload, tuple[Path | None, ...]] = {}

    def check(self, study: Study, expected: Mapping[str, Any]) -> None:
        """Check that this host has the expected pgbench and can connect to the servers; raise PgversusError if not."""
        found = client_facts(self._client)
        if found != expected:
            raise HostError(
                "a host has another pgbench than the driver",
                slug="fleet-other-client",
                where="pgversus fleet worker",
                found=f"pgbench {found['version']} ({found['origin']})",
                expected=f"pgbench {expected['version']} ({expected['origin']}), with the same checksum",
                to_do="install the same release of pgversus for the same kind of processor",
            )
        check_external_servers(study, self._client)
        for server in study.servers:
            if isinstance(server, RunningServer):
                with connect(uri_target(server.uri, ())):
                    pass

    def send(self, task: SendLoad) -> Sent:
        """Send a load for one window."""
        load = self._load(task)
        target = uri_target(task.uri, task.settings)
        try:
            return Sent(found=run_aligned(load, target, task.seed, task.begin_s, task.end_s))
        except TrialFailedError as error:
            return Sent(failure=str(error))

    def _load(self, task: SendLoad) -> PgbenchLoad:
        workload = task.workload
        if workload not in self._scripts:
            folder = self._directory.root / f"scripts-{len(self._scripts) + 1}"
            self._scripts[workload] = write_scripts(workload, folder, self._user)
        return PgbenchLoad(
            workload=workload,
            client=self._client,
            script_files=self._scripts[workload],
            scratch=self._directory.root / "logs",
            kept_logs=None,
            connect_allowance_s=task.connect_allowance_s,
            longest_s=task.longest_s,
        )
