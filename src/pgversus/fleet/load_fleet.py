"""External servers compared under the load of all hosts of a fleet at once.

The driver watches the servers, as without a fleet. It tells each host, in the time of the host's own clock, when a
window begins and ends. The error of this time is at most half of the time that reading the clock took.
"""

import random
import time
from collections.abc import Mapping, Sequence

from distributed import Future

from pgversus.engine.progress import Progress
from pgversus.engine.testbed import TrialFailedError
from pgversus.errors import HostError, PgversusError
from pgversus.fleet.fleet import Clock, Fleet, no_hosts, reply_of
from pgversus.fleet.messages import Close, Failed, LoadOpened, OpenLoad, Reply, SendLoad, Sent
from pgversus.lab.load_hosts import JointWindow
from pgversus.study.comparison import Arm
from pgversus.study.servers import RunningServer
from pgversus.workload.aligned_run import AlignedWindow
from pgversus.workload.pgbench_run import PgbenchLoad

_WAIT_S, _PATIENCE_S = 60.0, 600.0
# For the first host, and for hosts that were lost.
_MOST_LOSSES = 3
# Attempts in a row at one window in which a host may be lost.
_OTHERS_S = 2.0
# Hosts that connect within this time after the first one take part.
_LOOK_S, _LOOK_AT_WINDOW_S = 0.5, 0.02
_LEAD_S, _LONGEST_LEAD_S = 1.0, 60.0
# From sending the tasks to the begin of the window, without the time that clients take to connect.
_SHRINKS = 0.9
# The lead becomes shorter after each window for which all hosts were ready.
_CLOCK_READINGS = 5
_REPLY_S = 30.0
# For a reply, beyond the longest time that a window may take.


class FleetLoadHosts:
    """The hosts of a fleet that send load together; the same ones during a whole study."""

    def __init__(self, fleet: Fleet, opening: OpenLoad, names: Sequence[str], progress: Progress) -> None:
        """names: of all hosts of the fleet that are to send load. opening: for each of them."""
        self.names = sorted(names)
        self._fleet = fleet
        self._opening = opening
        self._progress = progress
        self._identities: dict[str, str] = {}
        self._lead_s = _LEAD_S
        self._losses = 0
        self._busy_until = 0.0
        # When the hosts have finished what they were sent, at the latest.

    def open(self) -> None:
        """Open the run on every host that has not done so, or was restarted since; PgversusError if one refuses.

        HostError if a host stays away.
        """
        there = self._all_hosts()
        for name in self.names:
            if self._identities.get(name) == there[name]:
                continue
            future = self._fleet.send(name, self._opening, f"{self._opening.run}-open-{name}")
            match self._replies([future], time.monotonic() + _WAIT_S, _LOOK_S)[0]:
                case LoadOpened():
                    self._identities[name] = there[name]
                case Failed(error=error):
                    self._progress.say(f"{name} cannot send load: {error.summary}")
                    raise error
                case _:
                    raise _away([name])

    def run(self, loads: Sequence[PgbenchLoad], arm: Arm, seconds: float, seeds: Sequence[int]) -> JointWindow | None:
        """Let all hosts send their load at once, with more time to connect if one was late in the attempt before.

        None if the window must be repeated, because a host was lost or not connected in time. TrialFailedError if the
        load fails on a host, or a host never connects in time. HostError if a host stays away, or itself fails.
        """
        try:
            self.open()
        except HostError:
            raise
        except PgversusError as error:
            raise TrialFailedError(f"{error.what}: {error.found}") from error
        clocks = self._clocks()
        if clocks is None:
            self._note_loss(self.names)
            return None
        # Slow transactions that all begin at once would end in step, before or after the end of every window alike.
        phase_s = random.Random(seeds[0]).uniform(0.0, seconds / 3)  # noqa: S311 - not for cryptography
        begin_s = time.time() + self._lead_s + phase_s + max(load.connect_allowance_s for load in loads)
        tasks = [
            self._task(load, arm, seed, begin_s + clocks[name].ahead_s, seconds)
            for name, load, seed in zip(self.names, loads, seeds, strict=True)
        ]
        found = self._sent(tasks, begin_s - time.time() + seconds + max(load.longest_s for load in loads))
        if found is None:
            return None
        late_s = max(one.late_s for one in found)
        if late_s > 0:
            self._give_more_time(late_s)
            return None
        self._losses = 0
        self._lead_s = max(_LEAD_S, _SHRINKS * self._lead_s)
        return JointWindow(
            windows=tuple(one.window for one in found),
            transactions=sum(one.transactions for one in found),
            clock_error_s=max(clock.error_s for clock in clocks.values()),
        )

    def _give_more_time(self, late_s: float) -> None:
        lead_s = 2 * (self._lead_s + late_s)
        if lead_s > _LONGEST_LEAD_S:
            raise TrialFailedError(f"a host was connected only {late_s:.1f} s after the begin of the window")
        self._lead_s = lead_s

    def _note_loss(self, names: Sequence[str]) -> None:
        """Note that hosts were lost, or do not know the run; HostError after several times in a row."""
        for name in names:
            self._identities.pop(name, None)
        self._losses += 1
        self._progress.say(f"the connection to {', '.join(names)} was lost; repeating the window")
        if self._losses >= _MOST_LOSSES:
            raise _away(names)

    def close(self) -> None:
        """Let every host end the run, once it has finished the load that it is sending."""
        there, task = self._fleet.hosts(), Close(run=self._opening.run)
        sent = [
            self._fleet.send(name, task, f"{task.run}-close-{name}")
            for name, identity in self._identities.items()
            if there.get(name) == identity
        ]
        self._replies(sent, max(time.monotonic(), self._busy_until) + _REPLY_S, _LOOK_S)

    def _all_hosts(self) -> Mapping[str, str]:
        """Return the identity of every host, once all are there; HostError if one stays away."""
        until, said = time.monotonic() + _PATIENCE_S, False
        while True:
            there = self._fleet.hosts()
            missing = [name for name in self.names if name not in there]
            if not missing:
                return there
            if time.monotonic() > until:
                raise _away(missing)
            if not said:
                self._progress.say(f"waiting for {', '.join(missing)}")
                said = True
            time.sleep(_LOOK_S)

    def _clocks(self) -> Mapping[str, Clock] | None:
        """Return the clock of each host; None if one did not answer."""
        addresses = [self._identities[name] for name in self.names]
        clocks = self._fleet.clocks(addresses, _CLOCK_READINGS)
        if not clocks.keys() >= set(addresses):
            return None
        return {name: clocks[self._identities[name]] for name in self.names}

    def _task(self, load: PgbenchLoad, arm: Arm, seed: int, begin_s: float, seconds: float) -> SendLoad:
        assert isinstance(arm.server, RunningServer)  # noqa: S101 - a fleet sends load to external servers only
        return SendLoad(
            run=self._opening.run,
            workload=load.workload,
            uri=arm.server.uri,
            settings=arm.settings,
            seed=seed,
            begin_s=begin_s,
            end_s=begin_s + seconds,
            connect_allowance_s=load.connect_allowance_s,
            longest_s=load.longest_s,
        )

    def _sent(self, tasks: Sequence[SendLoad], longest_s: float) -> list[AlignedWindow] | None:
        """Return the windows of all hosts; None if a host was lost, TrialFailedError if the load failed on one."""
        run = self._opening.run
        futures = [
            self._fleet.send(name, task, f"{run}-send-{name}") for name, task in zip(self.names, tasks, strict=True)
        ]
        self._busy_until = time.monotonic() + longest_s
        until = self._busy_until + _REPLY_S
        found, lost = [], []
        for name, reply in zip(self.names, self._replies(futures, until, _LOOK_AT_WINDOW_S), strict=True):
            match reply:
                case Sent(found=AlignedWindow() as window):
                    found.append(window)
                case Sent(failure=failure):
                    raise TrialFailedError(f"on {name}: {failure}")
                case Failed(error=HostError() as error):
                    # A full disk, for example, says nothing about an arm.
                    raise error
                case Failed(error=error):
                    raise TrialFailedError(f"on {name}: {error.what}: {error.found}")
                case _:
                    lost.append(name)
        if lost:
            self._note_loss(lost)
            return None
        return found

    def _replies(self, futures: Sequence[Future[bytes]], until: float, look_s: float) -> list[Reply | None]:
        """Return the reply to each task; None for a host that was lost, or did not reply in time."""
        while time.monotonic() < until and not all(future.done() for future in futures):
            self._fleet.say_news()
            time.sleep(look_s)
        return [reply_of(future) if future.done() else None for future in futures]


def hosts_for_load(fleet: Fleet, before: Sequence[str] | None) -> Sequence[str]:
    """Return the names of the hosts that are to send load: those of the earlier blocks, or all that are there.

    HostError if there is none.
    """
    if before is not None:
        return before
    until = time.monotonic() + _WAIT_S
    while not fleet.hosts():
        if time.monotonic() > until:
            raise no_hosts()
        time.sleep(_LOOK_S)
    time.sleep(_OTHERS_S)
    return list(fleet.hosts())


def _away(names: Sequence[str]) -> HostError:
    return HostError(
        "a host that sends load is not connected to the fleet",
        slug="fleet-host-away",
        where=", ".join(names),
        found="no connection, or a connection that is lost again and again",
        expected="the same hosts during the whole study, because they share its clients",
        to_do="start pgversus fleet worker there again, or start again without it with --new",
    )
