"""The arms, dataset, workload and design of one comparison.

Arms with different block sizes get settings of the same size in bytes. PostgreSQL reads some settings without a unit as
a number of blocks, and defines some defaults in blocks (524288 blocks are 4 GB at 8 kB, and 16 GB at 32 kB).
"""

import math
import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import product

from pgversus.errors import StudyError
from pgversus.study.build_options import NO_OPTIONS, USUAL_BLOCK_SIZE, BuildOptions
from pgversus.study.dataset import Dataset
from pgversus.study.design import MOST_CONTENDERS, Design
from pgversus.study.servers import ServerName, SourceBuild
from pgversus.study.settings import Setting, SettingLevels
from pgversus.study.workload import Workload
from pgversus.text.redaction import value_without_secrets

BASELINE = 0


class CacheState(StrEnum):
    """The contents of memory when a window begins."""

    WARM = "warm"
    """The data is in memory and the load has run for a while."""
    COLD = "cold"
    """Every window begins on a server that has just started, with its data evicted from the page cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a comparison: a server and the settings of every session of its load."""

    index: int
    """Position in the comparison; 0 is the baseline."""
    label: str
    """Name in all output; unique in its comparison, without passwords."""
    server: ServerName
    settings: tuple[Setting, ...]
    workload: Workload
    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The baseline and its contenders, which differ only in the factors."""

    arms: tuple[Arm, ...]
    factors: tuple[str, ...]
    """The compared factors: `server`, `workload`, `dataset`, names of settings."""
    design: Design
    cache: CacheState = CacheState.WARM

    @property
    def contenders(self) -> tuple[Arm, ...]:
        """All arms except the baseline."""
        return self.arms[1:]

    @property
    def workload(self) -> Workload:
        """The baseline's workload; shared by all arms unless the workload is compared."""
        return self.baseline.workload

    @property
    def dataset(self) -> Dataset:
        """The baseline's dataset; shared by all arms unless the dataset is compared."""
        return self.baseline.dataset

    @property
    def baseline(self) -> Arm:
        """The arm that all others are compared with."""
        return self.arms[BASELINE]


def expand_arms(
    servers: Sequence[tuple[str, ServerName]],
    settings: Sequence[SettingLevels],
    *,
    workload: Workload,
    dataset: Dataset,
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Return one arm for every combination of server and levels, baseline first, and the names of the factors.

    servers: (label, name) pairs. A server named twice is an A/A comparison; its labels are numbered.
    StudyError when there is nothing to compare.
    """
    counts = [len(servers), *(len(setting.values) for setting in settings)]
    if math.prod(counts) > MOST_CONTENDERS + 1:
        raise StudyError(
            "too many arms for one comparison",
            slug="study-too-many-arms",
            where="servers and --set",
            found=f"{' x '.join(str(number) for number in counts if number > 1)} arms",
            expected=f"at most {MOST_CONTENDERS + 1}: their verdicts share an error rate of 5 %",
            to_do="remove levels, or split the comparison",
        )
    factors = [setting for setting in settings if len(setting.values) > 1]
    combinations = list(product(servers, product(*([(s.name, v) for v in s.values] for s in settings))))
    labels = unique_labels([_label(name, levels, servers, factors) for (name, _), levels in combinations])
    arms = tuple(
        Arm(
            index=index,
            label=labels[index],
            server=server,
            settings=tuple(Setting(name=name, value=value) for name, value in levels),
            workload=workload,
            dataset=dataset,
        )
        for index, ((_, server), levels) in enumerate(combinations)
    )
    if len(arms) < 2:  # noqa: PLR2004 - a comparison has two sides
        raise StudyError(
            "a comparison requires at least two arms",
            slug="study-one-arm",
            where="servers and --set",
            found=labels[0] if labels else "nothing",
            expected="two or more servers, or a setting with two or more levels",
            to_do="specify a second server (the same one twice is an A/A comparison), or add --set NAME=A,B",
        )
    names = (("server",) if len(servers) > 1 else ()) + tuple(setting.name for setting in factors)
    return arms, names


def _label(
    server: str,
    levels: Sequence[tuple[str, str]],
    servers: Sequence[tuple[str, ServerName]],
    factors: Sequence[SettingLevels],
) -> str:
    varied = {setting.name for setting in factors}
    parts = [f"{name}={value_without_secrets(name, value)}" for name, value in levels if name in varied]
    if len(servers) > 1 or not parts:
        parts.insert(0, server)
    return " ".join(parts)


def unique_labels(labels: Sequence[str]) -> list[str]:
    """Return the labels with a number appended to each repeated one: `17`, `17 (2)`."""
    taken: dict[str, None] = {}
    # The first number that may be free, by label.
    numbers: dict[str, int] = {}
    for label in labels:
        number = numbers.get(label, 1)
        while (name := label if number == 1 else f"{label} ({number})") in taken:
            number += 1
        numbers[label] = number + 1
        taken[name] = None
    return list(taken)


_DEFAULTS_KB = {
    "effective_cache_size": 4 * 1024 * 1024,
    "temp_buffers": 8 * 1024,
    "bgwriter_flush_after": 512,
    "checkpoint_flush_after": 256,
}
"""524288, 1024, 64 and 32 blocks of 8 kB (guc_tables.c; the last two on Linux), unchanged since 9.6."""
_MOST_FLUSHED = 256
"""Largest value of the *_flush_after settings, in blocks (WRITEBACK_MAX_PENDING_FLUSHES)."""
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
"""Amount that the background writer writes at a time; bgwriter_lru_maxpages is a number of pages without a unit."""
_SHARED_BUFFERS_KB = 128 * 1024
"""initdb's default, which does not depend on the block size."""
_WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB = 32, 16 * 1024
_LEAST_WAL_BUFFERS = 8
"""wal_buffers: a share of shared_buffers, at most one segment, at least this many blocks (XLOGChooseNumBuffers)."""
_KB = {"B": 1 / 1024, "kB": 1.0, "MB": 1024.0, "GB": 1024.0**2, "TB": 1024.0**3}
_QUANTITY = re.compile(r"\s*(\d+(?:\.\d+)?)\s*+(B|kB|MB|GB|TB|)\s*")
_BLOCKS = re.compile(r"\s*[1-9][0-9]{0,17}\s*")
# At most 18 digits: no server has more blocks.


def with_equal_bytes(arms: Iterable[Arm]) -> tuple[Arm, ...]:
    """Return the arms, with sizes in bytes instead of defaults that count blocks if a block size is unusual.

    StudyError for a setting given as a number of blocks when block sizes differ.
    """
    given = tuple(arms)
    options = [_options(arm) for arm in given]
    if all(one == NO_OPTIONS for one in options):
        return given
    _check_numbers(given, _block_counted_settings(options))
    return tuple(_with_equal_bytes(arm, one) for arm, one in zip(given, options, strict=True))


def _options(arm: Arm) -> BuildOptions:
    return arm.server.options if isinstance(arm.server, SourceBuild) else NO_OPTIONS


def _block_counted_settings(options: Sequence[BuildOptions]) -> frozenset[str]:
    """Return the settings for which one number means different amounts on these builds."""
    names = _IN_BLOCKS if len({one.block_size_kb for one in options}) > 1 else frozenset()
    return names | (_IN_WAL_BLOCKS if len({one.wal_block_size_kb for one in options}) > 1 else frozenset())


def _check_numbers(arms: Sequence[Arm], names: Container[str]) -> None:
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
    """Return values for the defaults whose size in bytes would differ."""
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
    shared = _kb(given.get("shared_buffers", f"{_SHARED_BUFFERS_KB}kB"), options.block_size_kb)
    if shared is not None:
        usual = min(shared / _WAL_BUFFERS_SHARE, _MOST_WAL_BUFFERS_KB)
        found["wal_buffers"] = f"{int(max(usual, _LEAST_WAL_BUFFERS * USUAL_BLOCK_SIZE))}kB"
    return found


def _kb(text: str, block_size_kb: int) -> float | None:
    match = _QUANTITY.fullmatch(text)
    # A number of blocks is accepted when all arms have the same block size.
    return float(match[1]) * _KB.get(match[2], block_size_kb) if match else None


def _in_blocks(arm: Arm, name: str, value: str) -> StudyError:
    return StudyError(
        f"{name} is given as a number of blocks, but the arms have different block sizes",
        slug="study-setting-in-blocks",
        where=f"{name} = {value}, on {arm.label}",
        found=value,
        expected="a size with a unit, which is the same on every arm",
        to_do=f"{name} = {int(value) * USUAL_BLOCK_SIZE}kB, if you meant blocks of {USUAL_BLOCK_SIZE} kB",
    )
