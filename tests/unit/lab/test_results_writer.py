"""Facts about a run in its results, also after a further run."""

import os
import sqlite3
import stat
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.engine.context_state import ContextState
from pgversus.errors import StoreError
from pgversus.host.identity import ServerUser
from pgversus.host.run_directory import RunDirectory
from pgversus.lab.results_writer import ResultsWriter, keep_server_logs
from pgversus.store.folder import FILE_NAME, unwritable
from pgversus.store.reading import StoredStudy, read_results
from pgversus.store.writing import Results
from pgversus.study.design import StopReason
from pgversus.study.study import Context, Study
from tests.builders import comparison

CONTEXTS = tuple(Context(number=n, levels=(), comparison=comparison()) for n in (1, 2))
REQUESTED = Study(name="s", title="t", question="q", contexts=CONTEXTS, seed=7, budget_s=60.0)


def run(folder: Path, earlier: StoredStudy | None, *, failing: bool, requested: Study = REQUESTED) -> StoredStudy:
    """A run without measurements, and what it stores."""
    begun: list[Path] = []
    states = [ContextState(context, 2) for context in requested.contexts]
    if failing:
        states[1].fail("it is not there")
    with ExitStack() as stack:
        writer = ResultsWriter(requested, folder, earlier, {}, begin=lambda: begun.append(folder), stack=stack)
        assert begun == []
        writer.end(StopReason.DECIDED, states)
    assert begun == ([folder] if earlier is None else [])
    return read_results(folder)


def test_texts_of_a_study_are_updated_on_resume(tmp_path: Path) -> None:
    first = run(tmp_path, None, failing=False)
    again = replace(REQUESTED, title="T", question="Q", published="level,tps\n17,1\n", metrics=("wal_bytes",))
    second = run(tmp_path, first, failing=False, requested=again)
    assert (first.study, second.study) == (REQUESTED.metadata, again.metadata)
    run(tmp_path, second, failing=False, requested=again)
    database = sqlite3.connect(tmp_path / FILE_NAME)
    assert database.execute("SELECT count(*) FROM fact WHERE name = 'study'").fetchone() == (2,)
    database.close()


def test_failed_preparations_are_recorded_only_for_their_own_run(tmp_path: Path) -> None:
    first = run(tmp_path, None, failing=True)
    assert first.facts["not_prepared"] == {"2": "it is not there"}
    assert [one.failure for one in first.contexts] == [None, None]
    assert run(tmp_path, first, failing=False).facts["not_prepared"] == {}


def test_results_that_cannot_be_resumed_are_closed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run(tmp_path, None, failing=False)

    def full(results: Results, name: str, _value: object) -> None:
        raise unwritable(results.folder, name)

    monkeypatch.setattr(Results, "add_fact", full)
    with pytest.raises(StoreError) as caught:
        run(tmp_path, first, failing=False)
    # The error holds every frame, and with it the connection.
    assert caught.value.slug == "store-unwritable"
    assert sorted(path.name for path in tmp_path.iterdir()) == [FILE_NAME]


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_stored_server_logs_are_private_and_without_passwords(tmp_path: Path, umask: int) -> None:
    root, results = tmp_path / "run", tmp_path / "results"
    root.mkdir()
    run(results, None, failing=False)
    (root / "arm-0.log").write_bytes(
        b"LOG:  statement: ALTER ROLE u\n\tPASSWORD\n\t'Geheim99';\nERROR:  it failed \xe9\n"
        b"STATEMENT:  SELECT dblink('host=h password=Geheim99')\nLOG:  done\n"
    )
    user = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
    before = os.umask(umask)
    try:
        keep_server_logs(RunDirectory(root=root, sockets=tmp_path, user=user), results)
    finally:
        os.umask(before)
    kept = results / "arm-0.log"
    assert kept.read_bytes() == (
        b"LOG:  statement: ALTER ROLE u\n\tPASSWORD\n\t...\nERROR:  it failed \xe9\n"
        b"STATEMENT:  SELECT dblink('host=h password=...\nLOG:  done\n"
    )
    assert stat.S_IMODE(kept.stat().st_mode) == 0o600


def test_both_ends_of_a_long_server_log_are_stored(tmp_path: Path) -> None:
    root, results = tmp_path / "run", tmp_path / "results"
    root.mkdir()
    run(results, None, failing=False)
    (root / "arm-0.log").write_text("LOG:  first\n" + "LOG:  one of many statements\n" * 100_000 + "LOG:  last\n")
    user = ServerUser(name="me", uid=os.getuid(), gid=os.getgid(), is_self=True)
    keep_server_logs(RunDirectory(root=root, sockets=tmp_path, user=user), results)
    kept = (results / "arm-0.log").read_text()
    assert len(kept) < 140_000
    assert (kept.splitlines()[0], kept.splitlines()[-1]) == ("LOG:  first", "LOG:  last")
