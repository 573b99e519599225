"""Small tarballs of something like PostgreSQL's source."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

FILES = {"configure": "#!/bin/sh\n", "src/backend/main.c": "int main;\n"}


def tarball(path: Path, files: Mapping[str, str] = FILES, *, top: str = "postgresql-17.8/") -> Path:
    """A tarball with these files below `top`, packed as its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.name.rpartition(".")[2].replace("tgz", "gz")
    with tarfile.open(path, f"w:{kind if kind != 'tar' else ''}") as archive:  # type: ignore[call-overload]
        for name, text in files.items():
            member = tarfile.TarInfo(f"{top}{name}")
            member.size = len(text.encode())
            member.mode = 0o755 if name == "configure" else 0o644
            archive.addfile(member, io.BytesIO(text.encode()))
    return path


def sha256(path: Path) -> str:
    """Of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def publish(path: Path, sha256: str) -> None:
    """Put a checksum beside it, as sha256sum prints it."""
    path.with_name(f"{path.name}.sha256").write_text(f"{sha256}  {path.name}\n")
