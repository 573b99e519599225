"""The counters that explain a result, each with its unit and meaning.

Counters never decide a verdict. `postgres/counters.py` reads those of the server, `postgres/operation_reports.py` those
that VACUUM reports, `host/counters.py` and `host/processes.py` those of the host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from pgversus.text.translation import N_

ROWS_WRITTEN = ("tuples_inserted", "tuples_updated", "tuples_deleted")
MAINTENANCE = ("autovacuum_runs", "autoanalyze_runs")
DISTURBED_WINDOWS = "disturbed_windows"


PAGE_BYTES = 8192
"""The usual size of a block, the unit in which PostgreSQL counts where it does not count bytes; builds may differ."""


class CounterUnit(StrEnum):
    """The base unit in which a counter is stored."""

    BYTES = "bytes"
    SECONDS = "s"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """The properties of a counter; its name ends with its unit (`_bytes`, `_s`; all others are counts)."""

    per_transaction: bool
    """Whether it grows with the load, so that the value per transaction is meaningful."""
    label: str
    """The name in output, untranslated: `shared buffer hits`."""
    description: str
    """One line for readers who know PostgreSQL."""


def _of_load(label: str, description: str) -> Counter:
    return Counter(per_transaction=True, label=label, description=description)


def _uncompared(label: str, description: str) -> Counter:
    return Counter(per_transaction=False, label=label, description=description)


_DATABASE = {
    "transactions_committed": _of_load(
        N_("transactions committed"), "transactions committed, including those of pgversus' own sessions"
    ),
    "transactions_rolled_back": _of_load(N_("transactions rolled back"), "transactions rolled back"),
    "buffers_hit": _of_load(N_("shared buffer hits"), "pages found in shared buffers"),
    "buffers_read": _of_load(
        N_("pages read from the operating system"), "pages read from the operating system's cache or from disk"
    ),
    "temp_files": _of_load(N_("temporary files"), "temporary files created by sorts, hashes and other operations"),
    "temp_bytes": _of_load(N_("temporary file size"), "data written to temporary files"),
    "deadlocks": _of_load(N_("deadlocks"), "deadlocks"),
    "tuples_returned": _of_load(
        N_("rows scanned"), "rows read by sequential scans, and index entries returned by index scans"
    ),
    "tuples_fetched": _of_load(N_("rows fetched by index scans"), "rows fetched by index scans"),
    "tuples_inserted": _of_load(N_("rows inserted"), "rows inserted"),
    "tuples_updated": _of_load(N_("rows updated"), "rows updated"),
    "tuples_deleted": _of_load(N_("rows deleted"), "rows deleted"),
}

_CLUSTER = {
    "wal_bytes": _of_load(N_("WAL generated"), "WAL generated"),
    "wal_records": _of_load(N_("WAL records"), "WAL records"),
    "wal_full_page_images": _of_load(N_("WAL full-page images"), "full-page images in WAL"),
    "checkpoints_timed": _uncompared(N_("timed checkpoints"), "scheduled checkpoints, including skipped ones"),
    "checkpoints_requested": _uncompared(
        N_("requested checkpoints"), "checkpoints requested by the amount of WAL or by a command"
    ),
    "checkpoint_buffers_written": _uncompared(N_("pages written by checkpoints"), "pages written by checkpoints"),
    "checkpoint_write_s": _uncompared(N_("checkpoint write time"), "time spent writing files in checkpoints"),
    "checkpoint_sync_s": _uncompared(N_("checkpoint sync time"), "time spent syncing files in checkpoints"),
    "background_buffers_written": _uncompared(
        N_("pages written by the background writer"), "pages written by the background writer"
    ),
    "buffers_allocated": _of_load(N_("buffers allocated"), "buffers allocated"),
    "autovacuum_runs": _uncompared(N_("autovacuum runs"), "autovacuum runs on tables of the database"),
    "autoanalyze_runs": _uncompared(N_("autoanalyze runs"), "autoanalyze runs on tables of the database"),
}


_IO_LABELS = {
    "client_io_reads": N_("reads by sessions"),
    "client_io_read_bytes": N_("bytes read by sessions"),
    "client_io_writes": N_("writes by sessions"),
    "client_io_write_bytes": N_("bytes written by sessions"),
    "client_io_extends": N_("relation extend operations by sessions"),
    "client_io_extend_bytes": N_("bytes added to files by sessions"),
    "client_io_hits": N_("buffer hits of sessions"),
    "client_io_evictions": N_("buffer evictions by sessions"),
    "client_io_fsyncs": N_("fsyncs by sessions"),
    "server_io_reads": N_("reads by all server processes"),
    "server_io_read_bytes": N_("bytes read by all server processes"),
    "server_io_writes": N_("writes by all server processes"),
    "server_io_write_bytes": N_("bytes written by all server processes"),
    "server_io_extends": N_("relation extend operations by all server processes"),
    "server_io_extend_bytes": N_("bytes added to files by all server processes"),
    "server_io_hits": N_("buffer hits of all server processes"),
    "server_io_evictions": N_("buffer evictions by all server processes"),
    "server_io_fsyncs": N_("fsyncs by all server processes"),
}


_IO_DESCRIPTIONS = {
    "reads": "read operations by {}; in PostgreSQL 16, and again from 18 on",
    "read_bytes": "bytes read by {}",
    "writes": "write operations by {}",
    "write_bytes": "bytes written by {}",
    "extends": "relation extend operations by {}; PostgreSQL 18 and later",
    "extend_bytes": "bytes added to files by {}",
    "hits": "pages found in a buffer by {}",
    "evictions": "pages evicted from a buffer by {}",
    "fsyncs": "files synced by {}",
}


def _io(prefix: str, whose: str) -> dict[str, Counter]:
    """Return the same nine counters for a group of processes."""
    names = {f"{prefix}_io_{name}": description for name, description in _IO_DESCRIPTIONS.items()}
    return {name: _of_load(_IO_LABELS[name], description.format(whose)) for name, description in names.items()}


_PROCESSES = {
    "server_cpu_user_s": _of_load(N_("server user CPU time"), "user CPU time of the server's processes"),
    "server_cpu_system_s": _of_load(N_("server system CPU time"), "system CPU time of the server's processes"),
    "server_read_calls": _of_load(
        N_("read calls of the server"),
        "calls to read() and similar system calls by the server's processes; reads by io_uring do not count",
    ),
    "client_cpu_s": _of_load(N_("pgbench CPU time"), "user and system CPU time of the client (pgbench)"),
    "client_cpu_user_s": _of_load(N_("pgbench user CPU time"), "user CPU time of the client (pgbench)"),
    "load_hosts": _uncompared(N_("hosts that send load"), "hosts that sent the load at once"),
    "load_clock_error_s": _uncompared(
        N_("clock error of hosts that send load"), "largest possible difference between their clocks and the driver's"
    ),
    "server_memory_peak_bytes": _uncompared(
        N_("peak server memory"), "peak memory of all processes of the server together"
    ),
    "session_memory_peak_bytes": _uncompared(
        N_("peak session memory"),
        "peak memory of the operation's server process, including the shared buffers that it touched",
    ),
    "data_bytes": _uncompared(N_("database size"), "size of the database before the workload runs"),
}

_HOST = {
    "host_cpu_s": _uncompared(N_("host CPU time"), "CPU time of all processes on the host"),
    "host_cpu_user_s": _uncompared(N_("host user CPU time"), "user CPU time of all processes on the host"),
    DISTURBED_WINDOWS: _uncompared(
        N_("disturbed windows"),
        "disturbed windows that were used because they were not repeated; absent if none",
    ),
    "host_steal_s": _uncompared(N_("stolen CPU time"), "CPU time that the hypervisor gave to other guests"),
    "host_iowait_s": _uncompared(
        N_("I/O wait of the host"), "time that CPUs were idle while a process waited for disk"
    ),
    "context_switches": _of_load(N_("context switches"), "context switches on the host"),
    "pressure_cpu_s": _uncompared(N_("CPU pressure"), "time that at least one process waited for a CPU"),
    "pressure_io_s": _uncompared(N_("I/O pressure"), "time that at least one process waited for disk"),
    "pressure_memory_s": _uncompared(N_("memory pressure"), "time that at least one process waited for memory"),
    "disk_read_bytes": _of_load(N_("bytes read from disk"), "bytes read from the disk that holds the data"),
    "disk_write_bytes": _of_load(N_("bytes written to disk"), "bytes written to the disk that holds the data"),
    "disk_reads": _of_load(N_("disk reads"), "reads from the disk that holds the data"),
    "disk_writes": _of_load(N_("disk writes"), "writes to the disk that holds the data"),
    "cpu_throttled_s": _uncompared(N_("CPU throttling"), "time that a CPU limit throttled pgversus and its servers"),
}

_VACUUM = {
    "vacuum_index_scans": _uncompared(N_("index scans of VACUUM"), "index scans by VACUUM"),
    "vacuum_pages_scanned": _uncompared(N_("pages scanned by VACUUM"), "table pages scanned by VACUUM"),
    "vacuum_pages_removed": _uncompared(
        N_("pages truncated by VACUUM"), "pages truncated from the ends of tables by VACUUM"
    ),
    "vacuum_pages_frozen": _uncompared(
        N_("pages frozen by VACUUM"), "pages in which VACUUM froze rows; PostgreSQL 16 and later"
    ),
    "vacuum_tuples_removed": _uncompared(N_("dead rows removed by VACUUM"), "dead rows removed by VACUUM"),
    "vacuum_tuples_remain": _uncompared(
        N_("rows remaining after VACUUM"), "rows remaining after VACUUM, by its own estimate; PostgreSQL 15 and later"
    ),
    "vacuum_tuples_not_yet_removable": _uncompared(
        N_("dead rows not yet removable"), "dead rows kept by VACUUM because a transaction may still see them"
    ),
    "vacuum_tuples_frozen": _uncompared(N_("rows frozen by VACUUM"), "rows frozen by VACUUM; PostgreSQL 16 and later"),
    "vacuum_dead_items_removed": _uncompared(
        N_("dead item identifiers removed"), "dead item identifiers removed by VACUUM after their index entries"
    ),
    "vacuum_buffers_hit": _uncompared(
        N_("shared buffer hits of VACUUM"), "pages found in shared buffers by VACUUM; PostgreSQL 15 and later"
    ),
    "vacuum_buffers_read": _uncompared(
        N_("pages read by VACUUM"), "pages read from the operating system by VACUUM; PostgreSQL 15 and later"
    ),
    "vacuum_buffers_dirtied": _uncompared(
        N_("pages dirtied by VACUUM"), "clean pages modified by VACUUM; PostgreSQL 15 and later"
    ),
    "vacuum_wal_records": _uncompared(
        N_("WAL records of VACUUM"), "WAL records generated by VACUUM; PostgreSQL 15 and later"
    ),
    "vacuum_wal_full_page_images": _uncompared(
        N_("WAL full-page images of VACUUM"), "full-page images in WAL generated by VACUUM; PostgreSQL 15 and later"
    ),
    "vacuum_wal_bytes": _uncompared(N_("WAL generated by VACUUM"), "WAL generated by VACUUM; PostgreSQL 15 and later"),
    "vacuum_read_io_s": _uncompared(
        N_("read time of VACUUM"), "time spent reading by VACUUM, if track_io_timing is on; PostgreSQL 15 and later"
    ),
    "vacuum_write_io_s": _uncompared(
        N_("write time of VACUUM"), "time spent writing by VACUUM, if track_io_timing is on; PostgreSQL 15 and later"
    ),
    "vacuum_cpu_user_s": _uncompared(N_("user CPU time of VACUUM"), "user CPU time of VACUUM's session"),
    "vacuum_cpu_system_s": _uncompared(N_("system CPU time of VACUUM"), "system CPU time of VACUUM's session"),
    "vacuum_elapsed_s": _uncompared(N_("elapsed time of VACUUM"), "elapsed time reported by VACUUM"),
}

REPORTED_BY_VACUUM = frozenset(_VACUUM)
"""The counters that VACUUM (VERBOSE) prints when it is the measured operation; never available for a load."""

REPORTED_BY_HOST = frozenset(
    {
        *("server_cpu_user_s", "server_cpu_system_s", "server_read_calls"),
        *("server_memory_peak_bytes", "session_memory_peak_bytes"),
        *_HOST,
    }
)
"""The counters that the kernel provides, whatever the PostgreSQL version."""

COUNTERS: Mapping[str, Counter] = MappingProxyType(
    _DATABASE
    | _CLUSTER
    | _io("client", "sessions and their parallel workers")
    | _io("server", "all processes of the server")
    | _PROCESSES
    | _HOST
    | _VACUUM
)
"""All counters by name. Their values are cumulative, except for peaks of memory, the size of the database, and the
values that VACUUM reports."""

IN_BYTES: Mapping[str, str] = MappingProxyType(
    {
        name: f"{name}_bytes"
        for name in (
            "buffers_hit",
            "buffers_read",
            "checkpoint_buffers_written",
            "background_buffers_written",
            "buffers_allocated",
            "client_io_hits",
            "client_io_evictions",
            "server_io_hits",
            "server_io_evictions",
            "vacuum_pages_scanned",
            "vacuum_pages_removed",
            "vacuum_pages_frozen",
            "vacuum_buffers_hit",
            "vacuum_buffers_read",
            "vacuum_buffers_dirtied",
        )
    }
)
"""The names of counters of blocks, and of the same amounts in bytes, which are used to compare servers with different
block sizes. Counters of operations and of full-page images are excluded, since neither has a fixed size."""
_RECORDED = {in_bytes: name for name, in_bytes in IN_BYTES.items()}


def recorded_name(name: str) -> str:
    """Return the name in COUNTERS of a counter that may be in bytes instead of blocks."""
    return _RECORDED.get(name, name)


def unit_of(name: str) -> CounterUnit:
    """Return the unit of a counter, by the end of its name; a count if it names no unit."""
    if name.endswith("_bytes"):
        return CounterUnit.BYTES
    return CounterUnit.SECONDS if name.endswith("_s") else CounterUnit.COUNT
