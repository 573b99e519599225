import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from pgversus.host.processes import PeakMemory, _together, cpu_time, memory_bytes, peak_resident_bytes, read_calls
from tests.builders import DATA

MEGABYTES = 1_000_000
TICK_S = 0.01

# Children that work, end and are reaped, like backends of a postmaster; some have a child of their own.
SHORT_LIVES = """
import os, time
def burn(seconds):
    begin = time.process_time()
    while time.process_time() - begin < seconds: pass
for number in range(20):
    child = os.fork()
    if not child:
        if number % 4 == 0:
            grandchild = os.fork()
            if not grandchild:
                burn(0.02)
                os._exit(0)
            os.waitpid(grandchild, 0)
        burn(0.02)
        os._exit(0)
    os.waitpid(child, 0)
"""

# A child that has used 0.3 s of CPU time ends, and is reaped, when its parent gets a line of input.
ENDS_WHEN_TOLD = """
import os, sys, time
worked, end = os.pipe(), os.pipe()
child = os.fork()
if not child:
    while time.process_time() < 0.3: pass
    os.write(worked[1], b"x")
    os.read(end[0], 1)
    os._exit(0)
os.read(worked[0], 1)
print("worked", flush=True)
sys.stdin.readline()
os.write(end[1], b"x")
os.waitpid(child, 0)
print("ended", flush=True)
sys.stdin.read()
"""

# Four processes share 50 MB, and all have touched every page.
SHARED = """
import mmap, os, sys, time
shared = mmap.mmap(-1, 50_000_000)
def touch():
    for offset in range(0, len(shared), 4096): shared[offset] = 1
touch()
ends = os.pipe()
for _ in range(3):
    if not os.fork():
        touch()
        os.write(ends[1], b"x")
        time.sleep(60)
        os._exit(0)
for _ in range(3): os.read(ends[0], 1)
print("ready", flush=True)
sys.stdin.read()
os.killpg(0, 9)
"""

# 60 MB are allocated for a while and freed, twice.
PEAKS = """
import time
for _ in range(2):
    held = b"x" * 60_000_000
    time.sleep(0.3)
    del held
    time.sleep(0.1)
"""


@contextmanager
def _program(text: str) -> Iterator["subprocess.Popen[bytes]"]:
    process = subprocess.Popen(
        [sys.executable, "-c", text], stdin=subprocess.PIPE, stdout=subprocess.PIPE, process_group=0
    )
    try:
        yield process
    finally:
        process.communicate()


def test_a_child_that_ends_between_readings_is_counted_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with _program(ENDS_WHEN_TOLD) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == b"worked\n"
        reported: list[bytes] = []
        ask = psutil.Process.cpu_times

        def ask_and_let_the_child_end(self: psutil.Process) -> object:
            times = ask(self)
            if not reported:
                assert process.stdin is not None
                assert process.stdout is not None
                process.stdin.write(b"end\n")
                process.stdin.flush()
                reported.append(process.stdout.readline())
            return times

        monkeypatch.setattr(psutil.Process, "cpu_times", ask_and_let_the_child_end)
        found = cpu_time(process.pid)
    assert reported == [b"ended\n"]
    assert found is not None
    # The child's 0.3 s and a few hundredths for starting Python.
    assert 0.3 - TICK_S <= found.user_s + found.system_s < 0.5


def test_cpu_time_of_a_tree_grows_monotonically_to_that_of_the_kernel() -> None:
    process = subprocess.Popen([sys.executable, "-c", SHORT_LIVES])
    pid = process.pid
    readings = []
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if (reading := cpu_time(pid)) is not None:
            readings.append(round(reading.user_s + reading.system_s, 2))
    _, process.returncode, used = os.wait4(pid, 0)
    total = used.ru_utime + used.ru_stime
    assert len(readings) > 20
    assert readings == sorted(readings)
    assert readings[-1] <= total + TICK_S
    assert readings[-1] >= total - 0.2
    assert total >= 20 * 0.02 + 5 * 0.02


READS = """
import subprocess, sys
subprocess.run(["dd", "if=/dev/zero", "of=/dev/null", "bs=1k", "count=3000"], stderr=subprocess.DEVNULL)
with open("/dev/zero", "rb", buffering=0) as file:
    for _ in range(2000):
        file.read(1)
print("done", flush=True)
sys.stdin.readline()
"""


def test_read_calls_include_those_of_ended_children() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", READS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdin is not None
        assert process.stdout.readline() == "done\n"
        calls = read_calls(process.pid)
        process.stdin.write("end\n")
    assert calls is not None
    # Starting Python reads a few hundred times.
    assert 5000 <= calls < 8000
    assert read_calls(process.pid) is None


def test_a_process_that_has_ended_has_no_cpu_time_and_memory() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    assert cpu_time(process.pid) is None
    assert memory_bytes(process.pid) is None


def test_shared_memory_is_counted_once() -> None:
    with _program(SHARED) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        held = memory_bytes(process.pid)
    assert held is not None
    assert 50 * MEGABYTES <= held < 100 * MEGABYTES


def test_the_peak_is_that_of_the_sampled_period() -> None:
    with _program(PEAKS) as process, PeakMemory(process.pid) as memory:
        process.wait()
    assert memory.peak_bytes is not None
    assert 60 * MEGABYTES <= memory.peak_bytes < 110 * MEGABYTES


def test_the_peak_without_samples_is_absent() -> None:
    process = subprocess.Popen(["/bin/true"])
    process.wait()
    with PeakMemory(process.pid) as memory:
        pass
    assert memory.peak_bytes is None


def test_sampling_survives_processes_that_end_meanwhile() -> None:
    with _program(SHORT_LIVES) as process, PeakMemory(process.pid) as memory:
        while process.poll() is None:
            memory_bytes(process.pid)
    assert memory.peak_bytes is not None


def test_an_error_of_the_load_is_raised_and_the_sampler_ends() -> None:
    memory = PeakMemory(os.getpid())
    with pytest.raises(KeyError), memory:
        raise KeyError
    assert not memory._thread.is_alive()


def test_shared_huge_pages_are_counted_once() -> None:
    plain = (DATA / "host" / "smaps_rollup").read_text()
    huge = plain.replace("Shared_Hugetlb:        0 kB", "Shared_Hugetlb:     4096 kB")
    more = huge.replace("Private_Hugetlb:       0 kB", "Private_Hugetlb:    2048 kB")
    assert len({plain, huge, more}) == 3
    assert _together([plain]) > 0
    assert _together([huge, more]) == _together([plain, plain]) + 1024 * (4096 + 2048)


def test_the_peak_memory_of_a_process_includes_freed_memory() -> None:
    script = "import sys; x = bytearray(80_000_000); del x; print('done', flush=True); sys.stdin.read()"
    with subprocess.Popen([sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        process.stdout.readline()
        most = peak_resident_bytes(process.pid)
        assert most is not None
        assert 80 * MEGABYTES < most < 200 * MEGABYTES
        process.kill()
    assert peak_resident_bytes(process.pid) is None
