"""Small tarballs that resemble PostgreSQL's source."""

import hashlib
import io
import tarfile
from collections.abc import Mapping
from pathlib import Path

FILES = {"configure": "#!/bin/sh\n", "src/backend/main.c": "int main;\n"}


def tarball(path: Path, files: Mapping[str, str] = FILES, *, top: str = "postgresql-17.8/") -> Path:
    """A tarball of these files below `top`, compressed according to its name."""
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
    """Return the hash of a file."""
    return hashlib.sha256(path.read_bytes()).hexdigest()


def publish(path: Path, sha256: str) -> None:
    """Write its .sha256 file, in the format of sha256sum."""
    path.with_name(f"{path.name}.sha256").write_text(f"{sha256}  {path.name}\n")
