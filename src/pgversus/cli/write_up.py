"""`report --style article`: the write-up, with the text of SQL files that are still as they were."""

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from pgversus.report.answer import StudyAnswer
    from pgversus.study.dataset import SetupFile

STYLES = ("tables", "article")
_LARGEST = 1_000_000
# Bytes: nobody reads more, and what has that many is rows rather than commands.


def refuse_style(style: str | None, form: str) -> None:
    """UsageError for a style of another form than Markdown."""
    if style is not None and form != "markdown":
        raise click.UsageError(f"--style {style} is of --format markdown")


def write_up(answer: "StudyAnswer") -> str:
    """The article on a study, in the language of now."""
    from pgversus.report.article.page import article  # noqa: PLC0415 - `pgversus --help` does without numpy

    return article(answer, unchanged_text)


def unchanged_text(file: "SetupFile") -> str | None:
    """The text of a file whose content is still what was loaded; None of any other."""
    path = Path(file.path)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        content = path.read_bytes()
        return content.decode() if hashlib.sha256(content).hexdigest() == file.sha256 else None
    except (OSError, UnicodeDecodeError):
        return None
