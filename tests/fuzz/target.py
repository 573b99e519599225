"""A kind of input, and the outcome of reading one."""

import shutil
import time
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

from tests.fuzz.watching import Effects, StoppedError, watched

_FRAMES_SHOWN = 6


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A kind of input."""

    name: str
    share: int
    """Inputs per round of all targets; fewer for slow ones."""
    make: Callable[[Random], Any]
    """Returns an input that depends only on the Random, so that the seed reproduces it."""
    read: Callable[[Any, Path], bool]
    """Reads the input as the program does, in an empty folder, and returns whether it was accepted; an exception is a
    finding."""
    effects: Effects = Effects.FORBIDDEN
    most_seconds: float = 2.0
    """Limit of CPU time for one input."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """An input that revealed a defect."""

    target: str
    seed: int
    what: str
    where: str = ""
    """The last lines of the traceback."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """The outcome of reading one input."""

    accepted: bool
    seconds: float
    """CPU time."""
    finding: Finding | None = None


def input_of(target: Target, seed: int) -> Any:
    """Return the input of a seed."""
    return target.make(Random(f"{target.name} {seed}"))  # noqa: S311 - not for cryptography


def examine(target: Target, seed: int, folder: Path) -> Outcome:
    """Read the input of a seed in its own folder, which is empty before and after."""
    subject = input_of(target, seed)
    accepted, finding = False, None
    begin = time.process_time()
    try:
        with watched(folder, effects=target.effects, seconds=target.most_seconds):
            accepted = target.read(subject, folder)
    except StoppedError:
        accepted = True
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001 - any exception is a finding
        what = f"{type(error).__name__}: {error}"
        finding = Finding(target=target.name, seed=seed, what=f"{what:.500}", where=_place(error))
    seconds = time.process_time() - begin
    _empty(folder)
    return Outcome(accepted=accepted, seconds=seconds, finding=finding)


def _place(error: BaseException) -> str:
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if "/fuzz/" not in frame.filename]
    return "\n".join(f"{frame.filename}:{frame.lineno} {frame.line}" for frame in frames[-_FRAMES_SHOWN:])


def _empty(folder: Path) -> None:
    for path in folder.iterdir():
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
