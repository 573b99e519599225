"""What happens around one run of pgbench, with a program in its place that prints and logs what a real one did."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from pgversus.host.commands import Finished
from pgversus.lab import load as load_module
from pgversus.lab import postgres_apparatus
from pgversus.lab.apparatus import TrialFailedError, TrialHungError
from pgversus.lab.arms import SomebodysServer
from pgversus.lab.load import Load, finished_load, read_window, run_window
from pgversus.lab.postgres_apparatus import WarmApparatus
from pgversus.lab.readings import Reading
from pgversus.lab.server_set import ServerSet
from pgversus.postgres.client import Client
from pgversus.postgres.session import Target
from pgversus.stats.trials import Window
from pgversus.study.design import Design
from pgversus.study.preparation import Preparation
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import DATA, comparison, window

CAPTURED = DATA / "pgbench"
TARGET = Target(conninfo="host=/nowhere")
AS_IT_WAS = f"""#!/bin/sh
for argument; do case $argument in --log-prefix=*) prefix=${{argument#*=}};; esac; done
cp {CAPTURED}/closed_loop.log0 "$prefix.1"
cp {CAPTURED}/closed_loop.log1 "$prefix.1.1"
cat {CAPTURED}/closed_loop.stdout
"""


def load(directory: Path, program: str, *, longest_s: float = 60.0, kept_logs: Path | None = None) -> Load:
    pgbench = directory / "pgbench"
    pgbench.write_text(program)
    pgbench.chmod(0o755)
    return Load(
        workload=PgbenchWorkload(scripts=(Script(name="select-only"),), clients=2, threads=2),
        client=Client(pgbench=pgbench, psql=pgbench, version="18", origin="captured"),
        script_files=(None,),
        scratch=directory / "scratch",
        kept_logs=kept_logs,
        connect_allowance_s=0,
        longest_s=longest_s,
    )


def test_a_finished_load_leaves_its_log_to_be_read_and_nothing_else(tmp_path: Path) -> None:
    asked = load(tmp_path, AS_IT_WAS)
    with finished_load(asked, TARGET, 1.0, 1) as finished:
        assert len(list(asked.scratch.iterdir())) == 2
        found = read_window(asked, finished)
    assert found.transactions == found.histogram.total > 0
    assert list(asked.scratch.iterdir()) == []


def test_logs_are_kept_on_request_also_of_a_window_that_cannot_be_read(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    asked = load(tmp_path, AS_IT_WAS.replace("closed_loop.stdout", "rate.stdout"), kept_logs=kept)
    with pytest.raises(TrialFailedError), finished_load(asked, TARGET, 1.0, 1, log_name="w") as finished:
        read_window(asked, finished)
    assert sorted(path.name for path in kept.iterdir()) == ["w-thread-0.log", "w-thread-1.log"]


def test_the_log_of_a_window_that_is_run_anew_takes_the_place_of_what_was_left_of_it(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    asked = load(tmp_path, AS_IT_WAS, kept_logs=kept)
    for name in ("w-01", "w-01-repeated-1", "w-02", "w-01"):
        with finished_load(asked, TARGET, 1.0, 1, log_name=name):
            pass
    assert sorted({path.name.partition("-thread")[0] for path in kept.iterdir()}) == ["w-01", "w-02"]


def test_no_log_is_kept_of_a_load_that_is_thrown_away(tmp_path: Path) -> None:
    asked = load(tmp_path, AS_IT_WAS, kept_logs=tmp_path / "kept")
    run_window(asked, TARGET, 1.0, 1)
    assert not (tmp_path / "kept").exists()


def test_a_window_that_hangs_is_ended_with_words(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(load_module, "_GRACE_S", 0.2)
    asked = load(tmp_path, "#!/bin/sh\nsleep 60\n", longest_s=0.1)
    with pytest.raises(TrialHungError, match=r"was to run for 0\.1 s and had not ended after 0 s"):
        run_window(asked, TARGET, 0.1, 1)


def test_servers_and_host_are_read_before_the_log_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    journal: list[str] = []

    @contextmanager
    def finished(*_: object, log_name: str) -> Iterator[Finished]:
        assert log_name == "w"
        journal.append("load")
        yield Finished(exit_code=0, stdout="", stderr="", cpu_s=0.0)

    def read_after(*_: object) -> Reading:
        journal.append("readings")
        return Reading(server={}, host={})

    def read(*_: object) -> Window:
        journal.append("log")
        return window([1000])

    class Servers(ServerSet):
        def __init__(self) -> None:
            super().__init__([SomebodysServer(comparison().arms[0], "postgresql:///nowhere")])

        def counters(self, arm: int) -> None:  # type: ignore[override]
            del arm

    monkeypatch.setattr(postgres_apparatus, "finished_load", finished)
    monkeypatch.setattr(postgres_apparatus, "read_before", lambda *_: Reading(server={}, host={}))
    monkeypatch.setattr(postgres_apparatus, "read_after", read_after)
    monkeypatch.setattr(postgres_apparatus, "read_window", read)
    prepared = Preparation(design=Design(), arms=(), differences=(), writes=False, connect_allowance_s=0)
    WarmApparatus(Servers(), [load(tmp_path, AS_IT_WAS)], prepared).measure(0, 1, "w")
    assert journal == ["load", "readings", "log"]
