"""Errors as people read them: four parts, no traceback; and the report of a bug of ours."""

import platform
import tempfile
import traceback
from importlib import metadata
from pathlib import Path

from pgversus.errors import PgversusError, StudyFileError
from pgversus.text.redaction import hide_in_error, message_without_secrets, visible


def error_text(error: PgversusError) -> str:
    """The error in its four-part form, or every problem of a study file; parts that say nothing are left out.

    What a terminal would obey is shown instead, and passwords are hidden: servers, scripts and files have their words
    in errors.
    """
    hide_in_error(error)
    return visible(str(error) if isinstance(error, StudyFileError) else f"error[{error.slug}]: {error}")


def write_crash_report(error: Exception) -> Path:
    """A file with everything that is needed to mend a bug of ours, private and without passwords; its path."""
    text = "".join(map(message_without_secrets, traceback.format_exception(error)))
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", errors="backslashreplace", prefix="pgversus-crash-", suffix=".txt", delete=False
    ) as file:
        file.write(f"pgversus {metadata.version('pgversus')}, Python {platform.python_version()}, ")
        file.write(f"{platform.platform()}\n\n{text}")
    return Path(file.name)
