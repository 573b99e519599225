"""Output files are written completely or not at all, and keep their type, mode and owner."""

import os
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pgversus.errors import HostError
from pgversus.host.output_file import check_output, write_file

OTHER_USER = 65534


def pieces(ends_with: BaseException | None = None) -> Iterator[str]:
    yield "first, "
    if ends_with is not None:
        raise ends_with
    yield "second µ"


def test_pieces_are_written_in_order(tmp_path: Path) -> None:
    write_file(tmp_path / "f", pieces())
    assert (tmp_path / "f").read_text(encoding="utf-8") == "first, second µ"


@pytest.mark.parametrize("name", ["n" * 255, "\U0001f418" * 63], ids=["one byte each", "four bytes each"])
def test_a_name_may_be_as_long_as_the_file_system_allows(tmp_path: Path, name: str) -> None:
    write_file(tmp_path / name, "report")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {name: "report"}


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), OSError("no space left")])
def test_an_interrupted_write_leaves_the_earlier_file(tmp_path: Path, reason: BaseException) -> None:
    write_file(tmp_path / "f", "before")
    with pytest.raises((KeyboardInterrupt, HostError)):
        write_file(tmp_path / "f", pieces(reason))
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == {"f": "before"}


def test_a_fifo_remains_a_fifo_and_receives_the_content(tmp_path: Path) -> None:
    fifo = tmp_path / "fifo"
    os.mkfifo(fifo)
    received: list[str] = []
    reader = threading.Thread(target=lambda: received.append(fifo.read_text()), daemon=True)
    reader.start()
    write_file(fifo, "report")
    reader.join(timeout=10)
    assert received == ["report"]
    assert stat.S_ISFIFO(fifo.stat().st_mode)


def test_a_terminal_remains_a_device_and_receives_the_content() -> None:
    ours, theirs = os.openpty()
    try:
        device = Path(os.ttyname(theirs))
        write_file(device, "report")
        assert os.read(ours, 100) == b"report"
        assert stat.S_ISCHR(device.stat().st_mode)
    finally:
        os.close(ours)
        os.close(theirs)


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"])
@pytest.mark.parametrize("before", ["", "before\n"])
def test_standard_output_is_written_at_its_current_position(tmp_path: Path, name: str, before: str) -> None:
    program = f"""
import sys
from pathlib import Path
from pgversus.host.output_file import check_output, write_file
print({before!r}, end="", flush=True)
write_file(Path({name!r}), "report\\n")
print("after", flush=True)
"""
    redirected = tmp_path / "out"
    with redirected.open("w") as out:
        subprocess.run([sys.executable, "-c", program], check=True, stdout=out)
    assert redirected.read_text() == f"{before}report\nafter\n"
    piped = subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)
    assert piped.stdout == f"{before}report\nafter\n"


def test_a_symbolic_link_is_followed_and_preserved(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("second")
    (tmp_path / "second").symlink_to(Path("folder") / "target")
    for content in ("created", "replaced"):
        write_file(tmp_path / "link", content)
        assert (tmp_path / "folder" / "target").read_text() == content
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "second").is_symlink()


def test_a_loop_of_links_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    assert "symbolic links" in refused(tmp_path / "a").found


def test_links_to_directories_and_out_of_them_are_followed(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "link").symlink_to("a/b")
    (tmp_path / "a" / "b" / "up").symlink_to("../new/f")
    write_file(tmp_path / "link" / ".." / "beside", "1")
    write_file(tmp_path / "link" / "up", "2", with_folder=True)
    assert (tmp_path / "a" / "beside").read_text() == "1"
    assert (tmp_path / "a" / "new" / "f").read_text() == "2"


@pytest.mark.parametrize("permissions", [0o1777, 0o777])
@pytest.mark.parametrize("name", ["report.html", "charts/a/forest.svg", "../own/forest.svg"])
def test_a_link_of_another_user_in_a_shared_directory_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, permissions: int
) -> None:
    shared = tmp_path / "shared"
    shared.mkdir()
    shared.chmod(permissions)
    (tmp_path / "target").write_text("before")
    (shared / "report.html").symlink_to(tmp_path / "target")
    (shared / "charts").symlink_to(tmp_path / "new")
    (tmp_path / "own").symlink_to("shared/charts")
    give_away(shared, monkeypatch)
    with pytest.raises(HostError) as caught:
        write_file(shared / name, "after", with_folder=True)
    assert "symbolic link owned by user id" in caught.value.found
    assert (tmp_path / "target").read_text() == "before"
    assert not (tmp_path / "new").exists()


def give_away(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the contents of a directory belong to another user; as an ordinary user, pretend that they do."""
    if os.geteuid() == 0:
        for path in directory.iterdir():
            os.lchown(path, OTHER_USER, OTHER_USER)
    else:
        monkeypatch.setattr(Path, "stat", owned_by(0, Path.stat, lambda path: path == directory))
        monkeypatch.setattr(Path, "lstat", owned_by(os.getuid() + 1, Path.lstat, lambda path: path.parent == directory))


def test_a_file_or_folder_of_another_user_in_a_shared_directory_is_rejected(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o1777)
    (tmp_path / "report.html").write_text("before")
    (tmp_path / "charts").mkdir()
    give_away(tmp_path, monkeypatch)
    assert "report.html owned by user id" in refused(tmp_path / "report.html").found
    assert "charts owned by user id" in refused(tmp_path / "charts" / "forest.svg").found
    assert (tmp_path / "report.html").read_text() == "before"


def test_a_file_that_could_not_be_written_later_is_refused_in_advance(tmp_path: Path) -> None:
    for name in ("none/report.html", ""):
        with pytest.raises(HostError):
            check_output(tmp_path / name)
    for file in (tmp_path / "report.html", Path("/dev/null"), Path("/dev/stdout")):
        check_output(file)
    assert list(tmp_path.iterdir()) == []


def owned_by(
    user: int, real: Callable[..., os.stat_result], applies: Callable[[Path], bool]
) -> Callable[..., os.stat_result]:
    """Path.stat or Path.lstat, except that some files belong to this user."""

    def state(path: Path, **options: bool) -> os.stat_result:
        found = real(path, **options)
        return os.stat_result((*found[:4], user, user, *found[6:])) if applies(path) else found

    return state


@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o666, 0o4755])
def test_an_existing_file_keeps_its_mode_and_owner(tmp_path: Path, permissions: int) -> None:
    file = tmp_path / "report.html"
    file.write_text("before")
    if os.geteuid() == 0:
        os.chown(file, OTHER_USER, OTHER_USER)
    file.chmod(permissions)
    before = file.stat()
    write_file(file, "after")
    after = file.stat()
    assert file.read_text() == "after"
    assert after.st_ino != before.st_ino
    assert (after.st_mode, after.st_uid, after.st_gid) == (before.st_mode, before.st_uid, before.st_gid)


@pytest.mark.parametrize(("umask", "permissions"), [(0o022, 0o644), (0o077, 0o600), (0o000, 0o666)])
def test_the_umask_applies_to_a_new_file(tmp_path: Path, umask: int, permissions: int) -> None:
    before = os.umask(umask)
    try:
        write_file(tmp_path / "new", "report")
    finally:
        os.umask(before)
    assert stat.S_IMODE((tmp_path / "new").stat().st_mode) == permissions


def test_a_planted_temporary_file_is_not_written_through(tmp_path: Path) -> None:
    (tmp_path / "victim").write_text("before")
    (tmp_path / ".report.html.part").symlink_to("victim")
    write_file(tmp_path / "report.html", "report")
    assert (tmp_path / "victim").read_text() == "before"
    assert (tmp_path / "report.html").read_text() == "report"


@pytest.mark.parametrize("name", ["folder", "folder/.", "missing/report.html", "file/report.html", "n" * 300])
def test_a_target_that_is_not_a_file_is_reported(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    error = refused(tmp_path / name)
    assert (error.where, error.to_do) == (str(tmp_path / name), "specify a file in a directory that you can write to")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["file", "folder"]


def test_a_folder_is_created_on_request(tmp_path: Path) -> None:
    write_file(tmp_path / "one" / "two" / "chart.svg", b"<svg/>", with_folder=True)
    assert (tmp_path / "one" / "two" / "chart.svg").read_bytes() == b"<svg/>"


def refused(file: Path) -> HostError:
    with pytest.raises(HostError) as caught:
        write_file(file, "report")
    assert caught.value.slug == "host-output"
    return caught.value
