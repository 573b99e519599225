from pathlib import Path

from filelock import FileLock

from pgversus.host.leftovers import lock_file, remember_socket_directory, run_name, sweep

NO_PROCESS = 2**30
"""Beyond any process id."""


def make_run(runs: Path, name: str) -> Path:
    directory = runs / name
    directory.mkdir()
    lock_file(directory).touch()
    remember_socket_directory(directory, Path("/nowhere"))
    return directory


def test_a_dead_run_is_swept(tmp_path: Path) -> None:
    directory = make_run(tmp_path, run_name())
    assert sweep(tmp_path) == [directory.name]
    assert list(tmp_path.iterdir()) == []


def test_a_living_run_is_left_alone(tmp_path: Path) -> None:
    directory = make_run(tmp_path, run_name())
    with FileLock(lock_file(directory)):
        assert sweep(tmp_path) == []
    assert directory.exists()


def test_a_run_that_died_in_its_first_moments_is_swept(tmp_path: Path) -> None:
    lock_alone, with_directory = (tmp_path / f"run-20260101T000000-{NO_PROCESS + n}" for n in (1, 2))
    lock_file(lock_alone).touch()
    lock_file(with_directory).touch()
    with_directory.mkdir()
    assert sweep(tmp_path) == [lock_alone.name, with_directory.name]
    assert list(tmp_path.iterdir()) == []


def test_a_run_that_has_just_begun_keeps_its_lock(tmp_path: Path) -> None:
    lock_file(tmp_path / run_name()).touch()
    held = tmp_path / f"run-20260101T000000-{NO_PROCESS}"
    with FileLock(lock_file(held)):
        assert sweep(tmp_path) == []
        assert len(list(tmp_path.iterdir())) == 2


def test_what_is_no_run_of_ours_is_left_alone(tmp_path: Path) -> None:
    make_run(tmp_path, "experiment")
    without_lock = make_run(tmp_path, "run-20260101T000000-1")
    lock_file(without_lock).unlink()
    without_note = make_run(tmp_path, "run-20260101T000000-2")
    (without_note / "sockets").rename(without_note / "theirs")
    before = sorted(tmp_path.rglob("*"))
    assert sweep(tmp_path) == []
    assert sorted(tmp_path.rglob("*")) == before
