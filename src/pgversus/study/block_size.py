"""The same bytes in every arm: settings that count in blocks, on servers whose blocks are not of the usual size.

PostgreSQL takes some settings in blocks where no unit stands behind them, and has some of its defaults so: 524288
blocks are 4 GB of 8 kB, and 16 GB of 32 kB. An arm with other blocks is given the bytes that the usual blocks have.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from pgversus.errors import StudyError
from pgversus.study.build_options import NO_OPTIONS, USUAL_BLOCK_SIZE, BuildOptions
from pgversus.study.comparison import Arm
from pgversus.study.servers import SourceBuild
from pgversus.study.settings import Setting

_DEFAULTS_KB = {
    "effective_cache_size": 4 * 1024 * 1024,
    "temp_buffers": 8 * 1024,
    "bgwriter_flush_after": 512,
    "checkpoint_flush_after": 256,
}
"""Of blocks of 8 kB: 524288, 1024, 64 and 32 of them (guc_tables.c; the last two on Linux), the same since 9.6."""
_MOST_FLUSHED = 256
"""Blocks (WRITEBACK_MAX_PENDING_FLUSHES): the largest value of the settings that flush after so many."""
_IN_BLOCKS = frozenset(
    {
        *_DEFAULTS_KB,
        "backend_flush_after",
        "commit_timestamp_buffers",
        "io_combine_limit",
        "io_max_combine_limit",
        "min_parallel_index_scan_size",
        "min_parallel_table_scan_size",
        "multixact_member_buffers",
        "multixact_offset_buffers",
        "notify_buffers",
        "serializable_buffers",
        "shared_buffers",
        "subtransaction_buffers",
        "transaction_buffers",
    }
)
_IN_WAL_BLOCKS = frozenset({"wal_buffers", "wal_writer_flush_after"})
_SHARED_BUFFERS_KB = 128 * 1024
"""What initdb gives every cluster, whatever its blocks."""
_WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB = 32, 16 * 1024
_LEAST_WAL_BUFFERS = 8
"""Of shared_buffers, at most a segment, at least so many blocks (XLOGChooseNumBuffers)."""
_KB = {"B": 1 / 1024, "kB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(B|kB|MB|GB|TB|)\s*")


def with_equal_bytes(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """The same arms, those with other blocks with the bytes of the usual ones in place of defaults that count blocks.

    StudyError for a setting of such an arm that is given as a number of blocks.
    """
    return tuple(arm if _options(arm) == NO_OPTIONS else _with_equal_bytes(arm, _options(arm)) for arm in arms)


def _options(arm: Arm) -> BuildOptions:
    return arm.server.options if isinstance(arm.server, SourceBuild) else NO_OPTIONS


def _with_equal_bytes(arm: Arm, options: BuildOptions) -> Arm:
    given = {setting.name.lower(): setting.value for setting in arm.settings}
    other, other_wal = (size != USUAL_BLOCK_SIZE for size in (options.block_size_kb, options.wal_block_size_kb))
    counted = (_IN_BLOCKS if other else frozenset()) | (_IN_WAL_BLOCKS if other_wal else frozenset())
    for name in sorted(counted & given.keys()):
        if re.fullmatch(r"\s*[1-9]\d*\s*", given[name]):
            raise _in_blocks(arm, name, given[name])
    defaults = _defaults(given, options) if other or other_wal else {}
    added = (Setting(name=name, value=f"{kb}kB") for name, kb in defaults.items() if name not in given)
    return replace(arm, settings=(*arm.settings, *added))


def _defaults(given: Mapping[str, str], options: BuildOptions) -> dict[str, int]:
    """kB of each default that would be another number of bytes."""
    found = dict(_DEFAULTS_KB) if options.block_size_kb != USUAL_BLOCK_SIZE else {}
    for name in ("bgwriter_flush_after", "checkpoint_flush_after"):
        if name in found:
            found[name] = min(found[name], _MOST_FLUSHED * options.block_size_kb)
    shared = _kb(given.get("shared_buffers", f"{_SHARED_BUFFERS_KB}kB"))
    if shared is not None:
        usual = min(shared / _WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB)
        found["wal_buffers"] = int(max(usual, _LEAST_WAL_BUFFERS * USUAL_BLOCK_SIZE))
    return found


def _kb(text: str) -> float | None:
    match = _QUANTITY.fullmatch(text)
    # A number of blocks is let through where blocks have the usual size, and only those of WAL have another.
    return float(match[1]) * _KB.get(match[2], USUAL_BLOCK_SIZE) if match else None


def _in_blocks(arm: Arm, name: str, value: str) -> StudyError:
    return StudyError(
        f"{name} is given as a number of blocks, and the arms' blocks are not of one size",
        slug="study-setting-in-blocks",
        where=f"{name} = {value}, on {arm.label}",
        found=value,
        expected="a size with its unit, the same bytes on every arm",
        to_do=f"{name} = {int(value) * USUAL_BLOCK_SIZE}kB, if blocks of {USUAL_BLOCK_SIZE} kB were meant",
    )
