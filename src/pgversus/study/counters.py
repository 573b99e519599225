"""The counters that explain a result, each with its unit and what it counts.

A counter explains; it never carries a verdict. `postgres/counters.py` reads those of the server,
`postgres/operation_reports.py` those that VACUUM reports, `host/counters.py` and `host/processes.py` those of the host.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType
from typing import Literal

from pgversus.text.translation import N_

ROWS_WRITTEN = ("tuples_inserted", "tuples_updated", "tuples_deleted")
MAINTENANCE = ("autovacuum_runs", "autoanalyze_runs")


PAGE_BYTES = 8192
"""Of a page, which is what PostgreSQL counts in where it counts no bytes."""


class CounterUnit(StrEnum):
    """The base unit in which a counter is stored."""

    BYTES = "bytes"
    SECONDS = "s"
    COUNT = "count"


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """What a counter is; its name carries the unit (`_bytes`, `_s`; all others count)."""

    unit: CounterUnit
    per_transaction: bool
    """Whether it grows with the load, so that a share for each transaction means something."""
    more_is_better: Literal[False] | None
    """False for what costs; None for what says how the work was done, neither good nor bad."""
    label: str
    """Its name for people, untranslated: `shared buffer hits`."""
    description: str
    """One line, for a reader who knows PostgreSQL."""


def _of_load(label: str, description: str, unit: CounterUnit = CounterUnit.COUNT) -> Counter:
    return Counter(unit=unit, per_transaction=True, more_is_better=None, label=label, description=description)


def _cost_of_load(label: str, description: str, unit: CounterUnit = CounterUnit.COUNT) -> Counter:
    return Counter(unit=unit, per_transaction=True, more_is_better=False, label=label, description=description)


def _aside(label: str, description: str, unit: CounterUnit = CounterUnit.COUNT) -> Counter:
    return Counter(unit=unit, per_transaction=False, more_is_better=None, label=label, description=description)


def _cost_aside(label: str, description: str, unit: CounterUnit = CounterUnit.COUNT) -> Counter:
    return Counter(unit=unit, per_transaction=False, more_is_better=False, label=label, description=description)


_BYTES, _SECONDS = CounterUnit.BYTES, CounterUnit.SECONDS

_DATABASE = {
    "transactions_committed": _of_load(
        N_("transactions committed"), "transactions committed, with those of pgversus' own sessions"
    ),
    "transactions_rolled_back": _of_load(N_("transactions rolled back"), "transactions rolled back"),
    "buffers_hit": _of_load(N_("shared buffer hits"), "pages found in shared buffers"),
    "buffers_read": _cost_of_load(
        N_("pages read from the system"), "pages asked of the system, from its cache or from disk"
    ),
    "temp_files": _cost_of_load(N_("temporary files"), "temporary files that sorts, hashes and the like spilled into"),
    "temp_bytes": _cost_of_load(N_("temporary file size"), "size of the temporary files", _BYTES),
    "deadlocks": _cost_of_load(N_("deadlocks"), "deadlocks"),
    "tuples_returned": _of_load(N_("rows scanned"), "rows that scans went through"),
    "tuples_fetched": _of_load(N_("rows fetched by index scans"), "rows that index scans fetched"),
    "tuples_inserted": _of_load(N_("rows inserted"), "rows inserted"),
    "tuples_updated": _of_load(N_("rows updated"), "rows updated"),
    "tuples_deleted": _of_load(N_("rows deleted"), "rows deleted"),
}

_CLUSTER = {
    "wal_bytes": _cost_of_load(N_("WAL size"), "write-ahead log generated", _BYTES),
    "wal_records": _cost_of_load(N_("WAL records"), "records of the write-ahead log"),
    "wal_full_page_images": _cost_of_load(N_("WAL full-page images"), "whole pages in the write-ahead log"),
    "checkpoints_timed": _aside(N_("timed checkpoints"), "checkpoints due by time, skipped ones included"),
    "checkpoints_requested": _aside(
        N_("requested checkpoints"), "checkpoints asked for, by the amount of log or by a command"
    ),
    "checkpoint_buffers_written": _aside(N_("pages written by checkpoints"), "pages written by checkpoints"),
    "checkpoint_write_s": _aside(N_("checkpoint write time"), "time in which checkpoints wrote", _SECONDS),
    "checkpoint_sync_s": _aside(N_("checkpoint sync time"), "time in which checkpoints synced files", _SECONDS),
    "background_buffers_written": _aside(
        N_("pages written by the background writer"), "pages written by the background writer"
    ),
    "buffers_allocated": _of_load(N_("buffers allocated"), "pages for which a buffer had to be found"),
    "autovacuum_runs": _aside(N_("autovacuum runs"), "runs of autovacuum on tables of the database"),
    "autoanalyze_runs": _aside(N_("autoanalyze runs"), "runs of autoanalyze on tables of the database"),
}


_IO_LABELS = {
    "client_io_reads": N_("reads by sessions"),
    "client_io_read_bytes": N_("bytes read by sessions"),
    "client_io_writes": N_("writes by sessions"),
    "client_io_write_bytes": N_("bytes written by sessions"),
    "client_io_extends": N_("file extensions by sessions"),
    "client_io_extend_bytes": N_("bytes extended by sessions"),
    "client_io_hits": N_("buffer hits of sessions"),
    "client_io_evictions": N_("buffer evictions by sessions"),
    "client_io_fsyncs": N_("fsyncs by sessions"),
    "server_io_reads": N_("reads by all server processes"),
    "server_io_read_bytes": N_("bytes read by all server processes"),
    "server_io_writes": N_("writes by all server processes"),
    "server_io_write_bytes": N_("bytes written by all server processes"),
    "server_io_extends": N_("file extensions by all server processes"),
    "server_io_extend_bytes": N_("bytes extended by all server processes"),
    "server_io_hits": N_("buffer hits of all server processes"),
    "server_io_evictions": N_("buffer evictions by all server processes"),
    "server_io_fsyncs": N_("fsyncs by all server processes"),
}


def _io(prefix: str, whose: str) -> dict[str, Counter]:
    """The same nine for two groups of processes."""
    return {
        f"{prefix}_io_reads": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_reads"], f"read operations of {whose}; 16 and from 18"
        ),
        f"{prefix}_io_read_bytes": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_read_bytes"], f"bytes read by {whose}", _BYTES
        ),
        f"{prefix}_io_writes": _cost_of_load(_IO_LABELS[f"{prefix}_io_writes"], f"write operations of {whose}"),
        f"{prefix}_io_write_bytes": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_write_bytes"], f"bytes written by {whose}", _BYTES
        ),
        f"{prefix}_io_extends": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_extends"], f"operations in which {whose} made files longer; from 18"
        ),
        f"{prefix}_io_extend_bytes": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_extend_bytes"], f"bytes by which {whose} made files longer", _BYTES
        ),
        f"{prefix}_io_hits": _of_load(_IO_LABELS[f"{prefix}_io_hits"], f"pages that {whose} found in a buffer"),
        f"{prefix}_io_evictions": _cost_of_load(
            _IO_LABELS[f"{prefix}_io_evictions"], f"pages that {whose} pushed out of a buffer"
        ),
        f"{prefix}_io_fsyncs": _cost_of_load(_IO_LABELS[f"{prefix}_io_fsyncs"], f"files that {whose} synced"),
    }


_PROCESSES = {
    "server_cpu_user_s": _cost_of_load(
        N_("server user CPU time"), "processor time of the server's processes in their own code", _SECONDS
    ),
    "server_cpu_system_s": _cost_of_load(
        N_("server system CPU time"), "processor time of the server's processes in the kernel", _SECONDS
    ),
    "client_cpu_s": _cost_of_load(
        N_("pgbench CPU time"), "processor time of the client (pgbench), its own code and the kernel", _SECONDS
    ),
    "client_cpu_user_s": _cost_of_load(
        N_("pgbench user CPU time"), "processor time of the client (pgbench) in its own code", _SECONDS
    ),
    "server_memory_peak_bytes": _cost_aside(
        N_("peak server memory"), "most memory that the server's processes held together", _BYTES
    ),
    "session_memory_peak_bytes": _cost_aside(
        N_("peak session memory"),
        "most memory that the process of an operation's session held, the shared buffers it touched included",
        _BYTES,
    ),
    "data_bytes": _cost_aside(N_("database size"), "size of the database before its load", _BYTES),
}

_HOST = {
    "host_cpu_s": _cost_aside(
        N_("host CPU time"), "time in which the host's processors worked, for whomever", _SECONDS
    ),
    "host_cpu_user_s": _cost_aside(
        N_("host user CPU time"), "time in which the host's processors worked outside the kernel", _SECONDS
    ),
    "host_steal_s": _cost_aside(
        N_("stolen CPU time"), "processor time that the hypervisor gave to other guests", _SECONDS
    ),
    "host_iowait_s": _cost_aside(
        N_("I/O wait of the host"), "time in which processors were idle while something waited for disk", _SECONDS
    ),
    "context_switches": _cost_of_load(N_("context switches"), "switches between processes on the host"),
    "pressure_cpu_s": _cost_aside(N_("CPU pressure"), "time in which some process waited for a processor", _SECONDS),
    "pressure_io_s": _cost_aside(N_("I/O pressure"), "time in which some process waited for disk", _SECONDS),
    "pressure_memory_s": _cost_aside(N_("memory pressure"), "time in which some process waited for memory", _SECONDS),
    "disk_read_bytes": _cost_of_load(
        N_("bytes read from disk"), "bytes read from the disk that holds the data", _BYTES
    ),
    "disk_write_bytes": _cost_of_load(
        N_("bytes written to disk"), "bytes written to the disk that holds the data", _BYTES
    ),
    "disk_reads": _cost_of_load(N_("disk reads"), "reads from the disk that holds the data"),
    "disk_writes": _cost_of_load(N_("disk writes"), "writes to the disk that holds the data"),
    "cpu_throttled_s": _cost_aside(
        N_("CPU throttling"), "time in which a limit on processors held pgversus and its servers", _SECONDS
    ),
}

_VACUUM = {
    "vacuum_index_scans": _cost_aside(
        N_("index scans of VACUUM"), "times that VACUUM went through the indexes of a table"
    ),
    "vacuum_pages_scanned": _cost_aside(N_("pages scanned by VACUUM"), "pages of tables that VACUUM scanned"),
    "vacuum_pages_removed": _aside(N_("pages removed by VACUUM"), "pages that VACUUM cut off the ends of tables"),
    "vacuum_pages_frozen": _aside(N_("pages frozen by VACUUM"), "pages in which VACUUM froze rows; from 16"),
    "vacuum_tuples_removed": _aside(N_("dead rows removed by VACUUM"), "dead rows that VACUUM removed"),
    "vacuum_tuples_remain": _aside(N_("rows left by VACUUM"), "rows that VACUUM left, by its own estimate; from 15"),
    "vacuum_tuples_not_yet_removable": _aside(
        N_("dead rows not yet removable"), "dead rows that VACUUM left, since a transaction may still see them"
    ),
    "vacuum_tuples_frozen": _aside(N_("rows frozen by VACUUM"), "rows that VACUUM froze; from 16"),
    "vacuum_dead_items_removed": _aside(
        N_("dead item identifiers removed"), "dead item identifiers that VACUUM removed after their index entries"
    ),
    "vacuum_buffers_hit": _aside(
        N_("shared buffer hits of VACUUM"), "pages that VACUUM found in shared buffers; from 15"
    ),
    "vacuum_buffers_read": _cost_aside(N_("pages read by VACUUM"), "pages that VACUUM asked of the system; from 15"),
    "vacuum_buffers_dirtied": _cost_aside(N_("pages dirtied by VACUUM"), "clean pages that VACUUM changed; from 15"),
    "vacuum_wal_records": _cost_aside(
        N_("WAL records of VACUUM"), "records of the write-ahead log that VACUUM made; from 15"
    ),
    "vacuum_wal_full_page_images": _cost_aside(
        N_("WAL full-page images of VACUUM"), "whole pages in the write-ahead log that VACUUM made; from 15"
    ),
    "vacuum_wal_bytes": _cost_aside(N_("WAL size of VACUUM"), "write-ahead log that VACUUM made; from 15", _BYTES),
    "vacuum_read_io_s": _cost_aside(
        N_("read time of VACUUM"), "time in which VACUUM read, if track_io_timing is on; from 15", _SECONDS
    ),
    "vacuum_write_io_s": _cost_aside(
        N_("write time of VACUUM"), "time in which VACUUM wrote, if track_io_timing is on; from 15", _SECONDS
    ),
    "vacuum_cpu_user_s": _cost_aside(
        N_("user CPU time of VACUUM"), "processor time of VACUUM's session in its own code", _SECONDS
    ),
    "vacuum_cpu_system_s": _cost_aside(
        N_("system CPU time of VACUUM"), "processor time of VACUUM's session in the kernel", _SECONDS
    ),
    "vacuum_elapsed_s": _cost_aside(N_("elapsed time of VACUUM"), "time that VACUUM says it took", _SECONDS),
}

TOLD_BY_VACUUM = frozenset(_VACUUM)
"""Those that VACUUM (VERBOSE) prints, where it is what is measured: no load tells them."""

TOLD_BY_HOST = frozenset(
    {"server_cpu_user_s", "server_cpu_system_s", "server_memory_peak_bytes", "session_memory_peak_bytes", *_HOST}
)
"""Those that the kernel tells, whatever PostgreSQL runs on it."""

COUNTERS: Mapping[str, Counter] = MappingProxyType(
    _DATABASE
    | _CLUSTER
    | _io("client", "sessions and their parallel workers")
    | _io("server", "all processes of the server")
    | _PROCESSES
    | _HOST
    | _VACUUM
)
"""Every counter by name. All grow from reading to reading but those that are taken as they are: peaks of memory, the
size of the database, and what VACUUM tells."""
