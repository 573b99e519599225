"""The windows of a context: kind, length and number, fitted to the first load.

Formulas and reasons: docs/statistics.md, "Windows"; the three ways to run pgbench: docs/adr/0015-windows.md.
"""

import math
from dataclasses import dataclass, replace

from pgversus.errors import StudyError
from pgversus.study.design import FIRST_LOOK, Design, WindowKind
from pgversus.study.metrics import transactions_for_quantile

FEW_CLIENTS = 8
_ROUNDS = 8
_COLD_ROUNDS = 4
# The best number is sqrt(10 * overhead / pair) (docs/statistics.md, "Rounds per block"); a cold window needs a restart.
_JOINT_S, _JOINT_ROUNDS = 4.0, 4
# Every window of several hosts needs a run of pgbench that begins a second earlier on each of them.
_TRANSACTIONS_UNDER_RATE = 10
_SPARE = 1.5
# Margin on the transactions that a percentile needs, since blocks differ.
_TRANSACTIONS_PER_CLIENT = 3
# A window of whole seconds ends with the last transaction that began in it. With fewer transactions per client, that
# remainder would be the larger part of the window.
_SHORTEST_S, _LONGEST_SLICE_S = 0.02, 0.1
# Shorter windows are dominated by switching arms, and longer slices lose the advantage of short ones.
_SHORTEST_RUN_S, _SHORTEST_RUN_OF_CLIENTS_S = 0.1, 0.5
# Windows of transactions are longer: new sessions are slow until their caches are filled and the kernel has placed
# their processes. That is at most a tenth of such a window (docs/adr/0015-windows.md).
_SLOW_S, _SHORTEST_OF_SLOW_S = 0.0025, 0.01
# From this latency on, slices of one client are shorter: a switch costs more of each, but they are more precise
# (docs/adr/0015-windows.md).
_LATENCIES_PER_SLICE = 20
# A transaction of several statements may be paused between two of them; it counts in the slice in which it ends.
_TAILS_PER_SLICE = 4
# Multiples of the 99th percentile of the latency in one slice.
_LATENCIES_OF_CLIENTS, _TAILS_OF_CLIENTS = 4, 2
# At the end of a slice clients finish one after another, and fewer and fewer of them share the CPUs.
_LONGEST_OF_CLIENTS_S = 0.25
# From this latency on, several clients execute once per window in new sessions, which needs a quarter of the load of
# slices. Starting a session is cheap compared with such an execution.
ONE_EXECUTION_S = 0.01
"""From this latency on, a slice of one client is one execution, which is awaited after the client is paused."""
_IN_FLIGHT_S, _IN_FLIGHT_SHARE = 0.005, 0.25
# Delay from the start of an execution until the pause; at most this share of the mean latency.
_SHORT_BLOCK_S, _SHORTEST_BLOCK_S = 1.0, 0.2
# Load per arm in a block of short windows. If contexts share a start, the load grows with the square root of a
# context's share of its cost, because the cheapest number of rounds grows with the square root of the overhead
# (docs/statistics.md, "Rounds per block").
_SESSION_S, _EXECUTIONS_PER_SESSION = 0.5, 20
# Load per arm between reconnections; connecting takes about one more execution.
_FEWEST_ROUNDS, _LONGEST_OF_TWO_QUADS_S = 4, 0.5
# Two quads separate the noise of windows from start-to-start variation, unless they take too long.
_RUN_S = 0.01
# Time to start pgbench and connect one client, per window.
_BETWEEN_SLICES_S = 0.004
# Time to wait for transactions in flight, place processes and read the host's counters.
_WARM_UP_OF_SLICES_S = 0.1
_WARM_UP_OF_TRANSACTIONS_S = 0.1
_WARM_UP_EXECUTIONS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class FirstLoad:
    """The properties of a load, known after it ran once on every arm."""

    clients: int
    writes: bool
    """Whether rows changed on any arm, and stayed changed."""
    latency_s: float
    """Mean latency of the slowest arm."""
    latency_p99_s: float
    """99th percentile of the latency, maximum over arms."""
    connect_s: float = 0.0
    """Time to connect all clients, maximum over arms."""
    rate: float | None = None
    """Transactions per second over all clients, for an open loop."""
    is_cold: bool = False
    """Whether every window begins on a restarted server with an empty cache."""
    may_pause: bool = True
    """Whether pgbench may be paused between windows. False if scripts sleep, if nothing would end a paused pgbench
    after pgversus is killed, or if pgversus does not manage the server."""
    is_one_statement: bool = True
    """Whether each transaction is one statement, so that all clients are between transactions when no session is
    active."""
    replies_wait: bool = False
    """Whether a server waits for its client to read a reply, and so cannot finish while the client is paused."""
    is_joint: bool = False
    """Whether several hosts send it at once: their clocks agree to milliseconds only."""


def least_window_s(rate: float | None, clients: int) -> float:
    """Return the shortest window in which a load with a rate almost surely has a latency, in seconds.

    With 10 transactions expected after the first one of each client, none occur once in 22,000 windows. 0 without a
    rate, because a client of a closed loop completes what it begins.
    """
    return 0.0 if rate is None else float(math.ceil((_TRANSACTIONS_UNDER_RATE + clients) / rate))


def fit_windows(design: Design, load: FirstLoad, *, arms: int, contexts: int) -> Design:
    """Return the design with windows that suit the load, unless the user has chosen them.

    contexts: number of contexts in the study, which share the budget. Windows are chosen before the first block and
    never change.
    """
    if load.is_cold:
        return _cold(design, load)
    needs_seconds = load.rate is not None or load.is_joint
    if needs_seconds or _asks_for_seconds(design) or (load.writes and not design.window_is_given):
        return _long(design, load, arms=arms, contexts=contexts)
    if design.window_transactions is not None:
        return _transactions(design, load, design.window_transactions, contexts)
    slice_s = _slice_s(load)
    if _may_slice(design, load, slice_s):
        # Windows that were fitted to another comparison of the same load are kept.
        given_s = design.slice_s or design.window_s
        return _slices(design, load, given_s if design.window_is_given else slice_s, contexts)
    wanted_s = design.window_s if design.window_is_given else _run_s(load)
    return _transactions(design, load, max(1, round(wanted_s / max(load.latency_s, 1e-6))), contexts)


def _may_slice(design: Design, load: FirstLoad, slice_s: float) -> bool:
    """Return whether slices suit the load: they hold whole executions, and clients do not wait long at their ends."""
    if not load.may_pause:
        return False
    if load.clients > 1:
        if _wait_long(load) and not design.window_is_given:
            return False
    elif load.latency_s >= ONE_EXECUTION_S and load.replies_wait:
        # The only execution of a slice could not finish while its client is paused.
        return False
    longest_s = design.window_s if design.window_is_given else _LONGEST_SLICE_S
    return load.is_one_statement or slice_s <= longest_s


def between_s(design: Design) -> float:
    """Return the overhead of starting and ending one window of one arm, in seconds of wall time."""
    return _BETWEEN_SLICES_S if design.window_kind is WindowKind.SLICE else _RUN_S


def _asks_for_seconds(design: Design) -> bool:
    return design.window_is_given and design.window_kind is WindowKind.RUN


def _wait_long(load: FirstLoad) -> bool:
    """Return whether several clients would wait long for each other at the end of each slice."""
    return max(load.latency_s, load.latency_p99_s / 2) >= _LONGEST_OF_CLIENTS_S


def _slice_s(load: FirstLoad) -> float:
    """Return the shortest slice that ends with little waiting, in seconds, rounded up to milliseconds."""
    if not load.is_one_statement:
        needed_s = max(_SHORTEST_S, _LATENCIES_PER_SLICE * load.latency_s, _TAILS_PER_SLICE * load.latency_p99_s)
    elif load.clients > 1:
        needed_s = max(_SHORTEST_S, _LATENCIES_OF_CLIENTS * load.latency_s, _TAILS_OF_CLIENTS * load.latency_p99_s)
    elif load.latency_s < ONE_EXECUTION_S:
        needed_s = _SHORTEST_S if load.latency_s < _SLOW_S else _SHORTEST_OF_SLOW_S
    else:
        needed_s = min(_IN_FLIGHT_S, _IN_FLIGHT_SHARE * load.latency_s)
    return math.ceil(1000 * needed_s) / 1000


def _run_s(load: FirstLoad) -> float:
    """Return the shortest run in which new sessions cost little time, in seconds."""
    return max(_SHORTEST_RUN_S if load.clients == 1 else _SHORTEST_RUN_OF_CLIENTS_S, load.connect_s)


def _short_rounds(wall_s: float, contexts: int) -> int:
    """Return the rounds per block for short windows. wall_s: duration of a window with its pauses."""
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
    """Return the nearest even number of rounds, so that each has its mirror; at least two."""
    return max(2, 2 * round(number / 2))


def _rounds_for_quantile(design: Design, transactions: float) -> int:
    """Return the rounds that a judged percentile needs; 0 for other metrics, and if the user chose the rounds.

    transactions: transactions per window.
    """
    if design.metric.quantile is None or design.rounds_are_given:
        return 0
    return 2 * math.ceil(_SPARE * transactions_for_quantile(design.metric.quantile) / transactions / 2)


def _cold(design: Design, load: FirstLoad) -> Design:
    """Return short windows, since only their beginning is cold, and few of them, since each needs a restart.

    An additional, unmeasured window replaces the warm-up.
    """
    needed_s = float(max(1, least_window_s(load.rate, load.clients), math.ceil(load.latency_s)))
    window_s = design.window_s if design.window_is_given else needed_s
    rounds = design.rounds if design.rounds_are_given else _COLD_ROUNDS
    return replace(design, window_s=window_s, rounds=rounds, warm_up_s=window_s)


def _long(design: Design, load: FirstLoad, *, arms: int, contexts: int) -> Design:
    """Return windows of whole seconds.

    They suit loads that write, because the writes of one arm slow down the other arm for a while, and loads with a
    rate, because their latency counts from a schedule. A window holds a few slow transactions, or at least one if the
    budget allows no more. If windows are longer, there are fewer of them, but at least two per arm, so that the load of
    a block stays about the same. If a percentile is judged, windows are long enough for the transactions that its
    interval needs per block.
    """
    least_s = least_window_s(load.rate, load.clients)
    usual_s, most = (1.0 if load.clients <= FEW_CLIENTS else 2.0), _ROUNDS
    if load.is_joint:
        usual_s, most = _JOINT_S, _JOINT_ROUNDS
    slow_s = min(load.latency_s * _TRANSACTIONS_PER_CLIENT, _affordable_window_s(design, arms, contexts))
    needed_s = max(usual_s, least_s, float(math.ceil(load.latency_s)), float(math.ceil(slow_s)))
    window_s = design.window_s if design.window_is_given else needed_s
    rounds = design.rounds if design.rounds_are_given else min(_rounds(usual_s * most / window_s), most)
    if design.metric.quantile is not None and not design.window_is_given:
        needed = _SPARE * transactions_for_quantile(design.metric.quantile) / rounds
        # With a rate, the first transaction of each client does not count.
        omitted, tps = (0, load.clients / max(load.latency_s, 1e-6)) if load.rate is None else (load.clients, load.rate)
        window_s = max(window_s, float(math.ceil((needed + omitted) / tps)))
    return replace(design, window_s=window_s, rounds=rounds, warm_up_s=max(design.warm_up_s, least_s))


def _affordable_window_s(design: Design, arms: int, contexts: int) -> float:
    """Return the longest window for which two per arm and block use half of a context's budget up to the first look."""
    if design.stopping_rule.looks_once:
        return math.inf
    return float(design.budget_s / contexts // (arms * 2 * 2 * FIRST_LOOK))


def fit_operation(design: Design, *, slowest_s: float) -> Design:
    """Return the design for an operation, which is the only window of a block.

    slowest_s: time of the slowest arm in the trial run, used as the expected window length.
    """
    return replace(design, window_s=slowest_s, rounds=1, warm_up_s=0.0)


def check_windows(
    design: Design, *, rate: float | None, is_cold: bool, clients: int = 1, is_joint: bool = False
) -> None:
    """Raise StudyError when the user's windows are too short for a rate, a cold start or the load of several hosts."""
    if not design.window_is_given:
        return
    least_s = least_window_s(rate, clients)
    if design.window_kind is not WindowKind.RUN and (is_cold or rate is not None or is_joint):
        if is_cold:
            reason, found = "with a cold cache, every window begins with a restart", 'cache = "cold"'
        elif rate is not None:
            reason, found = "pgbench must first reach the rate", f"a rate of {rate:g} transactions per second"
        else:
            reason, found = "the clocks of several hosts agree to milliseconds only", "the load of a fleet"
        raise StudyError(
            f"the windows are too short: {reason}",
            slug="study-short-window",
            where=_requested(design),
            found=found,
            expected="windows of whole seconds",
            to_do='use --window 1s, or window = "1s" in a study file; omit it to let pgversus choose the length',
        )
    if design.window_s < least_s:
        raise StudyError(
            "the windows are too short for the rate",
            slug="study-short-window",
            where=_requested(design),
            found=f"{rate:g} transactions per second: some windows would have no latency",
            expected=f"at least {_TRANSACTIONS_UNDER_RATE} transactions after the first one of each client",
            to_do=f"use windows of {least_s:g} s, or omit the length to let pgversus choose it",
        )


def _requested(design: Design) -> str:
    if design.window_transactions is not None:
        return f"windows of {design.window_transactions} transactions"
    return f"windows of {design.window_s:g} s"


def check_first_loads(design: Design, arms: int, *, rate: float | None, clients: int) -> None:
    """Raise StudyError when the first loads of a low rate, or with a long warm-up, take longer than the budget."""
    warm_up_s = design.warm_up_s if design.warm_up_is_given else 0.0
    window_s = least_window_s(rate, clients)
    is_warm_up = warm_up_s > window_s
    least_s = arms * max(window_s, warm_up_s)
    if least_s > design.stopping_rule.budget_s:
        raise StudyError(
            "the budget is too short for the first load",
            slug="study-hopeless-budget",
            where=f"a budget of {design.budget_s:g} s",
            found=f"{least_s:g} s for one load on each of {arms} arms, "
            + (f"with a warm-up of {warm_up_s:g} s" if is_warm_up else f"at {rate:g} transactions per second"),
            expected=f"time for at least {FIRST_LOOK} blocks",
            to_do=f"use a {'shorter warm-up' if is_warm_up else 'higher rate'}, or "
            f"--budget {math.ceil(2 * FIRST_LOOK * least_s / 60)}m",
        )


def check_budget(design: Design, arms: int) -> None:
    """Raise StudyError when the budget is too short for the load of one block."""
    least_s = arms * design.measured_s_per_block
    if least_s > design.stopping_rule.budget_s:
        raise StudyError(
            "the budget is too short for one block",
            slug="study-hopeless-budget",
            where=f"a budget of {design.budget_s:g} s",
            found=f"{arms} arms with {design.rounds} windows of {design.window_s:g} s each: {least_s:g} s of load",
            expected=f"time for at least {FIRST_LOOK} blocks, because the first check follows block {FIRST_LOOK}",
            to_do=f"use --budget {math.ceil(2 * FIRST_LOOK * least_s / 60)}m, or shorter or fewer windows",
        )
