"""The windows of a context: their kind, length and number, fitted to what the first load showed.

Formulas and reasons: docs/statistics.md, "Windows"; why pgbench is driven in three ways: docs/adr/0015-windows.md.
"""

import math
from dataclasses import dataclass, replace

from pgversus.errors import StudyError
from pgversus.study.design import FIRST_LOOK, Design, WindowKind
from pgversus.study.metrics import transactions_for_quantile

FEW_CLIENTS = 8
_ROUNDS = 8
_ROUNDS_OF_WRITES = 4
# Windows that write are longer; sqrt(10 * overhead / pair) says how many pay (docs/statistics.md, "Pairs per block").
_TRANSACTIONS_UNDER_RATE = 10
_SPARE = 1.5
# Times the transactions that a percentile needs, since blocks differ.
_TRANSACTIONS_PER_CLIENT = 3
# A window of whole seconds ends when the last transaction begun in it ends; with fewer than this many transactions
# for each client that rest would be the larger part of the window.
_SHORTEST_S, _LONGEST_SLICE_S = 0.02, 0.1
# Shorter windows are dominated by the switch from one arm to the other, longer slices lose what short ones gain.
_SHORTEST_RUN_S, _SHORTEST_RUN_OF_CLIENTS_S = 0.1, 0.5
# Windows of transactions are longer: new sessions are slow until their caches are filled and the kernel has found
# places for them. This is at most a tenth of such a window (docs/adr/0015-windows.md).
_LATENCIES_PER_SLICE = 20
# A transaction of several statements may be stopped between two of them; then it counts where it ends.
_TAILS_PER_SLICE = 4
# The 99th percentile of the latency fits so often into it.
_LATENCIES_OF_CLIENTS, _TAILS_OF_CLIENTS = 4, 2
# Several clients finish one after another at the end of a slice, and meanwhile fewer and fewer share the processors.
_LONGEST_OF_CLIENTS_S = 0.25
# From here on several clients execute once for each window in sessions of its own, which takes a quarter of the load;
# what a new session costs is a small part of so long an execution.
_ONE_EXECUTION_S = 0.01
# From here on a slice of one client is one execution: it is stopped while that is in flight, and waited for.
_IN_FLIGHT_S, _IN_FLIGHT_SHARE = 0.005, 0.25
# How long after the beginning of an execution; at most this share of the mean latency.
_SHORT_BLOCK_S, _SHORTEST_BLOCK_S = 1.0, 0.2
# Of load for each arm in a block of short windows. Where contexts share a start, load grows with the root of what a
# context pays of it, since the cheapest number of rounds grows with the root of the overhead (docs/statistics.md,
# "Rounds per block").
_SESSION_S, _EXECUTIONS_PER_SESSION = 0.5, 20
# Of load for each arm between two reconnections; connecting takes about one execution more.
_FEWEST_ROUNDS, _LONGEST_OF_TWO_QUADS_S = 4, 0.5
# Two quads tell the noise of windows from that of starts, where they do not take too long.
_RUN_S = 0.01
# Starting pgbench and connecting one client, for each window.
_BETWEEN_SLICES_S = 0.004
# Waiting for what is in flight, placing, reading the host's counters.
_WARM_UP_OF_SLICES_S = 0.1
_WARM_UP_OF_TRANSACTIONS_S = 0.1
_WARM_UP_EXECUTIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLoad:
    """What is known of a load after it ran once on every arm."""

    clients: int
    writes: bool
    """Whether any arm's rows were changed."""
    latency_s: float
    """Mean latency of the slowest arm."""
    latency_p99_s: float
    """99th percentile of the latency, of the arm where it is longest."""
    connect_s: float = 0.0
    """Time that the slowest arm took to connect all clients."""
    rate: float | None = None
    """Transactions per second over all clients, in an open loop."""
    is_cold: bool = False
    """Whether every window begins on a restarted server with an empty cache."""
    may_pause: bool = True
    """Whether pgbench may be stopped between windows: not where scripts sleep, where nothing would end a stopped
    pgbench if pgversus were killed, or where the server is not ours to watch."""
    is_one_statement: bool = True
    """Whether each transaction is one statement, so that all clients are between two transactions once none is at
    work."""
    replies_wait: bool = False
    """Whether a server waits for its client to read a reply, so that it cannot finish while the client is stopped."""


def least_window_s(rate: float | None) -> float:
    """Seconds in which a load with a rate finishes something all but surely: 0 transactions of 10 come once in 22,000.

    0 without a rate: a client of a closed loop finishes what it begins.
    """
    return 0.0 if rate is None else float(math.ceil(_TRANSACTIONS_UNDER_RATE / rate))


def fit_windows(design: Design, load: FirstLoad, *, arms: int, contexts: int) -> Design:
    """Return the same design with windows that suit the load, where the user has not chosen them.

    contexts: of the study, which share the budget. The choice is made before the first block and never changes.
    """
    if load.is_cold:
        return _cold(design, load)
    if load.rate is not None or _asks_for_seconds(design) or (load.writes and not design.window_is_given):
        return _long(design, load, arms=arms, contexts=contexts)
    if design.window_transactions is not None:
        return _transactions(design, load, design.window_transactions, contexts)
    slice_s = _slice_s(load)
    if _may_slice(design, load, slice_s):
        # One that was fitted to another comparison of the same load stays as it is.
        given_s = design.slice_s or design.window_s
        return _slices(design, load, given_s if design.window_is_given else slice_s, contexts)
    wanted_s = design.window_s if design.window_is_given else _run_s(load)
    return _transactions(design, load, max(1, round(wanted_s / max(load.latency_s, 1e-6))), contexts)


def _may_slice(design: Design, load: FirstLoad, slice_s: float) -> bool:
    """Whether a slice suits the load: it must hold whole executions, and its clients must not wait long at its end."""
    if not load.may_pause:
        return False
    if load.clients > 1:
        if _wait_long(load) and not design.window_is_given:
            return False
    elif load.latency_s >= _ONE_EXECUTION_S and load.replies_wait:
        # The only execution of a slice would not end in it.
        return False
    longest_s = design.window_s if design.window_is_given else _LONGEST_SLICE_S
    return load.is_one_statement or slice_s <= longest_s


def between_s(design: Design) -> float:
    """Return the wall time that it takes to begin and to end one window of one arm, in seconds."""
    between = {WindowKind.SLICE: _BETWEEN_SLICES_S, WindowKind.TRANSACTIONS: _RUN_S, WindowKind.RUN: _RUN_S}
    return between[design.window_kind]


def _asks_for_seconds(design: Design) -> bool:
    return design.window_is_given and design.window_kind is WindowKind.RUN


def _wait_long(load: FirstLoad) -> bool:
    """Whether several clients would wait long for one another at the end of each slice."""
    return max(load.latency_s, load.latency_p99_s / 2) >= _LONGEST_OF_CLIENTS_S


def _slice_s(load: FirstLoad) -> float:
    """The shortest time to a stop after which little is waited for, in whole milliseconds."""
    if not load.is_one_statement:
        needed_s = max(_SHORTEST_S, _LATENCIES_PER_SLICE * load.latency_s, _TAILS_PER_SLICE * load.latency_p99_s)
    elif load.clients > 1:
        needed_s = max(_SHORTEST_S, _LATENCIES_OF_CLIENTS * load.latency_s, _TAILS_OF_CLIENTS * load.latency_p99_s)
    elif load.latency_s < _ONE_EXECUTION_S:
        needed_s = _SHORTEST_S
    else:
        needed_s = min(_IN_FLIGHT_S, _IN_FLIGHT_SHARE * load.latency_s)
    return math.ceil(1000 * needed_s) / 1000


def _run_s(load: FirstLoad) -> float:
    """The shortest run of new sessions in which little time is lost to their being new."""
    return max(_SHORTEST_RUN_S if load.clients == 1 else _SHORTEST_RUN_OF_CLIENTS_S, load.connect_s)


def _short_rounds(wall_s: float, contexts: int) -> int:
    """Rounds of a block of short windows, each with its pauses so long."""
    return _rounds(max(_SHORTEST_BLOCK_S, _SHORT_BLOCK_S / math.sqrt(contexts)) / wall_s)


def _slices(design: Design, load: FirstLoad, slice_s: float, contexts: int) -> Design:
    window_s = max(slice_s, load.latency_s)
    fewest = _FEWEST_ROUNDS if window_s <= _LONGEST_OF_TWO_QUADS_S else 2
    rounds = design.rounds if design.rounds_are_given else max(fewest, _short_rounds(window_s, contexts))
    rounds = max(rounds, _rounds_for_quantile(design, load.clients / max(load.latency_s, 1e-6) * window_s))
    session_s = max(_SESSION_S, _EXECUTIONS_PER_SESSION * load.latency_s)
    return replace(
        design,
        window_s=window_s,
        window_kind=WindowKind.SLICE,
        slice_s=slice_s,
        rounds=rounds,
        rounds_per_session=min(rounds, _rounds(session_s / window_s)),
        warm_up_s=design.warm_up_s if design.warm_up_is_given else _WARM_UP_OF_SLICES_S,
    )


def _transactions(design: Design, load: FirstLoad, transactions: int, contexts: int) -> Design:
    window_s = transactions * load.latency_s
    least_warm_up_s = max(_WARM_UP_OF_TRANSACTIONS_S, _WARM_UP_EXECUTIONS * load.latency_s)
    rounds = design.rounds if design.rounds_are_given else _short_rounds(window_s + _RUN_S, contexts)
    return replace(
        design,
        window_s=window_s,
        window_kind=WindowKind.TRANSACTIONS,
        window_transactions=transactions,
        rounds=max(rounds, _rounds_for_quantile(design, transactions * load.clients)),
        warm_up_s=design.warm_up_s if design.warm_up_is_given else least_warm_up_s,
    )


def _rounds(number: float) -> int:
    """The nearest even number of rounds, so that each has its mirror; at least two."""
    return max(2, 2 * round(number / 2))


def _rounds_for_quantile(design: Design, transactions: float) -> int:
    """Rounds in which a judged percentile has the transactions that it needs; 0 where none is judged, or by choice.

    transactions: in one window.
    """
    if design.metric.quantile is None or design.rounds_are_given:
        return 0
    return 2 * math.ceil(_SPARE * transactions_for_quantile(design.metric.quantile) / transactions / 2)


def _cold(design: Design, load: FirstLoad) -> Design:
    """Windows as short as can be, since only their beginning is cold, and few, since each costs a restart.

    One more, in which nothing is measured, stands in the place of the warm-up.
    """
    needed_s = float(max(1, least_window_s(load.rate), math.ceil(load.latency_s)))
    window_s = design.window_s if design.window_is_given else needed_s
    rounds = design.rounds if design.rounds_are_given else _ROUNDS_OF_WRITES
    return replace(design, window_s=window_s, rounds=rounds, warm_up_s=window_s)


def _long(design: Design, load: FirstLoad, *, arms: int, contexts: int) -> Design:
    """Windows of whole seconds.

    Loads that write get them because one arm's dirty pages are flushed during the other's window; loads with a rate
    because their latency counts from a schedule. Slow transactions get windows that hold a few of them, and at least
    one where the budget has no room for more. What grows in length becomes fewer, so that a block's load stays about as
    long; never less than two windows of each arm. Where a percentile is judged, they are as long as its interval needs
    transactions in a block.
    """
    least_s = least_window_s(load.rate)
    usual_rounds = _ROUNDS_OF_WRITES if load.writes else _ROUNDS
    usual_s = 5.0 if load.writes else 1.0 if load.clients <= FEW_CLIENTS else 2.0
    slow_s = min(load.latency_s * _TRANSACTIONS_PER_CLIENT, _affordable_window_s(design, arms, contexts))
    needed_s = max(usual_s, least_s, float(math.ceil(load.latency_s)), float(math.ceil(slow_s)))
    window_s = design.window_s if design.window_is_given else needed_s
    fitting = max(2, 2 * round(usual_s * usual_rounds / window_s / 2))
    rounds = design.rounds if design.rounds_are_given else min(fitting, usual_rounds)
    if design.metric.quantile is not None and not design.window_is_given:
        tps = load.clients / max(load.latency_s, 1e-6) if load.rate is None else load.rate
        needed = _SPARE * transactions_for_quantile(design.metric.quantile)
        window_s = max(window_s, float(math.ceil(needed / tps / rounds)))
    return replace(design, window_s=window_s, rounds=rounds, warm_up_s=max(design.warm_up_s, least_s))


def _affordable_window_s(design: Design, arms: int, contexts: int) -> float:
    """The longest window of which two of each arm in every block up to the first look take half of a context's part."""
    if design.fixed_blocks is not None:
        return math.inf
    return float(design.budget_s / contexts // (arms * 2 * 2 * FIRST_LOOK))


def fit_operation(design: Design, *, slowest_s: float) -> Design:
    """Return the same design for an operation: its one window in a block is the operation, as long as that takes.

    slowest_s: of the slowest arm when it was tried; what is planned by is the length of a window.
    """
    return replace(design, window_s=slowest_s, rounds=1, warm_up_s=0.0)


def check_windows(design: Design, *, rate: float | None, is_cold: bool) -> None:
    """StudyError when the user's windows cannot hold the load: too short for a rate, or for a start from cold."""
    if not design.window_is_given:
        return
    least_s = least_window_s(rate)
    if design.window_kind is not WindowKind.RUN and (is_cold or rate is not None):
        reason = "a window from a cold cache begins with a restart" if is_cold else "a rate needs time to be kept"
        raise StudyError(
            f"windows this short are not possible here: {reason}",
            slug="study-short-window",
            where=_asked(design),
            found='cache = "cold"' if is_cold else f"a rate of {rate:g} transactions per second",
            expected="windows of whole seconds",
            to_do="--window 1s, or leave the length out to have it fitted",
        )
    if design.window_s < least_s:
        raise StudyError(
            "the windows are too short for the rate",
            slug="study-short-window",
            where=_asked(design),
            found=f"{rate:g} transactions per second: some windows would hold none",
            expected=f"room for {_TRANSACTIONS_UNDER_RATE} transactions",
            to_do=f"windows of {least_s:g} s, or leave the length out to have it fitted",
        )


def _asked(design: Design) -> str:
    if design.window_transactions is not None:
        return f"windows of {design.window_transactions} transactions"
    return f"windows of {design.window_s:g} s"


def check_budget(design: Design, arms: int) -> None:
    """StudyError when not even the load of one block fits into the budget."""
    least_s = arms * design.measured_s_per_block
    if design.fixed_blocks is None and least_s > design.budget_s:
        raise StudyError(
            "the budget ends before the first block would",
            slug="study-hopeless-budget",
            where=f"a budget of {design.budget_s:g} s",
            found=f"{arms} arms with {design.rounds} windows of {design.window_s:g} s each: {least_s:g} s of load",
            expected=f"room for {FIRST_LOOK} blocks, after which the first look is taken",
            to_do=f"--budget {math.ceil(2 * FIRST_LOOK * least_s / 60)}m, or shorter or fewer windows",
        )
