"""Cumulative counters of the host, read before and after a window and subtracted.

`study/counters.py` describes each name. Counters that the host does not report are absent.
"""

import os
import re
import time
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import psutil

_PRESSURE = Path("/proc/pressure")
_SECTOR_BYTES = 512
# The unit of /sys/dev/block/*/stat, whatever the device's sector size (kernel documentation, block/stat.rst).
_READS, _SECTORS_READ, _WRITES, _SECTORS_WRITTEN = 0, 2, 4, 6


def read_host(directory: Path) -> dict[str, float]:
    """Return cumulative counters by name: CPU, pressure, and the disk of this directory; bytes, seconds and counts.

    CPU and pressure counters cover the whole host, even inside a container.
    """
    return _processors() | _pressures() | _disk(directory) | _throttling()


_LEAST_S = 1.0
"""Other programs work in bursts, and processor times are counted in steps of 0.01 s."""


@dataclass(frozen=True, slots=True)
class OtherLoad:
    """The processor time that other programs, and guests of a hypervisor, have used up to one moment."""

    moment_s: float
    """By the monotonic clock."""
    used_s: float
    """Used by the whole host, except by this process and everything that it started."""

    @classmethod
    def now(cls) -> "OtherLoad":
        """Return the load up to now."""
        host, this = psutil.cpu_times(), psutil.Process()
        of_host = host.user + host.nice + host.system + host.irq + host.softirq + host.steal
        return cls(time.monotonic(), of_host - sum(map(_used_s, (this, *this.children(recursive=True)))))

    @property
    def is_long_ago(self) -> bool:
        """Whether share_since() does not need to wait."""
        return time.monotonic() >= self.moment_s + _LEAST_S

    def share_since(self) -> float:
        """Return the share of all processors that others have used since this moment, from 0 to 1.

        Waits if the moment is less than a second ago.
        """
        time.sleep(max(0.0, self.moment_s + _LEAST_S - time.monotonic()))
        later = OtherLoad.now()
        capacity_s = (os.cpu_count() or 1) * (later.moment_s - self.moment_s)
        return min(1.0, max(0.0, (later.used_s - self.used_s) / capacity_s))


def _used_s(process: psutil.Process) -> float:
    """Return the processor time of a process and its finished children; 0 if it ended in the meantime."""
    try:
        used = process.cpu_times()
    except psutil.NoSuchProcess:
        return 0.0
    return float(used.user + used.system + used.children_user + used.children_system)


def _processors() -> dict[str, float]:
    times = psutil.cpu_times()
    return {
        # `user` already includes the time of virtual machines on this host.
        "host_cpu_s": times.user + times.nice + times.system + times.irq + times.softirq,
        "host_cpu_user_s": times.user + times.nice,
        "host_steal_s": times.steal,
        "host_iowait_s": times.iowait,
        "context_switches": float(psutil.cpu_stats().ctx_switches),
    }


def _pressures() -> dict[str, float]:
    stalls = {f"pressure_{what}_s": _stalled_s(_read(_PRESSURE / what)) for what in ("cpu", "io", "memory")}
    return {name: seconds for name, seconds in stalls.items() if seconds is not None}


def _stalled_s(text: str) -> float | None:
    """Return the seconds in which some process was stalled (kernel documentation, accounting/psi.rst)."""
    found = re.search(r"^some .*\btotal=(\d+)$", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def _disk(directory: Path) -> dict[str, float]:
    try:
        device = directory.stat().st_dev
    except OSError:
        return {}
    # File systems without a single device (tmpfs, overlay, btrfs, zfs) have a number that matches no device.
    return _disk_numbers(_read(Path(f"/sys/dev/block/{os.major(device)}:{os.minor(device)}/stat")))


def _disk_numbers(text: str) -> dict[str, float]:
    fields = [int(field) for field in text.split()]
    if len(fields) <= _SECTORS_WRITTEN:
        return {}
    return {
        "disk_reads": float(fields[_READS]),
        "disk_read_bytes": float(fields[_SECTORS_READ] * _SECTOR_BYTES),
        "disk_writes": float(fields[_WRITES]),
        "disk_write_bytes": float(fields[_SECTORS_WRITTEN] * _SECTOR_BYTES),
    }


def _throttling() -> dict[str, float]:
    """Return the throttled seconds of our control group and of its ancestors, each of which counts on its own."""
    groups = _control_groups(_read(Path("/proc/self/mountinfo")), _read(Path("/proc/self/cgroup")))
    held = [seconds for group in groups if (seconds := _throttled_s(_read(group / "cpu.stat"))) is not None]
    return {"cpu_throttled_s": sum(held)} if held else {}


def _throttled_s(text: str) -> float | None:
    """Return the throttled seconds in cpu.stat; None for a group without CPU limits, such as the root."""
    found = re.search(r"^throttled_usec (\d+)$", text, re.MULTILINE)
    return int(found[1]) / 1e6 if found else None


def _control_groups(mountinfo: str, cgroup: str) -> list[Path]:
    """Return the directories of our control group (version 2) and its ancestors; empty if none is visible.

    mountinfo, cgroup: the contents of these files in /proc/self. Source: proc_pid_mountinfo(5), cgroups(7).
    """
    mount = re.search(r"^\S+ \S+ \S+ (\S+) (\S+) .* - cgroup2 ", mountinfo, re.MULTILINE)
    own = re.search(r"^0::(/.*)$", cgroup, re.MULTILINE)
    if not mount or not own or not PurePosixPath(own[1]).is_relative_to(mount[1]):
        return []
    # In a container, the mounted tree may start at a group below the host's root.
    below = PurePosixPath(own[1]).relative_to(mount[1])
    return [Path(mount[2]) / group for group in (below, *below.parents)]


def _read(path: Path) -> str:
    """Return the text of a small file; empty if it is missing or the kernel denies access (pressure with psi=0)."""
    try:
        # It may contain paths, which are arbitrary bytes.
        return os.fsdecode(path.read_bytes())
    except OSError:
        return ""
