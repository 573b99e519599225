"""Whether a file system can share blocks between files, so that a copy costs nothing until it is written to."""

import os
import tempfile
from pathlib import Path
from typing import Literal

from pgversus.host.commands import run

_BYTES = 64 * 1024
# More than one block of any file system, so that there is something to share.


def way_of_copying(directory: Path) -> Literal["reflink", "copy"]:
    """How `cp --reflink=auto` copies files here: tried once, on a small file."""
    try:
        with tempfile.TemporaryDirectory(prefix="reflink-", dir=directory) as name:
            one = Path(name) / "one"
            with one.open("wb") as file:
                file.write(bytes(_BYTES))
                file.flush()
                # Some cannot share what is not on disk yet.
                os.fsync(file.fileno())
            shared = run(["cp", "--reflink=always", "--", str(one), str(one.with_name("other"))])
    except OSError:
        return "copy"
    return "reflink" if shared.succeeded else "copy"
