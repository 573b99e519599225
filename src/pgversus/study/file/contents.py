"""The files that a study names, each read once."""

from collections.abc import Callable

from pgversus.errors import StudyError
from pgversus.study.dataset import SetupFile, setup_file
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import shown

ReadFile = Callable[[str], tuple[str, bytes | None]]
"""From a path as the study file has it to the absolute path and the content; StudyError or OSError for no file.

None for one that is there and must not be read yet: it counts as an empty one.
"""


class Contents:
    """Reads files through `read` and adds what cannot be read to the problems, at every key that names it."""

    def __init__(self, read: ReadFile, problems: Problems) -> None:
        self._read = read
        self._problems = problems
        self._known: dict[str, tuple[str, bytes | None]] = {}

    def script(self, name: str, path: Path) -> str | None:
        """The text of a script; None when it cannot be read."""
        found = self._content(name, path)
        if found is None:
            return None
        try:
            return (found[1] or b"").decode()
        except UnicodeDecodeError as error:
            self._problems.add(
                path,
                StudyError(
                    "a script is not UTF-8",
                    slug="study-script-encoding",
                    found=str(error),
                    expected="UTF-8, the encoding of the databases compared",
                    to_do=f"iconv -t UTF-8 {name}",
                ),
            )
            return None

    def setup(self, name: str, path: Path) -> SetupFile | None:
        """A setup file with the hash of its content; None when it cannot be read."""
        found = self._content(name, path)
        return None if found is None else setup_file(found[0], found[1] or b"")

    def figures(self, name: str, path: Path) -> str | None:
        """The same of published figures; None as well where they must not be read yet."""
        text = self.script(name, path)
        return None if name in self._known and self._known[name][1] is None else text

    def _content(self, name: str, path: Path) -> tuple[str, bytes | None] | None:
        if name in self._known:
            return self._known[name]
        with self._problems.catch(path):
            try:
                self._known[name] = self._read(name)
            except OSError as error:
                raise StudyError(
                    f"the file {shown(name)} cannot be read",
                    slug="study-no-file",
                    found=error.strerror or str(error),
                    expected="a regular file",
                    to_do="paths are relative to the study file",
                ) from error
        return self._known.get(name)


def inline_setup(name: str, sql: str) -> SetupFile:
    """SQL that stands in the study file itself."""
    return setup_file(f"{name} inline", sql.encode(), text=sql)
