"""The contents of setup files, which the hosts of a fleet do not have: sent once, and put in place on each host."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from pgversus.errors import DatasetError
from pgversus.study.comparison import Arm
from pgversus.study.dataset import SetupFile
from pgversus.study.study import Context, Study


def texts_of(study: Study) -> dict[str, str]:
    """Return the text of every setup file on disk, by its path; DatasetError if one cannot be read."""
    arms = (arm for context in study.contexts for arm in context.comparison.arms)
    return {path: _text(path) for path in dict.fromkeys(path for arm in arms for path in _paths(arm))}


def with_texts(context: Context, texts: Mapping[str, str]) -> Context:
    """Return a context whose setup files have these texts, as if they were inline."""
    return _with_files(context, {**texts})


def without_texts(context: Context, texts: Mapping[str, str]) -> Context:
    """Return a context whose setup files are on disk again."""
    return _with_files(context, dict.fromkeys(texts))


def _paths(arm: Arm) -> Iterator[str]:
    return (file.path for file in (*arm.dataset.setup_files, *arm.dataset.prepare) if file.text is None)


def _text(path: str) -> str:
    try:
        return Path(path).read_bytes().decode()
    except (OSError, UnicodeDecodeError) as error:
        raise DatasetError(
            "a setup file cannot be sent to the hosts of the fleet",
            slug="fleet-setup-file",
            where=path,
            found=str(error),
            expected="a readable file encoded in UTF-8",
            to_do="check the permissions and the encoding of the file",
        ) from error


def _with_files(context: Context, texts: Mapping[str, str | None]) -> Context:
    def changed(file: SetupFile) -> SetupFile:
        return replace(file, text=texts[file.path]) if file.path in texts else file

    arms = []
    for arm in context.comparison.arms:
        dataset = arm.dataset
        files, prepare = tuple(map(changed, dataset.setup_files)), tuple(map(changed, dataset.prepare))
        arms.append(replace(arm, dataset=replace(dataset, setup_files=files, prepare=prepare)))
    return replace(context, comparison=replace(context.comparison, arms=tuple(arms)))
