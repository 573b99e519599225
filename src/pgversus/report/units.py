"""Numbers as people read them: three significant digits, the unit that fits, percent where a ratio is below two."""

import math

from pgversus.language import tell

_MINUTE_S, _HOUR_S = 60, 3600
_THOUSAND = 1000
FACTOR_FROM = 2.0
# From twice on, "2.4x" is read more easily than "+140 %".
_SMALL = 0.1
_SAYS_NOTHING = 10_000
# Bounds that far apart are better left out of a table; the JSON document has them.


def significant(value: float, digits: int = 3) -> str:
    """A number with so many significant digits, thousands apart, never in exponent form."""
    if value == 0:
        return "0"
    # The exponent form rounds first, so that 999.9 has the exponent of 1000.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    decimals = digits - 1 - exponent
    if decimals <= 0:
        return f"{round(value, decimals):,.0f}".replace(",", " ")
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".")


def latency(seconds: float) -> str:
    """A latency in microseconds, milliseconds or seconds: the unit in which the rounded number is below 1000."""
    for per_second, unit in ((1e6, "µs"), (1e3, "ms")):
        text = significant(seconds * per_second)
        if float(text.replace(" ", "")) < _THOUSAND:
            return f"{text} {unit}"
    return tell("{seconds} s", seconds=significant(seconds))


def duration(seconds: float) -> str:
    """A span of time: `44 s`, `10 min 16 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return tell("{seconds} s", seconds=whole)
    if whole < _HOUR_S:
        minutes, rest = divmod(whole, _MINUTE_S)
        if rest:
            return tell("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
        return tell("{minutes} min", minutes=minutes)
    hours, rest = divmod(round(whole / _MINUTE_S), 60)
    return tell("{hours} h {minutes} min", hours=hours, minutes=rest) if rest else tell("{hours} h", hours=hours)


def size(number: float) -> str:
    """Bytes in the unit that fits, in powers of ten as disks are sold: `740 MB`."""
    for least, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if number >= least:
            return f"{significant(number / least)} {unit}"
    return tell("{number} bytes", number=significant(number))


def count(number: int, noun: str) -> str:
    """`1 block`, `4 blocks`; in English, for what is no report."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def change(ratio: float) -> str:
    """A ratio as people say it: `-93.6 %`, `+3.1 %`, and `2.4x` from twice on."""
    return factor(ratio) if ratio >= FACTOR_FROM else _less_or_more(ratio)


def factor(ratio: float) -> str:
    """A ratio as a factor: `2.4x`."""
    return tell("{factor}x", factor=significant(ratio))


def change_interval(low: float | None, high: float | None) -> str:
    """The bounds of a ratio in one form for both; empty when there are none, or when they say nothing."""
    bounds = change_bounds(low, high)
    return f"[{bounds[0]}, {bounds[1]}]" if bounds else ""


def change_bounds(low: float | None, high: float | None) -> tuple[str, str] | None:
    """The same one by one; None where the interval is empty."""
    if low is None or high is None or high > _SAYS_NOTHING * low:
        return None
    if high >= FACTOR_FROM:
        return factor(low), factor(high)
    return _less_or_more(low), _less_or_more(high)


def _less_or_more(ratio: float) -> str:
    """`-98.77 %`: what is left of a tenth or a hundredth needs more digits."""
    if ratio >= _SMALL:
        return percent(ratio - 1, signed=True)
    digits = min(6, 1 - math.floor(math.log10(ratio)))
    return f"{100 * (ratio - 1):.{digits - 1}f} %"


def percent(share: float, *, signed: bool = False) -> str:
    """A share in percent with two digits that count, at least one decimal below ten."""
    value = 100 * share
    sign = "+" if signed else ""
    size = abs(value)
    digits = 0 if size >= 99.95 else 1 if size >= 0.95 or size < 0.005 else 2  # noqa: PLR2004 - see the docstring
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f} %"


def percent_above(share: float) -> str:
    """A share in percent, rounded up, for bounds that must not be understated."""
    digits = 0 if share >= 1 else 1
    return f"{math.ceil(100 * share * 10**digits) / 10**digits:.{digits}f} %"


def plus_minus(value: float, low: float | None, high: float | None) -> str:
    """The larger distance to a bound, in percent of the value; empty when there are no bounds or they say nothing."""
    if low is None or high is None or value <= 0 or high > _SAYS_NOTHING * low:
        return ""
    widest = max(value - low, high - value) / value
    return f"±{percent(widest)}"
