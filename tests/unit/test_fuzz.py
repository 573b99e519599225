"""A small share of the inputs of `make fuzz`, and proof that the fuzzer detects defects."""

import os
import socket
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.fuzz.target import Target, examine, input_of
from tests.fuzz.targets import TARGETS
from tests.fuzz.watching import Effects, assert_shown_only, bounded_memory
from tests.fuzz.workers import tallies_of

pytestmark = pytest.mark.slow

ROUNDS = 10


@pytest.fixture
def folder(open_directory: Path) -> Path:
    """A folder for inputs, next to files that must not change."""
    inner = open_directory / "input"
    inner.mkdir()
    return inner


@pytest.mark.parametrize("name", TARGETS)
def test_inputs_of_every_kind_are_accepted_or_rejected(folder: Path, name: str) -> None:
    target = TARGETS[name]
    for seed in range(ROUNDS * target.share):
        assert examine(target, seed, folder).finding is None


@pytest.mark.parametrize("name", TARGETS)
def test_target_and_seed_determine_an_input(name: str) -> None:
    target = TARGETS[name]
    one, again, other = (input_of(target, seed) for seed in (1, 1, 2))
    assert one == again
    assert one != other


def of(read: Callable[[Path], object], effects: Effects = Effects.FORBIDDEN) -> Target:
    """Return a target that runs this function for every input."""

    def reading(_: object, folder: Path) -> bool:
        read(folder)
        return True

    return Target(name="t", share=1, make=lambda rng: rng.random(), read=reading, effects=effects, most_seconds=0.2)


def swallow(action: Callable[[Path], object]) -> Callable[[Path], object]:
    """Return the action with every exception swallowed, as by a program that mistakes it for one of its own."""

    def swallowed(folder: Path) -> None:
        try:
            action(folder)
        except BaseException:  # noqa: BLE001 - swallowing is what is tested
            return

    return swallowed


def connect(_: Path) -> None:
    with socket.socket() as one:
        one.connect(("127.0.0.1", 9))


def work(_: Path) -> None:
    end = time.process_time() + 5
    while time.process_time() < end:
        pass


HARM: dict[str, Callable[[Path], object]] = {
    "an exception": lambda _: int("x"),
    "a warning": lambda _: warnings.warn("x", stacklevel=1),
    "another exit": lambda _: sys.exit(70),
    "a file elsewhere": lambda folder: (folder.parent / "x").write_text("x"),
    "a directory elsewhere": lambda folder: (folder.parent / "x").mkdir(),
    "a file of another name": lambda folder: folder.rename(folder.parent / "x"),
    "a file gone": lambda folder: (folder.parent / "kept").unlink(),
    "another mode": lambda folder: (folder.parent / "kept").chmod(0o777),
    "a program": lambda _: subprocess.run(["true"], check=True),
    "a shell": lambda _: os.system("true"),  # noqa: S605 - stopped before it runs
    "a connection": connect,
    "too long": work,
}


@pytest.mark.parametrize("harm", HARM)
def test_forbidden_effects_are_detected(folder: Path, harm: str) -> None:
    kept = folder.parent / "kept"
    kept.write_text("kept")
    found = examine(of(HARM[harm]), 5, folder).finding
    assert found is not None
    assert (found.target, found.seed) == ("t", 5)
    assert sorted(path.name for path in folder.parent.iterdir()) == ["input", "kept"]
    assert kept.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("harm", ["a file elsewhere", "a program", "a connection"])
def test_forbidden_effects_are_detected_even_if_the_program_continues(folder: Path, harm: str) -> None:
    assert examine(of(swallow(HARM[harm])), 5, folder).finding is not None


def through_a_link(folder: Path) -> None:
    (folder / "link").symlink_to(folder.parent)
    (folder / "link" / "x").write_text("x")


def test_a_file_behind_a_link_is_outside_the_folder(folder: Path) -> None:
    assert examine(of(through_a_link), 5, folder).finding is not None
    assert list(folder.iterdir()) == []


def inside(folder: Path) -> None:
    (folder / "a").mkdir()
    (folder / "a" / "b").write_text("x")
    (folder / "a" / "b").rename(folder / "c")
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "link").unlink()
    with tempfile.TemporaryFile() as file, Path(os.devnull).open("w") as null:
        file.write(b"x")
        null.write("x")


def test_writing_inside_the_folder_is_allowed(folder: Path) -> None:
    outcome = examine(of(inside), 5, folder)
    assert (outcome.accepted, outcome.finding) == (True, None)
    assert list(folder.iterdir()) == []


def test_an_expected_program_is_stopped(folder: Path) -> None:
    outcome = examine(of(HARM["a program"], Effects.STOPPED), 5, folder)
    assert (outcome.accepted, outcome.finding) == (True, None)
    assert examine(of(HARM["a program"], Effects.DRY_RUN), 5, folder).finding is not None


@pytest.mark.parametrize(
    "text", ["\x1b[2J", "a\rb", "\x07", "\x9b31m", "\u202e", "\u2067", "\u200f", "\u2028", "\udc80"]
)
def test_characters_that_a_terminal_obeys_are_detected(text: str) -> None:
    with pytest.raises(AssertionError, match="goes to a terminal"):
        assert_shown_only(f"a {text} b")
    assert_shown_only("a\n\tb \u3042 \xe9 \U0001f600")


def test_excessive_memory_is_an_error() -> None:
    with bounded_memory(1 << 28), pytest.raises(MemoryError):
        bytearray(1 << 29)
    assert bytearray(1 << 29)


def test_each_input_is_read_once_whatever_the_number_of_workers() -> None:
    targets = [TARGETS["quantities"], TARGETS["server names"]]
    one, two = (tallies_of(targets, first=3, workers=workers, inputs=50) for workers in (1, 2))
    counted = [{name: (tally.inputs, tally.accepted) for name, tally in found.items()} for found in (one, two)]
    assert counted[0] == counted[1]
    assert sum(tally.inputs for tally in two.values()) == 50


def test_an_input_that_kills_its_process_is_detected_and_the_others_are_read() -> None:
    def read(subject: object, _: Path) -> bool:
        if subject == fatal:
            os._exit(3)
        return True

    target = Target(name="t", share=1, make=lambda rng: rng.random(), read=read)
    fatal = input_of(target, 4)
    found = tallies_of([target], first=0, workers=2, inputs=10)["t"]
    assert found.inputs == 10
    assert [(one.seed, "ended with 3" in one.what) for one in found.findings] == [(4, True)]
