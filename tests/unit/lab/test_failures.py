"""A failure of the host ends the run; a failure of one arm is a failed trial."""

import errno
from pathlib import Path

import pytest

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import DatasetError, ExitCode, HostError, PgversusError, ServerError, StoreError, WorkloadError
from pgversus.lab import failures
from pgversus.lab.arm_servers import ExternalServer
from pgversus.lab.failures import failing_the_trial, failures_of_arm, failures_of_the_host
from tests.builders import comparison

NO_ROOM = 'ERROR:  could not extend file "base/5/1": No space left on device'
SLUG = "host-disk-full"


def ended_by(error: Exception, directory: Path) -> HostError:
    with pytest.raises(HostError) as caught, failures_of_the_host(directory):
        raise error
    return caught.value


@pytest.mark.parametrize("kind", [DatasetError, ServerError, WorkloadError])
def test_messages_of_a_full_disk_are_failures_of_the_host(tmp_path: Path, kind: type[PgversusError]) -> None:
    error = ended_by(kind("it failed", slug="x", found=f"NOTICE: a\n{NO_ROOM}\n"), tmp_path)
    assert (error.slug, error.found) == (SLUG, NO_ROOM)


def test_failing_system_calls_are_failures_of_the_host(tmp_path: Path) -> None:
    full = ended_by(OSError(errno.ENOSPC, "No space left on device", "/x/script-0.sql"), tmp_path)
    assert (full.slug, full.where) == (SLUG, "/x/script-0.sql")
    broken = ended_by(OSError(errno.EIO, "Input/output error", "/x/log.1"), tmp_path)
    assert (broken.slug, broken.where, broken.found) == ("host-failed", "/x/log.1", "Input/output error")
    for error in (full, broken):
        assert "repeat the pgversus run command to resume" in error.to_do
        assert "pgversus compare cannot resume" in error.to_do


def test_a_real_full_device_is_recognized(tmp_path: Path) -> None:
    with pytest.raises(HostError) as caught, failures_of_the_host(tmp_path):
        Path("/dev/full").write_text("a script")
    assert caught.value.slug == SLUG


def test_a_full_disk_is_also_detected_without_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cut = TrialFailedError("pgbench counted 90 transactions and logged 57")
    with pytest.raises(TrialFailedError), failures_of_the_host(tmp_path):
        raise cut
    monkeypatch.setattr(failures, "has_no_room", lambda _: True)
    assert ended_by(cut, tmp_path).slug == SLUG


def test_other_failures_are_passed_on_unchanged(tmp_path: Path) -> None:
    for error in (
        DatasetError("the setup file failed", slug="dataset-load-failed", found="ERROR:  division by zero"),
        StoreError("results could not be written", slug="store-unwritable", found="No space left on device"),
        HostError("could not copy a cluster", slug="host-copy", found="No space left on device"),
        TrialFailedError("ERROR:  canceling statement due to statement timeout"),
    ):
        with pytest.raises(type(error)) as caught, failures_of_the_host(tmp_path):
            raise error
        assert caught.value is error


def ended_for_arm(error: TrialFailedError, directory: Path) -> PgversusError:
    server = ExternalServer(comparison().baseline, f"postgresql:///app?host={directory}/nothing")
    with pytest.raises(PgversusError) as caught, failures_of_arm(server, directory, Progress()):
        raise error
    assert caught.value.exit_code == ExitCode.HOST
    return caught.value


def test_a_full_disk_does_not_fail_a_trial(tmp_path: Path) -> None:
    assert ended_for_arm(TrialFailedError(NO_ROOM), tmp_path).slug == SLUG


def test_an_external_server_that_stays_away_does_not_fail_a_trial(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(failures, "_LONGEST_AWAY_S", 0.0)
    assert ended_for_arm(TrialFailedError("connection to server was lost"), tmp_path).slug == "server-away"


def test_an_error_of_an_arm_fails_its_trial_and_one_of_the_host_does_not() -> None:
    with pytest.raises(TrialFailedError, match="a session failed: FATAL: starting up"), failing_the_trial():
        raise ServerError("a session failed", slug="x", found="FATAL: starting up")
    for error in (HostError("could not copy a cluster", slug="x"), StoreError("no log can be stored", slug="x")):
        with pytest.raises(type(error)) as caught, failing_the_trial():
            raise error
        assert caught.value is error
