"""Processor time and memory of a server's processes together, and work in a thread beside a block of code."""

import re
import threading
import time
from abc import ABC, abstractmethod
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

import psutil


class BackgroundThread(ABC):
    """What is done while a block of code runs: a context manager, for one block."""

    def __init__(self, name: str) -> None:
        """name: of the thread."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _run(self) -> None:
        """The work, in its thread: returns once `_is_over_within` says so, or earlier."""

    def _is_over_within(self, seconds: float) -> bool:
        """Whether the block has ended; waits for that so long."""
        return self._over.wait(seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()


_MOST_TRIES = 20
_INTERVAL_S = 0.05
_PEAK = re.compile(r"^VmHWM:\s+(\d+) kB$", re.MULTILINE)
_KILOBYTES = re.compile(r"^(Pss|Private_Hugetlb|Shared_Hugetlb):\s+(\d+) kB$", re.MULTILINE)


@dataclass(frozen=True, slots=True, kw_only=True)
class CpuTime:
    """Processor time since processes began, in seconds; the kernel tells it in steps of 0.01 s for each process."""

    user_s: float
    system_s: float


def cpu_time(pid: int) -> CpuTime | None:
    """Processor time of a process, of its living descendants, and of those that have ended.

    None when there is no such process, or when descendants end so fast, one after another, that no reading holds.

    A process that ends hands its time over to its parent. One that does so after its parent was read would be lost: it
    is missed when its turn comes, and all are read again.
    """
    for _ in range(_MOST_TRIES):
        try:
            root = psutil.Process(pid)
            # Parents before their children: whoever is still there after its parent was read is not in that reading.
            readings = [process.cpu_times() for process in (root, *root.children(recursive=True))]
        except psutil.NoSuchProcess:
            if not psutil.pid_exists(pid):
                return None
        else:
            return CpuTime(
                user_s=sum(times.user + times.children_user for times in readings),
                system_s=sum(times.system + times.children_system for times in readings),
            )
    return None


def memory_bytes(pid: int) -> int | None:
    """Memory that a process and its living descendants hold together; what they share is counted once.

    The sum of their proportional shares (PSS). Pages that processes elsewhere map as well, such as libraries, count in
    part. Huge pages have no such share: private ones are summed, and of shared ones the largest part is taken.
    None when there is no such process, or when the kernel does not tell (an old one, or processes of another user).
    Source: proc_pid_smaps(5), kernel documentation filesystems/proc.rst.
    """
    try:
        root = psutil.Process(pid)
        pids = [pid, *(child.pid for child in root.children(recursive=True))]
        texts = [_smaps_rollup(one) for one in pids]
    except (psutil.NoSuchProcess, PermissionError):
        return None
    # A process that is about to end has no memory any more; a tree in which none has any tells nothing.
    return _together([text for text in texts if text]) or None


def peak_resident_bytes(pid: int) -> int | None:
    """The most memory that one process has had resident since it began; pages shared with others count in full.

    None when there is no such process. Source: VmHWM of proc_pid_status(5), kept by the kernel at no cost.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    found = _PEAK.search(text)
    return 1024 * int(found[1]) if found else None


class PeakMemory(BackgroundThread):
    """The most that memory_bytes() showed while a block of code ran, sampled every 50 ms.

    Sampling walks the page tables of every process, which costs the server something: it is for a load that is thrown
    away, not for one that is timed.
    """

    def __init__(self, pid: int) -> None:
        """pid: the postmaster, which may end meanwhile."""
        super().__init__("pgversus-peak-memory")
        self._pid = pid
        self._peak: int | None = None

    @property
    def peak_bytes(self) -> int | None:
        """The largest sample so far; None when there is none."""
        return self._peak

    def __enter__(self) -> Self:
        self._sample()
        return super().__enter__()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        super().__exit__(kind, error, trace)
        self._sample()

    def _run(self) -> None:
        pause_s = _INTERVAL_S
        while not self._is_over_within(pause_s):
            begin = time.monotonic()
            self._sample()
            # Big trees take long to read: at least half of the time is the load's.
            taken_s = time.monotonic() - begin
            pause_s = max(_INTERVAL_S - taken_s, taken_s)

    def _sample(self) -> None:
        sample = memory_bytes(self._pid)
        if sample is not None:
            self._peak = max(self._peak or 0, sample)


def _smaps_rollup(pid: int) -> str:
    """The kernel's words on a process' memory; empty for one that has ended."""
    try:
        return Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _together(texts: list[str]) -> int:
    """Memory of processes, from the texts of their smaps_rollup."""
    each = [{name: int(kilobytes) for name, kilobytes in _KILOBYTES.findall(text)} for text in texts]
    own = sum(one.get("Pss", 0) + one.get("Private_Hugetlb", 0) for one in each)
    return 1024 * (own + max((one.get("Shared_Hugetlb", 0) for one in each), default=0))
