"""An answer is read from the results folder alone."""

from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.answers.read import read_answer
from pgversus.cli.answer import exit_code
from pgversus.errors import ExitCode, StoreError
from pgversus.records.preparation import ArmFacts, Preparation
from pgversus.report.sentences import unanswered_text
from pgversus.store.writing import Results
from pgversus.study.study import Context, Study
from tests.builders import comparison, latency_block

HOST_AND_CLIENT = {"host": {"cpus": 2}, "client": {"version": "18.6", "origin": "made up"}}


def one_block(folder: Path, contexts: int = 1, block_bytes: tuple[str, str] = ("8192", "8192")) -> None:
    """Results with one block of the first context. block_bytes: of each arm."""
    requested = Study(
        name="s",
        title="t",
        question="q",
        contexts=tuple(Context(number=n, levels=(), comparison=comparison()) for n in range(1, contexts + 1)),
        seed=7,
        budget_s=60.0,
    )
    arm = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="", sha256=None)
    design = requested.contexts[0].comparison.design
    arms = tuple(replace(arm, compiled_in={"block_size": size}) for size in block_bytes)
    found = Preparation(design=design, arms=arms, differences=(), writes=False, connect_allowance_s=0)
    results = Results.begin(folder, requested.metadata, requested.contexts, {**HOST_AND_CLIENT, "budget_s": 60.0})
    results.add_preparation(1, found, None)
    block = latency_block(1, [1000] * 50, [900] * 50)
    trials = {arm: trial._replace(counters={"buffers_hit": 500.0}) for arm, trial in block.trials.items()}
    results.add_block(1, block._replace(trials=trials))
    results.close()


def test_the_reported_budget_is_that_of_the_last_run(tmp_path: Path) -> None:
    one_block(tmp_path)
    assert [one.comparison.design.budget_s for one in read_answer(tmp_path).answers] == [60.0]
    results = Results(tmp_path)
    results.add_fact("budget_s", 7200.0)
    results.close()
    assert [one.comparison.design.budget_s for one in read_answer(tmp_path).answers] == [7200.0]


@pytest.mark.parametrize(
    ("block_bytes", "counters"),
    [
        (("8192", "32768"), [{"buffers_hit_bytes": 81_920.0}, {"buffers_hit_bytes": 327_680.0}]),
        (("32768", "32768"), [{"buffers_hit": 10.0}, {"buffers_hit": 10.0}]),
        (("8192", "unknown"), [{"buffers_hit_bytes": 81_920.0}, {}]),
    ],
)
def test_counters_of_blocks_of_different_sizes_are_read_in_bytes(
    tmp_path: Path, block_bytes: tuple[str, str], counters: list[dict[str, float]]
) -> None:
    one_block(tmp_path, block_bytes=block_bytes)
    (found,) = read_answer(tmp_path).answers
    assert [dict(arm) for arm in found.analysis.counters] == counters


def test_contexts_that_could_not_be_prepared_have_failed_with_the_stored_message(tmp_path: Path) -> None:
    one_block(tmp_path, contexts=3)
    results = Results(tmp_path)
    results.add_fact("not_prepared", {"1": "other rows", "2": "no cold cache"})
    results.add_fact("ended", "decided")
    results.close()
    found = read_answer(tmp_path)
    assert [(one.failed, unanswered_text(one)) for one in found.unanswered] == [
        (True, "no cold cache"),
        (False, "not started"),
    ]
    (begun,) = found.answers
    assert begun.failure == "other rows"
    assert [caveat.slug for caveat in begun.caveats if "other rows" in caveat.values.values()] == ["not-resumed"]
    assert exit_code(found, ()) is ExitCode.FAILED_TRIALS
    results = Results(tmp_path)
    results.add_fact("not_prepared", {})
    results.close()
    assert exit_code(read_answer(tmp_path), ()) is ExitCode.DONE


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("client", {"version": "18.6"}),
        ("host", {}),
        ("host", 2),
        ("ended", "somehow"),
        ("budget_s", "long"),
        ("not_prepared", ["x"]),
    ],
)
def test_damaged_facts_are_reported_without_a_traceback(tmp_path: Path, name: str, value: object) -> None:
    one_block(tmp_path)
    results = Results(tmp_path)
    results.add_fact(name, value)
    results.close()
    with pytest.raises(StoreError) as caught:
        read_answer(tmp_path)
    assert caught.value.slug == "store-unreadable"


def test_missing_facts_are_reported(tmp_path: Path) -> None:
    requested = Study(name="s", title="t", question="q", contexts=(), seed=7, budget_s=60.0)
    Results.begin(tmp_path, requested.metadata, ()).close()
    with pytest.raises(StoreError):
        read_answer(tmp_path)


def test_one_context_that_could_not_be_resumed_sets_the_exit_code(tmp_path: Path) -> None:
    one_block(tmp_path)
    results = Results(tmp_path)
    results.add_fact("not_prepared", {"1": "other rows"})
    results.add_fact("ended", "decided")
    results.close()
    assert exit_code(read_answer(tmp_path), ()) is ExitCode.FAILED_TRIALS


def test_a_reason_under_an_unknown_key_is_a_damage(tmp_path: Path) -> None:
    one_block(tmp_path)
    results = Results(tmp_path)
    results.add_fact("not_attributed", {"x": "no room"})
    results.close()
    with pytest.raises(StoreError):
        read_answer(tmp_path)
