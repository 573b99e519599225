"""Caveats from the time in which processes of the host waited for memory or for disk (PSI).

Waiting for a processor is no sign: more clients than processors wait by design, and how many processes a server puts
to work is often what is compared. What others take from the processors is seen as their time (load_gates.py).
"""

import math
from collections.abc import Iterator, Sequence

from pgversus.stats.trials import Block, Trial
from pgversus.study.caveats import Caveat
from pgversus.study.comparison import Comparison

_MEMORY = 0.01
"""Share of the windows. Both working sets must fit into memory, and then nothing ever waits for it."""
_DISK = 0.10
_QUIET_BYTES_PER_S = 1e6
"""What any disk moves in a hundredth of the time: servers that move less make nobody wait for a tenth of it."""
_PAGE_BYTES = 8192
_MOVED_PAGES = ("buffers_read", "checkpoint_buffers_written", "background_buffers_written")
_MOVED_BYTES = ("wal_bytes", "temp_bytes", "server_io_write_bytes", "server_io_extend_bytes")


def pressure_caveats(comparison: Comparison, blocks: Sequence[Block]) -> Iterator[Caveat]:
    """What made processes wait that should not have to."""
    disk_is_ours = not all(_leaves_disk_alone(trial) for block in blocks for trial in block.trials.values())
    for arm in comparison.arms:
        trials = [block.trials[arm.index] for block in blocks if block.has(arm.index)]
        memory, disk = (_waited(trials, f"pressure_{what}_s") for what in ("memory", "io"))
        if memory > _MEMORY:
            yield Caveat(
                slug="memory-pressure",
                arm=arm.index or None,
                text=f"processes waited for memory in {100 * memory:.0f} % of the windows of {arm.label}: servers and "
                "data do not fit into it together, or another program needs it",
            )
        if disk > _DISK and not disk_is_ours:
            yield Caveat(
                slug="disk-disturbed",
                arm=arm.index or None,
                text=f"processes waited for disk in {100 * disk:.0f} % of the windows of {arm.label}, though no server "
                "of this comparison moved any data worth mentioning: another program did",
            )


def _waited(trials: Sequence[Trial], name: str) -> float:
    """Share of all windows; 0 where a trial does not tell."""
    if not trials or any(name not in trial.counters for trial in trials):
        return 0.0
    return math.fsum(trial.counters[name] for trial in trials) / math.fsum(trial.seconds for trial in trials)


def _leaves_disk_alone(trial: Trial) -> bool:
    """Whether its server hardly asked the system for anything; of all arms, as one's pages are written in any window.

    A page that was asked of the system may have been in its cache: better to say nothing than to blame others.
    """
    if any(name not in trial.counters for name in _MOVED_PAGES):
        return False
    pages = math.fsum(trial.counters[name] for name in _MOVED_PAGES)
    moved = _PAGE_BYTES * pages + math.fsum(trial.counters.get(name, 0.0) for name in _MOVED_BYTES)
    return moved < _QUIET_BYTES_PER_S * trial.seconds
