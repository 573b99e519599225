"""The servers of all arms of a context, as they are started and stopped together.

Contexts whose arms are the same servers with the same settings and data share one set, and then its starts.
"""

from collections.abc import Mapping, Sequence

from pgversus.errors import PgversusError
from pgversus.lab.measuring.arms import ArmServer
from pgversus.postgres import catalog
from pgversus.postgres.counters import CounterSession
from pgversus.postgres.session import connect


class ServerSet:
    """Servers by arm, and whether their data are fresh in each block."""

    def __init__(self, servers: Sequence[ArmServer]) -> None:
        self.servers = tuple(servers)
        self._copies_are_cheap = all(server.copy_is_cheap for server in servers)
        self._in_memory: dict[int, bool] = {}
        self._written_before: dict[int, int] = {}
        self._counters: dict[int, CounterSession] = {}
        self._own_growth: dict[int, dict[str, float]] = {}

    def start(self, arm: int) -> None:
        """Start one server; ServerError when it does not come up."""
        self._in_memory[arm] = False
        self.servers[arm].start()

    def read_in(self, arm: int, *, prewarms: bool) -> None:
        """Make a server that has started ready for a load: its data read in where that can be done, nothing dirty.

        What was written until now is remembered, so that writing is noticed at the end. ServerError when it fails.
        """
        server = self.servers[arm]
        with connect(server.target) as connection:
            if prewarms:
                self._in_memory[arm] = catalog.prewarm(connection)
            if server.can_restart:
                catalog.checkpoint(connection)
            self._written_before[arm] = catalog.rows_written(connection)

    def counters(self, arm: int) -> CounterSession:
        """The session in which an arm's counters are read, open as long as its server runs."""
        if arm not in self._counters:
            session = self._counters[arm] = CounterSession(self.servers[arm].target)
            if arm not in self._own_growth:
                # A property of the version and its catalog, so that once is enough.
                self._own_growth[arm] = session.own_growth()
        return self._counters[arm]

    def own_growth(self, arm: int) -> Mapping[str, float]:
        """What reading an arm's counters adds to them, once they have been read."""
        return self._own_growth.get(arm, {})

    def stop(self, arm: int) -> None:
        """Stop one server, between its windows."""
        self._close_counters(arm)
        self.servers[arm].stop()

    def stop_all(self, *, writes: bool) -> None:
        """Stop every server of ours. Copies are removed where they are worn, or cheap to make anew."""
        for arm in tuple(self._counters):
            # An open session would be waited for when the writes are counted.
            self._close_counters(arm)
        forgets = writes or self._needs_fresh_copies
        try:
            # A load that seemed to read only; its trials tell which one of those that share the servers it was.
            forgets = forgets or self._wrote()
        finally:
            self._written_before.clear()
            self._in_memory.clear()
            for arm, server in enumerate(self.servers):
                self.stop(arm)
                if forgets:
                    server.forget_copy()

    @property
    def _needs_fresh_copies(self) -> bool:
        """Whether each block needs a fresh copy: copies are cheap, and data are read from disk or the page cache.

        Data that shared buffers hold are laid out again by each start.
        """
        return self._copies_are_cheap and not all(self._in_memory.values())

    def forget_copies(self, *, only_cheap: bool = False) -> None:
        """Remove the copies that were kept; the servers are stopped."""
        if self._copies_are_cheap or not only_cheap:
            for server in self.servers:
                server.forget_copy()

    def _close_counters(self, arm: int) -> None:
        session = self._counters.pop(arm, None)
        if session is not None:
            session.close()

    def _wrote(self) -> bool:
        return any(self._wrote_on(arm) for arm in self._written_before)

    def _wrote_on(self, arm: int) -> bool:
        try:
            return wrote_since(self.servers[arm], self._written_before[arm])
        except PgversusError:
            # A server that died in this block. Its failed trial says so; recovery changes its copy: unlogged tables are
            # empty afterwards.
            return True


def wrote_since(server: ArmServer, before: int) -> bool:
    """Whether rows were changed since the count was `before`, or a crash has reset it.

    Waits until ended sessions have reported.
    """
    with connect(server.target) as connection:
        catalog.wait_for_reports(connection)
        return catalog.rows_written(connection) != before
