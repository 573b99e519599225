"""Counters of the host. The files in tests/data/host were captured on Linux 6.18; those of control groups in part."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from pgversus.host import counters
from pgversus.host.counters import OtherLoad, read_host
from pgversus.stats.counters import difference
from pgversus.study.counters import COUNTERS
from tests.builders import DATA

TEXTS = DATA / "host"

# The format of a group with a limit, from the kernel's documentation (admin-guide/cgroup-v2.rst).
LIMITED = (
    "usage_usec 1029646\nuser_usec 1025746\nsystem_usec 3900\nnr_periods 22\nnr_throttled 20\nthrottled_usec 970041\n"
)


def test_pressure_is_the_time_in_which_some_process_was_stalled() -> None:
    assert counters._stalled_s((TEXTS / "pressure_io").read_text()) == 159.290663
    assert counters._stalled_s("") is None


def test_disk_counters_are_operations_and_bytes() -> None:
    assert counters._disk_numbers((TEXTS / "disk_stat").read_text()) == {
        "disk_reads": 40_830,
        "disk_read_bytes": 4_922_690 * 512,
        "disk_writes": 1_540_995,
        "disk_write_bytes": 434_419_760 * 512,
    }
    assert counters._disk_numbers("") == {}


def test_a_group_without_a_limit_reports_no_throttling() -> None:
    assert counters._throttled_s((TEXTS / "cpu_stat_of_root").read_text()) is None
    assert counters._throttled_s(LIMITED) == 0.970041


def test_the_control_group_is_found_at_the_mount_of_version_2() -> None:
    mountinfo, cgroup = ((TEXTS / name).read_text() for name in ("mountinfo", "cgroup"))
    assert counters._control_groups(mountinfo, cgroup) == [Path("/sys/fs/cgroup/unified")]


def test_throttling_of_ancestor_groups_is_counted() -> None:
    mountinfo = "35 24 0:30 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
    root = Path("/sys/fs/cgroup")
    found = counters._control_groups(mountinfo, "0::/user.slice/run.scope\n")
    assert found == [root / "user.slice/run.scope", root / "user.slice", root]


def test_only_groups_visible_in_a_container_are_read() -> None:
    mountinfo = "35 24 0:30 /docker/abc /sys/fs/cgroup ro - cgroup2 cgroup rw\n"
    assert counters._control_groups(mountinfo, "0::/docker/abc\n") == [Path("/sys/fs/cgroup")]
    assert counters._control_groups(mountinfo, "0::/elsewhere\n") == []
    assert counters._control_groups("", "") == []


def test_every_counter_of_this_host_is_described(tmp_path: Path) -> None:
    found = read_host(tmp_path)
    assert set(found) <= set(COUNTERS)
    assert {"host_cpu_s", "host_cpu_user_s", "host_steal_s", "host_iowait_s", "context_switches"} <= set(found)


def test_work_is_counted(tmp_path: Path) -> None:
    before = read_host(tmp_path)
    begin = time.process_time()
    while time.process_time() - begin < 0.3:
        pass
    grown = difference(before, read_host(tmp_path))
    assert grown["host_cpu_s"] >= 0.25
    assert 0 < grown["host_cpu_user_s"] <= grown["host_cpu_s"]


def test_a_directory_without_a_device_has_no_disk_counters(tmp_path: Path) -> None:
    assert not any(name.startswith("disk_") for name in read_host(Path("/dev/shm")))
    assert not any(name.startswith("disk_") for name in read_host(tmp_path / "vanished"))


def test_the_load_of_others_excludes_this_process_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """4 processors for 10 s: the host used 28 s, and 2 were stolen; 5 s were ours, and 1 s that of ended children.

    A child that still runs used 3 s, and another one has ended since it was listed.
    """

    def ended() -> SimpleNamespace:
        raise psutil.NoSuchProcess(1)

    running = iter([SimpleNamespace(user=1, system=0, children_user=0, children_system=0)])
    children = [SimpleNamespace(cpu_times=lambda: next(running)), SimpleNamespace(cpu_times=ended)]
    host = iter([SimpleNamespace(user=100, nice=0, system=20, irq=0, softirq=0, steal=3)] * 2)
    own = iter([SimpleNamespace(user=1, system=1, children_user=0, children_system=0)])
    monkeypatch.setattr(psutil, "cpu_times", lambda: next(host))
    this = SimpleNamespace(cpu_times=lambda: next(own), children=lambda recursive: children if recursive else [])
    monkeypatch.setattr(psutil, "Process", lambda: this)
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    before = OtherLoad.now()
    host = iter([SimpleNamespace(user=120, nice=2, system=24, irq=1, softirq=1, steal=5)])
    own = iter([SimpleNamespace(user=4, system=3, children_user=0.5, children_system=0.5)])
    running = iter([SimpleNamespace(user=2, system=1, children_user=1, children_system=0)])
    monkeypatch.setattr(time, "monotonic", lambda: before.moment_s + 10)
    assert before.share_since() == pytest.approx((28 + 2 - 5 - 1 - 3) / 40)


BUSY = "import time\nend = time.monotonic() + 10\nwhile time.monotonic() < end: pass"


def share_of_others() -> float:
    before = OtherLoad.now()
    time.sleep(0.5)
    return before.share_since()


@contextmanager
def busy(program: psutil.Process) -> Iterator[psutil.Process]:
    """A program that is killed at the end."""
    try:
        yield program
    finally:
        program.kill()
        program.wait()


def orphan() -> psutil.Process:
    """A busy program that is not a child of this process."""
    starter = (
        "import subprocess as s, sys\n"
        f"print(s.Popen([sys.executable, '-c', {BUSY!r}], stdout=s.DEVNULL, stderr=s.DEVNULL).pid)"
    )
    started = subprocess.run([sys.executable, "-c", starter], capture_output=True, text=True, check=True)
    return psutil.Process(int(started.stdout))


def test_a_busy_program_counts_as_the_load_of_others_unless_it_is_our_own() -> None:
    """On a busy host each program gets less, and the load of others changes at any time, so this is tried again."""

    def is_seen() -> bool:
        with busy(psutil.Popen([sys.executable, "-c", BUSY])) as own:
            began = time.monotonic()
            beside_own = share_of_others()
            used = own.cpu_times()
            share_of_own = (used.user + used.system) / (time.monotonic() - began) / (os.cpu_count() or 1)
        with busy(orphan()):
            beside_other = share_of_others()
        return share_of_own > 0 and beside_other > beside_own + share_of_own / 2

    assert any(is_seen() for _ in range(5))
