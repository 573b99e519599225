"""The program that lends a host to a fleet: a Dask worker without anything that would disturb a measurement.

A worker ends when it loses its scheduler, and Dask does not restart it. The worker therefore runs in its own process,
which this program starts again until it is stopped itself.
"""

import asyncio
import atexit
import os
import platform
import signal
import time
from collections.abc import Callable
from multiprocessing import get_context, parent_process
from pathlib import Path
from typing import Any

import dask
from distributed import Worker

from pgversus.fleet.connection import (
    HOST,
    LOOPBACK,
    NO_PAGES,
    STOP_SIGNALS,
    configure,
    resource_of,
    security_of,
)
from pgversus.fleet.host_work import WorkerOptions, begin_work
from pgversus.host.directories import open_cache
from pgversus.host.identity import server_user

_PAUSE_S = 2.0
_HEARTBEAT_S = 10.0
_DEATH_S = 60
# Without a scheduler a new worker gives up after this time, and is started again.


class HostWorker(Worker):
    """A worker that measures on its host, and leaves it alone otherwise.

    Dask's own deployments start it by its name (docs/fleet.md). `pgversus.run-as` and `pgversus.trust` in the
    configuration of Dask are then what the options of `pgversus fleet worker` are.
    """

    def __init__(self, scheduler: str | None = None, *, name: str | int | None = None, **of_dask: Any) -> None:
        """name: of the host; its host name by default. of_dask: arguments of Worker."""
        configure()
        host = platform.node() if name is None else str(name)
        run_as, trust = dask.config.get("pgversus.run-as", None), dask.config.get("pgversus.trust", False)
        self.work = begin_work(WorkerOptions(name=host, run_as=run_as, trust=trust is True))
        # Dask ends a worker that it has deployed by ending its process.
        atexit.register(self.work.close)
        quiet: dict[str, Any] = {
            "nthreads": 1,
            "local_directory": str(open_cache().root),
            "resources": {HOST: 1, resource_of(host): 1},
            "memory_limit": 0,
            "dashboard": False,
            "dashboard_address": NO_PAGES,
            "heartbeat_interval": f"{_HEARTBEAT_S} s",
        }
        super().__init__(scheduler, name=host, **{**of_dask, **quiet})

    async def heartbeat(self) -> None:
        """Tell the scheduler that the worker is there; less often than the scheduler asks for."""
        await super().heartbeat()
        self.periodic_callbacks["heartbeat"].callback_time = 1000 * _HEARTBEAT_S


def run_worker(address: str, certificates: Path | None, options: WorkerOptions, say: Callable[[str], None]) -> None:
    """Work for a scheduler until interrupted. say: receives a line for every start."""
    # Once in this process, so that wrong certificates, an unusable cache or an unknown user are errors.
    security_of(certificates)
    open_cache()
    server_user(options.run_as)
    # The new processes must not import modules from the current directory.
    os.environ["PYTHONSAFEPATH"] = "1"
    say(f"{options.name} works for the scheduler at {address}; press Ctrl-C to stop it")
    try:
        while True:
            _run_process(address, certificates, options)
            say(f"the connection to {address} was lost; trying again")
            time.sleep(_PAUSE_S)
    except KeyboardInterrupt:
        say("the worker has stopped")


def _run_process(address: str, certificates: Path | None, options: WorkerOptions) -> None:
    """Work in a new process until it loses its scheduler."""
    # Spawned: a copy of this process would share its locks.
    process = get_context("spawn").Process(target=_work, args=(address, certificates, options))
    process.start()
    try:
        process.join()
    finally:
        # Its servers stop with it.
        process.kill()
        process.join()


def _work(address: str, certificates: Path | None, options: WorkerOptions) -> None:
    for number in STOP_SIGNALS:
        # A terminal sends its signals to both processes, and the other one ends this one. A handler that does nothing:
        # programs that this process starts would inherit an ignored signal.
        signal.signal(number, lambda _number, _frame: None)
    dask.config.set({"pgversus.run-as": options.run_as, "pgversus.trust": options.trust})
    asyncio.run(_serve(address, certificates, options.name))


async def _serve(address: str, certificates: Path | None, name: str) -> None:
    worker = HostWorker(
        address,
        # Without certificates only this host may connect to the worker.
        host=LOOPBACK if certificates is None else None,
        name=name,
        death_timeout=_DEATH_S,
        security=security_of(certificates),
    )
    try:
        async with worker:
            # Otherwise it would continue measuring after the program that started it was killed.
            ends = (worker.finished(), _killed_program())  # type: ignore[no-untyped-call]
            done, _ = await asyncio.wait(map(asyncio.ensure_future, ends), return_when=asyncio.FIRST_COMPLETED)
            for end in done:
                end.result()
    finally:
        worker.work.close()


async def _killed_program() -> None:
    """Wait until the program that started this process has ended."""
    program, ended = parent_process(), asyncio.Event()
    assert program is not None  # noqa: S101 - this process was started by _run_process
    asyncio.get_running_loop().add_reader(program.sentinel, ended.set)
    await ended.wait()
