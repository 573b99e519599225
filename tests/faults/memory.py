"""Servers that get no more memory from a random moment on: they are refused it, or the kernel kills one for it."""

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
    """Give the servers that run now not a page more than they have; whether there was one."""
    found = [process for process in strike.processes[1:] if is_server(process)]
    for process in found:
        with suppress(psutil.NoSuchProcess):
            size = process.memory_info().vms
            # As their user: root may do it only with a capability that containers lack. They may end meanwhile.
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
    """Our control group in the hierarchy that limits memory (version 1); None where there is none to be seen."""
    mount = re.search(r"^\S+ \S+ \S+ / (\S+) .* - cgroup \S+ (?:\S+,)?memory\b", _text("mountinfo"), re.MULTILINE)
    own = re.search(r"^\d+:(?:[^:]+,)?memory(?:,[^:]+)?:(/.*)$", _text("cgroup"), re.MULTILINE)
    return Path(mount[1]) / own[1].lstrip("/") if mount and own else None


def _text(name: str) -> str:
    return Path("/proc/self", name).read_text(encoding="utf-8")


def _why_no_group() -> str:
    group = _own_group()
    if group is None:
        return "no control group of version 1 limits memory"
    return "" if os.access(group, os.W_OK) else "no control group may be made"


def _members(group: Path) -> list[str]:
    """What runs in a control group: command, state, seconds since it began."""
    found = []
    for pid in (group / "cgroup.procs").read_text().split():
        with suppress(psutil.NoSuchProcess):
            process = psutil.Process(int(pid))
            found.append(f"{process.cmdline()} ({process.status()}, {time.time() - process.create_time():.0f} s)")
    return found


@contextmanager
def _group() -> Iterator[Path]:
    """A control group below ours, for this try alone."""
    parent = _own_group()
    assert parent is not None
    group = parent / f"pgversus-fault-{os.getpid()}-{time.monotonic_ns()}"
    group.mkdir()
    try:
        yield group
    finally:
        # What has ended leaves it a moment later.
        deadline = time.monotonic() + 10
        while group.exists():
            with suppress(OSError):
                group.rmdir()
            assert time.monotonic() < deadline, f"still in use by {_members(group)}"
            time.sleep(0.05)


def _killed_for_memory(rng: Random, group: Path, strike: Strike) -> bool:
    """Put the servers into the group, which has room for a little of what they ask for from now on."""
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
        tries_in_tests=2,
    ),
    Fault(
        name="killed-for-memory",
        what="a control group gives servers no more memory, and the kernel kills what asks for it",
        play=_play_killed,
        tries=25,
        tries_in_tests=0,
        why_not=_why_no_group,
    ),
)
