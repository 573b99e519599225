"""Servers without further memory from a random moment on: allocations fail, or the kernel kills a process."""

import os
import re
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from random import Random

import psutil

from pgversus.host.identity import server_user
from tests.faults.fault import Fault, Outcome
from tests.faults.kills import WITH_SERVERS
from tests.faults.resuming import outcome_of
from tests.faults.study import RUN, write_study
from tests.faults.watched import Strike, is_server, watched
from tests.live.conftest import CommandLine


def _limited(strike: Strike) -> bool:
    """Limit the running servers to their current address space; return whether there were any."""
    found = [process for process in strike.processes[1:] if is_server(process)]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            size = process.memory_info().vms
            # As their user: root needs a capability that containers lack. Processes may end meanwhile.
            subprocess.run(
                ["prlimit", f"--pid={process.pid}", f"--as={size}:"],
                check=False,
                capture_output=True,
                **server_user().popen_arguments(),
            )
    return bool(found)


def _play(line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    with watched(line, *RUN) as run:
        run.strike(rng, WITH_SERVERS, _limited)
        return outcome_of(run, run.end())


def _own_group() -> Path | None:
    """Return the control group of this process that limits memory (version 1); None if not visible."""
    mount = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup \S+ (?:\S+,)?memory\b", _text("mountinfo"), re.MULTILINE)
    own = re.search(r"^\d+:(?:[^:]+,)?memory(?:,[^:]+)?:(/.*)$", _text("cgroup"), re.MULTILINE)
    return Path(mount[1]) / own[1].lstrip("/") if mount and own else None


def _text(name: str) -> str:
    return Path("/proc/self", name).read_text(encoding="utf-8")


def _why_no_group() -> str:
    group = _own_group()
    if group is None:
        return "no control group of version 1 limits memory"
    return "" if os.access(group, os.W_OK) else "no control group can be created"


def _members(group: Path) -> list[str]:
    """Return the processes in a control group: command, state, seconds since the start."""
    found = []
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            found.append(f"{process.cmdline()} ({process.status()}, {time.time() - process.create_time():.0f} s)")
    return found


@contextmanager
def _group() -> Iterator[Path]:
    """Yield a control group below that of this process, for this try only."""
    parent = _own_group()
    assert parent is not None
    group = parent / f"pgversus-fault-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group
    finally:
        # Processes leave it a moment after they have ended.
        deadline = time.monotonic() + 10
        while group.exists():
            with suppress(OSError):
                group.rmdir()
            assert time.monotonic() < deadline, f"still in use by {_members(group)}"
            time.sleep(0.05)


def _killed_for_memory(rng: Random, group: Path, strike: Strike) -> bool:
    """Move the servers into the group, which allows only a part of their further allocations."""
    found = [process for process in strike.processes[1:] if is_server(process)]
    if not found:
        return False
    (group / "memory.limit_in_bytes").write_text(str(rng.randint(1, 4) * 2**20))
    for process in found:
        with suppress(OSError):
            (group / "cgroup.procs").write_text(str(process.pid))
    return True


def _play_killed(line: CommandLine, rng: Random) -> Outcome:
    write_study(line, rng)
    with _group() as group:
        with watched(line, *RUN) as run:
            run.strike(rng, WITH_SERVERS, partial(_killed_for_memory, rng, group))
            first = run.end()
            kills = re.search(r"^oom_kill (\d+)$", (group / "memory.oom_control").read_text(), re.MULTILINE)
            found = outcome_of(run, first)
        return replace(found, end=f"{int(kills[1]) if kills else 0} killed; {found.end}")


MEMORY = (
    Fault(
        name="no-memory",
        what="servers that run at the moment get no more memory",
        play=_play,
        tries=25,
    ),
    Fault(
        name="killed-for-memory",
        what="a control group gives servers no more memory, and the kernel kills what asks for it",
        play=_play_killed,
        tries=25,
        is_tested=False,
        why_not=_why_no_group,
    ),
)
