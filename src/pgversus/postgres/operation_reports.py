"""What PostgreSQL reports of long operations: VACUUM (VERBOSE), and the progress views.

Until 14 VACUUM reports in several messages for each table: each scan of an index, each truncation, and once, before
that truncation, what it found. From 15 on one message for each table has it all. Counters of one name mean the same
in every major, and what a major counts differently is omitted: the number of remaining rows is an estimate for the
whole table from 15 on, but the number of those seen until 14; in a table without indexes dead item identifiers are
counted until 16, and not from 17 on.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from typing import Any

from psycopg.errors import Diagnostic

from pgversus.postgres.session import Connection

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


_OLDEST = 12
# The files of sql/progress/, each with the first and the last major that it is written for; None for no last.
_QUESTIONS: dict[str, tuple[int, int | None]] = {
    "vacuum.until_16": (_OLDEST, 16),
    "vacuum.since_17": (17, None),
    "analyze.since_13": (13, None),
    "create_index": (_OLDEST, None),
    "cluster": (_OLDEST, None),
    "copy.since_14": (14, None),
    "basebackup.since_13": (13, None),
}
_FEW = 100
# A share of fewer things than these says less than their number.


def operation_progress(connection: Connection, pid: int) -> str | None:
    """What a session is at and how far: `vacuuming heap, 45 % of 16394 pages vacuumed`, `COPY FROM, 1200 tuples`.

    None when it is at nothing that PostgreSQL tells of, or this role may not know. pid: of its process.
    One short query of views in memory. psycopg.Error when the connection is lost.
    """
    query = _query(connection.info.server_version // 10000)
    row = connection.execute(query, {"pid": pid}).fetchone()
    # Whoever may not look at the session finds its row, with nothing in it.
    return None if row is None or row[0] is None else _sentence(*row)


def _sentence(phase: str, done: int | None, total: int | None, unit: str) -> str:
    if total and done is not None:
        return f"{phase}, {_part(done, total)} {unit}"
    return f"{phase}, {done} {unit}" if done else phase


def _part(done: int, total: int) -> str:
    return f"{done} of {total}" if total < _FEW else f"{100 * done / total:.0f} % of {total}"


def _suits(name: str, major: int) -> bool:
    first, last = _QUESTIONS[name]
    return first <= major and (last is None or major <= last)


@cache
def _query(major: int) -> Any:
    """All views of this major at once: a session has one operation, and it should be disturbed but once."""
    texts = [_text(name) for name in _QUESTIONS if _suits(name, major)]
    return "UNION ALL\n".join(texts)


def _text(name: str) -> str:
    return resources.files(__package__).joinpath("sql", "progress", f"{name}.sql").read_text(encoding="utf-8")
