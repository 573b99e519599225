"""Host facts that affect measurements and charts: processor, memory, kernel, file system, fonts."""

import os
import platform
import shutil
from collections.abc import Mapping
from pathlib import Path

import psutil

from pgversus.host.commands import run
from pgversus.host.files import way_of_copying
from pgversus.text.translation import Language

_CPU = Path("/sys/devices/system/cpu/cpu0/cpufreq")
_LEAST_SHARED_MEMORY = 256 * 1024**2


def host_facts(data_directory: Path) -> Mapping[str, str | int | float | None]:
    """Return the processor, memory, kernel, governor and file system of the data; bytes and counts.

    Facts that the host does not report are None.
    """
    mount = mount_of(data_directory)
    return {
        "cpu_model": _cpu_model(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "memory_bytes": memory_bytes(),
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "governor": _read(_CPU / "scaling_governor"),
        "transparent_hugepage": _read(Path("/sys/kernel/mm/transparent_hugepage/enabled")),
        "file_system": mount.fstype if mount else None,
        "mount_options": mount.opts if mount else None,
        # How the data are copied for each block.
        "copies": way_of_copying(data_directory),
        "free_bytes": shutil.disk_usage(data_directory).free,
        "shared_memory_bytes": _shared_memory_bytes(),
        "load_average_1min": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def mount_of(path: Path) -> "psutil._ntuples.sdiskpart | None":
    """Return the mount that contains a path; None if the system does not report it."""
    place = path.resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    # Of several mounts on one directory, such as autofs and what it mounts, the last one is visible.
    return max(reversed(mounts), key=lambda part: len(part.mountpoint), default=None)


def memory_bytes() -> int:
    """Return the size of the host's memory."""
    return psutil.virtual_memory().total


def shared_memory_is_small() -> bool:
    """Return whether /dev/shm is too small for parallel hash joins, as it is by default in containers."""
    size = _shared_memory_bytes()
    return size is not None and size < _LEAST_SHARED_MEMORY


def _shared_memory_bytes() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total  # noqa: S108 - only its size is read
    except OSError:
        return None


def _cpu_model() -> str | None:
    text = _read(Path("/proc/cpuinfo")) or ""
    names = (line.partition(":")[2].strip() for line in text.splitlines() if line.startswith("model name"))
    return next(names, None)


def _read(path: Path) -> str | None:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return None


_TIMEOUT_S = 20.0


def has_font_for(language: Language) -> bool:
    """Return whether fontconfig has a font for a language; True without fontconfig."""
    try:
        found = run(["fc-list", f":lang={language.value}", "family"], timeout_s=_TIMEOUT_S)
    except OSError:
        return True
    return not found.succeeded or bool(found.stdout.strip())
