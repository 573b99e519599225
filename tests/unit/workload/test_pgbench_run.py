"""Handling of one run of pgbench, replaced by a program that prints and logs the captured output of a real run."""

import os
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgversus.engine.testbed import TrialFailedError, TrialHungError
from pgversus.errors import HostError
from pgversus.host.commands import Finished
from pgversus.lab import load_windows
from pgversus.lab.arm_servers import ExternalServer, ServerSet
from pgversus.lab.load_windows import WarmTrialRunner
from pgversus.lab.readings import Reading
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.records.preparation import Preparation
from pgversus.records.trials import Window
from pgversus.study.design import Design
from pgversus.study.workload import PgbenchWorkload, Script
from pgversus.workload import pgbench_run as load_module
from pgversus.workload.pgbench_run import PgbenchLoad, finished_load, read_window, run_window, write_scripts
from tests.builders import DATA, MYSELF, comparison, window

CAPTURED = DATA / "pgbench"
TARGET = Target(conninfo="host=/nowhere")
AS_IT_WAS = f"""#!/bin/sh
for argument; do case $argument in --log-prefix=*) prefix=${{argument#*=}};; esac; done
cp {CAPTURED}/closed_loop.log0 "$prefix.1"
cp {CAPTURED}/closed_loop.log1 "$prefix.1.1"
cat {CAPTURED}/closed_loop.stdout
"""


def load(directory: Path, program: str, *, longest_s: float = 60.0, kept_logs: Path | None = None) -> PgbenchLoad:
    pgbench = directory / "pgbench"
    pgbench.write_text(program)
    pgbench.chmod(0o755)
    return PgbenchLoad(
        workload=PgbenchWorkload(scripts=(Script(name="select-only"),), clients=2, threads=2),
        client=Client(pgbench=pgbench, psql=pgbench, version="18", origin="captured", user=MYSELF),
        script_files=(None,),
        scratch=directory / "scratch",
        kept_logs=kept_logs,
        connect_allowance_s=0,
        longest_s=longest_s,
    )


def test_scripts_and_inline_setup_are_written_in_utf8_in_any_locale(tmp_path: Path) -> None:
    # C without coercion or UTF-8 mode: Python's encoding is then ASCII, as it is Latin-1 or EUC-JP in other locales.
    locale = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}
    writing = """
import sys
from pathlib import Path
from types import SimpleNamespace
from pgversus.workload.pgbench_run import write_scripts
from pgversus.data.loading import Loading
from pgversus.study.file.keys import inline_setup
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import MYSELF
folder, text = Path(sys.argv[1]), "SELECT '\\u00e9\\u65e5';"
write_scripts(PgbenchWorkload(scripts=(Script(name="a.sql", text=text),)), folder, MYSELF)
loading = Loading(SimpleNamespace(root=folder), SimpleNamespace(user=MYSELF))
loading._path_of(inline_setup("inline", text))
"""
    here = {**os.environ, **locale, "PYTHONPATH": str(DATA.parents[1])}
    subprocess.run([sys.executable, "-c", writing, str(tmp_path)], check=True, env=here)
    assert {file.read_bytes() for file in tmp_path.iterdir()} == {"SELECT 'é日';".encode()}
    assert len(list(tmp_path.iterdir())) == 2


def test_a_finished_load_leaves_only_its_log_until_it_is_read(tmp_path: Path) -> None:
    requested = load(tmp_path, AS_IT_WAS)
    with finished_load(requested, TARGET, 1.0, 1) as finished:
        assert len(list(requested.scratch.iterdir())) == 2
        found = read_window(requested, finished)
    assert found.transactions == found.histogram.total > 0
    assert list(requested.scratch.iterdir()) == []


NOBODY_CONNECTED_AT_FIRST = AS_IT_WAS.replace(
    "#!/bin/sh\n",
    """#!/bin/sh
echo run >> "$0.runs"
if [ $(wc -l < "$0.runs") -lt 3 ]; then echo "number of transactions actually processed: 0"; exit 0; fi
""",
)


def test_a_run_in_which_no_client_connected_in_time_is_repeated(tmp_path: Path) -> None:
    assert run_window(load(tmp_path, NOBODY_CONNECTED_AT_FIRST), TARGET, 1.0, 1).transactions > 0


def test_runs_in_which_no_client_connects_are_repeated_twice_at_most(tmp_path: Path) -> None:
    with pytest.raises(TrialFailedError, match="no transaction finished"):
        run_window(load(tmp_path, NOBODY_CONNECTED_AT_FIRST.replace("-lt 3", "-lt 9")), TARGET, 1.0, 1)
    assert len((tmp_path / "pgbench.runs").read_text().splitlines()) == 3


def test_the_mean_covers_transactions_with_a_known_latency(tmp_path: Path) -> None:
    program = """#!/bin/sh
for argument; do case $argument in --log-prefix=*) prefix=${argument#*=};; esac; done
printf '0 1 0 0 1 0\\n0 2 40 0 1 100\\n1 1 300 0 1 300\\n' > "$prefix.1"
echo "number of transactions actually processed: 3"
echo "tps = 3 (without initial connection time)"
"""
    found = run_window(load(tmp_path, program), TARGET, 1.0, 1)
    assert (found.transactions, found.unclocked) == (3, 1)
    assert found.latency_sum_s / found.transactions == pytest.approx((100 + 300) / 2 / 1e6)


def test_a_window_whose_only_transaction_has_no_latency_counts(tmp_path: Path) -> None:
    program = """#!/bin/sh
for argument; do case $argument in --log-prefix=*) prefix=${argument#*=};; esac; done
printf '0 1 0 0 1 100\\n' > "$prefix.1"
echo "number of transactions actually processed: 1"
echo "tps = 4 (without initial connection time)"
"""
    found = run_window(load(tmp_path, program), TARGET, 1.0, 1)
    assert (found.transactions, found.unclocked, found.histogram.total) == (1, 1, 0)
    assert found.latency_sum_s == found.latency_max_s == pytest.approx(0.25)


def test_a_transaction_longer_than_the_run_means_a_damaged_log(tmp_path: Path) -> None:
    """The time of day of the last transaction has one more digit."""
    damage = """sed -i '$ s/ \\([0-9]*\\) \\([0-9]*\\)$/ 2\\1 \\2/' "$prefix.1"\n"""
    with pytest.raises(TrialFailedError, match=r"pgbench ran for [\d.]+ s and logged a transaction of 2\.?\d*e\+10 s"):
        run_window(load(tmp_path, AS_IT_WAS + damage), TARGET, 1.0, 1)


def test_logs_are_stored_on_request_even_if_they_cannot_be_read(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    requested = load(tmp_path, AS_IT_WAS.replace("closed_loop.stdout", "rate.stdout"), kept_logs=kept)
    with pytest.raises(TrialFailedError), finished_load(requested, TARGET, 1.0, 1, log_name="w") as finished:
        read_window(requested, finished)
    assert sorted(path.name for path in kept.iterdir()) == ["w-thread-0.log", "w-thread-1.log"]


def test_the_log_of_a_repeated_window_replaces_leftover_logs(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    requested = load(tmp_path, AS_IT_WAS, kept_logs=kept)
    for name in ("w-01", "w-01-repeated-1", "w-02", "w-01"):
        with finished_load(requested, TARGET, 1.0, 1, log_name=name):
            pass
    assert sorted({path.name.partition("-thread")[0] for path in kept.iterdir()}) == ["w-01", "w-02"]


@pytest.mark.parametrize("plant", ['ln -s "$log"', "mkfifo"])
def test_a_log_that_is_not_a_regular_file_is_neither_read_nor_stored(tmp_path: Path, plant: str) -> None:
    # A script may create a link there to a file that only root can read.
    program = AS_IT_WAS.replace(
        f"cp {CAPTURED}/closed_loop.log0", plant.replace("$log", f"{CAPTURED}/closed_loop.log0")
    )
    kept = tmp_path / "kept"
    requested = load(tmp_path, program, kept_logs=kept)
    with (
        pytest.raises(TrialFailedError, match="is not a regular file"),
        finished_load(requested, TARGET, 1.0, 1, log_name="w") as finished,
    ):
        read_window(requested, finished)
    assert sorted(path.name for path in kept.iterdir()) == ["w-thread-1.log"]
    assert list(requested.scratch.iterdir()) == []


@pytest.mark.parametrize(("has_room", "error"), [(True, TrialFailedError), (False, HostError)])
@pytest.mark.parametrize("damage", ["truncate -s -3", "sed -i 1d"])
def test_a_damaged_log_is_an_error_of_the_host_if_the_disk_is_full(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    damage: str,
    error: type[Exception],
    has_room: bool,  # noqa: FBT001 - from the table above
) -> None:
    monkeypatch.setattr(load_module, "has_no_room", lambda _: not has_room)
    with pytest.raises(error, match=r"is cut short|and logged|disk is full"):
        run_window(load(tmp_path, f'{AS_IT_WAS}{damage} "$prefix".*\n'), TARGET, 1.0, 1)


def test_the_log_of_a_discarded_load_is_not_stored(tmp_path: Path) -> None:
    requested = load(tmp_path, AS_IT_WAS, kept_logs=tmp_path / "kept")
    run_window(requested, TARGET, 1.0, 1)
    assert not (tmp_path / "kept").exists()


def test_a_hung_window_is_terminated_with_a_message(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "_GRACE_S", 0.2)
    requested = load(tmp_path, "#!/bin/sh\nsleep 60\n", longest_s=0.1)
    with pytest.raises(TrialHungError, match="pgbench did not finish within 0 s"):
        run_window(requested, TARGET, 0.1, 1)


def test_servers_and_host_are_read_before_the_log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal: list[str] = []

    @contextmanager
    def finished(*_: object, log_name: str) -> Iterator[Finished]:
        assert log_name == "w"
        journal.append("load")
        yield Finished(exit_code=0, stdout="", stderr="", cpu_s=0.0, cpu_user_s=0.0)

    def read_after(*_: object) -> Reading:
        journal.append("readings")
        return Reading(server={}, host={})

    def read(*_: object) -> Window:
        journal.append("log")
        return window([1000])

    class Servers(ServerSet):
        def __init__(self) -> None:
            super().__init__([ExternalServer(comparison().arms[0], "postgresql:///nowhere")])

        def counters(self, arm: int) -> None:  # type: ignore[override]
            del arm

    monkeypatch.setattr(load_windows, "finished_load", finished)
    monkeypatch.setattr(load_windows, "read_before", lambda *_: Reading(server={}, host={}))
    monkeypatch.setattr(load_windows, "read_after", read_after)
    monkeypatch.setattr(load_windows, "read_window", read)
    prepared = Preparation(design=Design(), arms=(), differences=(), writes=False, connect_allowance_s=0)
    WarmTrialRunner(Servers(), [load(tmp_path, AS_IT_WAS)], prepared).measure(0, 1, "w")
    assert journal == ["load", "readings", "log"]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_scripts_and_logs_are_private(tmp_path: Path, umask: int) -> None:
    before = os.umask(umask)
    try:
        write_scripts(PgbenchWorkload(scripts=(Script(name="a.sql", text="SELECT 1;"),)), tmp_path / "scripts", MYSELF)
        requested = load(tmp_path, AS_IT_WAS, kept_logs=tmp_path / "kept")
        with finished_load(requested, TARGET, 1.0, 1, log_name="one"):
            pass
    finally:
        os.umask(before)
    for folder in (tmp_path / "scripts", requested.scratch, tmp_path / "kept"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = [*(tmp_path / "scripts").iterdir(), *(tmp_path / "kept").iterdir()]
    assert [stat.S_IMODE(file.stat().st_mode) for file in files] == [0o600] * 3
