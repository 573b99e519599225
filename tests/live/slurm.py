"""A Slurm cluster of one node, this machine, whose files are all in one directory. Needs root."""

import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "scancel", "sinfo")
_CONFIGURATION = """
ClusterName=pgversus
SlurmctldHost={host}(127.0.0.1)
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
CommunicationParameters=NoInAddrAny,NoCtldInAddrAny
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={munge}
CredType=cred/munge
StateSaveLocation={directory}/state
SlurmdSpoolDir={directory}/spool
SlurmctldPidFile={directory}/slurmctld.pid
SlurmdPidFile={directory}/slurmd.pid
SlurmctldLogFile={directory}/slurmctld.log
SlurmdLogFile={directory}/slurmd.log
MpiDefault=none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/linear
SchedulerParameters=batch_sched_delay=0,sched_interval=2
KillWait=5
NodeName={host} NodeAddr=127.0.0.1 CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes={host} Default=YES MaxTime=INFINITE State=UP
"""


def is_installed() -> bool:
    """Whether Slurm is there, and may be started."""
    return os.geteuid() == 0 and all(map(shutil.which, PROGRAMS))


@contextmanager
def slurm_cluster() -> Iterator[Mapping[str, str]]:
    """A running cluster; yields the environment for its commands. Its jobs end with it."""
    with tempfile.TemporaryDirectory(prefix="pgversus-slurm-", dir="/tmp") as name:
        # The daemon of munge requires that others can enter the directory of its socket, and cannot write to it.
        Path(name).chmod(0o755)
        with _running(Path(name)) as environment:
            yield environment


@contextmanager
def _running(directory: Path) -> Iterator[Mapping[str, str]]:
    for name in ("state", "spool"):
        (directory / name).mkdir()
    munge, key = directory / "munge.socket", directory / "munge.key"
    key.write_bytes(secrets.token_bytes(128))
    key.chmod(0o400)
    configuration = directory / "slurm.conf"
    host, cpus = socket.gethostname().split(".")[0], os.cpu_count()
    configuration.write_text(
        _CONFIGURATION.format(host=host, cpus=cpus, ports=_free_ports(2), munge=munge, directory=directory)
    )
    files = {"socket": munge, "key-file": key, "pid-file": directory / "munge.pid", "seed-file": directory / "seed"}
    options = [f"--{name}={path}" for name, path in {**files, "log-file": directory / "munge.log"}.items()]
    environment = {"SLURM_CONF": str(configuration)}
    daemons = (
        ["munged", "--foreground", *options],
        ["slurmctld", "-D", "-f", str(configuration)],
        ["slurmd", "-D", "-f", str(configuration), "-N", host],
    )
    started: list[subprocess.Popen[bytes]] = []
    try:
        for command in daemons:
            started.append(_started(command, directory, environment))
            if command[0] == "munged":
                _wait_until(munge.exists)
        _wait_until(lambda: slurm_output(["sinfo", "--noheader", "--format=%t"], environment) == "idle")
        yield environment
        slurm_output(["scancel", "--user=root"], environment)
        _wait_until(lambda: not slurm_output(["squeue", "--noheader"], environment))
    finally:
        for daemon in reversed(started):
            daemon.terminate()
        for daemon in started:
            daemon.wait(30)


def slurm_output(command: Sequence[str], environment: Mapping[str, str]) -> str:
    """Run a command of Slurm and return its output."""
    finished = subprocess.run(
        command,
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, **environment},
    )
    return finished.stdout.strip()


def _started(command: list[str], directory: Path, environment: Mapping[str, str]) -> subprocess.Popen[bytes]:
    with (directory / f"{command[0]}.out").open("w") as log:
        return subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, env={**os.environ, **environment}
        )


def _wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.2)


def _free_ports(number: int) -> list[int]:
    sockets = [socket.socket() for _ in range(number)]
    for one in sockets:
        one.bind(("127.0.0.1", 0))
    ports: list[int] = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports
