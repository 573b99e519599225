"""Work beside a block of code, in a thread of its own that ends with the block."""

import threading
from abc import ABC, abstractmethod
from types import TracebackType
from typing import Self


class Beside(ABC):
    """What is done while a block of code runs: a context manager, for one block."""

    def __init__(self, name: str) -> None:
        """name: of the thread."""
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @abstractmethod
    def _run(self) -> None:
        """The work, in its thread: returns once `_is_over_within` says so, or earlier."""

    def _is_over_within(self, seconds: float) -> bool:
        """Whether the block has ended; waits for that so long."""
        return self._over.wait(seconds)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join()
