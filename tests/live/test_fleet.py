"""A study that a fleet measures: its scheduler and workers run on this machine, each worker with a cache of its own."""

import json
import signal
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from tests.live.conftest import PROGRAM, CommandLine, own_command_line, started_server
from tests.live.fleets import CHOSEN, Fleet, started_fleet

STUDY = """
title = "Two statements on a fleet"

[factors]
server = ["17.8", "17.8"]

[workloads.one]
builtin = "select-only"

[workloads.other]
sql = "SELECT count(*) FROM pgbench_branches;"

[dataset]
scale = 1

[design]
blocks = 4
windows = 4
window = "50ms"
"""
HOSTS = ("db1", "db2")
DASK = (str(PROGRAM.with_name("dask")),)


@pytest.fixture
def fleet(command_line: CommandLine, shared_cache: Path, tmp_path: Path) -> Iterator[Fleet]:
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(own_command_line(shared_cache, tmp_path)) for name in HOSTS}
        yield stack.enter_context(started_fleet(command_line, hosts, STUDY))


@pytest.mark.long
def test_hosts_share_the_blocks_of_a_study(fleet: Fleet) -> None:
    stdout = fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert '"blocks": 4' in stdout
    found = fleet.blocks()
    assert {host for *_, host in found} == {*HOSTS}
    assert fleet.driver.leftovers() == [], "the driver measures nothing"
    report = fleet.driver.run("report", "results", "--verbose")
    assert "db1" in report.stdout
    assert "db2" in report.stdout
    fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert fleet.blocks() == found


@pytest.mark.long
def test_a_worker_that_dask_starts_measures_like_any_other(fleet: Fleet) -> None:
    for name in HOSTS:
        fleet.stop(name)
    line, folder = replace(fleet.hosts["db2"], program=DASK), fleet.folder("db2")
    options = {"--tls-ca-file": "ca.pem", "--tls-cert": "certificate.pem", "--tls-key": "key.pem"}
    files = (part for option, name in options.items() for part in (option, str(folder / name)))
    kind = ("--no-nanny", "--worker-class", "pgversus.fleet.worker.HostWorker", "--name", "db2")
    fleet.start("db2", line, "worker", fleet.address, *kind, *files)
    fleet.complete(fleet.run_driver(), contexts=2, blocks=4)
    assert {host for *_, host in fleet.blocks()} == {"db2"}


def test_whoever_has_no_certificate_of_the_fleet_is_refused(fleet: Fleet) -> None:
    strangers = fleet.driver.run("fleet", "certificates", "others", "driver")
    assert strangers.code == 0
    study = ("run", "study.toml", *CHOSEN, "--fleet")
    ended = fleet.driver.run(*study, fleet.address, "--certificates", "others/driver")
    assert (ended.code, "error[fleet-unreachable]" in ended.stderr) == (3, True), ended.stderr
    plain = fleet.address.replace("tls://", "tcp://")
    ended = fleet.driver.run(*study, plain)
    assert (ended.code, "error[fleet-unreachable]" in ended.stderr) == (3, True), ended.stderr
    ended = fleet.driver.run(*study, "tcp://10.1.2.3:8786")
    assert (ended.code, "error[fleet-address]" in ended.stderr) == (2, True), ended.stderr
    for name in ("db1", "scheduler", "db2"):
        log = fleet.log(name)
        fleet.driver.wait_for(partial(_awaits_an_interrupt, log))
        assert fleet.stop(name) == 0, log.read_text()
        assert log.read_text().endswith(" has stopped\n"), "no traceback"


def _awaits_an_interrupt(log: Path) -> bool:
    return "press Ctrl-C to stop it" in log.read_text()


JOINT_STUDY = """
title = "Two servers under the load of two hosts"

[factors]
server = [{servers}]

[workloads.lookups]
builtin = "select-only"

[load]
clients = 3
rate = 120

[dataset]
scale = 1

[design]
blocks = 4
windows = 2
window = "1s"
"""


@pytest.mark.long
def test_all_hosts_send_load_to_external_servers_at_once(
    command_line: CommandLine, shared_cache: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(own_command_line(shared_cache, tmp_path)) for name in HOSTS}
        uris = [stack.enter_context(started_server("17.8"))[1] for _ in range(2)]
        study = JOINT_STUDY.format(servers=", ".join(map(json.dumps, uris)))
        fleet = stack.enter_context(started_fleet(command_line, hosts, study, worker_options=("--trust",)))
        driver = fleet.run_driver("--trust")
        # A host that is lost comes back, and sends load again.
        command_line.wait_for(lambda: fleet.blocks() or driver.poll() is not None, seconds=180)
        program = fleet.programs.pop("db2")
        program.send_signal(signal.SIGKILL)
        program.wait(10)
        fleet.start_worker("db2")
        stdout, stderr = driver.communicate(timeout=300)
        assert driver.returncode == 0, stderr
        assert len(fleet.blocks()) == 4, "a window in which a host was lost is repeated"
        (answer,) = json.loads(stdout)["contexts"]
        for arm in answer["arms"]:
            assert 80 < arm["metrics"]["tps"]["value"] < 160, "both hosts together have the rate of the study"
        report = command_line.run("report", "results", "--verbose").stdout
        assert "the load came from 2 hosts at once" in report
        alone = command_line.run("run", "study.toml", "--trust", *CHOSEN)
        assert (alone.code, "error[store-other-load-hosts]" in alone.stderr) == (5, True), alone.stderr
        password = uris[0].replace("postgres@", "postgres:secret@")
        command_line.write("secret.toml", study.replace(uris[0], password))
        chosen = ("--trust", "--fleet", fleet.address, *fleet.certificates("driver"), "--results", "others")
        ended = command_line.run("run", "secret.toml", *chosen)
        assert (ended.code, "error[fleet-password]" in ended.stderr) == (2, True), ended.stderr
        assert "secret@" not in ended.stderr


def test_a_host_with_too_much_noise_is_excluded(fleet: Fleet) -> None:
    ended = fleet.run_driver("--max-noise", "0.0001%")
    stderr = ended.communicate(timeout=120)[1]
    assert (ended.returncode, "error[fleet-noisy-host]" in stderr) == (3, True), stderr


APPLICATION = """
title = "An application on a fleet"

[factors]
server = ["16.12", "17.8"]

[application]
statements = ["statements.sql"]

[dataset]
setup = ["tables.sql"]

[design]
budget = "60s"
"""
TABLES = """
CREATE TABLE one (id int PRIMARY KEY, kind int, half int);
CREATE TABLE other (id int PRIMARY KEY, kind int, half int);
INSERT INTO one SELECT g, g % 100, g % 2 FROM generate_series(1, 3000) g;
INSERT INTO other SELECT g, g % 100, g % 2 FROM generate_series(1, 3000) g;
"""
# 17 turns the subquery into a join, and 16 runs it for each row.
STATEMENTS = """
-- name: nested
SELECT count(*) FROM one WHERE kind IN (SELECT kind FROM other WHERE other.half = one.half);

-- name: count
SELECT count(*) FROM one;
"""


@pytest.mark.long
def test_the_statements_of_an_application_are_spread_over_the_hosts(
    command_line: CommandLine, shared_cache: Path, tmp_path: Path
) -> None:
    with ExitStack() as stack:
        hosts = {name: stack.enter_context(own_command_line(shared_cache, tmp_path)) for name in HOSTS}
        fleet = stack.enter_context(started_fleet(command_line, hosts, APPLICATION))
        command_line.write("tables.sql", TABLES)
        command_line.write("statements.sql", STATEMENTS)
        driver = fleet.run_driver()
        stdout, stderr = driver.communicate(timeout=300)
        assert driver.returncode == 0, stderr
        assert {host for *_, host in fleet.blocks()} == {*HOSTS}
        assert '"finding": "faster"' in stdout
