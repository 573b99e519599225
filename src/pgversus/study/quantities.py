"""Lengths of time, windows, shares and sizes as people write them: `15m`, `50ms`, `20tx`, `2%`, `20GB`."""

import re
from dataclasses import dataclass

from pgversus.errors import StudyError

_DURATION = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*(s|m|min|h)?")
_SECONDS = {None: 1.0, "s": 1.0, "m": 60.0, "min": 60.0, "h": 3600.0}
_LONGEST_S = 30 * 24 * 3600.0
_WINDOW = re.compile(r"([0-9]{1,9})\s*(ms|tx)")
_LEAST_MS = 5
_SHARE = re.compile(r"([0-9]{1,9}(?:\.[0-9]+)?)\s*(%?)")

_SIZE = re.compile(r"(?:0|([0-9]{1,9}(?:\.[0-9]+)?)\s*([kMGT]B))", re.IGNORECASE)
_BYTES = {"KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}


def parse_duration(text: str, flag: str) -> float:
    """Seconds in `90`, `90s`, `15m` or `2h`; StudyError for anything else or for nothing."""
    match = _DURATION.fullmatch(text.strip())
    seconds = float(match[1]) * _SECONDS[match[2]] if match else 0.0
    if not 0 < seconds <= _LONGEST_S:
        raise StudyError(
            f'"{text}" is no length of time',
            slug="study-bad-duration",
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="a number of seconds, or with a unit: 90s, 15m, 2h; at most 30 days",
            to_do=f"{flag} 15m",
        )
    return seconds


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLength:
    """The length of a window: seconds, or transactions of each client. One of the two is set."""

    seconds: float | None = None
    """A whole number, or less than one."""
    transactions: int | None = None


def parse_window(text: str, flag: str) -> WindowLength:
    """Read `50ms`, `2s` or `20tx` (transactions of each client); StudyError for anything else."""
    match = _WINDOW.fullmatch(text.strip())
    if match is None:
        return WindowLength(seconds=parse_whole_seconds(text, flag))
    number = int(match[1])
    if match[2] == "tx" and number:
        return WindowLength(transactions=number)
    if match[2] == "ms" and number >= _LEAST_MS and (number < 1000 or number % 1000 == 0):  # noqa: PLR2004 - a second
        return WindowLength(seconds=number / 1000)
    raise StudyError(
        "invalid length of a window",
        slug="study-bad-window",
        where=f"{flag} {text}",
        found=f'"{text}"',
        expected=f"{_LEAST_MS}ms to 999ms, whole seconds, or a number of transactions of each client: 20tx",
        to_do=f"{flag} 50ms",
    )


AUTO, OFF = "auto", "off"
_PROCESSORS = re.compile(r"[0-9]{1,4}(?:-[0-9]{1,4})?(?:,[0-9]{1,4}(?:-[0-9]{1,4})?)*")


def parse_pin(text: str, flag: str) -> str:
    """Return `auto`, `off` or a list of processors as it was given; StudyError for anything else."""
    pin = text.strip()
    if pin not in (AUTO, OFF):
        parse_processors(pin, flag)
    return pin


def parse_processors(text: str, flag: str) -> tuple[int, ...]:
    """Return the processors in `0`, `0,2` or `0-3`, ascending; StudyError for anything else."""
    found: set[int] = set()
    for part in text.split(",") if _PROCESSORS.fullmatch(text) else ():
        first, _, last = part.partition("-")
        found.update(range(int(first), int(last or first) + 1))
    if not found:
        raise StudyError(
            "invalid list of processors",
            slug="study-bad-pin",
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="auto, off, or processors for the client by number: 0 or 0,2 or 0-3",
            to_do=f"{flag} auto",
        )
    return tuple(sorted(found))


def parse_whole_seconds(text: str, flag: str) -> float:
    """Read a duration in whole seconds, which is what pgbench's -T takes; StudyError for a fraction of a second."""
    seconds = parse_duration(text, flag)
    if seconds != round(seconds):
        raise StudyError(
            "this length of time must be a whole number of seconds",
            slug="study-bad-window",
            where=f"{flag} {text}",
            found=f"{seconds:g} s",
            expected="1, 2, 3, ... seconds, as pgbench's -T",
            to_do=f"{flag} {max(1, round(seconds))}",
        )
    return seconds


def parse_share(text: str, flag: str) -> float:
    """0.02 for `2%` or `2`; StudyError outside (0, 100] and for what looks like a fraction."""
    match = _SHARE.fullmatch(text.strip())
    value = float(match[1]) if match else 0.0
    is_fraction = match is not None and not match[2] and value < 1
    if match is None or not 0 < value <= 100 or is_fraction:  # noqa: PLR2004 - percent
        raise StudyError(
            f'"{text}" is no margin',
            slug="study-bad-margin",
            where=f"{flag} {text}",
            found=f'"{text}"',
            expected="percent, above 0 and at most 100; below 1 with its sign, because 0.02 might mean 2 %",
            to_do=f"{flag} {value:g}% or {flag} {100 * value:g}%" if is_fraction and value else f"{flag} 2%",
        )
    return value / 100


def parse_size(text: str, name: str) -> int:
    """Bytes in `500MB`, `20GB` or `0`, in powers of ten as disks are sold; StudyError for anything else.

    name: of the variable or flag that has it.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise StudyError(
            f'"{text}" is no size',
            slug="study-bad-size",
            where=f"{name}={text}",
            found=f'"{text}"',
            expected="a number with a unit: 500MB, 20GB, 1TB; or 0",
            to_do=f"{name}=20GB",
        )
    return round(float(match[1]) * _BYTES[match[2].upper()]) if match[2] else 0
