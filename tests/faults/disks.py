"""A disk that is full from a random moment until the run has ended: a separate small file system."""

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from random import Random

from tests.faults.fault import Fault, Outcome
from tests.faults.invariants import left_behind, not_ours
from tests.faults.resuming import how_it_ended, outcome_of
from tests.faults.study import RUN, SERVER, write_study
from tests.faults.watched import ABOUT_S, Phase, Watched, watched
from tests.live.conftest import CommandLine

_AGAIN_S = 0.05
_BUILT = f"{SERVER.partition('.')[0]}+cassert"
_BUILDING_S = 20.0
# Unpacking, configuring and the beginning of compiling; a complete build takes too long for a try.


def why_no_mount() -> str:
    """Return why no file system can be mounted here; empty if one can."""
    return "" if os.geteuid() == 0 else "only root may mount a file system"


class SmallDisk:
    """A file system in memory; to fill it, its size is reduced to the used space."""

    def __init__(self, place: Path, size_bytes: int, mode: str) -> None:
        """place: an empty directory of this try, created if it is missing."""
        self._place, self._size_bytes = place, size_bytes
        place.mkdir(exist_ok=True)
        # Hide nothing beneath the mount.
        assert not list(place.iterdir())
        self._mount(f"size={size_bytes},mode={mode}", "tmpfs")

    def fill(self) -> None:
        """Leave no free page."""
        found = os.statvfs(self._place)
        # 0 would mean no limit.
        used = max(1, found.f_blocks - found.f_bfree) * found.f_frsize
        # More may be used by now.
        with suppress(subprocess.CalledProcessError):
            self._mount(f"remount,size={used}")

    def clear(self) -> None:
        """Restore the original size."""
        self._mount(f"remount,size={self._size_bytes}")

    def unmount(self) -> None:
        """Unmount it even if files on it are still open; the checks have reported them by then."""
        subprocess.run(["umount", "--lazy", str(self._place)], check=True)

    def _mount(self, options: str, kind: str = "") -> None:
        device = ["-t", kind, kind] if kind else []
        subprocess.run(["mount", "-o", options, *device, str(self._place)], check=True, capture_output=True)


@contextmanager
def small_disk(place: Path, size_bytes: int, mode: str) -> Iterator[SmallDisk]:
    """Yield a file system of this size; unmount it at the end."""
    disk = SmallDisk(place, size_bytes, mode)
    try:
        yield disk
    finally:
        disk.unmount()


def keep_full(disk: SmallDisk, run: Watched) -> None:
    """Keep the disk full until the run has ended, including space that its programs free meanwhile."""
    while run.is_running():
        disk.fill()
        with suppress(subprocess.TimeoutExpired):
            run.process.wait(_AGAIN_S)


def _play(
    place_of: Callable[[CommandLine], Path], size_bytes: int, mode: str, line: CommandLine, rng: Random
) -> Outcome:
    write_study(line, rng)
    with small_disk(place_of(line), size_bytes, mode) as disk, watched(line, *RUN) as run:
        if run.strike(rng, ABOUT_S, lambda _: True):
            keep_full(disk, run)
        return outcome_of(run, run.end(), repair=disk.clear, may_fail_trials=False)


def _full(name: str, what: str, place_of: Callable[[CommandLine], Path], size_bytes: int, mode: str = "755") -> Fault:
    play = partial(_play, place_of, size_bytes, mode)
    return Fault(name=name, what=what, play=play, tries=25, why_not=why_no_mount)


def _play_build(line: CommandLine, rng: Random) -> Outcome:
    """Build from source on the small disk; check that nothing is left. The build is not repeated."""
    disk_place = line.cache / "disk"
    with small_disk(disk_place, 2 * 10**9, "755") as disk:
        for name in ("builds", "staging"):
            (line.cache / name).unlink()
            (disk_place / name).mkdir(mode=0o755)
            (line.cache / name).symlink_to(disk_place / name)
        with watched(line, "servers", "build", _BUILT) as run:
            run.strike(rng, {Phase.START: _BUILDING_S}, lambda _: True)
            keep_full(disk, run)
            ended = run.end()
            left = [
                path
                for name in ("builds", "staging")
                for path in (disk_place / name).iterdir()
                if path.suffix != ".lock"
            ]
            violations = [*not_ours(ended), *(f"left: {path}" for path in left)]
            violations += left_behind(line, run.strikes[0].processes if run.strikes else [], [])
    return Outcome(moment="build", end=how_it_ended(ended), violations=tuple(violations))


DISKS = (
    Fault(
        name="full-build",
        what="the disk of a build from source becomes full",
        play=_play_build,
        tries=10,
        why_not=why_no_mount,
        needs_tools=True,
    ),
    _full("full-results", "the disk of the results becomes full", lambda line: line.directory / "results", 10**7),
    _full("full-clusters", "the disk of clusters and logs becomes full", lambda line: line.runs, 4 * 10**9),
    _full("full-cache", "the disk of cached data becomes full", lambda line: line.cache / "snapshots", 10**9, "700"),
)
