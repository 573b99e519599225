"""`pgversus demo`: a first comparison that needs only an installed pgversus."""

from importlib.resources import files
from shlex import join

import click

from pgversus.cli.compare import compare
from pgversus.cli.options import HostlessCommand
from pgversus.cli.output import write_error


@click.command(
    cls=HostlessCommand,
    short_help="Run a first comparison: a query that 17 plans better than 16.",
    context_settings={"ignore_unknown_options": True},
)
@click.argument("options", nargs=-1, type=click.UNPROCESSED, metavar="[OPTIONS OF COMPARE]...")
def demo(options: tuple[str, ...]) -> int:
    """Compare PostgreSQL 16.12 and 17.8 on a query with a correlated IN subquery, in about a minute.

    PostgreSQL 17 turns the subquery into a join. pgversus fetches both servers, loads the same data into each, measures
    them in turn, and shows the verdict and the plan change. OPTIONS are those of compare, such as --json.
    """
    study = files("pgversus") / "library" / "planner-16-vs-17"
    setup, script = str(study / "correlated.sql"), str(study / "correlated_in.sql")
    arguments = ["16.12", "17.8", "--setup", setup, "-f", script, "-c", "4", *options]
    write_error(f"$ {join(['pgversus', 'compare', *arguments])}")
    code = compare.main(arguments, prog_name="pgversus compare", standalone_mode=False)
    return int(code or 0)
