"""A profile merged into the rest of its file: tables key by key, everything else replaced."""

from collections.abc import Mapping
from typing import Any

from pgversus.errors import StudyError
from pgversus.study.file.description import listed, nearest
from pgversus.study.file.places import Path
from pgversus.study.file.problems import Problems
from pgversus.study.file.values import as_toml, shown

USUAL = "quick"
"""The profile of a file that has it, when the user names none."""


def chosen_profile(profiles: Mapping[str, Any], asked: str | None, problems: Problems) -> str | None:
    """The name of the profile that holds; None when the file is to be taken as it is."""
    if asked is None:
        return USUAL if USUAL in profiles else None
    if asked in profiles:
        return asked
    if problems.concern("profiles", asked):
        return None
    meant = nearest(asked, list(profiles))
    problems.add(
        ("profiles",),
        StudyError(
            f"there is no profile {shown(asked)}",
            slug="study-unknown-profile",
            found=shown(asked),
            expected=listed(profiles, show=as_toml) or "none: the file has no [profiles.NAME]",
            to_do=f"--profile {meant}" if meant else "leave --profile out",
        ),
    )
    return None


def with_profile(document: Mapping[str, Any], profile: str | None) -> tuple[dict[str, Any], dict[Path, Path]]:
    """The document with the profile merged in and without `title` and `profiles`, and where replaced keys come from."""
    base = {key: value for key, value in document.items() if key not in ("title", "profiles")}
    origins: dict[Path, Path] = {}
    if profile is None:
        return base, origins
    return _merged(base, document["profiles"][profile], origins, (), ("profiles", profile)), origins


def _merged(
    base: Mapping[str, Any], changes: Mapping[str, Any], origins: dict[Path, Path], at: Path, there: Path
) -> dict[str, Any]:
    result = dict(base)
    for key, value in changes.items():
        if isinstance(value, Mapping) and isinstance(result.get(key), Mapping):
            result[key] = _merged(result[key], value, origins, (*at, key), (*there, key))
        else:
            result[key] = value
            origins[*at, key] = (*there, key)
    return result
