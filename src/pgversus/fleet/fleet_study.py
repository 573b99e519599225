"""A study opened on a fleet: the first host that can measure it sets the facts that all others must match."""

import hashlib
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from socket import gethostname
from typing import Any

from distributed import Client, fire_and_forget

from pgversus.engine.hosts import Hosts
from pgversus.engine.progress import Progress
from pgversus.errors import HostError, PgversusError, StudyError
from pgversus.fleet.connection import configure, security_of
from pgversus.fleet.fleet import Fleet, no_hosts, reply_of
from pgversus.fleet.fleet_hosts import FleetHosts
from pgversus.fleet.load_fleet import FleetLoadHosts, hosts_for_load
from pgversus.fleet.messages import Begin, Close, Failed, Open, Opened, OpenLoad, versions_here
from pgversus.fleet.setup_files import texts_of
from pgversus.host.identity import server_user
from pgversus.lab.load_hosts import divided
from pgversus.lab.resume_checks import client_facts
from pgversus.lab.study_host import ExternalData, HostOptions, Ledger, MeasurableStudy, Measuring, open_study_host
from pgversus.postgres.client import fixed_client
from pgversus.postgres.labels import label_of_running
from pgversus.postgres.session import uri_target
from pgversus.study.servers import RunningServer
from pgversus.study.study import Study
from pgversus.study.workload import loads_of
from pgversus.text.units import AUTO

_CONNECT_S = 20
_FIRST_HOST_S = 60.0
# Time within which the first host must be there.
_MOST_LOSSES = 3
# Hosts that may be lost while they open the study.
_LOOK_S = 0.5
_CLOSE_S = 15.0


@dataclass(frozen=True, slots=True, kw_only=True)
class FleetOptions:
    """The user's options for a fleet."""

    address: str
    """The scheduler's address, as checked_address() returns it."""
    certificates: Path | None
    sample_plans: bool
    check_rows: bool
    most_noise: float | None = None
    """The most that the speed of a host may vary, as in host/noise.py; None if it does not matter."""


class FleetStudy:
    """A study that is ready to be measured by a fleet."""

    def __init__(self, fleet: Fleet, opening: Open, opened: Opened, hosts: dict[str, str], progress: Progress) -> None:
        """opening: for every other host. hosts: those that have opened it, by name."""
        self.study = opened.study
        self.facts = opened.facts
        self._fleet = fleet
        self._opening = opening
        self._hosts = hosts
        self._progress = progress
        self._number = 0

    def hosts(self, measuring: Measuring, external: ExternalData, ledger: Ledger, stack: ExitStack) -> Hosts:
        """Return the hosts of the fleet; they stop their servers when another study begins, or the run ends."""
        del external, stack
        self._number += 1
        others = measuring.others
        arms = max(len(context.comparison.arms) for context in measuring.study.contexts)
        begin = Begin(
            run=self._opening.run,
            number=self._number,
            study=measuring.study,
            capture=measuring.capture,
            others=() if others is None else tuple(tuple(others(arm)) for arm in range(arms)),
            log_prefix=measuring.log_prefix,
        )
        return FleetHosts(self._fleet, self._opening, begin, self._hosts, ledger, self._progress)

    def close(self) -> None:
        """Let every host stop its servers and remove their data."""
        there, task = self._fleet.hosts(), Close(run=self._opening.run)
        names = [name for name, identity in self._hosts.items() if there.get(name) == identity]
        sent = [self._fleet.send(name, task, f"{task.run}-close-{name}") for name in names]
        # A host that is still measuring does this later, when the connection has ended.
        fire_and_forget(sent)
        until = time.monotonic() + _CLOSE_S
        while time.monotonic() < until and not all(future.done() for future in sent):
            time.sleep(_LOOK_S)

    def keep_server_logs(self, results: Path) -> None:
        """Do nothing: the logs stay on the hosts."""


@contextmanager
def open_fleet_study(
    study: Study, progress: Progress, before: Mapping[str, Any] | None, results: Path, *, options: FleetOptions
) -> Iterator[MeasurableStudy]:
    """Open a study on a fleet: on the first host that can measure it or, with external servers, on this host.

    In the second case all hosts of the fleet send the load. before: facts of the results in the folder `results`.
    PgversusError of any kind if no host can measure the study.
    """
    external = [one for one in study.servers if isinstance(one, RunningServer)]
    if not external:
        with _open_on_hosts(study, progress, before, results, options) as opened:
            yield opened
        return
    _check_external(study, external)
    configure()
    with closing(_connected(options, progress)) as fleet:
        user = server_user()
        client = fixed_client(user)
        names = hosts_for_load(fleet, None if before is None else before.get("load_hosts"))
        opening = OpenLoad(
            run=_run_name(results),
            versions=versions_here(),
            study=study,
            client=client_facts(client),
            most_noise=options.most_noise,
        )
        for workload in loads_of({arm.workload for context in study.contexts for arm in context.comparison.arms}):
            divided(workload, len(names))
        load_hosts = FleetLoadHosts(fleet, opening, names, progress)
        chosen = HostOptions(
            user=user,
            client=client,
            sample_plans=options.sample_plans,
            check_rows=options.check_rows,
            load_hosts=load_hosts,
        )
        with closing(load_hosts):
            load_hosts.open()
            progress.say(f"the load comes from {', '.join(load_hosts.names)}")
            with open_study_host(study, progress, before, results, options=chosen) as host:
                yield host


@contextmanager
def _open_on_hosts(
    study: Study, progress: Progress, before: Mapping[str, Any] | None, results: Path, options: FleetOptions
) -> Iterator[FleetStudy]:
    files = texts_of(study)
    configure()
    with closing(_connected(options, progress)) as fleet:
        opening = Open(
            run=_run_name(results),
            versions=versions_here(),
            study=study,
            files=files,
            before=before,
            sample_plans=options.sample_plans,
            check_rows=options.check_rows,
            most_noise=options.most_noise,
        )
        name, identity, opened = _opened_first(fleet, opening, progress)
        opening = replace(opening, study=opened.study, before=opened.facts)
        found = FleetStudy(fleet, opening, opened, {name: identity}, progress)
        try:
            yield found
        finally:
            found.close()


def _run_name(results: Path) -> str:
    """Return the name of the run. A resumed run keeps it, so that no host waits for the end of the killed one."""
    place = f"{gethostname()} {results.resolve()}"
    return f"pgversus-{hashlib.sha256(place.encode()).hexdigest()[:12]}"


def _connected(options: FleetOptions, progress: Progress) -> Fleet:
    security = security_of(options.certificates)
    connect = partial(Client, options.address, security=security, timeout=_CONNECT_S, set_as_default=False)
    try:
        return Fleet(connect, progress)
    except (OSError, TimeoutError) as error:
        raise HostError(
            "could not connect to the scheduler of the fleet",
            slug="fleet-unreachable",
            where=options.address,
            found=str(error).splitlines()[0] if str(error) else type(error).__name__,
            expected="a scheduler whose certificate was signed by the same authority",
            to_do="run pgversus fleet scheduler on that host, with a certificate signed by the same authority",
        ) from error


def _opened_first(fleet: Fleet, opening: Open, progress: Progress) -> tuple[str, str, Opened]:
    """Return the first host that opens the study, its identity, and its reply; PgversusError if none can."""
    until = time.monotonic() + _FIRST_HOST_S
    refused: dict[str, PgversusError] = {}
    losses = 0
    while losses < _MOST_LOSSES:
        found = fleet.hosts()
        waiting = [name for name in sorted(found) if name not in refused]
        if not waiting:
            if found or time.monotonic() > until:
                break
            time.sleep(_LOOK_S)
            continue
        name = waiting[0]
        progress.say(f"opening the study on {name}")
        reply = _reply_to(fleet, opening, name, found[name])
        match reply:
            case Opened():
                return name, found[name], reply
            case Failed(error=error):
                progress.say(f"{name} was excluded: {error.summary}")
                refused[name] = error
            case None:
                progress.say(f"the connection to {name} was lost while it was opening the study")
                losses += 1
                # Its worker is started again.
                until = time.monotonic() + _FIRST_HOST_S
    raise next(iter(refused.values()), no_hosts())


def _reply_to(fleet: Fleet, task: Open, host: str, identity: str) -> Opened | Failed | None:
    """Return the reply of a host; None if it is lost."""
    future = fleet.send(host, task, f"{task.run}-open-{host}")
    while not future.done():
        fleet.say_news()
        if fleet.hosts().get(host) != identity:
            return None
        time.sleep(_LOOK_S)
    reply = reply_of(future)
    assert reply is None or isinstance(reply, Opened | Failed)  # noqa: S101 - a host answers an Open with one of them
    return reply


def _check_external(study: Study, external: Sequence[RunningServer]) -> None:
    """Raise StudyError if only some servers are external, or a URI has a password."""
    if len(external) < len(study.servers):
        raise StudyError(
            "a fleet cannot compare an external server with one that its hosts start themselves",
            slug="fleet-external-server",
            where=label_of_running(external[0]),
            found="an external server",
            expected="external servers only, or none",
            to_do="run this study without --fleet",
        )
    pins = {context.comparison.design.pin for context in study.contexts} - {AUTO, "off"}
    if pins:
        raise StudyError(
            "processors of the hosts that send load cannot be chosen",
            slug="fleet-option",
            where="--pin",
            found=", ".join(sorted(pins)),
            expected="auto or off",
            to_do="omit --pin (pin in a study file)",
        )
    for server in external:
        if uri_target(server.uri, ()).password is not None:
            raise StudyError(
                "the password in a URI is not sent to the hosts of a fleet",
                slug="fleet-password",
                where=label_of_running(server),
                found="a URI with a password",
                expected="a URI without one",
                to_do="store the password in ~/.pgpass on every host and on the driver, and omit it from the URI",
            )
