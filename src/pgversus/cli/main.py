"""Entry point: commands, errors, exit codes."""

import gc
import os
import platform
import signal
import sys
import tempfile
import traceback
from importlib import metadata
from pathlib import Path
from types import FrameType

import click

from pgversus.cli.cache import cache
from pgversus.cli.compare import compare
from pgversus.cli.demo import demo
from pgversus.cli.fleet import fleet
from pgversus.cli.hints import hint
from pgversus.cli.output import detach, make_streams_safe, write_error
from pgversus.cli.plans import plans
from pgversus.cli.report import report
from pgversus.cli.run import run as run_command
from pgversus.cli.servers import servers
from pgversus.cli.statements import statements
from pgversus.cli.studies import studies
from pgversus.cli.timeline import timeline
from pgversus.cli.upgrade_check import upgrade_check
from pgversus.errors import ExitCode, PgversusError, StudyError, StudyFileError
from pgversus.text.redaction import hide_in_error, message_without_secrets, visible


def error_text(error: PgversusError) -> str:
    """Return the error in its four-part form without empty parts, or every problem of a study file.

    Control characters are made visible and passwords are hidden, since errors quote servers, scripts and files.
    """
    hide_in_error(error)
    return visible(str(error) if isinstance(error, StudyFileError) else f"error[{error.slug}]: {error}")


def write_crash_report(error: Exception) -> Path:
    """Write a private file with everything needed to fix a bug in pgversus, without passwords; return its path."""
    text = "".join(map(message_without_secrets, traceback.format_exception(error)))
    with tempfile.NamedTemporaryFile(
        "w", encoding="utf-8", errors="backslashreplace", prefix="pgversus-crash-", suffix=".txt", delete=False
    ) as file:
        file.write(f"pgversus {metadata.version('pgversus')}, Python {platform.python_version()}, ")
        file.write(f"{platform.platform()}\n\n{text}")
    return Path(file.name)


_EPILOG = """\b
Exit codes:
  0    done, whatever the verdict
  1    a result of a kind given with --fail-on was found
  2    invalid usage, or data that differs between arms or cannot be loaded
  3    a server, a build or this host cannot be used
  4    the workload failed, or finished with failed trials
  5    results cannot be read or written
  70   a bug in pgversus; a crash report is written
  130  interrupted
"""


@click.group(epilog=_EPILOG, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(metadata.version("pgversus"), "-V", "--version", message="pgversus %(version)s")
def pgversus() -> None:
    """Is PostgreSQL A faster or slower than B for this workload, by how much, how certain, and why?"""


for command in (
    compare,
    run_command,
    upgrade_check,
    timeline,
    plans,
    report,
    statements,
    studies,
    servers,
    cache,
    demo,
    fleet,
):
    pgversus.add_command(command)


def main() -> None:
    """Run the command line and exit."""
    _start_quickly()
    code = run(sys.argv[1:])
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            detach(stream)
    sys.exit(code)


def _start_quickly() -> None:
    """Save a tenth of the time that a command takes to start."""
    # Imports create many objects and no garbage.
    gc.set_threshold(100_000)
    # NumPy and SciPy would each start a thread per processor for matrix products, which spins for a moment.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")


def run(arguments: list[str]) -> int:
    """Run one command line and return its exit code; errors are reported on standard error."""
    make_streams_safe()
    _take_interrupts()
    try:
        for one in arguments:
            _check_utf8(one)
        result = pgversus.main(arguments, prog_name="pgversus", standalone_mode=False)
    except PgversusError as error:
        write_error(error_text(error))
        return int(error.exit_code)
    except click.ClickException as error:
        write_error(error_text(_usage(error)))
        return int(ExitCode.USAGE)
    except (KeyboardInterrupt, click.Abort):
        rest = "; finished blocks, if any, are in the results folder" if _STORING & {*arguments[:1]} else ""
        write_error(f"interrupted{rest}")
        return int(ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the one place where a bug becomes a message
        words = message_without_secrets(f"{type(error).__name__}: {error}")
        write_error(f"error[bug]: {words}\n  this is a bug in pgversus; crash report: {_crash_report(error)}")
        return int(ExitCode.BUG)
    return int(result or ExitCode.DONE)


def _check_utf8(argument: str) -> None:
    """Raise UsageError for an argument that cannot be stored as text."""
    try:
        argument.encode()
    except UnicodeEncodeError:
        raise click.UsageError(f"an argument is not UTF-8: {argument!r}") from None


_STORING = frozenset(one.name for one in (compare, run_command, upgrade_check, timeline))
"""Commands that store blocks."""
_INTERRUPTS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def _take_interrupts() -> None:
    """Handle the signals that end the process, except those that the parent process ignores, as nohup does."""
    for number in _INTERRUPTS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _interrupt)


def _crash_report(error: Exception) -> str:
    """Return the path of the crash report, or why it was not written: a full disk must not change the exit code."""
    try:
        return str(write_crash_report(error))
    except OSError as reason:
        return f"none, it could not be written ({reason.strerror})"


def _usage(error: click.ClickException) -> StudyError:
    """Return the error with a hint, or else with guesses at a similar option, which would contradict the hint."""
    context = getattr(error, "ctx", None)
    path = context.command_path if context else "pgversus"
    option = error.option_name if isinstance(error, click.NoSuchOption) else ""
    known = hint(option, path, frozenset(name for one in compare.params for name in one.opts))
    words = error.message if known else error.format_message()
    return StudyError(words, slug="usage", where=path, to_do=known or f"{path} --help")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Stop servers and show interim verdicts; later signals are ignored, so that they do not abort the cleanup."""
    for number in _INTERRUPTS:
        signal.signal(number, signal.SIG_IGN)
    raise KeyboardInterrupt


if __name__ == "__main__":
    main()
