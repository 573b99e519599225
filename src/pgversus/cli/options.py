"""Options that several commands share."""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from pgversus.host.output_file import check_output
from pgversus.study.build_options import USUAL_MANNER, BuildManner, BuildProfile, BuildSystem, requested_manner
from pgversus.study.workload import LARGEST_INT
from pgversus.text.translation import Language

if TYPE_CHECKING:
    from pgversus.study.study import Study

Command = TypeVar("Command", bound=Callable[..., Any])
_VARIABLES = ("LC_ALL", "LC_MESSAGES", "LANG")
"""Variables in the order in which the C library consults them for the language of messages."""


def _chosen(_context: click.Context, _parameter: click.Parameter, value: str | None) -> Language:
    return Language(value) if value is not None else locale_language(os.environ)


def locale_language(environment: Mapping[str, str]) -> Language:
    """Return the locale's language if pgversus is translated into it, otherwise English."""
    text = next((environment[name] for name in _VARIABLES if environment.get(name)), "")
    code = text.partition("_")[0].partition(".")[0].lower()
    return next((language for language in Language if language.value == code), Language.ENGLISH)


_BUILD_OPTIONS = (
    click.option(
        "--build-profile",
        type=click.Choice([profile.value for profile in BuildProfile]),
        help="Parts of PostgreSQL to build from source: the minimum for a comparison, or everything with the "
        "libraries that distributions use.  [default: minimal]",
    ),
    click.option(
        "--build-system",
        type=click.Choice([system.value for system in BuildSystem]),
        help="Build system for servers from source.  [default: configure, if the source has it]",
    ),
)
OUTPUT = click.option(
    "-o", "--output", type=click.Path(), metavar="FILE", help="Write to a file.  [default: standard output]"
)
VERBOSE = click.option(
    "-v", "--verbose", is_flag=True, help="Show everything: all tables, plans, counters and conditions."
)
QUIET = click.option("-q", "--quiet", is_flag=True, help="Show only the sentences of the answer.")
LANGUAGE = click.option(
    "--lang",
    "language",
    type=click.Choice([language.value for language in Language]),
    callback=_chosen,
    help="Language of the report.  [default: from the locale]",
)
RUN_AS = click.option(
    "--run-as",
    metavar="USER",
    help="As root: run servers, psql, pgbench, commands and builds as this user.  [default: nobody]",
)
_OPTIONS = (
    click.option(
        "--dry-run",
        is_flag=True,
        help="Show what a run would fetch, load and measure, and how long it would take, without running it.",
    ),
    click.option(
        "--ask-servers",
        is_flag=True,
        help="With --dry-run: also query versions and settings, which runs the programs of the servers or connects to "
        "them.",
    ),
    *_BUILD_OPTIONS,
    click.option(
        "--pgbench",
        "pgbench_path",
        type=click.Path(),
        metavar="PATH",
        help="Use this pgbench, and the psql next to it, instead of those that come with pgversus.",
    ),
    RUN_AS,
    click.option("--keep-logs", is_flag=True, help="Store pgbench's per-transaction log files with the results."),
    click.option(
        "--no-plans",
        is_flag=True,
        help="Do not capture plans, and do not measure the effect of changed plans.",
    ),
    click.option(
        "--sample-plans",
        is_flag=True,
        help="Run each load again with auto_explain, to check that it uses the captured plans.",
    ),
    click.option(
        "--check-rows",
        is_flag=True,
        help="Also check that statements return the same rows on every server.",
    ),
    click.option(
        "--fail-on",
        multiple=True,
        type=click.Choice(["slower", "undecided", "rows"]),
        help="Exit with code 1 if any result is of this kind; rows implies --check-rows; repeatable.",
    ),
    click.option("--json", "as_json", is_flag=True, help="Print one JSON document instead of tables."),
    OUTPUT,
    VERBOSE,
    QUIET,
    LANGUAGE,
)


class WholeNumber(click.IntRange):
    """A whole number in a range, whose errors name an `integer`, not an `integer range`."""

    name = "integer"


class Count(WholeNumber):
    """A number of clients, blocks or windows, within PostgreSQL's int; help shows the lower limit only."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        """Return the number; BadParameter for a larger one."""
        number = super().convert(value, param, ctx)
        if number > LARGEST_INT:
            self.fail(f"{number} is larger than {LARGEST_INT}.", param, ctx)
        return number


class HostlessCommand(click.Command):
    """A command that rejects psql's `-h HOST`, which would print the help and exit with 0."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """Raise NoSuchOption for -h with a value."""
        if "-h" in args[:-1] or any(one.startswith("-h") and one != "-h" for one in args):
            raise click.NoSuchOption("-h", ctx=context)
        return super().parse_args(context, args)


class GroupedCommand(HostlessCommand):
    """A command whose help shows its options in titled groups."""

    def __init__(self, *arguments: Any, groups: Mapping[str, Sequence[str]], **attributes: Any) -> None:
        """groups: parameter names by title, in help order; all other options follow under `Other`."""
        super().__init__(*arguments, **attributes)
        self.groups = groups

    def format_options(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the groups."""
        options = [param for param in self.get_params(context) if isinstance(param, click.Option)]
        records = {one.name: record for one in options if (record := one.get_help_record(context))}
        for title, names in self.groups.items():
            with formatter.section(title):
                formatter.write_dl([records.pop(name) for name in names])
        with formatter.section("Other"):
            formatter.write_dl(list(records.values()))


ANSWER_GROUP = {
    "Answer": ("verbose", "quiet", "as_json", "output", "language", "fail_on", "no_plans", "sample_plans", "check_rows")
}
PROGRAMS_GROUP = {"Servers and programs": ("build_profile", "build_system", "pgbench_path", "run_as", "keep_logs")}


def names_starting(
    names: Callable[[], Iterable[str]],
) -> Callable[[click.Context, click.Parameter, str], list[str]]:
    """Return a completion function for these names, which are read only when it is called."""
    return lambda _context, _parameter, typed: [name for name in names() if name.startswith(typed)]


KNOWN = click.option(
    "--known",
    type=click.Path(),
    metavar="FILE",
    help="JSON document of an earlier upgrade check; --fail-on ignores the findings in it.",
)


def shared_options(command: Command) -> Command:
    """Add the options that compare and run share."""
    return with_options(command, _OPTIONS)


def build_options(command: Command) -> Command:
    """Add the options that control how servers are built."""
    return with_options(command, _BUILD_OPTIONS)


def with_options(command: Command, options: Sequence[Callable[[Command], Command]]) -> Command:
    """Add options in this order."""
    for option in reversed(options):
        command = option(command)
    return command


def manner_of(options: Mapping[str, Any], manner: BuildManner = USUAL_MANNER) -> BuildManner:
    """Return the build manner from the options, with defaults from `manner`."""
    return requested_manner(manner, options["build_profile"], options["build_system"])


def with_requested_manner(study: "Study", options: Mapping[str, Any]) -> "Study":
    """Return the study with the build manner from the options; the study's own is the default."""
    return replace(study, build_manner=manner_of(options, study.build_manner))


def checks_rows(options: Mapping[str, Any]) -> bool:
    """Return whether rows are to be compared: on request, or because different ones set the exit status."""
    return options["check_rows"] or "rows" in options["fail_on"]


def check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError for options that cannot be used together, or that require another one."""
    if options["verbose"] and options["quiet"]:
        raise click.UsageError("--verbose and --quiet cannot be used together")
    if options["as_json"]:
        others = {"--dry-run": "dry_run", "--verbose": "verbose", "--quiet": "quiet"}
        given = [flag for flag, name in others.items() if options[name]]
        if given:
            raise click.UsageError(f"--json and {given[0]} cannot be used together")
    if options["no_plans"]:
        needs_plans = {"--sample-plans": options["sample_plans"], "--check-rows": options["check_rows"]}
        needs_plans["--fail-on rows"] = "rows" in options["fail_on"]
        if given := [flag for flag, is_given in needs_plans.items() if is_given]:
            raise click.UsageError(f"--no-plans and {given[0]} cannot be used together")
    if options["ask_servers"] and not options["dry_run"]:
        raise click.UsageError("--ask-servers requires --dry-run; a run queries its servers anyway")
    if options["output"] is not None:
        # Checked before measuring: the answer could not be written otherwise.
        check_output(Path(options["output"]))
