"""CPU time and memory of process trees, and background threads for a block of code."""

import re
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self, TypeVar

import psutil

T = TypeVar("T")


class BackgroundThread(ABC):
    """A thread that runs during a block of code; a context manager for a single use."""

    def __init__(self, name: str) -> None:
        """name: the name of the thread."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _run(self) -> None:
        """Do the work of the thread; return once `_is_over_within` returns True, or earlier."""

    def _is_over_within(self, seconds: float) -> bool:
        """Wait up to this many seconds for the block to end; return whether it has."""
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
    """CPU time since the processes started, in seconds; the kernel counts in steps of 0.01 s for each process."""

    user_s: float
    system_s: float


def cpu_time(pid: int) -> CpuTime | None:
    """Return the CPU time of a process and its descendants, including those that have ended.

    None if the process does not exist, or if descendants end so often that no consistent reading succeeds.
    """
    readings = _of_tree(pid, lambda process: process.cpu_times())
    if readings is None:
        return None
    return CpuTime(
        user_s=sum(times.user + times.children_user for times in readings),
        system_s=sum(times.system + times.children_system for times in readings),
    )


def read_calls(pid: int) -> int | None:
    """Return how often a process and its descendants have called read() and its relatives, also those that have ended.

    Reads from sockets do not count. None as for cpu_time(), or without the right to know (proc_pid_io(5)).
    """
    if not hasattr(psutil.Process, "io_counters"):
        # A kernel without these counters.
        return None
    try:
        readings = _of_tree(pid, lambda process: process.io_counters())
    except (psutil.AccessDenied, RuntimeError):
        # psutil raises RuntimeError if the file is empty, which is so for a process that is ending.
        return None
    return None if readings is None else sum(counted.read_count for counted in readings)


def _of_tree(pid: int, read: Callable[[psutil.Process], T]) -> list[T] | None:
    """Return a consistent reading of a process and its descendants, parents first; None if that is impossible.

    A process that ends adds its counters to its parent's. If it ends after its parent was read, they would be lost; it
    is then missing when its own turn comes, and the whole tree is read again.
    """
    for _ in range(_MOST_TRIES):
        try:
            root = psutil.Process(pid)
            # Parents before children: a process that still exists after its parent was read is not in that reading.
            return [read(process) for process in (root, *root.children(recursive=True))]
        except psutil.NoSuchProcess:
            if not psutil.pid_exists(pid):
                return None
    return None


def memory_bytes(pid: int) -> int | None:
    """Return the memory of a process and its living descendants in bytes; shared memory is counted once.

    This is the sum of their proportional set sizes (PSS). Pages also mapped by other processes, such as libraries,
    count in part. PSS excludes huge pages: private ones are summed, and the maximum is taken for shared ones.
    None if the process does not exist or the kernel does not report it (old kernel, processes of another user).
    Source: proc_pid_smaps(5), kernel documentation filesystems/proc.rst.
    """
    try:
        root = psutil.Process(pid)
        pids = [pid, *(child.pid for child in root.children(recursive=True))]
        texts = [_smaps_rollup(one) for one in pids]
    except (psutil.NoSuchProcess, PermissionError):
        return None
    # An exiting process has no memory left; a tree without any memory gives no result.
    return _together([text for text in texts if text]) or None


def peak_resident_bytes(pid: int) -> int | None:
    """Return the peak resident memory of one process in bytes; shared pages count in full.

    None if the process does not exist. Source: VmHWM of proc_pid_status(5), which the kernel maintains at no cost.
    """
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return None
    found = _PEAK.search(text)
    return 1024 * int(found[1]) if found else None


class PeakMemory(BackgroundThread):
    """The peak of memory_bytes() while a block of code runs, sampled every 50 ms.

    Sampling walks the page tables of every process, which slows the server: use it for loads whose results are
    discarded, not for timed ones.
    """

    def __init__(self, pid: int) -> None:
        """pid: process id of the postmaster, which may end meanwhile."""
        super().__init__("pgversus-peak-memory")
        self._pid = pid
        self._peak: int | None = None

    @property
    def peak_bytes(self) -> int | None:
        """The largest sample so far; None without samples."""
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
            # Large trees take long to read: sample at most half of the time.
            taken_s = time.monotonic() - begin
            pause_s = max(_INTERVAL_S - taken_s, taken_s)

    def _sample(self) -> None:
        sample = memory_bytes(self._pid)
        if sample is not None:
            self._peak = max(self._peak or 0, sample)


def _smaps_rollup(pid: int) -> str:
    """Return the smaps_rollup of a process; empty if it has ended."""
    try:
        return Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="utf-8")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _together(texts: list[str]) -> int:
    """Return the total memory in bytes of processes, from the texts of their smaps_rollup."""
    each = [{name: int(kilobytes) for name, kilobytes in _KILOBYTES.findall(text)} for text in texts]
    own = sum(one.get("Pss", 0) + one.get("Private_Hugetlb", 0) for one in each)
    return 1024 * (own + max((one.get("Shared_Hugetlb", 0) for one in each), default=0))
