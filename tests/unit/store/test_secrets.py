"""No password is stored in a results folder, and one stored by an earlier version is never shown."""

import json
import os
import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.records.plans import CapturedPlans, CapturedStatement, Explained, SampledPlans, Statement
from pgversus.records.preparation import ArmFacts, Difference, Preparation
from pgversus.records.trials import FailedTrial, Phase
from pgversus.store.folder import FILE_NAME
from pgversus.store.reading import StoredStudy, read_results
from pgversus.store.writing import Results
from pgversus.study.comparison import Comparison
from pgversus.study.dataset import Dataset, setup_file
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from pgversus.study.study import Context, StudyMetadata
from pgversus.study.workload import Operation, PgbenchWorkload, Script, Step, Workload
from tests.builders import comparison, latency_block
from tests.unit.plans.captures import captured
from tests.unit.plans.raw import scan

MARKER = "Zq7xMarker"
SQL = f"ALTER ROLE u PASSWORD '{MARKER}'"
FACT = StudyMetadata(name="s", title="t", question=f"password={MARKER}", seed=7, verdicts=2, contexts=2)
SETTINGS = (
    Setting(name="primary_conninfo", value=f"host=h password={MARKER}"),
    Setting(name="archive_command", value=f"PGPASSWORD={MARKER} cp %p /a"),
    Setting(name="restore_command", value=f"psql postgresql://u:{MARKER}@h -c x"),
    Setting(name="ssl_passphrase_command", value=f"echo {MARKER}"),
)


def with_secrets(requested: Comparison, label: str) -> Comparison:
    sql = f"CREATE USER MAPPING FOR u SERVER s OPTIONS (user 'u', password '{MARKER}');"
    data = Dataset(
        setup_files=(setup_file("s inline", sql.encode(), text=sql), setup_file("/a.sql", SQL.encode())),
        prepare=(setup_file("p inline", SQL.encode(), text=SQL),),
        variables=(("pw_secret", MARKER),),
    )
    arms = (
        replace(requested.arms[0], dataset=data, settings=SETTINGS, label=label),
        replace(requested.arms[1], dataset=data, server=RunningServer(uri=f"postgresql://u:{MARKER}@h/d")),
    )
    return replace(requested, arms=arms)


def contexts() -> list[Context]:
    load = PgbenchWorkload(scripts=(Script(name="a.sql", text=f"SELECT dblink('password={MARKER}', 'x');"),))
    steps = (
        Step(name="a", sql=f"CREATE SUBSCRIPTION s CONNECTION 'host=h password={MARKER}' PUBLICATION p"),
        Step(name="b", program=("psql", f"postgresql://u:{MARKER}@h")),
        Step(name="c", program=("sh", "-c", f"PGPASSWORD={MARKER} psql; echo h:5432:d:u:{MARKER} > .pgpass")),
    )
    operation = Operation(name="a, b, c", steps=steps, verify=(f"SELECT 'sslpassword={MARKER}' <> ''",))
    workloads: list[Workload] = [load, operation]
    label = f"archive_command=PGPASSWORD={MARKER} cp"
    levels = (("archive_command", f"PGPASSWORD={MARKER} cp"),)
    return [
        Context(number=number, levels=levels, comparison=with_secrets(comparison(workload=workload), label))
        for number, workload in enumerate(workloads, 1)
    ]


def plans() -> CapturedPlans:
    filtered = json.dumps([{"Plan": {"Node Type": "Result", "One-Time Filter": f"(f('password={MARKER}'::text))"}}])
    arm = captured(scan("t"))
    statement = Statement(script="a", number=1, text=SQL, template=SQL, parameters=(f"password={MARKER}",))
    one = CapturedStatement(statement=statement, explained=Explained(planned=filtered, run=filtered), rows=None)
    sampled = SampledPlans(told=1, others=1, example=filtered)
    return CapturedPlans(arms=(replace(arm, statements=(one,)),) * 2, undone_by=((None,),), sampled=(sampled,) * 2)


def kept(folder: Path) -> Results:
    """Results of a study with a password in every possible place."""
    requested = contexts()
    results = Results.begin(folder, FACT, requested, {"asked": {"file_text": f'sql = "{SQL}"'}})
    found = Preparation(
        design=requested[0].comparison.design,
        arms=(ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="-O2", sha256=None),) * 2,
        differences=(Difference(kind="setting", name="my.secret", values=(MARKER, ""), is_default=False),),
        writes=True,
        connect_allowance_s=1,
        plans=plans(),
        not_explained=SQL,
    )
    results.add_preparation(1, found, None)
    results.add_preparation(2, None, f"it failed: LINE 1: {SQL}")
    block = latency_block(1, [1000], [1000])
    window = replace(block.trials[0].windows[0], output=f"NOTICE: {SQL}")
    trials = {0: block.trials[0]._replace(windows=(window,))}
    failed = FailedTrial(arm=1, phase=Phase.MEASURE, message=f"connection to postgresql://u:{MARKER}@h failed")
    results.add_block(1, block._replace(trials=trials, failures=(failed,)))
    results.add_fact("not_prepared", {"2": SQL})
    return results


def everything(stored: StoredStudy) -> str:
    return repr(stored) + repr([one.plans() for one in stored.contexts])


def test_no_password_is_stored_anywhere(tmp_path: Path) -> None:
    results = kept(tmp_path / "r")
    files = {path: path.read_bytes() for path in (tmp_path / "r").iterdir()}
    results.close()
    assert len(files) > 1, "the WAL is checked as well"
    files[tmp_path / "r" / FILE_NAME] = (tmp_path / "r" / FILE_NAME).read_bytes()
    assert [path for path, content in files.items() if MARKER.encode() in content] == []
    text = everything(read_results(tmp_path / "r"))
    assert MARKER not in text
    for shown in ("ALTER ROLE u PASSWORD ...", "host=h password=...", "postgresql://h", "PGPASSWORD=... cp %p /a"):
        assert shown in text


def test_results_of_an_earlier_version_are_read_without_passwords(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as earlier:
        for module in ("writing", "plans"):
            for name in ("document_without_secrets", "code_without_secrets", "message_without_secrets"):
                earlier.setattr(f"pgversus.store.{module}.{name}", lambda text: text, raising=False)
        earlier.setattr("pgversus.store.writing.fact_without_secrets", lambda _, text: text)
        kept(tmp_path).close()
    assert MARKER.encode() in (tmp_path / FILE_NAME).read_bytes()
    stored = read_results(tmp_path)
    text = everything(stored)
    assert MARKER not in text
    files = stored.contexts[0].context.comparison.dataset.setup_files
    assert files[0].sha256 == setup_file("", files[0].text.encode() if files[0].text else b"").sha256


@pytest.mark.parametrize("umask", [0o000, 0o077])
def test_every_file_of_new_results_is_private(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "above" / "r"
    before = os.umask(umask)
    try:
        results = kept(folder)
        modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in folder.iterdir()}
        results.close()
    finally:
        os.umask(before)
    assert [stat.S_IMODE(path.stat().st_mode) for path in (folder, folder.parent)] == [0o700, 0o700]
    assert modes.keys() >= {FILE_NAME, f"{FILE_NAME}-wal"}
    assert set(modes.values()) == {0o600}


def test_an_existing_folder_keeps_its_mode(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    kept(tmp_path).close()
    assert stat.S_IMODE(tmp_path.stat().st_mode) == 0o755
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database:
        assert database.execute("SELECT count(*) FROM context").fetchone() == (2,)
