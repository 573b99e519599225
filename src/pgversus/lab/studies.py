"""Study files on disk, by path or by the name of a bundled study, and the folders of their results."""

import errno
import hashlib
import os
import secrets
from collections.abc import Iterable
from dataclasses import dataclass, replace
from difflib import get_close_matches
from importlib import resources
from pathlib import Path

from pgversus.data.dumps import dump_at
from pgversus.errors import StoreError, StudyError
from pgversus.postgres.labels import labelled_server
from pgversus.store.folder import holds_results
from pgversus.store.reading import read_seed
from pgversus.study.dataset import Dump, DumpFormat
from pgversus.study.file.read import read_study
from pgversus.study.host_access import HostAccess, host_access_of
from pgversus.study.servers import Checkout, LocalPath, ServerName, SourceBuild
from pgversus.study.study import Study
from pgversus.text.units import size

STUDY_FILE = "study.toml"
_MOST_SHOWN = 300
# Longer text is not a path but the contents of a file.


_PIECE_BYTES = 1_000_000
_MOST_BYTES_OF_A_STUDY_FILE = 10_000_000
_STUDY_FILE_TOO_LARGE = f"a study file of more than {size(_MOST_BYTES_OF_A_STUDY_FILE)}"
_MOST_BYTES, _MOST_BYTES_IF_TRUSTED = 20_000_000, 1_000_000_000
"""Limits on the total size of the files that a study names. Searching 2 MB for access to the host takes a second."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StudyPath:
    """An existing study file."""

    name: str
    """For messages and folders."""
    file: Path

    @property
    def is_bundled(self) -> bool:
        """Whether it is bundled with pgversus."""
        return self.file.resolve().is_relative_to(library().resolve())

    def text(self) -> str:
        """Return the text of the study file; raise StudyError if it cannot be read."""
        if self.file.exists() and not self.file.is_file():
            # A device may never end, and a pipe may never begin.
            raise _no_study(str(self.file), "a directory, a pipe or a device")
        try:
            return _read_at_most(self.file, _MOST_BYTES_OF_A_STUDY_FILE, _STUDY_FILE_TOO_LARGE).decode()
        except OSError as error:
            raise _no_study(str(self.file), error.strerror or str(error)) from error
        except UnicodeDecodeError as error:
            raise _no_study(str(self.file), f"invalid UTF-8: {error.reason} at byte {error.start}") from error


def _read_at_most(file: Path, most: int, problem: str) -> bytes:
    """Return the content of a file; raise OSError with this problem if it is larger, before all of it is in memory."""
    content = bytearray()
    with file.open("rb") as stream:
        # In pieces: read() allocates as much memory as it may return.
        while len(content) <= most and (piece := stream.read(_PIECE_BYTES)):
            content += piece
    if len(content) > most:
        raise OSError(errno.EFBIG, problem)
    return bytes(content)


class StudyFiles:
    """The files that a study names, recorded as they are read."""

    def __init__(self, folder: Path, *, reads_outside: bool) -> None:
        """folder: of the study file. reads_outside: whether to read files outside of it as well."""
        self._folder = folder.absolute()
        self._reads_outside = reads_outside
        self._left_bytes = _MOST_BYTES_IF_TRUSTED if reads_outside else _MOST_BYTES
        self._too_large = (
            f"the files of the study have more than {size(_MOST_BYTES_IF_TRUSTED)}: load large data with \\copy"
            if reads_outside
            else f"the files of the study have more than {size(_MOST_BYTES)}, the limit without --trust"
        )
        self.contents: dict[str, bytes | None] = {}
        """By absolute path; None for an unread file outside of the folder."""
        self.outside: list[str] = []
        """Files outside of the folder, as the study names them."""
        self.dumps: dict[tuple[str, str | None], Dump] = {}
        """By path, as the study names it, and database; the hash of an unread one is empty."""

    def read(self, path: str) -> tuple[str, bytes | None]:
        """Return absolute path and content of a file that the study names; raise OSError if it cannot be read.

        A file is read once, however often it is named.
        """
        file = self._folder / path
        if str(file) in self.contents:
            return str(file), self.contents[str(file)]
        target = self._target(path)
        if target is None:
            content = None
        elif target.exists() and not target.is_file():
            raise OSError(f"{path} is a directory, a pipe or a device")
        else:
            # Read the resolved target, which is the one that was judged.
            content = _read_at_most(target, self._left_bytes, self._too_large)
            self._left_bytes -= len(content)
        self.contents[str(file)] = content
        return str(file), content

    def find_dump(self, path: str, database: str | None) -> Dump:
        """Return a dump or data directory that the study names, without a hash if it must not be read yet.

        StudyError if it is neither, or cannot be read. It is read once, however often it is named.
        """
        if (path, database) not in self.dumps:
            try:
                target = self._target(path)
            except OSError as error:
                raise _no_file(path, str(error)) from error
            if target is None:
                dump = Dump(path="", format=DumpFormat.PLAIN, sha256="")
            else:
                dump = dump_at(str(target), "restore", database)
            self.dumps[path, database] = replace(dump, path=str(self._folder / path))
        return self.dumps[path, database]

    @property
    def has_unread(self) -> bool:
        """Whether something was left unread, because it is outside of the folder."""
        return None in self.contents.values() or any(not dump.sha256 for dump in self.dumps.values())

    def _target(self, path: str) -> Path | None:
        """Return the target of a path; None if it must not be read. Raise OSError for a path that leads nowhere."""
        try:
            target = (self._folder / path).resolve()
            is_outside = not target.is_relative_to(self._folder.resolve())
        except (ValueError, RuntimeError) as error:
            # A null byte, or a loop of links.
            raise OSError(str(error)) from error
        if is_outside:
            self.outside.append(path)
        # Do not even look: reading some files has side effects, and the path may lead to a network share.
        return None if is_outside and not self._reads_outside else target


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenedStudy:
    """A study that was read, with the information that is needed to run it."""

    study: Study
    results: Path
    access: HostAccess
    """Requests that need the user's consent; empty for a bundled study."""
    digest: str
    """SHA-256 of everything judged: the study file, the files it names, the paths of its servers, its requests."""
    has_unread_files: bool
    """Whether files outside of its folder were left unread."""


def library() -> Path:
    """Return the folder of the bundled studies."""
    return Path(str(resources.files("pgversus"))) / "library"


def bundled_names() -> list[str]:
    """Return the names of the bundled studies."""
    return sorted(path.parent.name for path in library().glob(f"*/{STUDY_FILE}"))


def find_study(text: str) -> StudyPath:
    """Return the study file with this path or name; raise StudyError with the nearest names if it is unknown."""
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
    """Return the name of the file, or of the folder for a study.toml, with `.` and `..` resolved."""
    if file.name != STUDY_FILE:
        return file.name
    folder = file.parent
    return (folder.resolve() if folder.name in ("", "..") else folder).name or STUDY_FILE


def find_bundled(name: str) -> Path:
    """Return the folder of a bundled study; raise StudyError with the nearest names if it is unknown."""
    if name in bundled_names():
        return library() / name
    near = get_close_matches(name, bundled_names(), n=3, cutoff=0.4)
    raise StudyError(
        "unknown study",
        slug="study-unknown-study",
        where=f"study {_shown(name)}",
        found=f'"{_shown(name)}"',
        expected=f"a study file, or a bundled study: {', '.join(bundled_names())}",
        to_do=f"pgversus run {near[0]}" if near else "list the bundled studies with: pgversus studies",
    )


def open_study(
    text: str,
    *,
    profile: str | None = None,
    budget_s: float | None = None,
    seed: int | None = None,
    results: Path | None = None,
    restarts: bool = False,
    reads_outside: bool = False,
) -> OpenedStudy:
    """Read a study and find the folder of its results; raise StudyError or StudyFileError if it is invalid.

    This carries out none of its requests; lab/consent.py decides whether it may be run.

    seed: overrides the file's. If neither is given, the seed of existing results is used, or else a random one.
    restarts: ignore existing results. reads_outside: whether to read files outside of the folder of the study file.
    """
    path = find_study(text)
    content = path.text()
    files = StudyFiles(path.file.parent, reads_outside=reads_outside or path.is_bundled)

    def read_with(number: int) -> Study:
        return read_study(
            content,
            name=path.name,
            read=files.read,
            find_dump=files.find_dump,
            profile=profile,
            seed=number,
            requested_seed=seed,
            budget_s=budget_s,
            name_server=labelled_server,
        )

    study = read_with(secrets.randbelow(2**31))
    folder = results or Path("pgversus-results") / study.name
    earlier = None if seed is not None or restarts else seed_of(folder)
    study = study if earlier is None else read_with(earlier)
    texts = {name: (text or b"").decode(errors="replace") for name, text in files.contents.items()}
    access = HostAccess() if path.is_bundled else host_access_of(study, texts, dict.fromkeys(files.outside))
    return OpenedStudy(
        study=replace(study, file_name=path.name, file_text=content),
        results=folder,
        access=access,
        digest=_digest(content, files, study.servers, access),
        has_unread_files=files.has_unread,
    )


def _digest(text: str, files: StudyFiles, servers: Iterable[ServerName], access: HostAccess) -> str:
    # Another profile of the same file may request more.
    whole = hashlib.sha256(f"{text}\0{access}\0".encode(errors="surrogatepass"))
    for dump in sorted(files.dumps.values(), key=lambda dump: (dump.path, dump.database)):
        whole.update(f"\0dump\0{dump.path}\0{dump.database}\0{dump.sha256}".encode(errors="surrogateescape"))
    for name, content in sorted(files.contents.items()):
        whole.update(b"\0file\0" + os.fsencode(name))
        whole.update(b"\0unread" if content is None else hashlib.sha256(content).digest())
    for server in servers:
        source = server.source if isinstance(server, SourceBuild) else server
        if isinstance(source, LocalPath | Checkout):
            # The same relative path means a different place in another directory.
            whole.update(b"\0place\0" + os.fsencode(Path(source.path).absolute()))
    return whole.hexdigest()


def _no_file(path: str, found: str) -> StudyError:
    return StudyError(
        f"{_shown(path)} could not be read",
        slug="study-no-file",
        found=found,
        expected="a dump, a base backup or a data directory",
        to_do="check the path, which is relative to the study file",
    )


def seed_of(folder: Path) -> int | None:
    """Return the seed of the results in this folder; None if they cannot be read."""
    try:
        return read_seed(folder) if holds_results(folder) else None
    except (StoreError, OSError):
        # The problem is reported when they are resumed.
        return None


def _shown(text: str) -> str:
    shown = os.fsencode(text).decode(errors="replace")
    return f"{shown[:_MOST_SHOWN]}..." if len(shown) > _MOST_SHOWN else shown


def _no_study(where: str, found: str) -> StudyError:
    return StudyError(
        "the study file could not be read",
        slug="study-no-file",
        where=_shown(where),
        found=found,
        expected="a TOML file in UTF-8",
        to_do="check the path, the permissions and the encoding of the file; to start from a bundled study, run "
        "pgversus studies copy NAME",
    )
