"""Initial placement of client and server processes on processors in each window.

Where the kernel places a client and its server process is random and persists for their lifetime. On a host with two
processors it causes most of the spread of fast statements (docs/statistics.md, "Places"). Here it is drawn for every
quad, the same for all arms; a moment later the kernel is free to move them.
"""

import os
from collections.abc import Sequence

import numpy as np

from pgversus.host.processors import place, release
from pgversus.study.design import Design

_WINDOWS_OF_QUAD = 2
# Of one arm.
_FEW_PROCESSORS = 4


class Places:
    """The processors of one arm's session; the sessions of all arms have the same seed, and so the same places."""

    def __init__(self, design: Design, seed: int) -> None:
        usable = sorted(os.sched_getaffinity(0))
        self._clients = design.client_processors or usable
        self._servers = design.server_processors or usable
        self._rng = np.random.default_rng(seed)
        self._windows = 0
        self._is_permitted = True
        # Which server process serves which thread is not told. On few processors it matters whether they share one, so
        # there all threads begin on the same.
        self._share_one = len(usable) < _FEW_PROCESSORS

    def begin(self, clients: Sequence[int], servers: Sequence[int]) -> None:
        """Put threads of the client and processes of the server where the next window begins."""
        if self._windows % _WINDOWS_OF_QUAD == 0:
            for_clients = self._rng.permutation(self._clients).tolist()
            self._for_clients = for_clients[:1] if self._share_one else for_clients
            self._for_servers = self._rng.permutation(self._servers).tolist()
        self._windows += 1
        if not self._is_permitted:
            return
        place(clients, self._for_clients)
        if not place(servers, self._for_servers):
            # A client that is placed without its server processes would only be in their way.
            self._is_permitted = False
            release(clients, self._clients)

    def free(self, clients: Sequence[int], servers: Sequence[int]) -> None:
        """Let them go."""
        release(clients, self._clients)
        release(servers, self._servers)
