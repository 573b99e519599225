"""Results with rows in every table: a load with plans and failures, and an operation."""

import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from pgversus.records.plans import PlannerSetting, SampledPlans
from pgversus.records.preparation import ArmFacts, BuildRecord, Difference, Preparation
from pgversus.records.trials import DiscardedWindow, FailedTrial, Phase
from pgversus.store.folder import FILE_NAME
from pgversus.store.writing import Results
from pgversus.study.counters import COUNTERS
from pgversus.study.metrics import Metric
from pgversus.study.study import Context, Study
from pgversus.study.workload import Step
from tests.builders import comparison, judged_by, latency_block, open_loop, operation_block, vacuum
from tests.unit.plans.captures import OFF, captured, plans_of
from tests.unit.plans.raw import node, scan

FIGURES = "workload,level,tps\nlag.sql@2,16.12,100\nlag.sql@2,17.8,110\n"
_ARM = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="-O2", sha256="0" * 64, sizes={"public.t": 8192})
_MADE = BuildRecord(
    source="commit 0a1b of ./postgres",
    source_sha256="0" * 64,
    checked=None,
    commit="0a1b" * 10,
    is_changed=False,
    options=("blocksize=16",),
    profile="minimal",
    system="configure",
)
_BLOCKS = 5


def write_whole(folder: Path) -> None:
    """Write the results to a folder."""
    operation = vacuum(Step(name="dump", program=("pg_dump", "-f", "db.sql")))
    contexts = (
        Context(number=1, levels=(("load", "c8"),), comparison=comparison(workload=open_loop())),
        Context(
            number=2,
            levels=(("load", "c1"),),
            comparison=comparison(workload=operation, design=judged_by(Metric.TIME)),
        ),
        Context(number=3, levels=(("load", "c9"),), comparison=comparison()),
    )
    study = Study(
        name="s", title="t", question="q", contexts=contexts, seed=7, budget_s=60.0, published=FIGURES, metrics=("tps",)
    )
    facts = {
        "host": {"cpus": 2, "cpus_usable": 2, "memory_bytes": 4 * 10**9, "cpu_model": "x", "copies": "reflink"},
        "client": {"version": "18.6", "origin": "here", "sha256": None},
        "builds": {"17": {"origin": "zonky", "version": "17.8", "artifact_sha256": "0" * 64, "postgres_sha256": None}},
        "asked": {
            "program": "pgversus 1",
            "command": "pgversus run s.toml",
            "file_name": "s.toml",
            "file_text": "a = 1",
        },
        "ended": "budget",
        "not_prepared": {"3": "no such table"},
        "not_attributed": {"1-1": "no time"},
        "loaded": ["db.example"],
        "budget_s": 60.0,
    }
    results = Results.begin(folder, study.metadata, contexts, facts)
    setting = PlannerSetting(value="4096", default="4096", is_switch=False)
    one, other = (
        replace(captured(plan, None, statistics=statistics), settings={"work_mem": setting})
        for plan, statistics in (
            (node("Sort", scan("t", Filter="((a = 1) AND (b = 2))"), Sort_Key=["t.a"]), "a"),
            (scan("t", "Index Scan", Index_Name="i", Index_Cond="(a = 1)"), "b"),
        )
    )
    plans = replace(
        plans_of(one, other, undone_by=OFF),
        sampled=(SampledPlans(told=3, others=0), SampledPlans(told=2, others=1, example="[]")),
    )
    differences = (
        Difference(kind="setting", name="jit", values=("on", "off"), is_default=True),
        Difference(kind="build", name="compiler", values=("gcc", "clang"), is_default=False),
        Difference(kind="index", name="i", values=("i", ""), is_default=False),
    )
    for context in contexts[:2]:
        found = Preparation(
            design=context.comparison.design,
            arms=(_ARM, replace(_ARM, compiled_in={"block_size": "16384"}, built_from=_MADE)),
            differences=differences,
            writes=True,
            connect_allowance_s=1,
            plans=plans if context.number == 1 else None,
        )
        results.add_preparation(context.number, found, None)
    results.add_preparation(3, None, "no such table")
    counters = {name: float(number) for number, name in enumerate(COUNTERS)}
    for number in range(1, _BLOCKS + 1):
        load = latency_block(number, [900 + number] * 60, [800, 950 + number] * 30)
        trials = {
            arm: trial._replace(counters=counters, trend=0.01, ratio_error=0.02 if arm else None)
            for arm, trial in load.trials.items()
        }
        again = DiscardedWindow(arm=1, round=2, attempt=1, transactions=60, seconds=0.9, was_disturbed=True)
        results.add_block(1, load._replace(trials=trials, wall_s=12.5, repeated_rounds=1, discarded=(again,)))
        results.add_block(
            2, operation_block(number, operation, (1.0 + number / 100, 0.4), (0.75, 0.4))._replace(wall_s=4.0)
        )
    failure = FailedTrial(arm=1, phase=Phase.WARM_UP, message="ERROR:  out of memory")
    results.add_block(1, latency_block(_BLOCKS + 1, [1000] * 50, None)._replace(failures=(failure,)))
    results.close()


def changed(folder: Path, *statements: str) -> None:
    """Execute statements on the results file."""
    with closing(sqlite3.connect(folder / FILE_NAME, isolation_level=None)) as database:
        # Durability is not needed in a test.
        database.execute("PRAGMA synchronous = off")
        database.execute("PRAGMA journal_mode = memory")
        for statement in statements:
            database.execute(statement)
