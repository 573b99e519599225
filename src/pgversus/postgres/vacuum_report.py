"""What VACUUM (VERBOSE) says that it did, as numbers: text in, counters out, for every major from 12 on.

Until 14 VACUUM says it in several messages for each table: each scan of an index, each cut at the end of the file, and
once, before that cut, what it found. From 15 on one message for each table says it all. Counters of one name mean the
same in every major, and what a major counts otherwise is left out: how many rows remain is an estimate for the whole
table from 15 on, but the number of those seen until 14; in a table without indexes dead item identifiers are counted
until 16, and from 17 on they are not.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence

from psycopg.errors import Diagnostic

_BEGUN = re.compile(r'^(?:aggressively )?vacuuming "')

_COUNT, _DECIMAL = "[0-9]{1,18}", r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
# A server of others may print anything: float() would take many digits for a number without end, and refuse two points.

# Every group is called as the counter that it tells.
_USAGE = re.compile(
    rf"CPU: user: (?P<vacuum_cpu_user_s>{_DECIMAL}) s, system: (?P<vacuum_cpu_system_s>{_DECIMAL}) s, "
    rf"elapsed: (?P<vacuum_elapsed_s>{_DECIMAL}) s"
)

# From 15 on: the message and its lines.
_FINISHED = re.compile(rf'^finished vacuuming ".*": index scans: (?P<vacuum_index_scans>{_COUNT})$', re.MULTILINE)
_LINES = (
    _FINISHED,
    re.compile(
        rf"^pages: (?P<vacuum_pages_removed>{_COUNT}) removed, \d+ remain, "
        rf"(?P<vacuum_pages_scanned>{_COUNT}) scanned",
        re.MULTILINE,
    ),
    re.compile(
        rf"^tuples: (?P<vacuum_tuples_removed>{_COUNT}) removed, (?P<vacuum_tuples_remain>{_COUNT}) remain, "
        rf"(?P<vacuum_tuples_not_yet_removable>{_COUNT}) are dead but not yet removable",
        re.MULTILINE,
    ),
    re.compile(
        rf"^frozen: (?P<vacuum_pages_frozen>{_COUNT}) pages from table .* "
        rf"had (?P<vacuum_tuples_frozen>{_COUNT}) tuples frozen",
        re.MULTILINE,
    ),
    # Where it scans no index it tells of others: those of a table without indexes, and those that it leaves.
    re.compile(
        rf"^index scan (?:needed: .* had (?P<vacuum_dead_items_removed>{_COUNT}) dead item identifiers removed"
        r"|not needed: |bypassed)",
        re.MULTILINE,
    ),
    re.compile(
        rf"^buffer usage: (?P<vacuum_buffers_hit>{_COUNT}) hits, (?P<vacuum_buffers_read>{_COUNT}) (?:misses|reads), "
        rf"(?P<vacuum_buffers_dirtied>{_COUNT}) dirtied",
        re.MULTILINE,
    ),
    re.compile(
        rf"^WAL usage: (?P<vacuum_wal_records>{_COUNT}) records, "
        rf"(?P<vacuum_wal_full_page_images>{_COUNT}) full page images, (?P<vacuum_wal_bytes>{_COUNT}) bytes",
        re.MULTILINE,
    ),
    re.compile(
        rf"^I/O timings: read: (?P<vacuum_read_io_s>{_DECIMAL}) ms, write: (?P<vacuum_write_io_s>{_DECIMAL}) ms",
        re.MULTILINE,
    ),
    _USAGE,
)
_IN_MILLISECONDS = frozenset({"vacuum_read_io_s", "vacuum_write_io_s"})

# Until 14: messages, and a line of the first one's detail.
# VACUUM FULL and CLUSTER find rows "in 5 pages" and not "in 5 out of 5 pages": they vacuum nothing.
_FOUND = re.compile(
    rf'^(?:table )?".*": found (?P<vacuum_tuples_removed>{_COUNT}) removable, \d+ nonremovable row versions '
    rf"in (?P<vacuum_pages_scanned>{_COUNT}) out of \d+ pages$",
    re.MULTILINE,
)
_KEPT = re.compile(
    rf"^(?P<vacuum_tuples_not_yet_removable>{_COUNT}) dead row versions cannot be removed yet", re.MULTILINE
)
_TRUNCATED = re.compile(rf'^(?:table )?".*": truncated ({_COUNT}) to ({_COUNT}) pages')
_SCANNED_INDEX = re.compile(r'^scanned index "(.*)" to remove \d+ row versions')
_DEAD_ITEMS = re.compile(rf'^(?:table )?".*": removed ({_COUNT}) (?:row versions|dead item identifiers) in \d+ pages')


def notice_text(notice: Diagnostic) -> str:
    """The message of a notice and, on the lines that follow, its detail."""
    return "\n".join(part for part in (notice.message_primary, notice.message_detail) if part)


def vacuum_counters(notices: Sequence[str]) -> dict[str, float]:
    """Counters by name, in counts, bytes and seconds, summed over all tables that VACUUM has finished.

    What the major does not tell is absent; where no notice is of VACUUM, everything is.
    notices: in their order, each as notice_text() gives it, in English (lc_messages).
    """
    return _sums(_until_14(table) | _since_15(table) for table in _by_table(notices))


def _by_table(notices: Sequence[str]) -> Iterator[list[str]]:
    """The notices about each table, from the one that says that it is begun."""
    table: list[str] = []
    for notice in notices:
        if _BEGUN.match(notice):
            yield table
            table = []
        table.append(notice)
    yield table


def _since_15(notices: Sequence[str]) -> dict[str, float]:
    # Of this notice alone: ANALYZE speaks of its buffers in the same words.
    report = next(filter(_FINISHED.search, notices), None)
    return {} if report is None else _sums(_numbers(line, report) for line in _LINES)


def _until_14(notices: Sequence[str]) -> dict[str, float]:
    report = next(filter(_FOUND.search, notices), None)
    if report is None:
        return {}
    # Of scans, cuts and dead item identifiers it speaks only where there are any: silence means none.
    truncated = list(filter(_TRUNCATED.search, notices))
    scans = Counter(match[1] for match in map(_SCANNED_INDEX.search, notices) if match)
    removed = [int(match[1]) for match in map(_DEAD_ITEMS.search, notices) if match and scans]
    return {
        "vacuum_index_scans": float(max(scans.values(), default=0)),
        "vacuum_dead_items_removed": float(sum(removed)),
        "vacuum_pages_removed": float(sum(map(_pages_cut_off, truncated))),
        **_numbers(_FOUND, report),
        **_numbers(_KEPT, report),
        **_sums(_numbers(_USAGE, notice) for notice in (report, *truncated)),
    }


def _pages_cut_off(notice: str) -> int:
    match = _TRUNCATED.search(notice)
    return int(match[1]) - int(match[2]) if match else 0


def _numbers(pattern: re.Pattern[str], text: str) -> dict[str, float]:
    """What the groups of a pattern found, by their names; nothing where it does not match."""
    match = pattern.search(text)
    found = match.groupdict(default="0") if match else {}
    return {name: float(value) / (1000 if name in _IN_MILLISECONDS else 1) for name, value in found.items()}


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total
