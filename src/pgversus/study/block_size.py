"""The same bytes in every arm: settings that count in blocks, on servers whose blocks are not of the usual size.

PostgreSQL takes some settings in blocks where no unit stands behind them, and has some of its defaults so: 524288
blocks are 4 GB of 8 kB, and 16 GB of 32 kB. An arm with other blocks is given the bytes that the usual blocks have.
"""

import re
from collections.abc import Container, Iterable, Mapping, Sequence
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
_LRU_KB = 100 * USUAL_BLOCK_SIZE
"""What bgwriter_lru_maxpages, which is a number of pages without a unit, lets the background writer write at a time."""
_SHARED_BUFFERS_KB = 128 * 1024
"""What initdb gives every cluster, whatever its blocks."""
_WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB = 32, 16 * 1024
_LEAST_WAL_BUFFERS = 8
"""Of shared_buffers, at most a segment, at least so many blocks (XLOGChooseNumBuffers)."""
_KB = {"B": 1 / 1024, "kB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*+(B|kB|MB|GB|TB|)\s*")
_BLOCKS = re.compile(r"\s*[1-9][0-9]{0,17}\s*")
# No server has more of them.


def with_equal_bytes(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """The same arms, those with other blocks with the bytes of the usual ones in place of defaults that count blocks.

    StudyError for a setting that is given as a number of blocks, where these are not of one size.
    """
    given = tuple(arms)
    options = [_options(arm) for arm in given]
    if all(one == NO_OPTIONS for one in options):
        return given
    _refuse_numbers(given, _counted_otherwise(options))
    return tuple(_with_equal_bytes(arm, one) for arm, one in zip(given, options, strict=True))


def _options(arm: Arm) -> BuildOptions:
    return arm.server.options if isinstance(arm.server, SourceBuild) else NO_OPTIONS


def _counted_otherwise(options: Sequence[BuildOptions]) -> frozenset[str]:
    """Settings of which the same number is not the same amount on each of these builds."""
    names = _IN_BLOCKS if len({one.block_size_kb for one in options}) > 1 else frozenset()
    return names | (_IN_WAL_BLOCKS if len({one.wal_block_size_kb for one in options}) > 1 else frozenset())


def _refuse_numbers(arms: Sequence[Arm], names: Container[str]) -> None:
    for arm in arms:
        for setting in arm.settings:
            name = setting.name.lower()
            if name in names and _BLOCKS.fullmatch(setting.value):
                raise _in_blocks(arm, name, setting.value)


def _with_equal_bytes(arm: Arm, options: BuildOptions) -> Arm:
    given = {setting.name.lower(): setting.value for setting in arm.settings}
    added = (Setting(name=name, value=value) for name, value in _defaults(given, options).items() if name not in given)
    return replace(arm, settings=(*arm.settings, *added))


def _defaults(given: Mapping[str, str], options: BuildOptions) -> dict[str, str]:
    """What each default would have to be that would be another number of bytes."""
    has_other = options.block_size_kb != USUAL_BLOCK_SIZE
    if not has_other and options.wal_block_size_kb == USUAL_BLOCK_SIZE:
        return {}
    most_kb = _MOST_FLUSHED * options.block_size_kb
    found = {
        name: f"{min(kb, most_kb) if name.endswith('flush_after') else kb}kB"
        for name, kb in (_DEFAULTS_KB if has_other else {}).items()
    }
    if has_other:
        found["bgwriter_lru_maxpages"] = str(_LRU_KB // options.block_size_kb)
    shared = _kb(given.get("shared_buffers", f"{_SHARED_BUFFERS_KB}kB"))
    if shared is not None:
        usual = min(shared / _WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB)
        found["wal_buffers"] = f"{int(max(usual, _LEAST_WAL_BUFFERS * USUAL_BLOCK_SIZE))}kB"
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
