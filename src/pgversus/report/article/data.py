"""How the data are made: commands, and the text of every SQL file."""

import shlex
from collections.abc import Callable, Iterator
from pathlib import PurePath

from pgversus.report.answer import StudyAnswer
from pgversus.report.article.fences import fenced
from pgversus.report.article.figures import shortened
from pgversus.report.markdown import escaped, paragraph
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.text.translation import tell

TextOf = Callable[[SetupFile], str | None]
"""The text of a file that is not kept with the results; None where nobody has it any more as it was."""


def data(answer: StudyAnswer, text_of: TextOf) -> Iterator[str]:
    """Every dataset once, with the contexts that have it where there are several."""
    found: dict[Dataset, list[str]] = {}
    for one in answer.answers:
        for arm in one.comparison.arms:
            places = found.setdefault(arm.dataset, [])
            if one.context.label not in places:
                places.append(one.context.label)
    texts: set[str] = set()
    for dataset, places in found.items():
        if len(found) > 1:
            yield f"**{escaped(shortened(places))}**"
        yield from _dataset(dataset, text_of, texts)
    if found:
        yield paragraph(
            tell("All servers hold the same rows: tables are counted and hashed before anything is measured.")
        )


def _dataset(dataset: Dataset, text_of: TextOf, texts: set[str]) -> Iterator[str]:
    """texts: hashes of the files that were shown already, to which the others are added."""
    if dataset.is_empty:
        yield paragraph(tell("Nothing is loaded: the statements need no data, or the servers held them before."))
        return
    commands = []
    if dataset.pgbench_scale is not None:
        commands.append(shlex.join(["pgbench", "-i", "-s", str(dataset.pgbench_scale)]))
    commands += [shlex.join(["psql", "-f", _name(file)]) for file in dataset.setup_files]
    if commands:
        commands.append("psql -c 'VACUUM ANALYZE'")
    variables = [word for name, value in dataset.variables for word in ("-v", f"{name}={value}")]
    commands += [shlex.join(["psql", *variables, "-f", _name(file)]) for file in dataset.prepare]
    yield fenced("\n".join(commands), "sh")
    if dataset.full_statistics:
        yield paragraph(
            tell("Then every table is analyzed with a target by which every row is read: no plan differs by sampling.")
        )
    if dataset.prepare:
        yield paragraph(tell("That state is frozen: each repetition begins on a fresh copy of it."))
    for file in (*dataset.setup_files, *dataset.prepare):
        if file.sha256 not in texts:
            texts.add(file.sha256)
            yield from _file(file, text_of)


def _file(file: SetupFile, text_of: TextOf) -> Iterator[str]:
    text = file.text if file.text is not None else text_of(file)
    if text is None:
        yield paragraph(
            tell(
                "{file} (sha256 {sha256}) is not where it was, or not as it was: put its text here.",
                file=_name(file),
                sha256=file.sha256,
            )
        )
        return
    yield f"{escaped(_name(file))}:\n\n{fenced(text, 'sql')}"


def _name(file: SetupFile) -> str:
    return PurePath(file.path).name
