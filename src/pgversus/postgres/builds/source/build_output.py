"""What a build prints: the steps that are done, and why it has failed. Pure."""

import re
from collections.abc import Iterable, Sequence

_OF_NINJA = re.compile(r"^\[(\d+)/(\d+)\]")
_COMPILED = re.compile(r"(?:^|\s)-c\s+(?:-o\s+\S+\s+)?\S+\.c\b|\s-o\s+\S+\.o(?:\s|$)")
# Lines by which compilers, configure, make, meson and the linker say what is wrong, the first cause before what
# follows from it.
_CAUSES = (
    re.compile(r"^configure: error: |^\S*ERROR: |^\S*meson\.build:\d+:\d+: ERROR: "),
    re.compile(r"(?:^|[:\s])(?:fatal )?error: |undefined reference|cannot find -l|: syntax error|command not found"),
    re.compile(r"^make(?:\[\d+\])?: \*\*\* |^FAILED: "),
)
_LINES_SHOWN = 4
_MOST_CHARACTERS = 800


class Steps:
    """How far a build has come."""

    def __init__(self, expected: int) -> None:
        """expected: files to compile, as far as one can tell beforehand."""
        self._expected = expected
        self._compiled = 0
        self._told: tuple[int, int] | None = None

    def take(self, line: str) -> bool:
        """Whether this line of its output is a step."""
        if match := _OF_NINJA.match(line):
            self._told = int(match[1]), int(match[2])
            return True
        if _COMPILED.search(line):
            self._compiled += 1
            return True
        return False

    @property
    def done(self) -> int:
        """Steps that were begun."""
        return self._told[0] if self._told else self._compiled

    @property
    def total(self) -> int:
        """About how many there are; never fewer than are done."""
        return self._told[1] if self._told else max(self._expected, self._compiled)


def first_error(lines: Iterable[str]) -> str:
    """What went wrong first, with the lines below it that belong to it; the last line where nothing says it."""
    kept = [line.rstrip() for line in lines]
    for cause in _CAUSES:
        for index, line in enumerate(kept):
            if cause.search(line):
                return "\n".join(_with_context(kept, index))[:_MOST_CHARACTERS]
    told = [line for line in kept if line]
    return told[-1][:_MOST_CHARACTERS] if told else "it said nothing"


def _with_context(lines: Sequence[str], index: int) -> list[str]:
    """A compiler shows the place below its message, indented; any other message stands alone."""
    shown = [lines[index]]
    for line in lines[index + 1 : index + _LINES_SHOWN]:
        if not re.match(r"^\s*(?:\d+\s*)?\|", line):
            break
        shown.append(line)
    return shown
