"""An answer is read from the results folder alone."""

from pathlib import Path

from pgversus.lab.answers import read_answer
from pgversus.store.results import Results
from pgversus.study.preparation import ArmFacts, Preparation
from pgversus.study.study import Context, Study
from tests.builders import comparison, latency_block

HOST_AND_CLIENT = {"host": {"cpus": 2}, "client": {"version": "18.6", "origin": "made up"}}


def test_the_budget_that_is_told_is_that_of_the_last_run(tmp_path: Path) -> None:
    context = Context(number=1, levels=(), comparison=comparison())
    asked = Study(name="s", title="t", question="q", contexts=(context,), seed=7, budget_s=60.0)
    arm = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="", sha256=None)
    design = context.comparison.design
    found = Preparation(design=design, arms=(arm, arm), differences=(), writes=False, connect_allowance_s=0)
    results = Results.begin(tmp_path, asked.fact, asked.contexts, {**HOST_AND_CLIENT, "budget_s": 60.0})
    results.add_preparation(1, found, None)
    results.add_block(1, latency_block(1, [1000] * 50, [900] * 50))
    results.close()
    assert [one.comparison.design.budget_s for one in read_answer(tmp_path).answers] == [60.0]
    results = Results(tmp_path)
    results.add_fact("budget_s", 7200.0)
    results.close()
    assert [one.comparison.design.budget_s for one in read_answer(tmp_path).answers] == [7200.0]
