"""`pgversus fleet`: the certificates, the scheduler and the workers of a fleet."""

import platform
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from pgversus.cli.options import checks_rows
from pgversus.cli.output import write_error, write_out
from pgversus.errors import HostError, StudyError
from pgversus.text.units import parse_noise

if TYPE_CHECKING:
    from pgversus.lab.run import OpenStudy

_CERTIFICATES = click.option(
    "--certificates", type=click.Path(), metavar="DIR", help="Folder with the certificates of this host."
)
_DEFAULT_PORT = 8786
_OF_ONE_HOST = {
    "pgbench_path": "--pgbench",
    "keep_logs": "--keep-logs",
    "run_as": "--run-as",
    "dry_run": "--dry-run",
    "ask_servers": "--ask-servers",
}
_OF_A_FLEET = {"certificates": "--certificates", "max_noise": "--max-noise"}


@click.group(short_help="Measure a study on several hosts.")
def fleet() -> None:
    """Measure a study on several hosts: `pgversus run STUDY --fleet ADDRESS`.

    Each of them runs a worker, and another host runs the scheduler that connects them. Anyone who holds a
    certificate of the fleet can run programs on its hosts.

    \b
    pgversus fleet certificates fleet scheduler driver db1 db2
    pgversus fleet scheduler --certificates fleet/scheduler
    pgversus fleet worker --scheduler tls://10.0.0.1:8786 --certificates fleet/db1
    pgversus run my-study.toml --fleet tls://10.0.0.1:8786 --certificates fleet/driver
    """  # noqa: D301 - \b is the marker of click for lines that must not be joined


@fleet.command("certificates", short_help="Create the certificates of a fleet.")
@click.argument("folder", metavar="DIR", type=click.Path())
@click.argument("names", metavar="NAME...", nargs=-1, required=True)
def make_certificates(*, folder: str, names: tuple[str, ...]) -> None:
    """Create a folder DIR/NAME with the certificates of each host and of the driver.

    Copy each folder to its host. The first call also creates the authority that signs the certificates, in
    DIR/authority; no other host needs it.
    """
    with _extra():
        from pgversus.fleet import certificates  # noqa: PLC0415 - not for `--help`
    made = certificates.make_certificates(Path(folder), names)
    write_out("".join(f"{one}\n" for one in made), "")


@fleet.command("scheduler", short_help="Run the scheduler of a fleet.")
@click.option("--host", default="127.0.0.1", show_default=True, metavar="ADDRESS", help="Address to listen on.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=_DEFAULT_PORT, show_default=True, help="Port to listen on."
)
@_CERTIFICATES
def scheduler(*, host: str, port: int, certificates: str | None) -> None:
    """Run the scheduler of a fleet until Ctrl-C. Certificates are required unless it listens on a loopback address.

    The scheduler neither measures nor stores anything. Run it on a host that does not measure.
    """
    with _extra():
        from pgversus.fleet.connection import checked_address  # noqa: PLC0415 - not for `--help`
        from pgversus.fleet.scheduler import run_scheduler  # noqa: PLC0415 - the same
    folder = None if certificates is None else Path(certificates)
    checked_address(_with_port(host, port), has_certificates=folder is not None)
    run_scheduler(host, port, folder, write_error)


@fleet.command("worker", short_help="Let a fleet measure on this host.")
@click.option("--scheduler", "address", required=True, metavar="ADDRESS", help="Address of the scheduler.")
@click.option("--name", metavar="NAME", help="Name of this host in reports.  [default: its host name]")
@_CERTIFICATES
@click.option("--run-as", metavar="USER", help="As root: run servers and programs as this user.  [default: nobody]")
@click.option("--trust", is_flag=True, help="Allow studies to run programs and to build source of their choice.")
def worker(*, address: str, name: str | None, certificates: str | None, run_as: str | None, trust: bool) -> None:
    """Let a fleet measure on this host until Ctrl-C, one block at a time.

    The worker fetches servers and loads data itself. Nothing else should run on this host.
    """
    with _extra():
        from pgversus.fleet.connection import checked_address  # noqa: PLC0415 - not for `--help`
        from pgversus.fleet.host_work import WorkerOptions  # noqa: PLC0415 - the same
        from pgversus.fleet.worker import run_worker  # noqa: PLC0415 - the same
    folder = None if certificates is None else Path(certificates)
    options = WorkerOptions(name=name or platform.node(), run_as=run_as, trust=trust)
    run_worker(checked_address(address, has_certificates=folder is not None), folder, options, write_error)


def open_on_fleet(options: Mapping[str, Any]) -> "OpenStudy":
    """Return the function that opens a study on the fleet that --fleet names."""
    with _extra():
        from pgversus.fleet.connection import checked_address  # noqa: PLC0415 - only with --fleet
        from pgversus.fleet.fleet_study import FleetOptions, open_fleet_study  # noqa: PLC0415 - the same
    folder = None if options["certificates"] is None else Path(options["certificates"])
    chosen = FleetOptions(
        address=checked_address(options["fleet"], has_certificates=folder is not None),
        certificates=folder,
        sample_plans=options["sample_plans"],
        check_rows=checks_rows(options),
        most_noise=None if options["max_noise"] is None else parse_noise(options["max_noise"], "--max-noise"),
    )
    return partial(open_fleet_study, options=chosen)


def check_fleet_options(options: Mapping[str, Any]) -> None:
    """Raise StudyError for options that a fleet does not support, and for certificates without a fleet."""
    given = [flag for name, flag in _OF_ONE_HOST.items() if options[name]]
    if options["fleet"] and given:
        raise StudyError(
            "an option of a single host cannot be used with --fleet",
            slug="fleet-option",
            where="--fleet",
            found=", ".join(given),
            expected="options of the study and of its answer",
            to_do="omit it; to choose the user of the servers, start each worker with --run-as",
        )
    alone = next((flag for name, flag in _OF_A_FLEET.items() if options[name] is not None), None)
    if alone is not None and not options["fleet"]:
        raise StudyError(
            f"{alone} requires --fleet",
            slug="fleet-option",
            where=alone,
            found="no --fleet",
            expected="the address of a scheduler",
            to_do="add --fleet ADDRESS",
        )


@contextmanager
def _extra() -> Iterator[None]:
    """Raise HostError if the packages that a fleet needs are not installed."""
    try:
        yield
    except ModuleNotFoundError as error:
        raise HostError(
            "the packages required for a fleet are not installed",
            slug="fleet-extra",
            where="pgversus fleet",
            found=f"no module {error.name}",
            expected="the extra `fleet`",
            to_do="pip install 'pgversus[fleet]'",
        ) from error


def _with_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
