"""The client of a registry ends with pgversus, with whatever it has started."""

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

# A client that starts a program of its own, as some do.
CLIENT = 'sleep 60 & echo "$$ $!" > "$0.part"; mv "$0.part" "$0"; wait'
PROGRAM = "import sys; from pgversus.builds.families import _watch; _watch(sys.argv[1:], None, print)"


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
def test_a_client_ends_with_us(tmp_path: Path, number: signal.Signals) -> None:
    note = tmp_path / "pids"
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "/bin/sh", "-c", CLIENT, str(note)], stderr=subprocess.DEVNULL
    ) as process:
        client, started = waited_for(note)
        process.send_signal(number)
    assert has_ended(client)
    # After kill -9 nobody is left to end what the client has started.
    if number != signal.SIGKILL:
        assert has_ended(started)
    else:
        os.kill(started, signal.SIGKILL)


def test_a_client_that_does_not_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_LONGEST_S", 0.3)
    with pytest.raises(RegistryError, match="no end after"):
        module._watch(["/bin/sleep", "60"], None, lambda _: None)


def test_a_client_that_fetches_without_end_is_ended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 1 << 20)
    command = ["/bin/sh", "-c", 'head -c 3000000 /dev/zero > "$0"; sleep 60', str(tmp_path / "jar")]
    with pytest.raises(RegistryError, match="more than 1 MB"):
        module._watch(command, tmp_path, lambda _: None)


def printing(monkeypatch: pytest.MonkeyPatch, answer: str) -> None:
    """Let the clients of registries print something."""
    monkeypatch.setattr(module, "_watch", lambda *_: answer)


@pytest.mark.parametrize(
    "answer", ["", "{", "null", "1", "[" * 10_000, '{"versions": 1}', '{"versions": [1]}', "{}", "[17]", '["17", {}]']
)
def test_an_answer_that_is_none_is_the_failure_of_its_registry(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    printing(monkeypatch, answer)
    for source in module.SOURCES.values():
        with pytest.raises(RegistryError, match="something other than an answer"):
            source.versions(tmp_path)


@pytest.mark.parametrize("answer", ["[]", "{}", '{"path": 1, "sha256": "0"}', '{"path": "p.jar", "sha256": ""}'])
def test_an_artifact_without_a_path_or_a_checksum_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: str
) -> None:
    printing(monkeypatch, answer)
    with pytest.raises(RegistryError, match="something other than an answer"):
        module.ZonkyRegistry().fetch(Version(major=17, minor=8), tmp_path, lambda *_: None)


def test_what_is_no_version_of_postgresql_is_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    printing(monkeypatch, json.dumps(["17.8.0", "17.8.0-1", "9" * 5000 + ".1.0", "\u0661\u0667.8.0", "17.8", "18.0.0"]))
    assert [str(version) for version in module.ZonkyRegistry().versions(tmp_path)] == ["17.8", "18.0"]
