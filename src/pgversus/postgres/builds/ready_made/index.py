"""Lists of released versions, one file for each family, fetched at most once a day."""

import json
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from pydantic import Field, TypeAdapter, ValidationError

from pgversus.host.private import private_lock
from pgversus.postgres.builds.files import put_in_place
from pgversus.postgres.builds.model import FamilyOffer
from pgversus.postgres.builds.ready_made.families import SOURCES, RegistryError
from pgversus.study.servers import Family, Version

_Number = Annotated[int, Field(ge=0, lt=1000)]


@dataclass(frozen=True, slots=True, kw_only=True)
class _List:
    """What is kept of a family."""

    fetched_at: Annotated[float, Field(allow_inf_nan=False)]
    """Seconds since 1970."""
    versions: tuple[tuple[_Number, _Number], ...]


_LIST = TypeAdapter(_List)
_FRESH_S = 24 * 3600.0
_SCRATCH = "index-"


def offers(index: Path, *, must_be_fresh: bool = False) -> tuple[FamilyOffer, ...]:
    """What each family has, from the lists kept in `index`, fetched anew when older than a day.

    Where the registry does not answer, the old list serves with its age and the problem; with no list at all the
    offer has no versions. must_be_fresh: ask again even when the list is new, for a version that it lacks.
    """
    return tuple(_offer(index, family, must_be_fresh=must_be_fresh) for family in SOURCES)


def _offer(index: Path, family: Family, *, must_be_fresh: bool) -> FamilyOffer:
    file = index / f"{family}.json"
    kept = _read(file, family)
    if kept is not None and kept.age_s < _FRESH_S and not must_be_fresh:
        return kept
    try:
        with _scratch(index) as scratch:
            versions = SOURCES[family].versions(scratch)
            _write(file, versions, scratch)
    except RegistryError as error:
        problem = "its certificate is not in the system's store" if error.is_about_certificates else "it did not answer"
        if kept is not None:
            return FamilyOffer(family=family, versions=kept.versions, age_s=kept.age_s, problem=problem)
        return FamilyOffer(family=family, versions=(), problem=problem)
    return FamilyOffer(family=family, versions=versions)


@contextmanager
def _scratch(index: Path) -> Iterator[Path]:
    """A directory for one fetch, one at a time; what a killed one left is removed first."""
    with private_lock(index / "fetch.lock"):
        for old in index.glob(f"{_SCRATCH}*"):
            shutil.rmtree(old, ignore_errors=True)
        with tempfile.TemporaryDirectory(prefix=_SCRATCH, dir=index) as directory:
            yield Path(directory)


def _read(file: Path, family: Family) -> FamilyOffer | None:
    try:
        kept = _LIST.validate_json(file.read_bytes())
    except (OSError, ValidationError):
        # No list yet, or one cut short by a full disk: both are fetched again.
        return None
    versions = tuple(Version(major=major, minor=minor) for major, minor in kept.versions)
    return FamilyOffer(family=family, versions=versions, age_s=max(0.0, time.time() - kept.fetched_at))


def _write(file: Path, versions: tuple[Version, ...], scratch: Path) -> None:
    document = {"fetched_at": time.time(), "versions": [[version.major, version.minor] for version in versions]}
    whole = scratch / file.name
    whole.write_text(json.dumps(document), encoding="utf-8")
    put_in_place(whole, file)
