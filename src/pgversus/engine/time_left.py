"""The remaining time of a study, and whether its budget suffices."""

from collections.abc import Sequence
from statistics import fmean

from pgversus.engine.context_state import ContextState
from pgversus.engine.progress import Progress, TimeEstimate
from pgversus.text.units import duration

_TELLING = 6
# Number of ratios from which the spread of a contender, and thus its remaining time, is known well enough.
_CLEARLY_MORE = 1.5


def budget_left_s(budget_s: float, states: Sequence[ContextState]) -> float:
    """Return the seconds of a budget that the blocks of these contexts have not used."""
    return budget_s - sum(state.wall_s for state in states)


def time_estimate(states: Sequence[ContextState], budget_s: float) -> TimeEstimate:
    """Estimate the time of all contexts of a study. budget_s: for the blocks of all of them."""
    spent_s = sum(state.wall_s for state in states)
    waiting = [state for state in states if state.stopped is None]
    left_s = max(0.0, budget_s - spent_s)
    is_fixed = any(state.is_fixed for state in states)
    needed_s = _fixed_s(states, waiting) if is_fixed else _needed_s(waiting)
    is_at_most = not is_fixed and (needed_s is None or needed_s > left_s)
    return TimeEstimate(
        contexts=len(states),
        ended=len(states) - len(waiting),
        spent_s=spent_s,
        budget_s=None if is_fixed else budget_s,
        seconds_left=left_s if is_at_most else needed_s,
        is_at_most=is_at_most,
    )


def _needed_s(waiting: Sequence[ContextState]) -> float | None:
    """Return the time that all of them still need; None if unknown for any."""
    total = 0.0
    for state in waiting:
        seconds = state.seconds_left
        if seconds is None:
            return None
        total += seconds
    return total


def _fixed_s(states: Sequence[ContextState], waiting: Sequence[ContextState]) -> float | None:
    """Return the time for given numbers of blocks; a context without blocks is assumed to be as slow as the others.

    None before the first block of all.
    """
    known = [state.forecast.seconds_per_block for state in states if state.blocks]
    if not known:
        return None
    usual_s = fmean(known)
    total = 0.0
    for state in waiting:
        seconds = state.seconds_left
        total += state.rule.last_look * usual_s if seconds is None else seconds
    return total


class BudgetWarning:
    """Warns once that the budget is too short, as soon as open contexts have enough blocks for an estimate."""

    def __init__(self, states: Sequence[ContextState], budget_s: float, progress: Progress) -> None:
        self._states = states
        self._budget_s = budget_s
        self._progress = progress
        self._has_spoken = False

    def check(self) -> None:
        """Warn if the blocks so far show that the budget is too short."""
        if not self._has_spoken and (words := _hopeless_words(self._states, self._budget_s)):
            self._has_spoken = True
            self._progress.say(words)


def _hopeless_words(states: Sequence[ContextState], budget_s: float) -> str:
    """Return a warning that the budget is too short for the open contexts with enough blocks; otherwise empty."""
    waiting, left_s = [state for state in states if state.stopped is None], budget_left_s(budget_s, states)
    if any(state.is_fixed for state in waiting):
        return ""
    waiting = [state for state in waiting if state.fewest_ratios >= _TELLING]
    if not any(state.fits_into(left_s) for state in waiting):
        # The study ends anyway, or has ended.
        return ""
    needed_s = _needed_s(waiting)
    if any(state.forecast.lacks_transactions for state in waiting):
        return (
            "blocks have too few transactions for an interval of the judged percentile: use more clients or longer "
            "windows"
        )
    if needed_s is None:
        most = max(state.rule.last_look for state in waiting)
        return f"at the current noise, {most} blocks, the limit of a context, are not enough for every open verdict"
    if needed_s > _CLEARLY_MORE * left_s:
        needed = f"about {duration(needed_s)} more needed, {duration(left_s)} left"
        return f"at the current noise, the budget is too short for all open verdicts: {needed}"
    return ""
