"""What compare and run have in common: the flags of how to measure, and the measuring itself."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pgversus.errors import ExitCode
from pgversus.study.build_options import USUAL_MANNER, BuildManner, BuildProfile, BuildSystem, manner_asked
from pgversus.text.translation import Language, use_language

Command = TypeVar("Command", bound=Callable[..., Any])
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""In the order in which the C library asks them for the language of messages."""


def language_option(function: Command) -> Command:
    """Add `--lang` to a command, which gets it as `language`."""
    return click.option(
        "--lang",
        "language",
        type=click.Choice([language.value for language in Language]),
        callback=_chosen,
        help="Language of what people read.  [default: that of the locale]",
    )(function)


def _chosen(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Language:
    return Language(value) if value is not None else locale_language(os.environ)


def locale_language(environment: Mapping[str, str]) -> Language:
    """The locale's, where there are sentences in it; else English."""
    text = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
    code = text.partition("_")[0].partition(".")[0].lower()
    return next((language for language in Language if language.value == code), Language.ENGLISH)


if TYPE_CHECKING:
    from pgversus.lab.resume import EarlierResults
    from pgversus.report.answer import StudyAnswer
    from pgversus.study.study import Study


_BUILD_OPTIONS = (
    click.option(
        "--build-profile",
        type=click.Choice([profile.value for profile in BuildProfile]),
        help="How much of a server from source is built: what a comparison runs, or all of PostgreSQL with the "
        "libraries that distributions build with.  [default: minimal]",
    ),
    click.option(
        "--build-system",
        type=click.Choice([system.value for system in BuildSystem]),
        help="By what servers are built from source.  [default: configure, where their source has it]",
    ),
)
RUN_AS = click.option(
    "--run-as",
    metavar="USER",
    help="As root: the user that servers, psql, pgbench, commands and builds run as.  [default: nobody]",
)
_OPTIONS = (
    *_BUILD_OPTIONS,
    click.option(
        "--pgbench",
        "pgbench_path",
        type=click.Path(),
        metavar="PATH",
        help="Another pgbench than the one that comes with pgversus.",
    ),
    RUN_AS,
    click.option("--keep-logs", is_flag=True, help="Keep pgbench's transaction logs among the results."),
    click.option(
        "--no-plans",
        is_flag=True,
        help="Neither look at plans nor measure, after the verdicts, what changed ones account for.",
    ),
    click.option(
        "--sample-plans",
        is_flag=True,
        help="Run each load once more with auto_explain, to see that plans under it are those that were captured.",
    ),
    click.option(
        "--check-rows",
        is_flag=True,
        help="Also compare what statements return: a faster server with other rows is no faster server.",
    ),
    click.option(
        "--fail-on", multiple=True, type=click.Choice(["slower", "undecided"]), help="Exit with 1 on such a verdict."
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."),
    language_option,
)


def means_options(command: Command) -> Command:
    """Add the flags that say with what is measured."""
    return with_options(command, _OPTIONS)


def build_options(command: Command) -> Command:
    """Add the flags that say how servers are built."""
    return with_options(command, _BUILD_OPTIONS)


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add these, in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def manner_of(options: dict[str, Any], manner: BuildManner = USUAL_MANNER) -> BuildManner:
    """The manner that the flags ask for; where they say nothing, that of `manner`."""
    return manner_asked(manner, options["build_profile"], options["build_system"])


def in_asked_manner(study: "Study", options: dict[str, Any]) -> "Study":
    """The study with its builds in the manner that the flags ask for; without one, in its own."""
    return replace(study, build_manner=manner_of(options, study.build_manner))


def measure(study: "Study", options: dict[str, Any], results: Path, *, earlier: "EarlierResults") -> "StudyAnswer":
    """Carry out a study and read its answer back. earlier: what is done with results that are in the folder."""
    # Imported here: `pgversus --help` and every usage error do without numpy and psycopg.
    from pgversus.cli.command import command_typed  # noqa: PLC0415
    from pgversus.cli.progress import TerminalProgress  # noqa: PLC0415
    from pgversus.host.identity import server_user  # noqa: PLC0415
    from pgversus.lab.answer import read_answer  # noqa: PLC0415
    from pgversus.lab.run import RunOptions, run_study  # noqa: PLC0415
    from pgversus.postgres.client import client_at, fixed_client  # noqa: PLC0415
    from pgversus.report.terminal import SafeConsole  # noqa: PLC0415

    user = server_user(options["run_as"])
    means = RunOptions(
        user=user,
        client=client_at(Path(options["pgbench_path"]), user) if options["pgbench_path"] else fixed_client(user),
        results=results,
        keep_logs=options["keep_logs"],
        earlier=earlier,
        plans=not options["no_plans"],
        check_rows=options["check_rows"],
        sample_plans=options["sample_plans"],
        command=command_typed(sys.argv[1:]),
    )
    with TerminalProgress(SafeConsole(stderr=True), language=options["language"]) as progress:
        run_study(study, means, progress)
    # What was stored is in English; what is shown of it need not be.
    with use_language(language_shown(options)):
        return read_answer(results)


def language_shown(options: dict[str, Any]) -> Language:
    """In which the answer is told; English in a document for programs."""
    return Language.ENGLISH if options["as_json"] else options["language"]


def exit_code(answer: "StudyAnswer", fail_on: tuple[str, ...]) -> ExitCode:
    """What the process returns for an answer."""
    from pgversus.study.design import StopReason  # noqa: PLC0415

    if answer.stopped is StopReason.INTERRUPTED:
        return ExitCode.INTERRUPTED
    verdicts = [result.verdict.value for one in answer.answers for result in one.analysis.results]
    # What was not measured is not decided.
    verdicts += ["undecided"] * len(answer.unanswered)
    if any(verdict in fail_on for verdict in verdicts):
        return ExitCode.FAIL_ON
    has_failed = any(one.failed_trials or one.failure for one in answer.answers)
    has_failed = has_failed or any(one.failed for one in answer.unanswered)
    return ExitCode.FAILED_TRIALS if has_failed else ExitCode.DONE
