"""A connection to a fleet: the hosts that are there, tasks for them, and their replies.

Dask only carries a task to a host and its reply back: every attempt has its own key, only free hosts are sent a task,
and Dask never repeats a task that fails with its host.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any

from distributed import CancelledError, Client, Future, KilledWorker

from pgversus.engine.progress import Progress
from pgversus.errors import HostError
from pgversus.fleet.connection import HOST, resource_of
from pgversus.fleet.host_work import NEWS, reply_to
from pgversus.fleet.messages import Reply, Task, decoded_reply, encoded

_CLOSE_S = 10
_CLOCK_S = 10
_FETCH_S = 60
# For the reply of a task that has ended.
_STUCK_S = 20.0
# Dask's client connects again within 10 s of losing the scheduler, or closes. If an error ends its attempt, it stays
# between the two for ever.


@dataclass(frozen=True, slots=True)
class Clock:
    """The time of day of a host, compared with that of this host."""

    ahead_s: float
    """Its time minus ours."""
    error_s: float
    """The largest possible error of this difference."""


class Fleet:
    """A connection to the scheduler of a fleet."""

    def __init__(self, connect: Callable[[], Client], progress: Progress) -> None:
        """connect: returns a new connection; OSError if the scheduler cannot be reached."""
        self._connect = connect
        self._progress = progress
        self._number = 0
        self._news: SimpleQueue[str] = SimpleQueue()
        self._client = self._connected()
        self._last_running = time.monotonic()

    def hosts(self) -> dict[str, str]:
        """Return the name of each host that is there, with an identity that changes when its worker is restarted."""
        if self._is_lost():
            self._reconnect()
        if self._client.status != "running":
            # Otherwise it would name the hosts that were there before.
            return {}
        self._last_running = time.monotonic()
        scheduler: Any = self._client.scheduler
        try:
            # Not scheduler_info(): Dask's own timer writes an answer without workers to the same place.
            answer = self._client.sync(scheduler.identity, n_workers=-1)
        except OSError:
            return {}
        workers: dict[str, Any] = answer["workers"]
        # A restarted worker has another address.
        return {str(one["name"]): address for address, one in workers.items() if HOST in one.get("resources", {})}

    def send(self, host: str, task: Task, key: str) -> Future[bytes]:
        """Send a task to a host; its future is done when the host has replied or is lost. key: of this attempt."""
        self._number += 1
        return self._client.submit(
            reply_to,
            encoded(task),
            key=f"{key}-{self._number}",
            resources={HOST: 1, resource_of(host): 1},
            pure=False,
            retries=0,
        )

    def clocks(self, addresses: Sequence[str], readings: int) -> Mapping[str, Clock]:
        """Return the clock of each host by its identity, without hosts that were lost.

        readings: of which the fastest counts. The host read its clock somewhere between our question and its answer.
        """
        clocks: dict[str, Clock] = {}
        for _ in range(readings):
            asked_s = time.time()
            try:
                found: Mapping[str, float] = self._client.sync(
                    self._client._run,  # noqa: SLF001 - run() has no timeout
                    time.time,
                    workers=list(addresses),
                    on_error="ignore",
                    callback_timeout=_CLOCK_S,
                )
            except (OSError, TimeoutError):
                return {}
            error_s = (time.time() - asked_s) / 2
            for address, time_s in found.items():
                if address not in clocks or error_s < clocks[address].error_s:
                    clocks[address] = Clock(time_s - asked_s - error_s, error_s)
        return clocks

    def say_news(self) -> None:
        """Say what hosts have said since the last time."""
        while not self._news.empty():
            self._progress.say(self._news.get())

    def close(self) -> None:
        """End the connection; hosts finish what they do, unheard."""
        with suppress(TimeoutError, OSError):
            self._client.close(timeout=_CLOSE_S)

    def _is_lost(self) -> bool:
        """Return whether the client will not connect again by itself."""
        if self._client.status == "running":
            return False
        return self._client.status == "closed" or time.monotonic() - self._last_running > _STUCK_S

    def _reconnect(self) -> None:
        """Connect again if the scheduler is back."""
        try:
            client = self._connected()
        except (OSError, TimeoutError):
            return
        self._progress.say("reconnected to the scheduler of the fleet")
        self.close()
        self._client = client

    def _connected(self) -> Client:
        client = self._connect()
        # The handler runs in a thread of Dask, and lines are printed by ours.
        client.subscribe_topic(NEWS, lambda event: self._news.put(str(event[1])))
        return client


def reply_of(future: Future[bytes]) -> Reply | None:
    """Return the reply to a task that has ended; None if its host was lost."""
    if future.status != "finished":
        return None
    try:
        reply = decoded_reply(future.result(timeout=_FETCH_S))
    except (OSError, TimeoutError, CancelledError, KilledWorker):
        # It was lost before its reply was fetched.
        return None
    future.release()
    return reply


def no_hosts() -> HostError:
    """Return the error of a fleet without hosts."""
    return HostError(
        "the fleet has no hosts",
        slug="fleet-empty",
        where="--fleet",
        found="no connected pgversus worker",
        expected="at least one worker",
        to_do="run pgversus fleet worker on at least one host",
    )
