"""Arms, dataset, workload and design together: the whole of one question.

Arms with different block sizes are given the same bytes: PostgreSQL takes some settings in blocks where they have no
unit, and counts some of its defaults so (524288 blocks are 4 GB at 8 kB, and 16 GB at 32 kB).
"""

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
    """What is in memory when a window begins."""

    WARM = "warm"
    """The data are read in and the load has run for a while."""
    COLD = "cold"
    """Every window begins on a server just started, its data out of the system's page cache."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One side of a comparison: a server and the settings that hold in every session of its load."""

    index: int
    """Position in the comparison; 0 is the baseline."""
    label: str
    """How it is called in every output; unique in its comparison, without passwords."""
    server: ServerName
    settings: tuple[Setting, ...]
    workload: Workload
    dataset: Dataset


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """The baseline and its contenders, everything equal but the factors."""

    arms: tuple[Arm, ...]
    factors: tuple[str, ...]
    """What differs on purpose: `server`, `workload`, `dataset`, names of settings."""
    design: Design
    cache: CacheState = CacheState.WARM

    @property
    def contenders(self) -> tuple[Arm, ...]:
        """Every arm but the baseline."""
        return self.arms[1:]

    @property
    def workload(self) -> Workload:
        """The baseline's workload; every arm's, unless the workload is what is compared."""
        return self.baseline.workload

    @property
    def dataset(self) -> Dataset:
        """The baseline's data; every arm's, unless the dataset is what is compared."""
        return self.baseline.dataset

    @property
    def baseline(self) -> Arm:
        """The arm that all others are held against."""
        return self.arms[BASELINE]


def expand_arms(
    servers: Sequence[tuple[str, ServerName]],
    settings: Sequence[SettingLevels],
    *,
    workload: Workload,
    dataset: Dataset,
) -> tuple[tuple[Arm, ...], tuple[str, ...]]:
    """Every combination of server and levels as an arm, and the names of the factors; the first is the baseline.

    servers: (label, name) pairs. A server named twice is an A/A comparison; its labels get a number.
    StudyError when there is nothing to compare.
    """
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
            "there is only one arm, so there is nothing to compare",
            slug="study-one-arm",
            where="servers and --set",
            found=labels[0] if labels else "nothing",
            expected="two or more servers, or a setting with two or more levels",
            to_do="name a second server (the same one twice is an A/A comparison), or give --set NAME=A,B",
        )
    if len(arms) > MOST_CONTENDERS + 1:
        raise StudyError(
            "there are too many arms for one comparison",
            slug="study-too-many-arms",
            where="servers and --set",
            found=f"{len(arms)} arms",
            expected=f"at most {MOST_CONTENDERS + 1}: their verdicts share one error of 5 %",
            to_do="leave levels out, or compare them in parts",
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
    """The same labels, with a number behind each that was there before: `17`, `17 (2)`."""
    taken: dict[str, None] = {}
    # Of each label the first number that may be free.
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
    _check_numbers(given, _counted_otherwise(options))
    return tuple(_with_equal_bytes(arm, one) for arm, one in zip(given, options, strict=True))


def _options(arm: Arm) -> BuildOptions:
    return arm.server.options if isinstance(arm.server, SourceBuild) else NO_OPTIONS


def _counted_otherwise(options: Sequence[BuildOptions]) -> frozenset[str]:
    """Settings of which the same number is not the same amount on each of these builds."""
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
