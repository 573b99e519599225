"""The program through which the driver and the hosts of a fleet find each other: a Dask scheduler without a dashboard.

It holds no state that the driver's results lack: a run continues after the scheduler has been restarted.
"""

import asyncio
from collections.abc import Callable
from pathlib import Path

from distributed import Scheduler

from pgversus.errors import HostError
from pgversus.fleet.connection import NO_PAGES, STOP_SIGNALS, configure, security_of


def run_scheduler(host: str, port: int, certificates: Path | None, say: Callable[[str], None]) -> None:
    """Serve until interrupted. host: the address to listen on. say: receives a line with the address."""
    configure()
    try:
        asyncio.run(_serve(host, port, certificates, say))
    except OSError as error:
        raise HostError(
            "the scheduler of the fleet cannot listen on this address",
            slug="fleet-port",
            where=f"{host}:{port}",
            found=error.strerror or str(error),
            expected="an address of this host and a free port",
            to_do="choose a different address or port with --host and --port",
        ) from error


async def _serve(host: str, port: int, certificates: Path | None, say: Callable[[str], None]) -> None:
    scheduler = Scheduler(
        host=host,
        port=port,
        protocol="tcp" if certificates is None else "tls",
        dashboard=False,
        dashboard_address=NO_PAGES,
        security=security_of(certificates),
    )
    interrupted = asyncio.Event()
    for number in STOP_SIGNALS:
        # An exception in the middle of Dask's tasks would print their tracebacks.
        asyncio.get_running_loop().add_signal_handler(number, interrupted.set)
    async with scheduler:
        say(f"the scheduler is listening on {scheduler.address}; press Ctrl-C to stop it")
        ends = [asyncio.ensure_future(one) for one in (interrupted.wait(), scheduler.finished())]
        await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
    say("the scheduler has stopped")
