"""No archive writes outside of its target, and rejected archives leave no files."""

import bz2
import errno
import gzip
import lzma
import os
import signal
import subprocess
import sys
import tarfile
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from pgversus.builds import unpacking as module
from pgversus.builds.unpacking import ArchiveError, _in_child, take_over, unpack
from pgversus.host.identity import ServerUser, server_user
from tests.unit.builds.archives import NOISE, Member, directory, file, hard_link, link, packed, special, zipped

USER = server_user()
"""As root an unprivileged one, else the user of the tests."""


def refused(archive: Path, *, inner: str = "") -> str:
    """Return why an archive is rejected, after checking that it left no files at its target or next to it."""
    before = sorted(archive.parent.iterdir())
    with pytest.raises(ArchiveError) as caught:
        unpack(archive, archive.parent / "target", USER, inner=inner)
    assert sorted(archive.parent.iterdir()) == before
    return str(caught.value)


@pytest.mark.parametrize("name", ["p.tar", "p.tar.gz", "p.tgz", "p.tar.bz2", "p.tar.xz"])
def test_an_archive_is_unpacked_with_its_links(tmp_path: Path, name: str) -> None:
    archive = packed(
        tmp_path / name,
        directory("./"),
        directory("./lib/"),
        file("./lib/libpq.so.5.17", b"elf", mode=0o755),
        link("./lib/libpq.so", "libpq.so.5.17"),
        file("share//zone/UTC", b"utc"),
        hard_link("share/zone/Zulu", "./share/zone/UTC"),
        link("share/zone/lib", "../../lib/./"),
        link("share/here", "."),
        directory("lib"),
    )
    unpack(archive, tmp_path / "target", USER)
    target = tmp_path / "target"
    assert (target / "lib" / "libpq.so").read_bytes() == b"elf"
    assert (target / "share" / "zone" / "lib" / "libpq.so").read_bytes() == b"elf"
    assert (target / "share" / "zone" / "Zulu").samefile(target / "share" / "zone" / "UTC")
    assert sorted(path.name for path in tmp_path.iterdir()) == [name, "target"]


def test_unpacked_files_belong_to_us_and_are_writable_by_us_only(tmp_path: Path) -> None:
    archive = packed(
        tmp_path / "p.tar",
        special("tmp", tarfile.DIRTYPE),
        file("tmp/su", b"#!/bin/sh\n", mode=0o7777),
        file("tmp/text", b"text", mode=0o7666),
        file("tmp/closed", b"text", mode=0),
        hard_link("tmp/again", "tmp/su"),
        link("tmp/link", "su"),
    )
    umask = os.umask(0o077)
    try:
        unpack(archive, tmp_path / "target", USER)
    finally:
        os.umask(umask)
    target = tmp_path / "target"
    found = {str(path.relative_to(target)): path.lstat() for path in (target, *target.rglob("*"))}
    assert {(state.st_uid, state.st_gid) for state in found.values()} == {(os.geteuid(), os.getegid())}
    assert {name: f"{state.st_mode & 0o7777:o}" for name, state in found.items() if name != "tmp/link"} == {
        ".": "755",
        "tmp": "755",
        "tmp/su": "755",
        "tmp/again": "755",
        "tmp/text": "644",
        "tmp/closed": "600",
    }


def test_file_times_are_preserved(tmp_path: Path) -> None:
    member, content = file("configure", b"#!/bin/sh\n" * 100)
    member.mtime = 1_700_000_000
    unpack(packed(tmp_path / "p.tar", (member, content)), tmp_path / "target", USER)
    assert (tmp_path / "target" / "configure").stat().st_mtime == 1_700_000_000


LINK = link("link", ".")
FILE = file("file", b"here")
SPARSE = file("s")
SPARSE[0].pax_headers = {"GNU.sparse.map": "0,0", "GNU.sparse.size": str(1 << 50)}


@pytest.mark.parametrize(
    ("members", "why"),
    [
        ([file("/tmp/absolute")], "the name '/tmp/absolute'"),
        ([file("../outside")], "the name '../outside'"),
        ([file("a/../../outside")], "the name 'a/../../outside'"),
        ([file("a/..")], "the name 'a/..'"),
        ([directory("../outside/")], "the name '../outside'"),
        ([file("a", path="a\0b")], r"the name 'a\x00b'"),
        ([file("/".join(["d" * 250] * 4))], "is too long"),
        ([file("é" * 128)], "is too long"),
        ([file("/".join("d" * 101))], "is too long"),
        ([link("l", "/etc/passwd")], "the link 'l' to '/etc/passwd'"),
        ([link("l", "..")], "the link 'l' to '..'"),
        ([link("a/l", "../../b")], "the link 'a/l' to '../../b'"),
        ([link("a/b/l", "./../../../b")], "the link 'a/b/l'"),
        ([link("a/l", "b/..")], "the link 'a/l' to 'b/..'"),
        ([link("l", "t" * 1001)], "the link 'l'"),
        ([hard_link("h", "/etc/passwd")], "the name '/etc/passwd'"),
        ([hard_link("h", "../outside")], "the name '../outside'"),
        ([hard_link("h", "later"), file("later")], "'h' is a hard link to 'later'"),
        ([LINK, hard_link("h", "link")], "'h' is a hard link to 'link'"),
        ([directory("d"), hard_link("h", "d")], "'h' is a hard link to 'd'"),
        ([LINK, file("link/file")], "'link' is not a directory"),
        ([LINK, directory("link/directory")], "'link' is not a directory"),
        ([LINK, link("link/l", "file")], "'link' is not a directory"),
        ([FILE, LINK, hard_link("link/h", "file")], "'link' is not a directory"),
        ([FILE, LINK, hard_link("h", "link/file")], "'h' is a hard link to 'link/file'"),
        ([FILE, file("file/file")], "'file' is not a directory"),
        ([LINK, file("link")], "'link' occurs twice"),
        ([LINK, directory("link")], "'link' is not a directory"),
        ([LINK, link("./link", "elsewhere")], "'link' occurs twice"),
        ([FILE, hard_link("file", "file")], "'file' occurs twice"),
        ([FILE, file("file", b"other")], "'file' occurs twice"),
        ([file("d/file"), link("d", ".")], "'d' occurs twice"),
        ([special("null", tarfile.CHRTYPE)], "'null' is neither a file"),
        ([special("disk", tarfile.BLKTYPE)], "'disk' is neither a file"),
        ([special("fifo", tarfile.FIFOTYPE)], "'fifo' is neither a file"),
        ([special("new", b"Z")], "'new' is neither a file"),
        ([SPARSE], "'s' is neither a file"),
        ([file("t", mtime="nan")], "NaN"),
        ([file("t", mtime="1e300")], "out of range"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_an_archive_with_an_unsafe_member_is_rejected(tmp_path: Path, members: list[Member], why: str) -> None:
    assert why in refused(packed(tmp_path / "p.tar.gz", file("before", b"before"), *members))


def test_links_that_together_lead_outside_are_rejected(tmp_path: Path) -> None:
    # CVE-2025-4517: below this many directories with long names realpath() gives up, and so does Python's filter.
    outside = tmp_path / "outside"
    outside.write_text("as it was")
    members, path, long = [], "", "d" * 247
    for step in "abcdefghijklmnop":
        members += [directory(f"{path}{long}"), link(f"{path}{step}", long)]
        path += f"{long}/"
    chain = "/".join([*"abcdefghijklmnop", "l" * 254])
    members += [
        link(chain, "../" * 16),
        link("escape", f"{chain}/../.."),
        hard_link("alias", "escape/outside"),
        file("alias", b"written"),
    ]
    deep = tmp_path / "deep"
    deep.mkdir()
    assert "'d" in refused(packed(deep / "p.tar", *members))
    assert outside.read_text() == "as it was"


def test_a_link_is_judged_by_its_text_alone(tmp_path: Path) -> None:
    # Both lead inside as text; through the first, the second would lead to the directory above the root.
    members = [directory("a/b"), link("a/b/top", "../.."), link("up", "a/b/top/..")]
    assert "the link 'up'" in refused(packed(tmp_path / "p.tar", *members))


@pytest.mark.parametrize("name", ["p.tar", "p.tar.gz", "p.tar.bz2", "p.tar.xz"])
@pytest.mark.parametrize("tenths", range(10))
def test_an_archive_truncated_anywhere_is_rejected(tmp_path: Path, name: str, tenths: int) -> None:
    archive = packed(tmp_path / name, file("a", NOISE), file("b", NOISE))
    archive.write_bytes(archive.read_bytes()[: archive.stat().st_size * tenths // 10])
    assert refused(archive)


def test_an_archive_truncated_between_members_is_rejected(tmp_path: Path) -> None:
    archive = packed(tmp_path / "p.tar", file("a", bytes(512)), file("b", bytes(512)))
    archive.write_bytes(archive.read_bytes()[:1024])
    assert "truncated or damaged" in refused(archive)


def test_an_archive_with_a_damaged_header_is_rejected(tmp_path: Path) -> None:
    archive = packed(tmp_path / "p.tar", file("a", bytes(512)), file("b", bytes(512)))
    content = bytearray(archive.read_bytes())
    content[1024 + 100] ^= 1
    archive.write_bytes(content)
    assert "truncated or damaged" in refused(archive)


@pytest.mark.parametrize("name", ["p.tar.gz", "p.tar.bz2", "p.tar.xz"])
def test_a_checksum_after_the_last_member_is_verified(tmp_path: Path, name: str) -> None:
    archive = packed(tmp_path / name, file("a", NOISE))
    content = bytearray(archive.read_bytes())
    content[len(content) // 2] ^= 1
    archive.write_bytes(content)
    assert refused(archive)


@pytest.mark.parametrize("content", [b"", b"<html>not found</html>" * 100, b"BZh", b"\x1f\x8b", b"\xfd7zXZ\x00"])
def test_a_file_that_is_not_an_archive_is_rejected(tmp_path: Path, content: bytes) -> None:
    archive = tmp_path / "p.tar"
    archive.write_bytes(content)
    assert refused(archive)


def test_a_missing_archive_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        unpack(tmp_path / "p.tar", tmp_path / "target", USER)


@pytest.mark.parametrize("suffix", [".tar.gz", ".txz"])
def test_the_only_archive_in_a_zip_archive_is_unpacked(tmp_path: Path, suffix: str) -> None:
    inner = packed(tmp_path / f"inner{suffix}", file("bin/postgres", NOISE))
    outer = zipped(tmp_path / "p.jar", inner)
    unpack(outer, tmp_path / "target", USER, inner=suffix)
    assert (tmp_path / "target" / "bin" / "postgres").read_bytes() == NOISE
    assert "expected one *.zst in it, found 0" in refused(outer, inner=".zst")
    other = packed(tmp_path / f"other{suffix}", file("bin/postgres"))
    assert f"expected one *{suffix} in it, found 2" in refused(zipped(tmp_path / "two.jar", inner, other), inner=suffix)


@pytest.mark.parametrize("tenths", range(10))
def test_a_zip_archive_truncated_anywhere_is_rejected(tmp_path: Path, tenths: int) -> None:
    outer = zipped(tmp_path / "p.jar", packed(tmp_path / "inner.txz", file("bin/postgres", NOISE)))
    outer.write_bytes(outer.read_bytes()[: outer.stat().st_size * tenths // 10])
    assert refused(outer, inner=".txz")


def test_a_malicious_archive_in_a_zip_archive_is_rejected(tmp_path: Path) -> None:
    inner = packed(tmp_path / "inner.txz", link("bin", "/bin"), file("bin/postgres"))
    assert "the link 'bin'" in refused(zipped(tmp_path / "p.jar", inner), inner=".txz")


def test_an_oversized_member_is_rejected_before_it_is_written(tmp_path: Path) -> None:
    member, _ = file("big")
    member.size = module.MOST_BYTES + 1
    archive = tmp_path / "p.tar"
    archive.write_bytes(member.tobuf() + bytes(10_240))
    began = time.monotonic()
    assert "it has more than 2048 MB unpacked" in refused(archive)
    assert time.monotonic() - began < 10


def test_a_negative_size_is_rejected(tmp_path: Path) -> None:
    member, _ = file("less")
    member.size = -(1 << 20)
    archive = tmp_path / "p.tar"
    archive.write_bytes(member.tobuf(tarfile.GNU_FORMAT) + bytes(10_240))
    assert refused(archive)


@pytest.mark.parametrize("compress", [gzip.compress, bz2.compress, lzma.compress])
def test_a_bomb_stops_at_the_limit_wherever_its_bytes_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compress: Callable[[bytes], bytes]
) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 20)
    header, _ = file("half")
    header.size = 1 << 19
    members = tmp_path / "members.tar"
    members.write_bytes(compress((header.tobuf() + bytes(header.size)) + bytes(1024)))
    unpack(members, tmp_path / "half", USER)
    twice = tmp_path / "twice.tar"
    other, _ = file("other half")
    other.size = header.size
    twice.write_bytes(compress(header.tobuf() + bytes(header.size) + other.tobuf() + bytes(header.size) + bytes(1024)))
    assert "it has more than 1 MB unpacked" in refused(twice)
    # 6 GB in a few kilobytes after the end of the archive: each format may be repeated.
    behind = tmp_path / "behind.tar"
    behind.write_bytes(members.read_bytes() + compress(bytes(1 << 24)) * 400)
    assert "it has more than 1 MB unpacked" in refused(behind)


def test_a_bomb_inside_a_zip_archive_stops_at_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_BYTES", 1 << 20)
    inner = tmp_path / "inner.tar"
    inner.write_bytes(bytes(1 << 22))
    assert "it has more than 1 MB unpacked" in refused(zipped(tmp_path / "p.jar", inner), inner=".tar")


@pytest.mark.parametrize(
    "members",
    [[file(str(number)) for number in range(11)], [directory("d")] * 11, [file("/".join("0123456789x"))]],
    ids=["files", "one directory again and again", "directories without a header"],
)
def test_too_many_members_are_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, members: list[Member]) -> None:
    monkeypatch.setattr(module, "MOST_MEMBERS", 10)
    unpack(packed(tmp_path / "p.tar", *members[:10][: len(members) - 1]), tmp_path / "ten", USER)
    assert "it has more than 10 members" in refused(packed(tmp_path / "p.tar", *members))


def test_a_header_that_takes_all_memory_is_rejected(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_MEMORY_BYTES", 64 << 20)
    long_name, _ = special("long", tarfile.GNUTYPE_LONGNAME)
    long_name.size = 512 << 20
    archive = tmp_path / "p.tar"
    archive.write_bytes(gzip.compress(long_name.tobuf()) + gzip.compress(bytes(1 << 24)) * 33)
    assert refused(archive) == "unpacking it takes more than 64 MB of memory"


def test_endless_headers_are_rejected(tmp_path: Path) -> None:
    archive = tmp_path / "p.tar"
    archive.write_bytes(special("x", tarfile.XHDTYPE)[0].tobuf() * 5000 + bytes(1024))
    assert "recursion" in refused(archive)


def spin() -> None:
    while True:
        pass


def test_unpacking_stops_at_the_limit_of_cpu_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_CPU_S", 1)
    with pytest.raises(ArchiveError, match="more than 1 s of CPU time"):
        in_child(spin, tmp_path)


def in_child(work: Callable[[], None], tmp_path: Path) -> Path:
    """Run some work in the unpacking process, with an archive open, and return its directory."""
    place = tmp_path / "place"
    place.mkdir()
    USER.change_owner(place)
    with (tmp_path / "archive").open("wb") as archive:
        _in_child(work, place, USER, archive_fd=archive.fileno())
    return place


def look_around() -> None:
    Path("status").write_text(Path("/proc/self/status").read_text())
    links = list(Path("/proc/self/fd").iterdir())
    Path("files").write_text("\n".join(str(path.readlink()) for path in links if path.is_symlink()))


def test_the_unpacking_process_has_no_privileges_and_none_of_our_files(tmp_path: Path) -> None:
    with (tmp_path / "secret").open("wb"):
        place = in_child(look_around, tmp_path)
    status = dict(line.split(":\t", 1) for line in (place / "status").read_text().splitlines())
    assert status["Uid"].split() == [str(USER.uid)] * 4
    assert status["Gid"].split() == [str(USER.gid)] * 4
    if not USER.is_self:
        assert (status["Groups"].split(), int(status["CapEff"], 16), int(status["CapPrm"], 16)) == ([], 0, 0)
    files = set((place / "files").read_text().splitlines())
    assert {name for name in files if not name.startswith("pipe:")} == {os.devnull, str(tmp_path / "archive")}


def test_a_full_disk_is_an_os_error(tmp_path: Path) -> None:
    def write() -> None:
        Path("/dev/full").write_text("anything")

    with pytest.raises(OSError, match="No space left") as caught:
        in_child(write, tmp_path)
    assert caught.value.errno == errno.ENOSPC


def test_a_killed_unpacking_process_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ArchiveError, match="was killed"):
        in_child(lambda: os.kill(os.getpid(), signal.SIGKILL), tmp_path)


ENDLESS = """
import os, sys
from pathlib import Path
from pgversus.host.identity import server_user
from pgversus.builds import unpacking
unpacking.MOST_BYTES = 1 << 60
unpacking.unpack(Path("/dev/zero"), Path(sys.argv[1]), server_user())
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGKILL])
def test_the_unpacking_process_ends_with_pgversus(tmp_path: Path, number: signal.Signals) -> None:
    command = ["env", "--default-signal=INT", sys.executable, "-c", ENDLESS, str(tmp_path / "target")]
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        (child,) = waited_for(lambda: psutil.Process(process.pid).children())
        process.send_signal(number)
    assert waited_for(lambda: [] if is_running(child) else [child])
    assert not (tmp_path / "target").exists()
    if number != signal.SIGKILL:
        assert list(tmp_path.iterdir()) == []


def waited_for(found: Callable[[], list[psutil.Process]]) -> list[psutil.Process]:
    deadline = time.monotonic() + 20
    while not (value := found()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    return value


def is_running(process: psutil.Process) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


WITHOUT_IMPORTS = """
import sys
from pathlib import Path
from pgversus.host.identity import server_user
from pgversus.builds import unpacking

class Refusing:
    def find_spec(self, name, path=None, target=None):
        raise AssertionError(f"{name} is imported")

def confine(*arguments, confine=unpacking._confine):
    sys.meta_path[:] = [Refusing()]
    confine(*arguments)

unpacking._confine = confine
archive, target, inner = sys.argv[1:]
unpacking.unpack(Path(archive), Path(target), server_user(), inner=inner)
"""


@pytest.mark.parametrize("suffix", [".tar", ".tar.gz", ".tar.bz2", ".txz"])
def test_the_servers_user_need_not_be_able_to_read_our_python(tmp_path: Path, suffix: str) -> None:
    inner = packed(tmp_path / f"inner{suffix}", file("é" * 100, b"text"), link("link", "é" * 100))
    outer = zipped(tmp_path / "p.jar", inner)
    for number, (archive, inside) in enumerate([(inner, ""), (outer, suffix)]):
        arguments = [str(archive), str(tmp_path / f"target{number}"), inside]
        subprocess.run([sys.executable, "-c", WITHOUT_IMPORTS, *arguments], check=True)
        assert (tmp_path / f"target{number}" / "link").read_text() == "text"


def test_a_tree_is_taken_over_without_following_its_links(tmp_path: Path) -> None:
    outside, tree = tmp_path / "outside", tmp_path / "tree"
    outside.write_text("not of the tree")
    (tree / "a").mkdir(parents=True)
    (tree / "a" / "file").touch()
    (tree / "a" / "link").symlink_to(outside)
    (tree / "up").symlink_to(tmp_path)
    for path in (outside, tree, *tree.rglob("*")):
        os.lchown(path, USER.uid, USER.gid)
    take_over(tree, USER)
    assert {path.lstat().st_uid for path in (tree, *tree.rglob("*"))} == {os.geteuid()}
    assert outside.stat().st_uid == USER.uid


def test_a_tree_with_a_file_of_another_user_is_not_taken_over(tmp_path: Path) -> None:
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree" / "shadow").touch()
    other = ServerUser(name="other", uid=os.geteuid() + 1, gid=os.getegid() + 1, is_self=False)
    with pytest.raises(ArchiveError, match="is not owned by other, the user that unpacked it"):
        take_over(tmp_path / "tree", other)
