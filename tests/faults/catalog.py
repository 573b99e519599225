"""Every fault by its name, and one try of it in a directory of its own."""

import tempfile
from collections.abc import Mapping
from pathlib import Path
from random import Random

from tests.faults.clocks import CLOCKS
from tests.faults.disks import DISKS
from tests.faults.fault import Fault, Outcome
from tests.faults.kills import KILLS
from tests.faults.memory import MEMORY
from tests.faults.pairs import PAIRS
from tests.faults.pauses import PAUSES
from tests.faults.study import SERVER
from tests.faults.truncation import TRUNCATIONS
from tests.faults.uris import URIS
from tests.live.conftest import own_command_line, provided, users_cache

FAULTS: Mapping[str, Fault] = {
    fault.name: fault for fault in (*KILLS, *DISKS, *PAUSES, *PAIRS, *URIS, *MEMORY, *CLOCKS, *TRUNCATIONS)
}


def fetch_server() -> None:
    """Fetch the server of all tries into the user's cache, so that no try has to."""
    provided(SERVER)


def play(fault: Fault, seed: int) -> Outcome:
    """Run one try; the same seed gives the same moment if runs take equally long."""
    with tempfile.TemporaryDirectory(prefix="pgversus-fault-", dir="/tmp") as name:
        directory = Path(name)
        directory.chmod(0o755)
        # Temporary files that a run leaves behind are found there.
        (directory / "tmp").mkdir()
        with own_command_line(users_cache(), directory) as line:
            line.environment["TMPDIR"] = str(directory / "tmp")
            return fault.play(line, Random(f"{fault.name} {seed}"))  # noqa: S311 - a moment is not a secret
