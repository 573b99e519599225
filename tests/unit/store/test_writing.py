"""Results are read back as the same objects, and nothing is half-written or mixed up."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.errors import StoreError
from pgversus.records.plans import PlannerSetting, SampledPlans, Statement, UncertaintyKind
from pgversus.records.preparation import ArmFacts, BuildRecord, Difference, Preparation
from pgversus.records.trials import Block, DiscardedWindow, FailedTrial, Phase, Trial
from pgversus.store import reading
from pgversus.store import writing as results_module
from pgversus.store.codec import STUDY
from pgversus.store.counters import counter_names
from pgversus.store.folder import FILE_NAME, check_folder, holds_results, move_away
from pgversus.store.reading import read_results, read_seed
from pgversus.store.writing import Results
from pgversus.study.build_options import BuildOptions
from pgversus.study.dataset import Dataset, SetupFile
from pgversus.study.servers import (
    BuildFamily,
    Checkout,
    Download,
    LocalPath,
    Release,
    RunningServer,
    ServerName,
    SourceBuild,
)
from pgversus.study.settings import Setting
from pgversus.study.study import Context, StudyKind, StudyMetadata
from pgversus.study.workload import Step
from tests.builders import comparison, latency_block, open_loop, operation_block, vacuum
from tests.unit.plans.captures import OFF, captured, plans_of, with_rows
from tests.unit.plans.raw import scan
from tests.unit.store.whole import write_whole

FACT = StudyMetadata(name="s", title="t", question="q", seed=7, verdicts=2, contexts=1, published=None)
SERVERS: tuple[ServerName, ...] = (
    Release(major=17, minor=None),
    Release(major=17, minor=8, family=BuildFamily.ZONKY),
    LocalPath(path="/usr/lib/postgresql/17/bin"),
    RunningServer(uri="db.example:5432/app"),
    SourceBuild(source=Release(major=17, minor=8)),
    SourceBuild(
        source=Release(major=18, minor=None),
        options=BuildOptions(
            block_size_kb=16,
            wal_block_size_kb=64,
            cassert=True,
            cflags="-O3 -g",
            compiler="clang",
            handed_on=("with-lz4", "without-icu"),
        ),
    ),
    SourceBuild(source=LocalPath(path="./postgres"), options=BuildOptions(cassert=True)),
    SourceBuild(source=Checkout(path="./postgres", ref="origin/master")),
    SourceBuild(source=Download(address="https://ftp.example/postgresql-17.8.tar.bz2")),
)


def context(number: int, server: ServerName = SERVERS[0]) -> Context:
    requested = comparison(workload=open_loop())
    data = Dataset(pgbench_scale=3, setup_files=(SetupFile(path="/a.sql", sha256="0" * 64, text="SELECT 1;"),))
    arms = tuple(
        replace(arm, server=server, dataset=data, settings=(Setting(name="jit", value="off"),))
        for arm in requested.arms
    )
    return Context(number=number, levels=(("load", f"c{number}"),), comparison=replace(requested, arms=arms))


def begun(folder: Path) -> Results:
    return Results.begin(folder, FACT, [context(1)])


def preparation(of: Context) -> Preparation:
    facts = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="-O2", sha256=None, data="d")
    made = BuildRecord(
        source="commit 0a1b of ./postgres",
        source_sha256="0" * 64,
        checked=None,
        commit="0a1b" * 10,
        is_changed=False,
        options=("blocksize=16", "cassert"),
        profile="minimal",
        system="configure",
        diff_stat=" a.c | 2 +-\n 1 file changed",
    )
    other = replace(facts, compiled_in={"block_size": "16384"}, built_from=made, sizes={"public.t": 8192})
    return Preparation(
        design=of.comparison.design,
        arms=(facts, other),
        differences=(Difference(kind="setting", name="jit", values=("on", "off"), is_default=True),),
        writes=True,
        connect_allowance_s=1,
    )


def as_read(block: Block) -> Block:
    """The block as it is read back: trials have sums but no windows."""
    return block._replace(trials={arm: trial._replace(windows=()) for arm, trial in block.trials.items()})


def counted(block: Block) -> Block:
    trials: dict[int, Trial] = {
        arm: trial._replace(counters={"wal_bytes": 8192.0 * (arm + 1), "buffers_hit": 3.0})
        for arm, trial in block.trials.items()
    }
    return block._replace(trials=trials, wall_s=12.5, repeated_rounds=3)


def test_windows_that_were_measured_again_are_stored(tmp_path: Path) -> None:
    again = DiscardedWindow(arm=1, round=3, attempt=1, transactions=900, seconds=1.5, was_disturbed=True)
    block = counted(latency_block(1, [1000] * 3, [900] * 3))._replace(repeated_rounds=1, discarded=(again,))
    results = begun(tmp_path)
    results.add_block(1, block)
    results.close()
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database:
        assert database.execute("SELECT * FROM discarded_window").fetchall() == [(1, 1, 1, 3, 1, 900, 1.5, 1)]
    assert read_results(tmp_path).contexts[0].blocks == (as_read(block._replace(discarded=())),)


@pytest.mark.parametrize("server", SERVERS)
def test_results_are_read_back_as_written(tmp_path: Path, server: ServerName) -> None:
    contexts = [context(1, server), context(2, server)]
    blocks = [counted(latency_block(1, [1000, 1100], [900, 950, 990])), latency_block(2, [1000], None)]
    failed = blocks[1]._replace(failures=(FailedTrial(arm=1, phase=Phase.WARM_UP, message='it\'s "lost"'),))
    requested = replace(FACT, contexts=2)
    results = Results.begin(tmp_path / "r", requested, contexts, {"ended": "interrupted", "host": {"cpus": 2}})
    results.add_preparation(1, preparation(contexts[0]), None)
    results.add_preparation(2, None, "no such table")
    results.add_block(1, blocks[0])
    results.add_block(1, failed)
    results.close()
    results = Results(tmp_path / "r")
    results.add_fact("ended", "decided")
    requested = replace(requested, title="another", seed=8)
    results.add_study(requested)
    results.close()
    stored = read_results(tmp_path / "r")
    assert stored.study == requested
    assert (stored.facts["ended"], stored.facts["host"]) == ("decided", {"cpus": 2})
    assert [one.context for one in stored.contexts] == contexts
    assert stored.contexts[0].preparation == preparation(contexts[0])
    assert list(stored.contexts[0].blocks) == [as_read(blocks[0]), as_read(failed)]
    assert (stored.contexts[1].failure, stored.contexts[1].blocks) == ("no such table", ())
    assert read_seed(tmp_path / "r") == 8
    assert sorted(path.name for path in (tmp_path / "r").iterdir()) == [FILE_NAME]


def test_an_operation_is_read_back_with_its_prepared_state_and_the_time_of_each_step(tmp_path: Path) -> None:
    operation = vacuum(Step(name="dump", program=("pg_dump", "-f", "db.sql")))
    state = Dataset(prepare=(SetupFile(path="/dirty.sql", sha256="0" * 64),), variables=(("dead", "70"),))
    requested = Context(number=1, levels=(("dead", "70"),), comparison=comparison(workload=operation, dataset=state))
    results = Results.begin(tmp_path, FACT, [requested])
    block = operation_block(1, operation, (1 / 3, 0.4), (0.75, 0.4))
    results.add_block(1, block)
    results.close()
    (found,) = read_results(tmp_path).contexts
    assert found.context == requested
    assert list(found.blocks) == [as_read(block)]


def test_each_trial_has_exactly_its_own_counters(tmp_path: Path) -> None:
    reported: list[dict[str, float]] = [
        {"wal_bytes": 1 / 3, "deadlocks": 0.0},
        {"wal_bytes": 1e29, "temp_bytes": 2.0**63},
    ]
    results = begun(tmp_path)
    for number, counters in enumerate(reported, 1):
        block = latency_block(number, [1000], None)
        results.add_block(1, block._replace(trials={0: block.trials[0]._replace(counters=counters)}))
    results.close()
    found = [block.trials[0].counters for block in read_results(tmp_path).contexts[0].blocks]
    assert [dict(one) for one in found] == [dict(one.items()) for one in found] == reported
    assert [one.get("temp_bytes") for one in found] == [None, 2.0**63]
    assert [one.get("deadlocks") for one in found] == [0.0, None]
    assert all(type(value) is float for one in found for value in one.values())
    assert [len(one) for one in found] == [2, 2]


def test_results_read_during_a_run_are_consistent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    results = begun(tmp_path)

    def meanwhile(database: sqlite3.Connection) -> tuple[str, ...]:
        results.add_block(1, latency_block(1, [1000], [900]))
        return counter_names(database)

    with monkeypatch.context() as patch:
        patch.setattr(reading, "counter_names", meanwhile)
        assert read_results(tmp_path).contexts[0].blocks == ()
    assert len(read_results(tmp_path).contexts[0].blocks) == 1
    results.close()


def test_a_block_is_stored_completely_or_not_at_all(tmp_path: Path) -> None:
    results = begun(tmp_path)
    results.add_block(1, latency_block(1, [1000], [900]))
    with pytest.raises(StoreError):
        # A duplicate block number; none of its rows may remain.
        results.add_block(1, latency_block(1, [1000], [900]))
    with pytest.raises(StoreError):
        results.add_block(9, latency_block(1, [1000], [900]))
    results.add_block(1, latency_block(2, [1000], [900]))
    results.close()
    assert [block.number for block in read_results(tmp_path).contexts[0].blocks] == [1, 2]


@pytest.mark.parametrize("moment", ["_insert", "sync_to_disk"])
def test_a_file_never_exists_without_its_study(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, moment: str) -> None:
    whole = getattr(results_module, moment)

    def interrupted(*arguments: object) -> None:
        whole(*arguments)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(results_module, moment, interrupted)
        with pytest.raises(KeyboardInterrupt):
            Results.begin(tmp_path, FACT, [context(1)])
    assert [path.name for path in tmp_path.iterdir()] == ([] if moment == "_insert" else [FILE_NAME])
    if holds_results(tmp_path):
        assert read_results(tmp_path).study == FACT
    else:
        (tmp_path / f"{FILE_NAME}.part").write_text("what a kill in the middle left")
        begun(tmp_path).close()
        assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


@pytest.mark.parametrize(
    "damage",
    [
        "DELETE FROM context WHERE context = 2",
        "UPDATE trial SET counters = NULL WHERE arm = 1",
        "UPDATE trial SET seconds = NULL",
        "UPDATE trial SET counters = '[[1]]'",
    ],
)
def test_incomplete_results_are_rejected(tmp_path: Path, damage: str) -> None:
    results = Results.begin(tmp_path, replace(FACT, contexts=2), [context(1), context(2)])
    results.add_block(1, latency_block(1, [1000], [900]))
    results.close()
    read_results(tmp_path)
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.execute(damage)
    database.commit()
    database.close()
    with pytest.raises(StoreError) as caught:
        read_results(tmp_path)
    assert caught.value.slug == "store-unreadable"


def test_an_unreadable_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(StoreError) as caught:
        read_results(tmp_path / ("r" * 300))
    assert caught.value.slug == "store-unreadable"


@pytest.mark.parametrize("damage", ["absent", "empty", "no database", "another version", "no study", "cut"])
def test_unreadable_results_are_an_error_and_never_a_traceback(tmp_path: Path, damage: str) -> None:
    file = tmp_path / FILE_NAME
    if damage == "empty":
        file.touch()
    elif damage == "no database":
        file.write_text("not a database " * 100)
    elif damage != "absent":
        begun(tmp_path).close()
        if damage == "no study":
            database = sqlite3.connect(file)
            database.execute("DELETE FROM fact")
            database.commit()
            database.close()
        if damage == "another version":
            database = sqlite3.connect(file)
            database.execute("UPDATE schema SET version = 99")
            database.commit()
            database.close()
        if damage == "cut":
            file.write_bytes(file.read_bytes()[:6000])
    with pytest.raises(StoreError) as caught:
        read_results(tmp_path)
    assert caught.value.slug == "store-unreadable"


def test_results_that_cannot_be_opened_for_writing_are_closed(tmp_path: Path) -> None:
    write_whole(tmp_path)
    with closing(sqlite3.connect(tmp_path / FILE_NAME)) as database, database:
        database.execute("UPDATE schema SET version = 2")
    with pytest.raises(StoreError) as caught:
        Results(tmp_path)
    # The error holds every frame, and with it the connection.
    assert caught.value.found == "schema version 2"
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_a_file_system_without_a_write_ahead_log_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    connect = sqlite3.connect

    def connected(file: Path, isolation_level: None) -> sqlite3.Connection:
        # Locks as on network file systems, without shared memory.
        return connect(f"{file.as_uri()}?vfs=unix-dotfile", uri=True, isolation_level=isolation_level)

    monkeypatch.setattr(sqlite3, "connect", connected)
    with pytest.raises(StoreError) as caught:
        Results.begin(tmp_path, FACT, [context(1)])
    assert "write-ahead log" in caught.value.found


def test_a_comparison_does_not_overwrite_existing_results(tmp_path: Path) -> None:
    begun(tmp_path).close()
    with pytest.raises(StoreError) as caught:
        check_folder(tmp_path)
    assert caught.value.slug == "store-not-empty"
    check_folder(tmp_path, may_hold_results=True)


def test_results_that_are_moved_away_are_preserved(tmp_path: Path) -> None:
    assert move_away(tmp_path / "r", "then") is None
    begun(tmp_path / "r").close()
    aside = move_away(tmp_path / "r", "then")
    assert aside == tmp_path / "r-until-then"
    assert (aside / FILE_NAME).exists()
    assert not (tmp_path / "r").exists()


def test_plans_are_read_back_unchanged(tmp_path: Path) -> None:
    setting = PlannerSetting(value="4096", default="4096", is_switch=False)
    odd = Statement(
        script="q@2.sql",
        number=1,
        text="SELECT 'it''s', 7\n-- \u65e5",
        template="SELECT 'it''s', $1\n-- \u65e5",
        parameters=("7",),
    )
    arm = captured(scan("t"), None)
    first = replace(
        arm,
        statements=(replace(arm.statements[0], statement=odd), arm.statements[1]),
        settings={"work_mem": setting},
    )
    sampled = (SampledPlans(told=3, others=0), SampledPlans(told=2, others=1, example="[]"))
    plans = replace(plans_of(first, captured(scan("t"), None), undone_by=OFF), sampled=sampled)
    results = begun(tmp_path)
    found = replace(preparation(context(1)), plans=plans)
    results.add_preparation(1, found, None)
    results.close()
    (stored,) = read_results(tmp_path).contexts
    assert stored.plans() == plans
    assert stored.is_checked
    assert stored.preparation == replace(found, plans=None)


def test_rows_of_older_results_are_a_multiset(tmp_path: Path) -> None:
    one = captured(scan("t"))
    plans = plans_of(with_rows(one, in_order="1"), with_rows(one, *UncertaintyKind))
    results = begun(tmp_path)
    results.add_preparation(1, replace(preparation(context(1)), plans=plans), None)
    results.close()
    assert read_results(tmp_path).contexts[0].plans() == plans
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.executescript("ALTER TABLE plan DROP COLUMN ordered_digest; ALTER TABLE plan DROP COLUMN uncertainties;")
    database.close()
    assert read_results(tmp_path).contexts[0].plans() == plans_of(with_rows(one), with_rows(one))


def test_results_without_later_tables_are_read_and_resumed(tmp_path: Path) -> None:
    begun(tmp_path).close()
    database = sqlite3.connect(tmp_path / FILE_NAME)
    database.executescript("DROP TABLE plan; DROP TABLE explained_arm; DROP TABLE discarded_window;")
    database.close()
    assert read_results(tmp_path).contexts[0].plans() is None
    results = Results(tmp_path)
    plans = plans_of(captured(scan("t")), captured(scan("t")))
    results.add_preparation(1, replace(preparation(context(1)), plans=plans), None)
    again = DiscardedWindow(arm=0, round=1, attempt=1, transactions=1, seconds=1.0, was_disturbed=False)
    results.add_block(1, latency_block(1, [1000], [900])._replace(discarded=(again,)))
    results.close()
    assert read_results(tmp_path).contexts[0].plans() == plans


@pytest.mark.parametrize(("title", "contexts", "kind"), [("", 1, "comparison"), ("t", 1, "study"), ("", 2, "study")])
def test_the_kind_of_older_results_follows_from_their_title(title: str, contexts: int, kind: str) -> None:
    stored = STUDY.dump_python(replace(FACT, title=title, contexts=contexts), mode="json")
    del stored["kind"]
    assert STUDY.validate_python(stored).kind is StudyKind(kind)


def test_a_comparison_of_several_contexts_is_rejected(tmp_path: Path) -> None:
    two = replace(FACT, kind=StudyKind.COMPARISON, contexts=2)
    Results.begin(tmp_path / "r", two, [context(1), context(2)]).close()
    with pytest.raises(StoreError) as refused:
        read_results(tmp_path / "r")
    assert "a comparison of 2 contexts" in refused.value.found
