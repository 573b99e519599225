"""An arm's work per block in words: number, length and order of its windows."""

from collections.abc import Iterable, Sequence

from pgversus.answers.answer import Answer
from pgversus.study.design import Design, WindowKind
from pgversus.text.translation import _, either, ngettext, shortened_list
from pgversus.text.units import duration, latency

_MOST_LENGTHS = 2


def windows_text(answers: Iterable[Answer]) -> str:
    """Return an arm's work per block: `8 windows of 1 s`, `8 windows of 20 ms in mirrored order (A B B A)`."""
    all_answers = list(answers)
    short = [one for one in all_answers if _has_quads(one)]
    ranged = [one for one in short if len(one.window_counts) > 1]
    if len({_same_windows(one) for one in short}) > _MOST_LENGTHS:
        ranged = short
    places = {id(one) for one in ranged}
    parts = [_same_windows(one) for one in all_answers if id(one) not in places]
    return shortened_list([*parts, *([_range_of_windows(ranged)] if ranged else [])], either)


def _range_of_windows(answers: Sequence[Answer]) -> str:
    counts = set[int]().union(*(one.window_counts for one in answers))
    lengths = _lengths([one.comparison.design for one in answers])
    if len(counts) == 1:
        return _in_quads(counts.pop(), lengths)
    return _(
        "{fewest} to {most} windows of {duration} in mirrored order (A B B A)",
        fewest=min(counts),
        most=max(counts),
        duration=lengths,
    )


def _has_quads(answer: Answer) -> bool:
    design = answer.comparison.design
    has_windows = not answer.comparison.workload.runs_once and design.window_kind is not WindowKind.RUN
    return has_windows and max(answer.window_counts) > 1


def _in_quads(number: int, length: str) -> str:
    return _("{windows} in mirrored order (A B B A)", windows=_windows(number, length))


def _windows(number: int, length: str) -> str:
    return ngettext("{number} window of {duration}", "{number} windows of {duration}", number, duration=length)


def _lengths(designs: Sequence[Design]) -> str:
    """Return the lengths of windows: each of a few, otherwise the shortest and the longest."""
    lengths = {window_length(design): design.window_s for design in designs}
    if len(lengths) <= _MOST_LENGTHS:
        return shortened_list(lengths, either)
    in_transactions = sorted(
        (design for design in designs if design.window_transactions is not None),
        key=lambda design: design.window_transactions or 0,
    )
    in_seconds = sorted(
        (design for design in designs if design.window_transactions is None), key=lambda design: design.window_s
    )
    parts = []
    for ascending in filter(None, (in_seconds, in_transactions)):
        shortest, longest = window_length(ascending[0]), window_length(ascending[-1])
        # "1 to 7 transactions per client"
        least = shortest if ascending[0].window_transactions is None else str(ascending[0].window_transactions)
        parts.append(longest if shortest == longest else _("{least} to {most}", least=least, most=longest))
    return shortened_list(parts, either)


def _same_windows(answer: Answer) -> str:
    """Return an arm's work per block if all blocks have the same number of windows."""
    design = answer.comparison.design
    if answer.comparison.workload.runs_once:
        return _("one operation on a fresh copy")
    words = _in_quads if _has_quads(answer) else _windows
    return words(design.rounds, window_length(design))


def window_length(design: Design) -> str:
    """Return `1 s`, `20 ms` or `3 transactions per client`."""
    if design.window_kind is WindowKind.TRANSACTIONS:
        number = design.window_transactions or 1
        return ngettext("{number} transaction per client", "{number} transactions per client", number)
    return latency(design.window_s) if design.window_s < 1 else duration(design.window_s)
