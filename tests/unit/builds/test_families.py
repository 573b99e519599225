"""The client of a registry and its children end with pgversus, and its output is validated."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from pgversus.builds import families as module
from pgversus.builds.families import RegistryError
from pgversus.study.servers import Version

# A client that starts a child process, as some do.
CLIENT = 'sleep 60 & echo "$$ $!" > "$0.part"; mv "$0.part" "$0"; wait'
PROGRAM = """
import sys
from pathlib import Path
from pgversus.builds.families import _watch
_watch(sys.argv[1:], Path(sys.argv[-1]).parent)
"""


def waited_for(note: Path) -> list[int]:
    deadline = time.monotonic() + 20
    while not note.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return [int(pid) for pid in note.read_text().split()]


def has_ended(pid: int) -> bool:
    deadline = time.monotonic() + 10
    while is_running(pid):
        if time.monotonic() > deadline:
            os.kill(pid, signal.SIGKILL)
            return False
        time.sleep(0.02)
    return True


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_a_client_ends_with_pgversus(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "pids"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "/bin/sh", "-c", CLIENT, str(note)], stderr=subprocess.DEVNULL
    ) as process:
        client, started = waited_for(note)
        process.send_signal(number)
    assert has_ended(client)
    # After kill -9 no process is left to end the children of the client.
    if number != signal.SIGKILL:
        assert has_ended(started)
    else:
        os.kill(started, signal.SIGKILL)


def test_a_client_that_hangs_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_S", 0.3)
    with pytest.raises(RegistryError, match="did not finish within"):
        module._watch(["/bin/sleep", "60"], tmp_path)


def test_a_client_that_downloads_too_much_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    command = ["/bin/sh", "-c", 'head -c 3000000 /dev/zero > "$0"; sleep 60', str(tmp_path / "jar")]
    with pytest.raises(RegistryError, match="more than 1 MB"):
        module._watch(command, tmp_path)


def printing(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """Make the clients of registries print this output."""
    monkeypatch.setattr(module, "_watch", lambda *_: answer)


@pytest.mark.parametrize(
    "answer", ["", "{", "null", "1", "[" * 10_000, '{"versions": 1}', '{"versions": [1]}', "{}", "[17]", '["17", {}]']
)
def test_malformed_output_is_an_error_of_the_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    printing(monkeypatch, answer)
    for source in module.SOURCES.values():
        with pytest.raises(RegistryError, match="malformed output"):
            source.versions(tmp_path)


@pytest.mark.parametrize("answer", ["[]", "{}", '{"path": 1, "sha256": "0"}', '{"path": "p.jar", "sha256": ""}'])
def test_an_artifact_without_a_path_or_checksum_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    printing(monkeypatch, answer)
    with pytest.raises(RegistryError, match="malformed output"):
        module.ZonkyRegistry().fetch(Version(major=17, minor=8), tmp_path, lambda *_: None)


def test_invalid_versions_are_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing(monkeypatch, json.dumps(["17.8.0", "17.8.0-1", "9" * 5000 + ".1.0", "\u0661\u0667.8.0", "17.8", "18.0.0"]))
    assert [str(version) for version in module.ZonkyRegistry().versions(tmp_path)] == ["17.8", "18.0"]
