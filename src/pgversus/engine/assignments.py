"""The next task of each host, and the blocks that wait for earlier blocks of their context.

Contexts take turns, those with the fewest blocks first. If the budget ends within a turn, or before all contexts reach
their first look, the contexts with the clearest differences come first, because their blocks are the most likely to
give verdicts; the statements of an application also count by their shares of its load. Blocks of a context that several
hosts measure at once are taken in the order of their numbers, so that a look never depends on which host was faster.
"""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice

import numpy as np

from pgversus.engine.context_state import ContextState
from pgversus.engine.events import BlockMeasured, ContextPrepared, HostJoined, HostLost, TaskFinished
from pgversus.engine.hosts import Hosts, KnownContext
from pgversus.engine.testbed import BlockOrder
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Block
from pgversus.stats.moderation import moderated
from pgversus.study.comparison import BASELINE

# Random streams separate from those of the blocks, whose seeds are [seed, block number, context number - 1].
_TURNS, _TOGETHER = 1, 2
_PREPARED_TOGETHER = 8
# Most contexts that a host prepares on one start. More would save little, and would delay the first block.
_BLOCKS_OF_ALL = 2
# Blocks of every context before any is preferred: the fewest that show how clear a difference is.


@dataclass(slots=True)
class _Task:
    """The current work of a host; empty if it is free."""

    given: dict[int, Preparation | None] = field(default_factory=dict)
    """The known preparations of the contexts that it may prepare, by number."""
    orders: dict[int, BlockOrder] = field(default_factory=dict)
    """Blocks that it has not reported, by the number of their context."""
    measures: bool = False
    """Whether the host is to measure blocks, not to prepare contexts."""


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
        """Give a task to every free host that can have one; return False if hosts are free but no task is left.

        left_s: seconds left of the budget, including the time of blocks that are being measured.
        """
        free = self._hosts.free()
        for host in free:
            self._begin(host, left_s - self._promised_s)
        return bool(self._tasks) or not free

    def given(self, event: ContextPrepared) -> tuple[ContextState, Preparation | None]:
        """Return the state of the context that a host tried to prepare, and the preparation that the host was given."""
        return self._states[event.context], self._tasks[event.host].given.pop(event.context)

    def make_ready(self, event: ContextPrepared) -> bool:
        """Record that a host can measure a context from now on; return whether it is the first host that can."""
        is_first = not any(event.context in ready for ready in self._ready.values())
        self._ready[event.host].add(event.context)
        return is_first

    def taken(self, event: BlockMeasured) -> Iterator[tuple[ContextState, Block]]:
        """Yield the blocks whose turn has come in their context, without arms that no longer need blocks.

        The caller must add each block to its state before it requests the next one.
        """
        del self._tasks[event.host].orders[event.context]
        state, early = self._states[event.context], self._early[event.context]
        early[event.block.number] = event.block
        while state.stopped is None and (block := early.pop(state.next_number, None)) is not None:
            self._used[event.context].remove(block.number)
            needed = (BASELINE, *state.open_arms)
            yield state, block._replace(trials={arm: one for arm, one in block.trials.items() if arm in needed})

    def note(self, event: TaskFinished | HostJoined | HostLost) -> bool:
        """Record that a host no longer has a task; return whether that task was to measure blocks.

        Blocks that the host did not measure are assigned again.
        """
        if isinstance(event, HostJoined):
            # It may have its first task already.
            return False
        task = self._tasks.pop(event.host, _Task())
        for context, order in task.orders.items():
            self._used[context].remove(order.number)
        if isinstance(event, HostLost):
            # Its preparations are lost with it.
            self._ready.pop(event.host, None)
        return task.measures

    @property
    def _promised_s(self) -> float:
        """The time of blocks that are being measured, or have arrived too early."""
        measured_s = sum(order.seconds or 0.0 for task in self._tasks.values() for order in task.orders.values())
        return measured_s + sum(block.wall_s for early in self._early.values() for block in early.values())

    def _begin(self, host: str, left_s: float) -> None:
        affordable = [state for state in self._states.values() if self._may_measure(state) and state.fits_into(left_s)]
        if not affordable:
            return
        affordable = self._with_a_look_in(left_s, affordable)
        # Prefer contexts that no other host prepares: a host that does fits their windows for all hosts.
        unfitted = {number for task in self._tasks.values() for number, known in task.given.items() if known is None}
        state = self._next([one for one in affordable if one.context.number not in unfitted] or affordable, left_s)
        ready = self._ready[host]
        if state.context.number not in ready:
            others = (other for other in affordable if other.context.number not in ready)
            together = [state, *islice(self._sharing(state, others), _PREPARED_TOGETHER - 1)]
            contexts: list[KnownContext] = [(one.context, one.preparation) for one in together]
            self._tasks[host] = _Task(given={context.number: known for context, known in contexts})
            self._hosts.prepare(host, contexts)
            return
        partners = self._sharing(state, (other for other in affordable if other.context.number in ready))
        number = self._free_number(state)
        orders = [one.order(number) for one in self._in_turn([state, *partners], number, _TOGETHER, left_s)]
        self._tasks[host] = _Task(orders={order.context.number: order for order in orders}, measures=True)
        for order in orders:
            self._used[order.context.number].add(number)
        self._hosts.measure(host, orders, left_s)

    def _may_measure(self, state: ContextState) -> bool:
        """Return whether a context needs a block that is neither being measured nor has arrived."""
        if state.stopped is not None:
            return False
        used = self._used[state.context.number]
        # Blocks that have arrived wait for one that was lost.
        is_missing = bool(used) and self._free_number(state) < max(used)
        return is_missing or len(used) < state.most_more_blocks

    def _free_number(self, state: ContextState) -> int:
        number, used = state.next_number, self._used[state.context.number]
        while number in used:
            number += 1
        return number

    def _sharing(self, state: ContextState, others: Iterable[ContextState]) -> Iterator[ContextState]:
        """Yield the other contexts that have as many blocks as this one and can share its start."""
        for other in others if state.shares_starts else ():
            if (
                other is not state
                and other.shares_starts
                and self._free_number(other) == self._free_number(state)
                and self._hosts.can_share_start(state.context, other.context)
            ):
                yield other

    def _next(self, states: Sequence[ContextState], left_s: float) -> ContextState:
        """Return the context whose turn it is, one of those with the fewest blocks."""
        numbers = {state.context.number: self._free_number(state) for state in states}
        fewest = min(numbers.values())
        first = [state for state in states if numbers[state.context.number] == fewest]
        return self._in_turn(first, fewest, _TURNS, left_s)[0]

    def _with_a_look_in(self, left_s: float, states: list[ContextState]) -> list[ContextState]:
        """Return the contexts that can have a first look in the remaining time, if it does not suffice for all.

        Without one, a context has no interval, and its blocks are of no use. The most useful ones come first.
        """
        needed_s = {state.context.number: self._first_look_s(state) for state in states}
        is_early = any(state.fewest_ratios < _BLOCKS_OF_ALL for state in states)
        if is_early or sum(needed_s.values()) <= left_s:
            return states
        chosen = []
        for state in _most_useful_first(states):
            if needed_s[state.context.number] <= left_s:
                left_s -= needed_s[state.context.number]
                chosen.append(state)
        return chosen or states

    def _first_look_s(self, state: ContextState) -> float:
        """Return the time of the blocks that a context lacks for its first look and that are not being measured."""
        lacking = state.rule.first_look - state.fewest_ratios - len(self._used[state.context.number])
        return max(0, lacking) * (state.next_s or 0.0)

    def _in_turn(self, states: Sequence[ContextState], number: int, stream: int, left_s: float) -> list[ContextState]:
        """Return the contexts in a random order; if time is left for a part only, the most useful ones come first.

        This cannot cause false verdicts: whether a context has one still depends on its own blocks only.
        """
        shuffled = self._shuffled(states, number, stream)
        if sum(state.next_s or 0.0 for state in shuffled) <= left_s:
            return shuffled
        return _most_useful_first(shuffled)

    def _shuffled(self, states: Sequence[ContextState], number: int, stream: int) -> list[ContextState]:
        """Return a random order, in which the relative order of two contexts does not depend on the others."""
        highest = max(state.context.number for state in states)
        # Draw a place for every number up to the highest, so that no context moves when others end or have a turn.
        places = np.random.default_rng([self._seed, number, 0, stream]).random(highest + 1)
        return sorted(states, key=lambda state: float(places[state.context.number]))


def _most_useful_first(states: Sequence[ContextState]) -> list[ContextState]:
    """Return the contexts by their share of the load times their largest difference, in standard errors.

    All contexts contribute to the standard errors.
    """
    known = [(state.context.number, ratio) for state in states for ratio in state.log_ratios]
    clarity: dict[int, float] = defaultdict(float)
    for (number, _), one in zip(known, moderated([ratio for _, ratio in known]), strict=True):
        clarity[number] = max(clarity[number], abs(one.point) / one.standard_error)
    return sorted(states, key=lambda state: -state.context.share * clarity[state.context.number])
