"""Reports of PostgreSQL on long operations: VACUUM (VERBOSE) and the progress views.

Until 14 VACUUM prints several messages for each table: one for each index scan, one for each truncation and, before
the truncation, one with its findings. From 15 on a single message contains all of this. A counter means the same in
every major and is omitted where a major counts differently. For example, until 14 the number of remaining rows is the
number of rows seen, but from 15 on an estimate for the whole table. In a table without indexes, dead item identifiers
are counted until 16, but not from 17 on.
"""

import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from psycopg.errors import Diagnostic

from pgversus.postgres.catalog import sql_text
from pgversus.postgres.session import Connection

_BEGUN = re.compile(r'^(?:aggressively )?vacuuming "')

_COUNT, _DECIMAL = "[0-9]{1,18}", r"[0-9]{1,18}(?:\.[0-9]{1,18})?"
# An external server may print anything: float() turns many digits into infinity and rejects two decimal points.

# Every group has the name of its counter.
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
    # Without an index scan the line counts other items: those of a table without indexes, and those left behind.
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
# VACUUM FULL and CLUSTER print "in 5 pages" instead of "in 5 out of 5 pages": they do not vacuum.
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
    """Return the message of a notice, followed by its detail on separate lines."""
    return "\n".join(part for part in (notice.message_primary, notice.message_detail) if part)


def vacuum_counters(notices: Sequence[str]) -> dict[str, float]:
    """Return counters by name, in counts, bytes and seconds, summed over all tables that VACUUM has finished.

    Counters that the major does not report are omitted; the result is empty if no notice is from VACUUM.
    notices: in order, each from notice_text(), in English (lc_messages).
    """
    return _sums(_until_14(table) | _since_15(table) for table in _by_table(notices))


def _by_table(notices: Sequence[str]) -> Iterator[list[str]]:
    """Split the notices by table, each part beginning with the start of its vacuum."""
    table: list[str] = []
    for notice in notices:
        if _BEGUN.match(notice):
            yield table
            table = []
        table.append(notice)
    yield table


def _since_15(notices: Sequence[str]) -> dict[str, float]:
    # From this notice alone: ANALYZE reports its buffers in the same format.
    report = next(filter(_FINISHED.search, notices), None)
    return {} if report is None else _sums(_numbers(line, report) for line in _LINES)


def _until_14(notices: Sequence[str]) -> dict[str, float]:
    report = next(filter(_FOUND.search, notices), None)
    if report is None:
        return {}
    # Scans, truncations and dead item identifiers are reported only if there are any: no message means 0.
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
    """Return the numbers matched by the groups of a pattern, by name; empty if it does not match."""
    match = pattern.search(text)
    found = match.groupdict(default="0") if match else {}
    return {name: float(value) / (1000 if name in _IN_MILLISECONDS else 1) for name, value in found.items()}


def _sums(parts: Iterable[Mapping[str, float]]) -> dict[str, float]:
    total: dict[str, float] = {}
    for part in parts:
        for name, value in part.items():
            total[name] = total.get(name, 0.0) + value
    return total


_OLDEST, _NEWEST = 12, math.inf
# The files of sql/progress/, each with the first and last major that it is written for.
_QUESTIONS: dict[str, tuple[int, float]] = {
    "vacuum.until_16": (_OLDEST, 16),
    "vacuum.since_17": (17, _NEWEST),
    "analyze.since_13": (13, _NEWEST),
    "create_index": (_OLDEST, _NEWEST),
    "cluster": (_OLDEST, _NEWEST),
    "copy.since_14": (14, _NEWEST),
    "basebackup.since_13": (13, _NEWEST),
}
_FEW = 100
# Below this total the count is more informative than a percentage.


def operation_progress(connection: Connection, pid: int) -> str | None:
    """Return the progress of a session: `vacuuming heap, 45 % of 16394 pages vacuumed`, `COPY FROM, 1200 tuples`.

    None if PostgreSQL does not report its progress, or this role may not see it. pid: its server process.
    It runs one short query of views in memory. psycopg.Error if the connection is lost.
    """
    query = _query(connection.info.server_version // 10000)
    row = connection.execute(query, {"pid": pid}).fetchone()
    # A role without permission sees the row with null values.
    return None if row is None or row[0] is None else _sentence(*row)


def _sentence(phase: str, done: int | None, total: int | None, unit: str) -> str:
    if total and done is not None:
        return f"{phase}, {_part(done, total)} {unit}"
    return f"{phase}, {done} {unit}" if done else phase


def _part(done: int, total: int) -> str:
    return f"{done} of {total}" if total < _FEW else f"{100 * done / total:.0f} % of {total}"


@cache
def _query(major: int) -> Any:
    """Return one query of all views of this major: a session has one operation and should be disturbed only once."""
    wanted = (name for name, (first, last) in _QUESTIONS.items() if first <= major <= last)
    return "UNION ALL\n".join(sql_text(f"progress/{name}") for name in wanted)
