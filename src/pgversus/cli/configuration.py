"""The settings of an application's own server, from its postgresql.conf: `--conf`."""

from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path

import click

from pgversus.cli.output import read_text
from pgversus.study.configuration import Configuration, read_configuration
from pgversus.study.study import Skipped

CONF = click.option(
    "--conf",
    type=click.Path(),
    metavar="FILE",
    help="postgresql.conf of the application's server, applied to all arms except for settings of file locations, "
    "logging, replication and extensions. --set takes precedence; a setting that a version does not have is skipped "
    "and reported.",
)


def carried_settings(path: str | None, given: AbstractSet[str]) -> Configuration:
    """Return the settings of a postgresql.conf; none without one. given: names of settings that take precedence."""
    if path is None:
        return Configuration(settings=(), left_out=())
    found = read_configuration(read_text(path, "--conf"), path, lambda included: _has_settings(Path(path), included))
    return replace(found, settings=tuple(one for one in found.settings if one.name not in given))


def _has_settings(configuration: Path, included: str) -> bool:
    """Return whether an included file exists, or a directory with at least one file that PostgreSQL would read."""
    place = configuration.parent / included
    return place.is_file() or any(place.glob("*.conf"))


def not_carried(names: tuple[str, ...], path: str | None) -> tuple[Skipped, ...]:
    """Return the settings of a file that no arm gets, with the reason, as one entry; none without names."""
    label = f"{', '.join(names)} of {path}"
    reason = "settings of file locations, logging, replication or extensions"
    return (Skipped(label=label, reason=reason),) if names else ()
