"""The machine as far as it bears on a measurement: processor, memory, kernel, file system, fonts."""

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
    """Processor, cores, memory, kernel, governor, and the file system that holds the data; bytes and counts.

    A fact that this host does not tell is None.
    """
    mount = mount_of(data_directory)
    return {
        "cpu_model": _cpu_model(),
        "cpus": os.cpu_count(),
        "cpus_usable": len(os.sched_getaffinity(0)),
        "memory_bytes": psutil.virtual_memory().total,
        "kernel": f"{platform.system()} {platform.release()}",
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "governor": _read(_CPU / "scaling_governor"),
        "transparent_hugepage": _read(Path("/sys/kernel/mm/transparent_hugepage/enabled")),
        "file_system": mount.fstype if mount else None,
        "mount_options": mount.opts if mount else None,
        # How each block's copy of the data is made.
        "copies": way_of_copying(data_directory),
        "free_bytes": shutil.disk_usage(data_directory).free,
        "shared_memory_bytes": _shared_memory_bytes(),
        "load_average_1min": os.getloadavg()[0],
        "python": platform.python_version(),
    }


def mount_of(path: Path) -> "psutil._ntuples.sdiskpart | None":
    """The file system that holds a path, as it is mounted; None where the system does not tell."""
    place = path.resolve()
    mounts = [part for part in psutil.disk_partitions(all=True) if place.is_relative_to(part.mountpoint)]
    return max(mounts, key=lambda part: len(part.mountpoint), default=None)


def shared_memory_is_small() -> bool:
    """Whether /dev/shm is so small that a parallel hash join would fail, as it is by default in containers."""
    size = _shared_memory_bytes()
    return size is not None and size < _LEAST_SHARED_MEMORY


def _shared_memory_bytes() -> int | None:
    try:
        return shutil.disk_usage("/dev/shm").total  # noqa: S108 - asked for its size, nothing is put there
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
    """Whether fontconfig knows a font for it; True where nobody can be asked."""
    try:
        found = run(["fc-list", f":lang={language.value}", "family"], timeout_s=_TIMEOUT_S)
    except OSError:
        return True
    return not found.succeeded or bool(found.stdout.strip())
