"""Study files on disk: a path, or the name of a bundled study; and where their results go."""

import os
import secrets
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from pgversus.errors import StoreError, StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.store.files import holds_results
from pgversus.store.reading import read_seed
from pgversus.study.file.read import read_study
from pgversus.study.study import Study

STUDY_FILE = "study.toml"
_MOST_SHOWN = 300
# More is no path but what stands in a file.


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPath:
    """A study file that is there."""

    name: str
    """For messages and folders."""
    file: Path

    def read(self, path: str) -> tuple[str, bytes]:
        """The absolute path and the content of a file that the study names; OSError when there is none."""
        file = self.file.parent.absolute() / path
        if file.exists() and not file.is_file():
            raise OSError(f"{path} is a directory, a pipe or a device")
        return str(file), file.read_bytes()

    def text(self) -> str:
        """The study file's text; StudyError when it cannot be read."""
        if self.file.exists() and not self.file.is_file():
            # A device may have no end, and a pipe no beginning.
            raise _no_study(str(self.file), "a directory, a pipe or a device")
        try:
            return self.file.read_bytes().decode()
        except OSError as error:
            raise _no_study(str(self.file), error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise _no_study(str(self.file), f"no UTF-8: {error.reason} at byte {error.start}") from error


def library() -> Path:
    """The folder of the bundled studies."""
    return Path(str(resources.files("pgversus"))) / "library"


def bundled_names() -> list[str]:
    """The names of the bundled studies."""
    return sorted(path.parent.name for path in library().glob(f"*/{STUDY_FILE}"))


def find_study(text: str) -> StudyPath:
    """The study file that is meant; StudyError with the nearest names when there is none."""
    path = Path(text)
    try:
        if path.is_dir():
            path /= STUDY_FILE
            if not path.exists() and text not in bundled_names():
                raise _no_study(text, f"a folder without a {STUDY_FILE}")
        if path.exists():
            return StudyPath(name=_shown(_name_of(path)), file=path)
    except OSError as error:
        raise _no_study(text, error.strerror or str(error)) from error
    return StudyPath(name=f"{text}.toml", file=find_bundled(text) / STUDY_FILE)


def _name_of(file: Path) -> str:
    """The file's own name, or the folder's for a study.toml; `.` and `..` are the folders that they stand for."""
    if file.name != STUDY_FILE:
        return file.name
    folder = file.parent
    return (folder.resolve() if folder.name in ("", "..") else folder).name or STUDY_FILE


def find_bundled(name: str) -> Path:
    """The folder of a bundled study; StudyError with the nearest names when there is none."""
    if name in bundled_names():
        return library() / name
    near = get_close_matches(name, bundled_names(), n=3, cutoff=0.4)
    raise StudyError(
        "there is no such study",
        slug="study-unknown-study",
        where=f"study {_shown(name)}",
        found=f'"{_shown(name)}"',
        expected=f"a study file, or a bundled study: {', '.join(bundled_names())}",
        to_do=f"pgversus run {near[0]}" if near else "pgversus studies lists the bundled ones",
    )


def open_study(
    text: str,
    *,
    profile: str | None = None,
    budget_s: float | None = None,
    seed: int | None = None,
    results: Path | None = None,
    afresh: bool = False,
) -> tuple[Study, Path]:
    """The study that is meant, and the folder of its results; StudyError or StudyFileError when it is none.

    seed: in place of the file's. Where neither has one it is that of the results that are there already, else it is
    drawn. afresh: whatever is there.
    """
    path = find_study(text)
    content = path.text()

    def read_with(number: int) -> Study:
        return read_study(
            content,
            name=path.name,
            read=path.read,
            profile=profile,
            seed=number,
            asked_seed=seed,
            budget_s=budget_s,
            name_server=labelled_server,
        )

    study = read_with(secrets.randbelow(2**31))
    folder = results or Path("pgversus-results") / study.name
    earlier = None if seed is not None or afresh else _seed_of(folder)
    study = study if earlier is None else read_with(earlier)
    return replace(study, file_name=path.name, file_text=content), folder


def _seed_of(folder: Path) -> int | None:
    """The seed of the results in this folder; None where there are none that can be read."""
    try:
        return read_seed(folder) if holds_results(folder) else None
    except (StoreError, OSError):
        # Whoever goes on with them says what is wrong with them.
        return None


def _shown(text: str) -> str:
    shown = os.fsencode(text).decode(errors="replace")
    return f"{shown[:_MOST_SHOWN]}..." if len(shown) > _MOST_SHOWN else shown


def _no_study(where: str, found: str) -> StudyError:
    return StudyError(
        "the study file cannot be read",
        slug="study-no-file",
        where=_shown(where),
        found=found,
        expected="a TOML file in UTF-8",
        to_do="pgversus studies copy NAME gives one to begin with",
    )
