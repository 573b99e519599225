"""Archives with malicious tar headers, links, compression and sizes, unpacked next to a file that must not change."""

import bz2
import errno
import gzip
import io
import lzma
import os
import tarfile
import zipfile
from functools import cache
from pathlib import Path
from random import Random

from pgversus.builds.unpacking import ArchiveError, unpack
from pgversus.host.identity import ServerUser, server_user
from tests.fuzz.mutations import CONTROLS, changed_bytes
from tests.fuzz.target import Target
from tests.fuzz.watching import Effects
from tests.unit.builds.archives import Member, directory, file, hard_link, link, special

_NAMES = (
    *("bin", "bin/postgres", "lib/libpq.so", "lib", "share/zone/UTC", "a/b/c/d", "x", "./x", "x/", "x//y", "."),
    *("..", "../x", "a/../../x", "/etc/passwd", "/", "", "a/..", "bin/../x", "x" * 300, "d/" * 120 + "x", *CONTROLS),
)
_TARGETS = (*_NAMES, "../lib/libpq.so", "../../../../etc/passwd", "/proc/self/fd/0", "../../beside", "postgres")
_KINDS = (tarfile.CHRTYPE, tarfile.BLKTYPE, tarfile.FIFOTYPE, tarfile.CONTTYPE, tarfile.GNUTYPE_SPARSE, b"V", b"\xff")
_COMPRESSED = (bytes, gzip.compress, bz2.compress, lzma.compress)
_BESIDE = "beside"


def _member(rng: Random) -> Member:
    name, target = rng.choice(_NAMES), rng.choice(_TARGETS)
    match rng.randrange(8):
        case 0:
            return directory(name)
        case 1:
            return link(name, target)
        case 2:
            return hard_link(name, target)
        case 3:
            return special(name, rng.choice(_KINDS), target)
        case 4:
            member, content = file(name, b"text")
            key = rng.choice(["path", "linkpath", "size"])
            member.pax_headers = {key: rng.choice(["-1", "9" * 20, "x", "3"]) if key == "size" else target}
            return member, content
        case _:
            return file(name, rng.randbytes(rng.choice([0, 1, 600])), mode=rng.choice([0o644, 0o7777, 0]))


def _packed(rng: Random) -> bytes:
    members = [file("bin/postgres", b"elf", mode=0o755), link("lib/libpq.so", "libpq.so.5")]
    members += [_member(rng) for _ in range(rng.randrange(5))]
    rng.shuffle(members)
    content = io.BytesIO()
    kind = rng.choice([tarfile.GNU_FORMAT, tarfile.PAX_FORMAT, tarfile.USTAR_FORMAT])
    with tarfile.open(fileobj=content, mode="w", format=kind, encoding="utf-8", errors="surrogateescape") as archive:
        for member, text in members:
            try:
                archive.addfile(member, io.BytesIO(text))
            except ValueError:
                # The format cannot hold this name.
                continue
    return content.getvalue()


def _make(rng: Random) -> tuple[bytes, str]:
    plain = _packed(rng)
    if rng.random() < 0.5:
        plain = _with_checksums(changed_bytes(plain[:10_240], _packed(rng)[:10_240], rng))
    content = rng.choice(_COMPRESSED)(plain)
    inner = ""
    if rng.random() < 0.3:
        inner = ".txz"
        outer = io.BytesIO()
        with zipfile.ZipFile(outer, "w", zipfile.ZIP_DEFLATED) as archive:
            for name in rng.choice([["p.txz"], ["../p.txz"], ["p.txz", "q.txz"], ["p.jar"]]):
                archive.writestr(name, content)
        content = outer.getvalue()
    if rng.random() < 0.3:
        content = changed_bytes(content, plain, rng)
    return content, inner


def _with_checksums(content: bytes) -> bytes:
    """Return the archive with valid header checksums, so that more than the checksums is tested."""
    changed = bytearray(content)
    for begin in range(0, len(changed) - tarfile.BLOCKSIZE + 1, tarfile.BLOCKSIZE):
        block = changed[begin : begin + tarfile.BLOCKSIZE]
        if block[257:262] == b"ustar":
            changed[begin + 148 : begin + 156] = b"%06o\0 " % (sum(block[:148]) + 8 * 32 + sum(block[156:]))
    return bytes(changed)


@cache
def _user() -> ServerUser:
    return server_user()


def _unpack(subject: tuple[bytes, str], folder: Path) -> bool:
    content, inner = subject
    archive, beside, target = folder / "archive", folder / _BESIDE, folder / "target"
    archive.write_bytes(content)
    beside.write_text("kept")
    try:
        unpack(archive, target, _user(), inner=inner)
    except (ArchiveError, OSError):
        assert sorted(path.name for path in folder.iterdir()) == ["archive", _BESIDE]
        return False
    finally:
        assert beside.read_text() == "kept"
        assert archive.read_bytes() == content
    assert sorted(path.name for path in folder.iterdir()) == ["archive", _BESIDE, "target"]
    root = target.resolve()
    for path in target.rglob("*"):
        state = path.lstat()
        assert state.st_uid == os.geteuid(), path
        assert path.is_symlink() or not state.st_mode & 0o7022, path
        assert path.is_symlink() or path.is_dir() or path.is_file(), path
        assert _leads_nowhere(path) or path.resolve().is_relative_to(root), path
    return True


def _leads_nowhere(path: Path) -> bool:
    """Return whether the kernel finds a loop of links; pathlib returns arbitrary paths for some of them."""
    try:
        path.stat()
    except OSError as error:
        return error.errno == errno.ELOOP
    return False


ARCHIVES = Target(name="archive", share=1, make=_make, read=_unpack, effects=Effects.ALLOWED, most_seconds=5.0)
