"""Flags that say what is compared: settings, data and scripts, with pgbench's own names where it has them."""

import click

from pgversus.cli.means import Command, with_options

_ARMS = (
    click.option(
        "--set",
        "settings",
        multiple=True,
        metavar="NAME=V[,V...]",
        help="A setting for all arms, or its levels to compare.",
    ),
    click.option(
        "--setup", multiple=True, metavar="FILE", help="SQL file that psql runs once in each arm; repeatable."
    ),
    click.option("-i", "--initialize", is_flag=True, help="Make pgbench's tables in each arm, before any --setup."),
    click.option(
        "-s", "--scale", type=click.IntRange(min=1), metavar="N", help="Scale factor of -i, and :scale in scripts."
    ),
    click.option(
        "--full-statistics",
        is_flag=True,
        help="Analyze with the largest statistics target, so that no plan differs because of another sample.",
    ),
    click.option(
        "-f", "--file", "files", multiple=True, metavar="FILE[@W]", help="pgbench script, with a weight; repeatable."
    ),
    click.option(
        "-b", "--builtin", "builtins", multiple=True, metavar="NAME[@W]", help="Built-in script of pgbench; repeatable."
    ),
    click.option("-S", "--select-only", is_flag=True, help="As -b select-only."),
    click.option("-N", "--skip-some-updates", is_flag=True, help="As -b simple-update."),
)
_VARIABLES = (
    click.option(
        "-D",
        "--define",
        "variables",
        multiple=True,
        metavar="VAR=VALUE",
        help="Variable for the scripts, or for --prepare; repeatable.",
    ),
)


def arms_options(command: Command) -> Command:
    """Add the flags for settings, data and scripts."""
    return with_options(command, _ARMS)


def variable_options(command: Command) -> Command:
    """Add the flag for variables."""
    return with_options(command, _VARIABLES)
