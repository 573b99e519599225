"""The problems of one file, collected: a user must not mend one mistake in each run."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Self

from pgversus.errors import PgversusError, StudyError, StudyFileError
from pgversus.study.file.places import Path, Place, Places
from pgversus.text.redaction import without_secrets

MOST_PROBLEMS = 1000
"""Nobody reads more of them, and finding what was meant takes time for each."""


class Problems:
    """Collects problems with the places they stand at; `refuse` raises them all."""

    def __init__(self, file: str, places: Places) -> None:
        self._file = file
        self._places = places
        self._found: list[tuple[Place, StudyError]] = []
        self._known: set[tuple[str, str, str]] = set()
        self._broken = _Broken()

    def at(self, places: Places) -> Self:
        """The same collection, for paths that stand elsewhere: in a document with its profile merged in."""
        view = type(self)(self._file, places)
        # Shared, not copied: what one view finds, the other refuses.
        view._found, view._known, view._broken = self._found, self._known, self._broken  # noqa: SLF001 - its own class
        return view

    def add(self, path: Path, error: StudyError, *, spoils: bool = True) -> None:
        """Take in a problem; its `where` becomes the file, the line, the table and the key of this path.

        spoils: whether what stands there is now unknown, so that other problems may only follow from this one.

        StudyFileError when there are more problems than anybody reads.
        """
        place = self._places.of(path)
        error.where = f"{self._file}, {without_secrets(str(place))}"
        for part in ("what", "found", "expected", "to_do"):
            setattr(error, part, without_secrets(getattr(error, part)))
        if spoils:
            self._broken.add(path)
        if (error.slug, error.where, error.what) not in self._known:
            self._known.add((error.slug, error.where, error.what))
            self._found.append((place, error))
        if len(self._found) >= MOST_PROBLEMS:
            self.refuse()

    @contextmanager
    def catch(self, path: Path, *, to_do: str | None = None) -> Iterator[None]:
        """Take in the error of a parser that knows nothing of files. to_do: where its own speaks of flags."""
        try:
            yield
        except StudyFileError:
            # Too many of them by now.
            raise
        except StudyError as error:
            if to_do is not None:
                error.to_do = to_do
            self.add(path, error)
        except PgversusError as error:
            self.add(
                path,
                StudyError(error.what, slug=error.slug, found=error.found, expected=error.expected, to_do=error.to_do),
            )

    def mark(self, path: Path) -> None:
        """Note that nothing can be said of this path, because something of it is known to be wrong."""
        self._broken.add(path)

    def concern(self, *path: str | int) -> bool:
        """Whether something is wrong at this path, around it or inside of it, so that more would be a guess."""
        return self._broken.holds_above(path) or self._broken.holds_below(path)

    def lost(self, *path: str | int) -> bool:
        """Whether the value at this path is not known, because it or something around it is wrong."""
        return self._broken.holds_above(path)

    def lost_names(self, kind: str) -> bool:
        """Whether not all names of tables of a kind are known, because one of these tables is wrong as a whole."""
        several = f"{kind}s"
        return self.lost(kind) or self.lost(several) or self._broken.holds_table_of(several)

    def bring_up(self, inner: Path) -> None:
        """Let what is wrong inside of `inner`, a profile, be wrong in the document that it is merged into."""
        self._broken.bring_up(inner)

    def refuse(self) -> None:
        """StudyFileError with all problems in the order of the file, if there are any."""
        if not self._found:
            return
        problems = tuple(error for _, error in sorted(self._found, key=lambda pair: pair[0]))
        count = "1 problem" if len(problems) == 1 else f"{len(problems)} problems"
        more = " or more" if len(problems) >= MOST_PROBLEMS else ""
        raise StudyFileError(
            f"the study file has {count}{more}", slug="study-file", where=self._file, problems=problems
        )


class _Broken:
    """Paths at which something is wrong. A file may have many, and each key is asked for: none is looked through."""

    def __init__(self) -> None:
        self._paths: set[Path] = set()
        self._beginnings: set[Path] = set()
        self._tables: set[str | int] = set()
        """What the paths begin with that are those of a table among several: kind and name."""

    def add(self, path: Path) -> None:
        self._paths.add(path)
        self._beginnings.update(path[:length] for length in range(len(path) + 1))
        if len(path) == 2:  # noqa: PLR2004 - kind and name
            self._tables.add(path[0])

    def holds_above(self, path: Path) -> bool:
        """Whether one of them leads to this path, or is this path."""
        return any(path[:length] in self._paths for length in range(len(path) + 1))

    def holds_below(self, path: Path) -> bool:
        """Whether this path leads to one of them, or is one."""
        return path in self._beginnings

    def holds_table_of(self, several: str) -> bool:
        """Whether one of the tables below this key is among them."""
        return several in self._tables

    def bring_up(self, inner: Path) -> None:
        """Add those inside of `inner` as they are without it."""
        for path in [path for path in self._paths if path[: len(inner)] == inner != path]:
            self.add(path[len(inner) :])
