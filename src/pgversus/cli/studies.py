"""`pgversus studies`: list the bundled studies, or copy one to edit."""

import shutil
import tomllib
from pathlib import Path

import click

from pgversus.cli.options import names_starting
from pgversus.cli.output import write_out
from pgversus.errors import HostError


@click.group(invoke_without_command=True, short_help="List the bundled studies, or copy one to edit.")
@click.pass_context
def studies(context: click.Context) -> None:
    """Studies that come with pgversus; `pgversus run NAME` runs one.

    \b
    pgversus studies
    pgversus studies copy planner-16-vs-17
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined
    if context.invoked_subcommand is None:
        context.invoke(list_studies)


def _bundled() -> list[str]:
    from pgversus.lab.studies import bundled_names  # noqa: PLC0415 - not for `--help`

    return bundled_names()


@studies.command("list", short_help="List the bundled studies.")
def list_studies() -> None:
    """List names, titles and profiles of the bundled studies."""
    from pgversus.lab.studies import STUDY_FILE, bundled_names, library  # noqa: PLC0415 - not for `--help`

    lines = []
    for name in bundled_names():
        content = tomllib.loads((library() / name / STUDY_FILE).read_text(encoding="utf-8"))
        profiles = ", ".join(content.get("profiles", {}))
        lines += [name, f"    {content['title']}", f"    {content['question']}", f"    profiles: {profiles}"]
    write_out("\n".join(lines) + "\n", "")


@studies.command(short_help="Copy a bundled study to a folder of your own.")
@click.argument("name", shell_complete=names_starting(_bundled))
@click.argument("folder", required=False, type=click.Path())
def copy(name: str, folder: str | None) -> None:
    """Copy the study NAME with its SQL to FOLDER (default: ./NAME), to edit and run it there."""
    from pgversus.lab.studies import STUDY_FILE, find_bundled  # noqa: PLC0415 - not for `--help`

    source = find_bundled(name)
    target = Path(folder or name)
    try:
        target.mkdir(parents=True)
        try:
            for file in sorted(path for path in source.iterdir() if path.is_file()):
                shutil.copyfile(file, target / file.name)
        except OSError:
            shutil.rmtree(target, ignore_errors=True)
            raise
    except FileExistsError as error:
        raise _no_copy(target, "a file or folder of this name already exists") from error
    except OSError as error:
        raise _no_copy(target, error.strerror or str(error)) from error
    write_out(f"{target / STUDY_FILE}\n", str(target))


def _no_copy(target: Path, found: str) -> HostError:
    return HostError(
        "the study could not be copied",
        slug="host-no-copy",
        where=str(target),
        found=found,
        expected="a new folder that this user can create",
        to_do="name another folder: pgversus studies copy NAME FOLDER",
    )
