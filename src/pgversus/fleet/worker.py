"""The program that lends a host to a fleet: a Dask worker without anything that would disturb a measurement.

A worker ends when it loses its scheduler, and Dask does not restart it. The worker therefore runs in its own process,
which this program starts again until it is stopped itself.
"""

import asyncio
import os
import time
from collections.abc import Callable
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from distributed import Worker

from pgversus.fleet.connection import HOST, LOOPBACK, NO_PAGES, configure, resource_of, security_of
from pgversus.fleet.host_work import WorkerOptions, begin_work
from pgversus.host.directories import open_cache

_PAUSE_S = 2.0
_LOOK_S = 10.0
_DEATH_S = 60
# Without a scheduler a new worker gives up after this time, and is started again.


def run_worker(address: str, certificates: Path | None, options: WorkerOptions, say: Callable[[str], None]) -> None:
    """Work for a scheduler until interrupted. say: receives a line for every start."""
    # Read the certificates once in this process, so that wrong ones are an error.
    security_of(certificates)
    say(f"{options.name} works for {address}; Ctrl-C ends it")
    while True:
        # Spawned: a copy of this process would share its locks.
        process = get_context("spawn").Process(target=_work, args=(address, certificates, options))
        process.start()
        try:
            process.join()
        finally:
            # Its servers stop with it.
            process.kill()
            process.join()
        say(f"the connection to {address} was lost; trying again")
        time.sleep(_PAUSE_S)


def _work(address: str, certificates: Path | None, options: WorkerOptions) -> None:
    configure()
    work = begin_work(options)
    try:
        asyncio.run(_serve(address, certificates, options.name))
    finally:
        work.close()


async def _serve(address: str, certificates: Path | None, name: str) -> None:
    worker = Worker(
        address,
        # Without certificates only this host may connect to the worker.
        host=LOOPBACK if certificates is None else None,
        name=name,
        nthreads=1,
        local_directory=str(open_cache().root),
        resources={HOST: 1, resource_of(name): 1},
        memory_limit=0,
        dashboard=False,
        dashboard_address=NO_PAGES,
        death_timeout=_DEATH_S,
        security=security_of(certificates),
    )
    async with worker:
        # Otherwise it would continue measuring after the program that started it was killed.
        parent, finished = os.getppid(), False
        while not finished and os.getppid() == parent:
            with suppress(TimeoutError):
                await asyncio.wait_for(worker.finished(), _LOOK_S)
                finished = True
