"""Caveats from the time in which processes of the host waited for memory or for disk (PSI).

Waiting for a processor is no sign: more clients than processors wait by design, and how many processes a server puts
to work is often what is compared. What others take from the processors is seen as their time (load_gates.py).
"""

from collections.abc import Iterator, Sequence

import numpy as np

from pgversus.lab.gates.measured import Measured
from pgversus.records.preparation import Caveat
from pgversus.study.counters import PAGE_BYTES
from pgversus.text.translation import tell

_MEMORY = 0.01
"""Share of the windows. Both working sets must fit into memory, and then nothing ever waits for it."""
_DISK = 0.10
_QUIET_BYTES_PER_S = 1e6
"""What any disk moves in a hundredth of the time: servers that move less make nobody wait for a tenth of it."""
_MOVED_PAGES = ("buffers_read", "checkpoint_buffers_written", "background_buffers_written")
_MOVED_BYTES = ("wal_bytes", "temp_bytes", "server_io_write_bytes", "server_io_extend_bytes")


def pressure_caveats(measured: Sequence[Measured]) -> Iterator[Caveat]:
    """What made processes wait that should not have to. measured: every arm of the comparison."""
    for one in measured:
        memory, disk = (_waited(one, f"pressure_{what}_s") for what in ("memory", "io"))
        if memory > _MEMORY:
            yield Caveat(
                slug="memory-pressure",
                arm=one.arm.index or None,
                text=tell(
                    "processes waited for memory in {share} of the windows of {arm}: servers and data do not fit into "
                    "it together, or another program needs it",
                    share=f"{100 * memory:.0f} %",
                    arm=one.arm.label,
                ),
            )
        if disk > _DISK and all(_leaves_disk_alone(other) for other in measured):
            yield Caveat(
                slug="disk-disturbed",
                arm=one.arm.index or None,
                text=tell(
                    "processes waited for disk in {share} of the windows of {arm}, though no server of this comparison "
                    "moved any data worth mentioning: another program did",
                    share=f"{100 * disk:.0f} %",
                    arm=one.arm.label,
                ),
            )


def _waited(one: Measured, name: str) -> float:
    """Share of all windows; 0 where a trial does not tell."""
    total = one.counters.total(name)
    return 0.0 if total is None else total / one.seconds


def _leaves_disk_alone(one: Measured) -> bool:
    """Whether its server hardly asked the system for anything; of all arms, as one's pages are written in any window.

    A page that was asked of the system may have been in its cache: better to say nothing than to blame others.
    """
    pages = sum(one.counters.column(name) for name in _MOVED_PAGES)
    others = np.nansum([one.counters.column(name) for name in _MOVED_BYTES], axis=0)
    limits = np.array([_QUIET_BYTES_PER_S * trial.seconds for trial in one.trials])
    # What is not told compares as false.
    return bool((PAGE_BYTES * pages + others < limits).all())
