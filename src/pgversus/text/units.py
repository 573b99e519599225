"""Parses and formats durations, sizes, shares and ratios."""

import math
import re
from dataclasses import dataclass
from typing import NamedTuple

from pgversus.errors import StudyError
from pgversus.text.translation import _, thousands_separator

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 30 * 24 * 3600.0
_WINDOW = re.compile(r"([0-9]{1,9})\s*(ms|tx)")
_LEAST_MS = 5
_SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*(%?)")

_SIZE = re.compile(r"(?:0|([0-9]{1,9}(?:\.[0-9]+)?)\s*([kMGT]B))", re.IGNORECASE)
_BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_duration(text: str, flag: str, *, example: str = "15m") -> float:
    """Parse `90`, `90s`, `15m` or `2h` to seconds; StudyError for any other text and for zero. example: for advice."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise StudyError(
            f'invalid duration "{text}"',
            slug="study-bad-duration",
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="a number of seconds, or with a unit: 90s, 15m, 2h; at most 30 days",
            to_do=_given(flag, example),
        )
    return seconds


def _given(name: str, value: str) -> str:
    """Return how a value is given: `--budget 15m` for an option, `budget = "15m"` for a key of a file."""
    return f"{name} {value}" if name.startswith("-") else f'{name} = "{value}"'


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLength:
    """The length of a window: seconds, or transactions per client. One of the two is set."""

    seconds: float | None = None
    """A whole number, or less than one."""
    transactions: int | None = None


def parse_window(text: str, flag: str) -> WindowLength:
    """Parse `50ms`, `2s` or `20tx` (transactions per client); StudyError for any other text."""
    match = _WINDOW.fullmatch(text.strip())
    number = int(match[1]) if match else 0
    if match and match[2] == "tx" and number:
        return WindowLength(transactions=number)
    if match and match[2] == "ms" and number >= _LEAST_MS and (number < 1000 or number % 1000 == 0):  # noqa: PLR2004
        return WindowLength(seconds=number / 1000)
    duration = _DURATION.fullmatch(text.strip())
    seconds = float(duration[1]) * _SECONDS[duration[2]] if duration else 0.0
    if 0 < seconds <= _LONGEST_S and seconds == round(seconds):
        return WindowLength(seconds=seconds)
    raise StudyError(
        "invalid window length",
        slug="study-bad-window",
        where=f"{flag} {text}",
        found=f'"{text}"',
        expected=f"{_LEAST_MS}ms to 999ms, whole seconds, or a number of transactions per client: 20tx",
        to_do=_given(flag, _nearest_window(seconds)),
    )


def _nearest_window(seconds: float) -> str:
    """Return a valid length near this one; a usual one for nonsense."""
    milliseconds = round(1000 * seconds)
    if _LEAST_MS <= milliseconds < 1000:  # noqa: PLR2004 - a second
        return f"{milliseconds}ms"
    return f"{round(seconds)}" if 1 <= seconds <= _LONGEST_S else "50ms"


AUTO, OFF = "auto", "off"
_PROCESSORS = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")


def parse_pin(text: str, flag: str) -> str:
    """Return `auto`, `off` or a CPU list unchanged; StudyError for any other text."""
    pin = text.strip()
    if pin not in (AUTO, OFF):
        parse_processors(pin, flag)
    return pin


def parse_processors(text: str, flag: str) -> tuple[int, ...]:
    """Parse `0`, `0,2` or `0-3` to CPU numbers in ascending order; StudyError for any other text."""
    found: set[int] = set()
    for part in text.split(",") if _PROCESSORS.fullmatch(text) else ():
        first, _unused, last = part.partition("-")
        numbers = range(int(first), int(last or first) + 1)
        if not numbers:
            # A range in descending order.
            found.clear()
            break
        found.update(numbers)
    if not found:
        raise StudyError(
            "invalid CPU list",
            slug="study-bad-pin",
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="auto, off, or CPU numbers for the client: 0 or 0,2 or 0-3",
            to_do=_given(flag, "auto"),
        )
    return tuple(sorted(found))


def parse_whole_seconds(text: str, flag: str) -> float:
    """Parse a duration in whole seconds, as required by pgbench's -T; StudyError for fractions of a second."""
    seconds = parse_duration(text, flag, example="2s")
    if seconds != round(seconds):
        raise StudyError(
            "this duration must be a whole number of seconds",
            slug="study-bad-window",
            where=f"{flag} {text}",
            found=f"{seconds:g} s",
            expected="1, 2, 3, ... seconds, as for pgbench's -T",
            to_do=_given(flag, f"{max(1, round(seconds))}"),
        )
    return seconds


def parse_share(text: str, flag: str) -> float:
    """Return the margin 0.02 for `2%` or `2`; StudyError outside (0, 100] and for text that looks like a fraction."""
    return _parse_share(text, flag, "margin", slug="study-bad-margin")


def parse_precision(text: str, flag: str) -> float:
    """Return a precision by the same rules as a margin."""
    return _parse_share(text, flag, "precision", slug="study-bad-precision")


def parse_coverage(text: str, flag: str) -> float:
    """Return a share of the load by the same rules as a margin."""
    return _parse_share(text, flag, "coverage", slug="study-bad-coverage")


def parse_noise(text: str, flag: str) -> float:
    """Return a standard deviation by the same rules as a margin."""
    return _parse_share(text, flag, "noise", slug="study-bad-noise")


def _parse_share(text: str, flag: str, name: str, *, slug: str) -> float:
    match = _SHARE.fullmatch(text.strip())
    value = float(match[1]) if match else 0.0
    is_fraction = match is not None and not match[2] and value < 1
    if match is None or not 0 < value <= 100 or is_fraction:  # noqa: PLR2004 - percent
        examples = (f"{value:g}%", f"{100 * value:g}%") if is_fraction and value else ("2%",)
        raise StudyError(
            f'invalid {name} "{text}"',
            slug=slug,
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="a percentage above 0 and up to 100; with a % sign below 1, because 0.02 might mean 2 %",
            to_do=" or ".join(_given(flag, example) for example in examples),
        )
    return value / 100


def parse_size(text: str, name: str) -> int:
    """Parse `500MB`, `20GB` or `0` to bytes, with powers of ten like sizes of disks; StudyError for any other text.

    name: the variable or option that has this value.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise StudyError(
            f'invalid size "{text}"',
            slug="study-bad-size",
            where=f"{name}={text}",
            found=f'"{text}"',
            expected="a number with a unit: 500MB, 20GB, 1TB; or 0",
            to_do=f"{name}=20GB",
        )
    return round(float(match[1]) * _BYTES[match[2].upper()]) if match[2] else 0


_MINUTE_S, _HOUR_S = 60, 3600
_THOUSAND = 1000
FACTOR_FROM = 2.0
_SMALL = 0.1
_DIGITS = range(3, 6)
# Digits of a factor: the fewest with which its bounds differ.
_SAYS_NOTHING = 10_000
# Bounds this far apart are left out of tables; the JSON document has them.


def significant(value: float, digits: int = 3) -> str:
    """Format a number with this many significant digits, with separated thousands and without exponent."""
    if value == 0:
        return "0"
    # Format with exponent first, so that rounding of 999.9 is included.
    exponent = int(f"{value:.{digits - 1}e}".partition("e")[2])
    decimals = digits - 1 - exponent
    if decimals <= 0:
        return whole(round(value, decimals))
    text = f"{value:.{decimals}f}"
    return text.rstrip("0").rstrip(".")


def whole(value: float) -> str:
    """Format a number without decimals, with separated thousands: `100 000`."""
    return f"{value:,.0f}".replace(",", thousands_separator())


def latency(seconds: float) -> str:
    """Format a latency in microseconds, milliseconds or seconds: the unit whose rounded number is below 1000."""
    for per_second, unit in ((1e6, "µs"), (1e3, "ms")):
        value = seconds * per_second
        if float(f"{value:.2e}") < _THOUSAND:
            return f"{significant(value)} {unit}"
    return _("{seconds} s", seconds=significant(seconds))


def duration(seconds: float) -> str:
    """Format a duration: `44 s`, `10 min 16 s`, `2 h 5 min`."""
    whole = round(seconds)
    if whole < _MINUTE_S:
        return _("{seconds} s", seconds=whole)
    if whole < _HOUR_S:
        minutes, rest = divmod(whole, _MINUTE_S)
        if rest:
            return _("{minutes} min {seconds} s", minutes=minutes, seconds=rest)
        return _("{minutes} min", minutes=minutes)
    hours, rest = divmod(round(whole / _MINUTE_S), 60)
    return _("{hours} h {minutes} min", hours=hours, minutes=rest) if rest else _("{hours} h", hours=hours)


def size(number: float) -> str:
    """Format bytes in a suitable unit, with powers of ten like sizes of disks: `740 MB`."""
    for least, unit in ((1e12, "TB"), (1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if float(f"{number:.2e}") >= least:
            return f"{significant(number / least)} {unit}"
    return _("{number} bytes", number=significant(number))


def count(number: int, noun: str) -> str:
    """Return `1 block`, `4 blocks`; in English, for text outside reports."""
    return f"{number} {noun}{'' if number == 1 else 's'}"


def change(ratio: float) -> str:
    """Format a ratio as a change: `-93.6 %`, `+3.1 %`, and `2.4x` from a factor of two on."""
    return factor(ratio) if ratio >= FACTOR_FROM else _less_or_more(ratio)


def factor(ratio: float, digits: int = 3) -> str:
    """Format a ratio as a factor: `2.4x`."""
    return _("{factor}x", factor=significant(ratio, digits))


class RatioTexts(NamedTuple):
    """A ratio and its bounds as text, all in the same form."""

    value: str
    low: str
    high: str
    """The bounds are both empty if they are unknown, or too far apart to be informative."""

    @property
    def interval(self) -> str:
        """`[-2.0 %, +3.0 %]`; empty without bounds."""
        return f"[{self.low}, {self.high}]" if self.low else ""


def ratio_texts(value: float, low: float | None, high: float | None, *, as_factors: bool | None = None) -> RatioTexts:
    """Format a ratio and its bounds: as factors if the ratio or a bound is at least 2, otherwise as changes.

    as_factors: whether to use factors; None to decide by these numbers. Factors get as many digits as their bounds need
    to differ.
    """
    if low is None or high is None or not has_bounds(low, high):
        low = high = None
    if as_factors is None:
        as_factors = shows_factors(value, high)
    if low is None or high is None:
        return RatioTexts(factor(value) if as_factors else _less_or_more(value), "", "")
    if not as_factors:
        return RatioTexts(*map(_less_or_more, (value, low, high)))
    digits = next((few for few in _DIGITS if significant(low, few) != significant(high, few)), _DIGITS[0])
    return RatioTexts(*(factor(ratio, digits) for ratio in (value, low, high)))


def changes(value: float, low: float, high: float) -> RatioTexts:
    """Format a ratio and its bounds like `ratio_texts`, however far apart the bounds are."""
    text = factor if shows_factors(value, high) else _less_or_more
    return RatioTexts(*map(text, (value, low, high)))


def has_bounds(low: float, high: float) -> bool:
    """Return whether the bounds of a ratio are close enough to be informative."""
    return high <= _SAYS_NOTHING * low


def shows_factors(value: float, high: float | None) -> bool:
    """Return whether a ratio with this upper bound is easier to read as a factor: `2.4x` than `+140 %`."""
    return max(value, high or 0.0) >= FACTOR_FROM


def _less_or_more(ratio: float) -> str:
    """Format a change: `-98.77 %`; ratios of a tenth or less get more digits."""
    if ratio >= _SMALL:
        return percent(ratio - 1, signed=True)
    digits = min(6, 1 - math.floor(math.log10(ratio)))
    return f"{100 * (ratio - 1):.{digits - 1}f} %"


def percent(share: float, *, signed: bool = False) -> str:
    """Format a share in percent with two significant digits, at least one decimal below ten, and at most three."""
    value = 100 * share
    sign = "+" if signed else ""
    size = abs(value)
    # Below each of these limits, another decimal is shown. The smallest shares are shown as 0.0 %.
    decimals = sum(size < limit for limit in (99.95, 0.95, 0.005))
    digits = decimals if size >= 0.0005 else 1  # noqa: PLR2004 - see the docstring
    # Adding 0.0 turns a rounded -0.0 into 0.0.
    return f"{round(value, digits) + 0.0:{sign}.{digits}f} %"


def percent_above(share: float) -> str:
    """Format a share in percent, rounded up, for bounds that must not be understated."""
    digits = 0 if share >= 1 else 1
    # 100 * 0.07 is a little more than 7.
    tenths = round(100 * share * 10**digits, 9)
    return f"{math.ceil(tenths) / 10**digits:.{digits}f} %"


def plus_minus(value: float, low: float | None, high: float | None) -> str:
    """Format the larger distance to a bound, in percent of the value; empty without bounds or if too far apart."""
    if low is None or high is None or value <= 0 or high > _SAYS_NOTHING * low:
        return ""
    widest = max(value - low, high - value) / value
    return f"±{percent(widest)}"
