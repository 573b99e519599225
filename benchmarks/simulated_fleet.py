"""Simulated hosts that measure one study at the same time, each with its own clock."""

from collections.abc import Callable, Generator, Mapping, Sequence

from pgversus.engine.block_runner import run_start
from pgversus.engine.events import BlockMeasured, Event, HostLost, TaskFinished
from pgversus.engine.hosts import KnownContext, prepare_together
from pgversus.engine.progress import Progress
from pgversus.engine.testbed import BlockOrder, Clock, Testbed
from pgversus.study.study import Context


class SimulatedFleet:
    """A fleet of simulated hosts, in which the host with the earliest time acts next."""

    def __init__(
        self,
        hosts: Mapping[str, tuple[Testbed, Clock]],
        *,
        is_lost: Callable[[str], bool] = lambda _: False,
        returns: bool = True,
    ) -> None:
        """is_lost: called before each event of a host; True loses the host instead. returns: whether it comes back."""
        self._hosts = dict(hosts)
        self._is_lost = is_lost
        self._returns = returns
        self._tasks: dict[str, Generator[Event, None, None]] = {}
        self.measured: list[tuple[str, int, int]] = []
        """Host, context and number of every block."""
        self.losses = 0

    def begin_part(self, contexts: Sequence[Context]) -> None:
        """Begin a part on every host."""
        for testbed, _ in self._hosts.values():
            testbed.begin_part(contexts)

    def free(self) -> Sequence[str]:
        """Return the hosts without a task."""
        return [name for name in self._hosts if name not in self._tasks]

    def prepare(self, host: str, contexts: Sequence[KnownContext]) -> None:
        """Let a host prepare contexts."""
        self._tasks[host] = prepare_together(self._hosts[host][0], contexts, host)

    def measure(self, host: str, orders: Sequence[BlockOrder], left_s: float) -> None:
        """Let a host measure blocks."""
        testbed, clock = self._hosts[host]
        self._tasks[host] = run_start(orders, testbed, clock, Progress(), left_s, host)

    def next_event(self) -> Event:
        """Return the next event of the host with the earliest time."""
        host = min(self._tasks, key=lambda name: self._hosts[name][1]())
        if self._is_lost(host):
            self._tasks.pop(host).close()
            self.losses += 1
            if not self._returns:
                del self._hosts[host]
            return HostLost(host=host)
        event = next(self._tasks[host], None)
        if event is None:
            del self._tasks[host]
            return TaskFinished(host=host)
        if isinstance(event, BlockMeasured):
            self.measured.append((host, event.context, event.block.number))
            return BlockMeasured(host=host, context=event.context, block=event.block._replace(host=host))
        return event

    def can_share_start(self, one: Context, other: Context) -> bool:
        """Return whether two contexts can share a start on all hosts, which are alike."""
        return all(testbed.can_share_start(one, other) for testbed, _ in self._hosts.values())

    def abandon(self) -> None:
        """End all tasks."""
        for task in self._tasks.values():
            task.close()
        self._tasks.clear()

    @property
    def wall_s(self) -> float:
        """The latest time on the clocks of all hosts."""
        return max(clock() for _, clock in self._hosts.values())
