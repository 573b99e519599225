"""Archives built member by member: valid ones as published, and malicious ones."""

import io
import tarfile
import zipfile
from pathlib import Path

Member = tuple[tarfile.TarInfo, bytes]


def file(name: str, content: bytes = b"", *, mode: int = 0o644, **pax_headers: str) -> Member:
    """A regular file."""
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.pax_headers = len(content), mode, pax_headers
    return member, content


def special(name: str, kind: bytes, target: str = "") -> Member:
    """A directory, link, device or other member of this type."""
    member = tarfile.TarInfo(name)
    member.type, member.linkname, member.mode = kind, target, 0o777
    return member, b""


def directory(name: str) -> Member:
    """A directory."""
    return special(name, tarfile.DIRTYPE)


def link(name: str, target: str) -> Member:
    """A symbolic link."""
    return special(name, tarfile.SYMTYPE, target)


def hard_link(name: str, target: str) -> Member:
    """A hard link to another member."""
    return special(name, tarfile.LNKTYPE, target)


def packed(path: Path, *members: Member) -> Path:
    """A tar archive, compressed according to its name."""
    kind = path.name.rpartition(".")[2].replace("tgz", "gz").replace("txz", "xz")
    with tarfile.open(path, f"w:{kind if kind != 'tar' else ''}") as archive:  # type: ignore[call-overload]
        for member, content in members:
            archive.addfile(member, io.BytesIO(content))
    return path


def zipped(path: Path, *inner: Path) -> Path:
    """A zip archive that contains these files."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for one in inner:
            archive.write(one, one.name)
    return path


NOISE = bytes((7 * number * number + number // 3) % 251 for number in range(100_000))
"""Nothing that can be compressed to a few bytes, so that a tenth of an archive is a tenth of its content."""
