"""Which host prepares or measures what next, and the blocks that wait for earlier ones of their context.

Contexts take turns, those with the fewest blocks first. Blocks of a context that several hosts measure at once are
taken in the order of their numbers, so that a look never depends on which host was faster.
"""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from pgversus.engine.context_state import ContextState
from pgversus.engine.hosts import Hosts, KnownContext, Measured, Prepared
from pgversus.engine.testbed import BlockOrder
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block
from pgversus.study.comparison import BASELINE

# Separate from the random streams of the blocks, [seed, number of the block, number of the context - 1].
_TURNS, _TOGETHER = 1, 2


@dataclass(slots=True)
class _Task:
    """What a host does at the moment; nothing if it is free."""

    given: dict[int, Preparation | None] = field(default_factory=dict)
    """The known preparations of the contexts that it may prepare, by number."""
    orders: dict[int, BlockOrder] = field(default_factory=dict)
    """Blocks that it has not reported, by the number of their context."""


class Assignments:
    """The tasks of all hosts, and the blocks that have arrived too early."""

    def __init__(self, states: Sequence[ContextState], hosts: Hosts, seed: int) -> None:
        self._states = {state.context.number: state for state in states}
        self._hosts = hosts
        self._seed = seed
        self._tasks: dict[str, _Task] = {}
        self._ready: dict[str, set[int]] = defaultdict(set)
        self._early: dict[int, dict[int, Block]] = defaultdict(dict)
        # The numbers of blocks that are being measured or have arrived too early, by context.
        self._used: dict[int, set[int]] = defaultdict(set)

    @property
    def has_prepared(self) -> bool:
        """Whether any context is prepared on any host."""
        return any(self._ready.values())

    def begin(self, left_s: float) -> bool:
        """Give a task to every free host that can have one; return whether any host has a task.

        left_s: of the budget, from which the blocks that are being measured are subtracted.
        """
        for host in self._hosts.free():
            self._begin(host, left_s - self._promised_s)
        return bool(self._tasks)

    def given(self, event: Prepared) -> tuple[ContextState, Preparation | None]:
        """Return the state that a host has tried to prepare, and the preparation that it was given."""
        return self._states[event.context], self._tasks[event.host].given.pop(event.context)

    def make_ready(self, event: Prepared) -> None:
        """Note that a host can measure a context from now on."""
        self._ready[event.host].add(event.context)

    def taken(self, event: Measured) -> Iterator[tuple[ContextState, Block]]:
        """Yield the blocks that are next in their context, without arms that need them no longer.

        Each must be given to its state before the next one is asked for.
        """
        del self._tasks[event.host].orders[event.context]
        state, early = self._states[event.context], self._early[event.context]
        early[event.block.number] = event.block
        while state.stopped is None and (block := early.pop(state.next_number, None)) is not None:
            self._used[event.context].remove(block.number)
            needed = (BASELINE, *state.open_arms)
            yield state, block._replace(trials={arm: one for arm, one in block.trials.items() if arm in needed})

    def finish(self, host: str) -> None:
        """Note that a host has no task; blocks that it did not measure are given to others."""
        self._release(self._tasks.pop(host))

    def lose(self, host: str) -> None:
        """Note that a host is lost, with its task and all that it had prepared."""
        self._release(self._tasks.pop(host, _Task()))
        self._ready.pop(host, None)

    def _release(self, task: _Task) -> None:
        for context, order in task.orders.items():
            self._used[context].remove(order.number)

    @property
    def _promised_s(self) -> float:
        return sum(order.seconds or 0.0 for task in self._tasks.values() for order in task.orders.values())

    def _begin(self, host: str, left_s: float) -> None:
        affordable = [state for state in self._states.values() if self._may_measure(state) and state.fits_into(left_s)]
        if not affordable:
            return
        # Another host that prepares a context fits its windows for all.
        unfitted = {number for task in self._tasks.values() for number, known in task.given.items() if known is None}
        state = self._next([one for one in affordable if one.context.number not in unfitted] or affordable)
        ready = self._ready[host]
        if state.context.number not in ready:
            others = [
                other for other in affordable if other.context.number not in ready and self._matches(state, other)
            ]
            contexts: list[KnownContext] = [(one.context, one.preparation) for one in (state, *others)]
            self._tasks[host] = _Task(given={context.number: known for context, known in contexts})
            self._hosts.prepare(host, contexts)
            return
        partners = [
            other
            for other in affordable
            if other.context.number in ready
            and self._matches(state, other)
            and self._hosts.can_share_start(state.context, other.context)
        ]
        number = self._free_number(state)
        orders = [one.order(number) for one in self._shuffled([state, *partners], number, _TOGETHER)]
        self._tasks[host] = _Task(orders={order.context.number: order for order in orders})
        for order in orders:
            self._used[order.context.number].add(number)
        self._hosts.measure(host, orders, left_s)

    def _may_measure(self, state: ContextState) -> bool:
        """Return whether a context needs a block that is neither being measured nor has arrived."""
        return state.stopped is None and len(self._used[state.context.number]) < state.most_more_blocks

    def _free_number(self, state: ContextState) -> int:
        number, used = state.next_number, self._used[state.context.number]
        while number in used:
            number += 1
        return number

    def _matches(self, one: ContextState, other: ContextState) -> bool:
        """Return whether both are as far, and may share a start if their servers and loads allow it."""
        if other is one or not (one.shares_starts and other.shares_starts):
            return False
        return self._free_number(one) == self._free_number(other)

    def _next(self, states: Sequence[ContextState]) -> ContextState:
        """Return a random one of those with the fewest blocks."""
        numbers = {state.context.number: self._free_number(state) for state in states}
        fewest = min(numbers.values())
        first = [state for state in states if numbers[state.context.number] == fewest]
        return self._shuffled(first, fewest, _TURNS)[0]

    def _shuffled(self, states: Sequence[ContextState], number: int, stream: int) -> list[ContextState]:
        """Return a random order, in which the relative order of two contexts does not depend on the others."""
        highest = max(state.context.number for state in states)
        # Draw a place for every number up to the highest: none moves when others have ended, or had their turn.
        places = np.random.default_rng([self._seed, number, 0, stream]).random(highest + 1)
        return sorted(states, key=lambda state: float(places[state.context.number]))
