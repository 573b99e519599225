"""`report --style article`: the write-up, with the text of SQL files that are still as they were."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from pgversus.study.dataset import SetupFile, setup_file
from pgversus.text.redaction import code_without_secrets

if TYPE_CHECKING:
    from pgversus.report.answer import StudyAnswer

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


def unchanged_text(file: SetupFile) -> str | None:
    """The text of a file whose content is still what was loaded, but for passwords; None of any other."""
    path = Path(file.path)
    try:
        if not path.is_file() or path.stat().st_size > _LARGEST:
            return None
        content = path.read_bytes()
        now = setup_file(file.path, content)
        return code_without_secrets(content.decode()) if file.sha256 in (now.sha256, now.hidden_sha256) else None
    except (OSError, UnicodeDecodeError):
        return None
