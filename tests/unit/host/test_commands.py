import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from pgversus.host.commands import (
    CLEAN_ENVIRONMENT,
    Finished,
    Output,
    Program,
    may_execute,
    may_read,
    run,
)
from pgversus.host.identity import server_user

END = 64 * 1024


def abridged(*chunks: bytes) -> bytes:
    output = Output(is_abridged=True)
    for chunk in chunks:
        output.add(chunk)
    return bytes(output)


@pytest.mark.parametrize("size", [0, 1, END - 1, END, END + 1, 2 * END])
def test_short_output_is_complete(size: int) -> None:
    content = bytes(number % 251 for number in range(size))
    assert abridged(content) == content
    assert abridged(*(content[at : at + 1000] for at in range(0, size, 1000))) == content


@pytest.mark.parametrize("piece", [7, 1000, 10 * END])
def test_long_output_loses_whole_lines_in_the_middle(piece: int) -> None:
    content = b"".join(b"%06d\n" % number for number in range(100_000))
    found = abridged(*(content[at : at + piece] for at in range(0, len(content), piece)))
    first, words, last = found.partition(b"... ")[0], found.partition(b"... ")[2], found.rpartition(b" ...\n")[2]
    assert content.startswith(first)
    assert content.endswith(last)
    assert END - 7 < len(first) <= END
    assert END - 7 < len(last) <= END
    assert first.endswith(b"\n")
    assert int(words.split()[0]) == len(content) - len(first) - len(last)


def test_a_single_long_line_is_cut() -> None:
    found = abridged(b"x" * (10 * END))
    assert found == b"x" * END + b"... %d bytes left out ...\n" % (8 * END) + b"x" * END


def test_output_is_complete_unless_abridged() -> None:
    output = Output()
    output.add(b"x" * (10 * END))
    assert output.text() == "x" * (10 * END)


SHELL = "/bin/sh"

# Uses 0.3 s of CPU time, whatever the load of the host.
BURN = "import time\nwhile time.process_time() < 0.3: pass"


def test_both_outputs_and_the_exit_code_are_separate() -> None:
    finished = run([SHELL, "-c", "echo out; echo err >&2; exit 3"])
    assert (finished.stdout, finished.stderr, finished.exit_code) == ("out\n", "err\n", 3)
    assert not finished.succeeded
    assert run([SHELL, "-c", "exit 0"]).succeeded


def test_invalid_bytes_are_decoded() -> None:
    assert run([SHELL, "-c", r"printf 'a\377b'"]).stdout == "a\ufffdb"


def test_the_exit_code_after_a_signal_is_negative() -> None:
    assert run([SHELL, "-c", "kill -TERM $$"]).exit_code == -signal.SIGTERM


def test_the_first_and_last_part_of_long_output_are_kept() -> None:
    flood = "i=0; while [ $i -lt 100000 ]; do echo line $i; i=$((i + 1)); done"
    finished = run([SHELL, "-c", f"({flood}) >&2; echo over"], is_abridged=True)
    assert finished.stdout == "over\n"
    lines = finished.stderr.splitlines()
    assert (lines[0], lines[-1]) == ("line 0", "line 99999")
    (cut,) = [line for line in lines if "left out" in line]
    whole = sum(len(f"line {number}\n") for number in range(100_000))
    assert int(cut.split()[1]) == whole - sum(len(line) + 1 for line in lines if line != cut)
    assert 120_000 < len(finished.stderr) < 132_000
    assert len(run([SHELL, "-c", flood]).stdout) == whole


def test_output_before_a_timeout_is_kept() -> None:
    finished = run([SHELL, "-c", "echo before; sleep 60"], timeout_s=1)
    assert (finished.stdout, finished.timed_out) == ("before\n", True)


def test_a_program_in_another_session_does_not_prolong_the_timeout() -> None:
    begun = time.monotonic()
    finished = run([SHELL, "-c", "setsid sleep 8 & echo before; sleep 60"], timeout_s=1)
    assert time.monotonic() - begun < 6
    assert (finished.stdout, finished.exit_code, finished.timed_out) == ("before\n", -signal.SIGKILL, True)


def test_a_program_whose_children_exceed_its_timeout_did_not_succeed() -> None:
    finished = run([SHELL, "-c", "sleep 60 & exit 0"], timeout_s=0.5)
    assert (finished.exit_code, finished.timed_out, finished.succeeded) == (0, True, False)


def test_a_flood_of_output_does_not_fill_memory() -> None:
    program = """
import resource
from pgversus.host.commands import run
limit = 2**20 * 200 + int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
print(len(run(["/bin/sh", "-c", "yes | head -c 500000000"], is_abridged=True).stdout))
"""
    (length,) = run([sys.executable, "-c", program], environment=os.environ).stdout.split()
    assert int(length) < 132_000


def test_a_program_that_exceeds_its_timeout_is_killed() -> None:
    finished = run(["/bin/sleep", "60"], timeout_s=0.1)
    assert finished.exit_code == -signal.SIGKILL
    assert not finished.succeeded


def test_a_missing_program_is_an_os_error() -> None:
    with pytest.raises(FileNotFoundError):
        run(["/nowhere/program"])


def test_arguments_are_passed_unchanged() -> None:
    awkward = ["a b", "$HOME", "'; exit 1", "*", ""]
    finished = run([SHELL, "-c", r'printf "%s\n" "$@"', "sh", *awkward])
    assert finished.stdout == "".join(f"{word}\n" for word in awkward)


def test_our_environment_is_not_inherited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGOPTIONS", "-c jit=off")
    found = dict(line.partition("=")[::2] for line in run(["/usr/bin/env"]).stdout.splitlines())
    assert found == dict(CLEAN_ENVIRONMENT)


def test_standard_input_is_empty() -> None:
    assert run(["/bin/cat"]).stdout == ""


def test_a_program_runs_in_the_given_directory(tmp_path: Path) -> None:
    assert run(["/bin/pwd"], directory=tmp_path).stdout.strip() == str(tmp_path.resolve())


def test_cpu_time_includes_children_of_the_program() -> None:
    alone = run([sys.executable, "-c", BURN])
    assert alone.cpu_s >= 0.3
    assert 0 < alone.cpu_user_s <= alone.cpu_s
    both = run([SHELL, "-c", '"$0" -c "$1"; "$0" -c "$1"', sys.executable, BURN])
    assert both.cpu_s >= 0.6


def test_system_time_is_distinguished_from_user_time() -> None:
    copying = run(["/bin/dd", "if=/dev/zero", "of=/dev/null", "bs=1M", "count=8000"])
    assert copying.cpu_user_s < copying.cpu_s / 2


def test_a_waiting_program_uses_no_cpu_time() -> None:
    assert run(["/bin/sleep", "0.2"]).cpu_s < 0.1


def test_cpu_time_excludes_programs_that_end_meanwhile(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    waited: list[Finished] = []
    thread = threading.Thread(target=lambda: waited.append(run(["/bin/cat", str(fifo)])))
    thread.start()
    # Starts and ends while the other one runs: a difference of RUSAGE_CHILDREN would include it.
    run([sys.executable, "-c", BURN])
    fifo.write_bytes(b"")
    thread.join()
    assert waited[0].cpu_s < 0.1


def test_a_killed_program_has_its_cpu_time() -> None:
    killed = run([sys.executable, "-c", "while True: pass"], timeout_s=1)
    assert killed.timed_out
    assert killed.cpu_s > 0.1


def test_a_program_with_ends_with_us_ends_after_kill_9(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = "import sys; from pgversus.host.commands import run; run(sys.argv[1:], ends_with_us=True)"
    script = 'echo $$ > "$0.part"; mv "$0.part" "$0"; exec sleep 60'
    parent = subprocess.Popen([sys.executable, "-c", code, SHELL, "-c", script, str(note)])
    wait_until(note.exists)
    program = psutil.Process(int(note.read_text()))
    assert program.is_running()
    parent.kill()
    parent.wait()
    program.wait(timeout=10)


def test_ends_with_us_does_not_affect_the_result() -> None:
    finished = run([SHELL, "-c", "echo out; echo err >&2; exit 3"], ends_with_us=True)
    assert (finished.stdout, finished.stderr, finished.exit_code) == ("out\n", "err\n", 3)
    assert run([SHELL, "-c", "kill -TERM $$"], ends_with_us=True).exit_code == -signal.SIGTERM


USER = server_user()


@pytest.mark.parametrize("ends_with_us", [False, True])
def test_a_program_of_the_servers_user_has_its_ids_and_none_of_our_groups(*, ends_with_us: bool) -> None:
    finished = run([SHELL, "-c", "id -u; id -g; id -G"], user=USER, ends_with_us=ends_with_us)
    groups = os.getgroups() if USER.is_self else []
    uid, gid, found = finished.stdout.splitlines()
    assert (int(uid), int(gid)) == (USER.uid, USER.gid)
    assert {int(group) for group in found.split()} == {USER.gid, *groups}


def test_a_program_of_another_user_gains_no_privileges() -> None:
    status = run(["/bin/cat", "/proc/self/status"], user=USER, ends_with_us=True).stdout
    fields = dict(line.split(":\t", maxsplit=1) for line in status.splitlines())
    assert fields["NoNewPrivs"] == ("0" if USER.is_self else "1")
    assert int(fields["CapEff"], 16) == 0 or USER.is_self


def test_a_program_of_another_user_does_not_start_in_a_directory_closed_to_that_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closed = tmp_path / "closed"
    (closed / "open").mkdir(parents=True, mode=0o755)
    (closed / "open" / "secret").write_text("secret")
    closed.chmod(0o700)
    monkeypatch.chdir(closed / "open")
    # The directory itself is open to all, so a process that starts in it can read it.
    finished = run(["/bin/cat", "secret"], user=USER, ends_with_us=True)
    assert finished.stdout == ("secret" if USER.is_self else "")
    assert run(["/bin/pwd"], user=USER).stdout.strip() == (str(Path.cwd()) if USER.is_self else "/")


def test_access_of_another_user_depends_on_all_parent_directories(tmp_path: Path) -> None:
    program = tmp_path / "program"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    tmp_path.chmod(0o700)
    assert may_read(USER, program) == may_execute(USER, program) == USER.is_self
    assert may_read(USER, Path(SHELL))
    assert may_execute(USER, Path(SHELL))
    assert not may_read(USER, tmp_path / "nothing") or USER.is_self


def test_a_program_of_another_user_ends_with_pgversus(tmp_path: Path) -> None:
    note = tmp_path / "pid"
    code = """
import sys
from pathlib import Path
from pgversus.host.identity import server_user
from pgversus.host.pausable import PausableProgram
program = PausableProgram(["/bin/sleep", "60"], environment={}, scratch=Path("/tmp"), user=server_user())
Path(sys.argv[1]).write_text(str(program.pid))
program.ended()
"""
    parent = subprocess.Popen([sys.executable, "-c", code, str(note)])
    wait_until(lambda: note.exists() and bool(note.read_text()))
    program = psutil.Process(int(note.read_text()))
    wait_until(lambda: program.name() == "sleep")
    assert program.uids().real == USER.uid
    parent.kill()
    parent.wait()
    program.wait(timeout=10)


def wait_until(happened: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 20
    while not happened():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_cpu_time_is_known_once_the_exit_code_is() -> None:
    command = [sys.executable, "-c", "sum(range(10**7)); raise SystemExit(7)"]
    program = Program(command, environment={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    wait_until(lambda: program.poll() is not None)
    assert program.returncode == 7
    assert program.cpu_s >= program.cpu_user_s > 0
    assert program.wait() == program.wait(timeout=1) == 7


def test_waiting_ends_after_the_timeout() -> None:
    program = Program(["sleep", "60"], environment={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    with pytest.raises(subprocess.TimeoutExpired):
        program.wait(timeout=0.05)
    program.kill()
    assert program.wait() == -signal.SIGKILL


def test_threads_that_wait_for_a_program_all_get_its_exit_code() -> None:
    for _ in range(20):
        command = ["sh", "-c", "exit 7"]
        program = Program(command, environment={}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        with ThreadPoolExecutor(3) as pool:
            waiting = [pool.submit(program.wait), pool.submit(program.wait, timeout=10), pool.submit(program.wait)]
        assert [each.result() for each in waiting] == [7, 7, 7]
