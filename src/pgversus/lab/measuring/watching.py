"""What a long operation is doing, asked of the server now and then: a courtesy to whoever waits."""

from collections.abc import Callable
from contextlib import suppress

from pgversus.errors import PgversusError
from pgversus.host.processes import Beside
from pgversus.postgres.operation_reports import operation_progress
from pgversus.postgres.session import Target, connect

_FIRST_S, _EVERY_S = 5.0, 2.0
# A short operation is never asked; of a long one this is less than a thousandth, the same for every arm.


class Watch(Beside):
    """Tells what a session's process is doing while a block of code runs."""

    def __init__(self, target: Target, pid: int, tell: Callable[[str], None]) -> None:
        """pid: of the process. tell: takes a line, in a thread of its own."""
        super().__init__("pgversus-watch")
        self._target = target
        self._pid = pid
        self._tell = tell

    def _run(self) -> None:
        if self._is_over_within(_FIRST_S):
            return
        # Whatever goes wrong here, the operation itself tells what is wrong with it.
        with suppress(PgversusError), connect(self._target) as connection:
            while True:
                if line := operation_progress(connection, self._pid):
                    self._tell(line)
                if self._is_over_within(_EVERY_S):
                    break
