"""The engine's apparatus on real servers and a real pgbench."""

import time
from collections.abc import Sequence

from pgversus.errors import PgversusError
from pgversus.lab.apparatus import TrialFailedError
from pgversus.lab.arms import ArmServer
from pgversus.lab.load import Load, run_window
from pgversus.lab.pilot import wrote_since
from pgversus.postgres import catalog
from pgversus.postgres.session import connect
from pgversus.stats.trials import Window
from pgversus.study.design import Design

clock = time.monotonic


class PostgresApparatus:
    """Servers of all arms under one load."""

    def __init__(self, arms: Sequence[ArmServer], load: Load, design: Design, *, writes: bool) -> None:
        self._arms = arms
        self._load = load
        self._design = design
        # Also where nothing is written: where a copy lies on disk and in memory is luck too, and is drawn anew.
        self._fresh_data = writes or all(server.copy_is_cheap for server in arms)
        self._written_before: dict[int, int] = {}
        self._prewarm = self._all_can_prewarm()
        self.wrote_late = False
        """Whether a load that seemed to read only was seen to write: the blocks until then shared worn data."""

    def start(self, arm: int) -> None:
        """A fresh start, as a rule on fresh data; then the data are read in, and a checkpoint."""
        server = self._arms[arm]
        try:
            server.start(fresh_data=self._fresh_data)
            with connect(server.target) as connection:
                if self._prewarm:
                    catalog.prewarm(connection)
                if server.can_restart:
                    catalog.checkpoint(connection)
                self._written_before[arm] = catalog.rows_written(connection)
        except PgversusError as error:
            raise TrialFailedError(f"{error.what}: {error.found}") from error

    def warm_up(self, arm: int, seed: int) -> None:
        """Load whose numbers are thrown away."""
        run_window(self._load, self._arms[arm].target, self._design.warm_up_s, seed)

    def measure(self, arm: int, seed: int) -> Window:
        """One window of load."""
        return run_window(self._load, self._arms[arm].target, self._design.window_s, seed)

    def stop_all(self) -> None:
        """Stop every server of ours; before that, notice a load that writes after all."""
        try:
            if not self._fresh_data and self._wrote():
                self._fresh_data = self.wrote_late = True
        finally:
            self._written_before.clear()
            for server in self._arms:
                server.stop()

    def _wrote(self) -> bool:
        try:
            return any(wrote_since(self._arms[arm], before) for arm, before in self._written_before.items())
        except PgversusError:
            # A server that died in this block; its failed trial says so already.
            return False

    def _all_can_prewarm(self) -> bool:
        """Only when every arm can: a warm arm against a cold one would be no comparison."""
        if not all(server.can_restart for server in self._arms):
            return False
        for server in self._arms:
            with connect(server.target) as connection:
                if not catalog.has_prewarm(connection):
                    return False
        return True
