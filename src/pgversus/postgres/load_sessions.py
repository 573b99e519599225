"""Monitoring of the sessions of a load, from a session in a different database whose counters are not read."""

import time
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace

from psycopg import conninfo

from pgversus.errors import ServerError
from pgversus.host.lost_time import LATE_S, stopped_among
from pgversus.host.processes import CpuTime, cpu_time
from pgversus.postgres import catalog
from pgversus.postgres.session import Target, asking, connect

_DATABASE = "template1"
# Every managed cluster has it, and no load uses it.
_SHORTEST_POLL_S = 0.0002
_USUAL_SHARE, _POLL_SHARE = 0.9, 0.05
# A poll takes processor time from the statement that is waited for. So sleep for most of the usual time first, then
# poll at intervals that cost little.
_NO_TIME = CpuTime(user_s=0.0, system_s=0.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class SessionEnd:
    """The transaction that a session was in when its client was stopped; times are epochs."""

    began: float
    finished: float
    """When the server had done all that it could do without the client."""
    was_stopped: bool = False
    """Whether the server process was found stopped, by a signal or a debugger."""


class LoadSessions:
    """The sessions of loads on one managed server."""

    def __init__(self, target: Target) -> None:
        """Raise ServerError if the server rejects the connection."""
        self._target = target
        self._usual_s = 0.0
        self._marked = _NO_TIME
        elsewhere = conninfo.make_conninfo(target.conninfo, dbname=_DATABASE)
        with ExitStack() as stack, asking(target):
            self._connection = stack.enter_context(connect(replace(target, conninfo=elsewhere)))
            catalog.disable_jit_and_logging(self._connection)
            self._stack = stack.pop_all()

    def processes(self, since: float, *, at_work_since: float = 0.0) -> list[int]:
        """Return the process ids of sessions that began after `since` (epoch), oldest first.

        at_work_since: only sessions that have executed something after this time (epoch).
        ServerError if the server is gone.
        """
        with asking(self._target):
            return catalog.processes_of_load(self._connection, since, at_work_since)

    def finished(self, processes: Sequence[int], stopped: float, timeout_s: float) -> list[SessionEnd] | None:
        """Wait until none of these sessions is at work and return when each of them finished.

        A session that was idle at the stop finished then. One that waits for its stopped client, or for a lock of
        another session, finished when it was last seen at work. None if one is still at work after timeout_s.
        ServerError if the server is gone.
        stopped: when their clients were stopped (epoch).
        """
        began = time.monotonic()
        seen_stopped = stopped_among(processes)
        time.sleep(_USUAL_SHARE * self._usual_s)
        last = None
        seen_at_work: dict[int, float] = {}
        while True:
            asked_at = time.time()
            found = self._ask(processes)
            at_work = [one.process for one in found if one.is_active and not one.waits]
            last_change = max((one.changed for one in found), default=stopped)
            # A server process may have been sent a request and not have woken up yet: it still looks idle.
            if not at_work and last_change == last:
                break
            last = None if at_work else last_change
            seen_at_work |= dict.fromkeys(at_work, asked_at)
            waited_s = time.monotonic() - began
            if waited_s > timeout_s:
                return None
            if waited_s > LATE_S:
                seen_stopped |= stopped_among(at_work)
            time.sleep(max(_SHORTEST_POLL_S, _POLL_SHARE * waited_s) if at_work else _SHORTEST_POLL_S)
        finishes = [
            SessionEnd(
                began=one.began,
                finished=max(stopped, seen_at_work.get(one.process, stopped) if one.is_active else one.changed),
                was_stopped=one.process in seen_stopped,
            )
            for one in found
        ]
        # Only polls show when a waiting session stopped working, so they must remain frequent.
        is_known = not any(one.is_active for one in found)
        latest_s = max((one.finished for one in finishes), default=stopped) - stopped if is_known else 0.0
        # Bounded by the time waited, in case a clock was set meanwhile.
        self._usual_s = min(latest_s, time.monotonic() - began)
        return finishes

    def terminate(self, processes: Sequence[int]) -> None:
        """Terminate these sessions. ServerError if the server is gone."""
        with asking(self._target):
            catalog.terminate(self._connection, list(processes))

    def wait_to_send(self) -> bool:
        """Return whether a session of a load waits for its client to read a reply.

        ServerError if the server is gone.
        """
        with asking(self._target):
            return catalog.waits_to_send(self._connection)

    def mark(self) -> None:
        """Record the processor time that monitoring has used on the server so far."""
        self._marked = self._cpu_time()

    def cpu_since_mark(self) -> dict[str, float]:
        """Return the server's processor time used by monitoring since mark(), by counter; 0 if the server is gone."""
        now = self._cpu_time()
        return {
            "server_cpu_user_s": max(0.0, now.user_s - self._marked.user_s),
            "server_cpu_system_s": max(0.0, now.system_s - self._marked.system_s),
        }

    def close(self) -> None:
        """Close the monitoring session, even if it is already lost."""
        with suppress(ServerError):
            self._stack.close()

    def _cpu_time(self) -> CpuTime:
        return cpu_time(self._connection.info.backend_pid) or _NO_TIME

    def _ask(self, processes: Sequence[int]) -> list[catalog.SessionOfLoad]:
        with asking(self._target):
            return catalog.sessions_of_load(self._connection, list(processes))
