"""pgversus with a shifted time of day while a file exists: jumping_clock.py FILE SECONDS ARGUMENT...

The clock of the host must not be set, and a process does not have its own clock. Instead, the functions with which
pgversus reads the clock are replaced. Servers and pgbench keep the correct time, which is harder for pgversus than a
jump for all.
"""

import sys
import time
from pathlib import Path

from pgversus.cli.main import main

_NS = 10**9


def _jump(flag: Path, by_s: int) -> None:
    seconds, nanoseconds, of_clock = time.time, time.time_ns, time.clock_gettime

    def shift() -> int:
        return by_s if flag.exists() else 0

    time.time = lambda: seconds() + shift()
    time.time_ns = lambda: nanoseconds() + _NS * shift()
    time.clock_gettime = lambda clock: of_clock(clock) + (shift() if clock == time.CLOCK_REALTIME else 0)


if __name__ == "__main__":
    _jump(Path(sys.argv[1]), int(sys.argv[2]))
    sys.argv[1:3] = []
    main()
