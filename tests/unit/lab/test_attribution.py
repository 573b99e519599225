"""Attributions are measured for decided contenders whose changed plans can be restored."""

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from pgversus.answers.plans import compared, restoration_of
from pgversus.answers.read import read_answer
from pgversus.engine.progress import Progress
from pgversus.errors import WorkloadError
from pgversus.lab.attribution import attribute
from pgversus.lab.resume import without_secrets
from pgversus.records.plans import Candidate, CapturedPlans, OverrideReason, PlanOverride
from pgversus.records.preparation import ArmFacts, Preparation
from pgversus.records.trials import Block
from pgversus.store.folder import FILE_NAME, NOT_ATTRIBUTED, FollowUp, follow_up_folder, holds_results, move_away
from pgversus.store.reading import read_results
from pgversus.store.writing import Results
from pgversus.study.counterfactual import PlanRestoration
from pgversus.study.design import StopReason
from pgversus.study.servers import RunningServer
from pgversus.study.settings import Setting
from pgversus.study.study import Context, Study
from pgversus.study.workload import PgbenchWorkload, Script
from tests.builders import comparison, rate_block
from tests.unit.plans.captures import OFF, captured, plans_of
from tests.unit.plans.raw import scan

ARM = ArmFacts(version="17.8", origin="zonky", compiler="gcc", flags="", sha256=None)
OLD, NEW = captured(scan("t")), captured(scan("t", "Index Scan", Index_Name="i"))
WORKLOAD = PgbenchWorkload(scripts=(Script(name="q.sql", text="SELECT 1;"),), clients=4)
REWRITE = Script(name="fenced.sql", text="SELECT 1 OFFSET 0;")


def study(contexts: int = 1, workload: PgbenchWorkload = WORKLOAD) -> Study:
    found = tuple(
        Context(number=n, levels=(("load", f"c{n}"),), comparison=comparison(workload=workload))
        for n in range(1, contexts + 1)
    )
    return Study(name="s", title="t", question="q", contexts=found, seed=7, budget_s=600.0)


def measured(folder: Path, of: Study, effects: list[float], plans: CapturedPlans, blocks: Sequence[Block] = ()) -> None:
    """Results of a study with these speed ratios of the contenders; a block takes 10 seconds.

    blocks: instead of those with these ratios.
    """
    facts = {"host": {"cpus": 2}, "client": {"version": "18.6", "origin": "made up"}, "budget_s": of.budget_s}
    results = Results.begin(folder, of.metadata, of.contexts, {**facts, "ended": "decided"})
    for context, effect in zip(of.contexts, effects, strict=True):
        requested = context.comparison
        found = Preparation(
            design=requested.design,
            arms=(ARM,) * len(requested.arms),
            differences=(),
            writes=False,
            connect_allowance_s=0,
            plans=plans,
        )
        results.add_preparation(context.number, found, None)
        for block in blocks:
            results.add_block(context.number, block)
        for number in () if blocks else range(1, 9):
            rates = [1000.0 + number, *(effect * 1000.0 + arm for arm in range(1, len(requested.arms)))]
            results.add_block(context.number, rate_block(number, *rates)._replace(wall_s=10.0))
    results.close()


class Measuring:
    """Fake servers: record the studies, with the old plans as slow as the baseline."""

    def __init__(self, act: Callable[[], None] = lambda: None) -> None:
        self.requested: list[Study] = []
        self._act = act

    def __call__(self, of: Study, folder: Path) -> StopReason:
        self.requested.append(of)
        self._act()
        (context,) = of.contexts
        design = context.comparison.design
        facts = {"host": {"cpus": 2}, "client": {"version": "18.6", "origin": "made up"}, "budget_s": of.budget_s}
        results = Results.begin(folder, of.metadata, of.contexts, facts)
        found = Preparation(
            design=design,
            arms=(ARM,) * 3,
            differences=(),
            writes=False,
            connect_allowance_s=0,
            plans=plans_of(OLD, OLD, NEW),
        )
        results.add_preparation(1, found, None)
        for number in range(1, (design.fixed_blocks or 0) + 1):
            results.add_block(1, rate_block(number, 1000.0 + number, 1001.0, 2000.0)._replace(wall_s=15.0))
        results.add_fact("ended", "blocks")
        results.close()
        return StopReason.BLOCKS


def test_a_decided_contender_with_a_restorable_plan_is_measured_once(tmp_path: Path) -> None:
    requested = study(3)
    measured(tmp_path, requested, [2.0, 1.0, 0.5], plans_of(OLD, NEW, undone_by=OFF))
    measuring = Measuring()
    assert attribute(requested, tmp_path, measuring, Progress()) == {}
    assert [one.contexts[0].levels for one in measuring.requested] == [(("load", "c1"),), (("load", "c3"),)]
    assert attribute(requested, tmp_path, measuring, Progress()) == {}
    assert len(measuring.requested) == 2
    first, second, third = read_answer(tmp_path).answers
    assert second.attributions == {}
    for one in (first, third):
        assert one.attributions[1].found is not None
        assert one.attributions[1].restoration == "enable_x = off"
        assert one.attributions[1].wall_s == 120.0


@pytest.mark.parametrize("plans", [plans_of(OLD, NEW), plans_of(OLD, OLD, undone_by=OFF)])
def test_nothing_is_measured_without_a_restorable_plan(tmp_path: Path, plans: CapturedPlans) -> None:
    measured(tmp_path, study(), [2.0], plans)
    measuring = Measuring()
    assert attribute(study(), tmp_path, measuring, Progress()) == {}
    assert measuring.requested == []


@pytest.mark.parametrize(("wall_s", "rounds"), [(1.25, 6), (1.45, 6), (1.75, 4), (60.0, 2)])
def test_blocks_take_no_longer_than_those_of_the_comparison(tmp_path: Path, wall_s: float, rounds: int) -> None:
    """16 windows of 62.5 ms of the baseline and of 12.5 ms of the contender; the rest of the time is for starts."""
    requested = study()
    (context,) = requested.contexts
    design = replace(context.comparison.design, rounds=16)
    context = replace(context, comparison=replace(context.comparison, design=design))
    requested = replace(requested, contexts=(context,))
    blocks = [
        block._replace(
            wall_s=wall_s,
            trials={
                arm: trial._replace(seconds=(1.0, 0.2)[arm], window_count=16, transactions=(100, 40)[arm])
                for arm, trial in block.trials.items()
            },
        )
        for block in (rate_block(number, 100.0 + number, 200.0) for number in range(1, 9))
    ]
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW, undone_by=OFF), blocks)
    measuring = Measuring()
    attribute(requested, tmp_path, measuring, Progress())
    (one,) = measuring.requested
    found = one.contexts[0].comparison.design
    assert (found.rounds, found.fixed_blocks) == (rounds, 8)


def test_there_are_as_many_blocks_as_decided_the_verdict(tmp_path: Path) -> None:
    """The baseline is measured against itself in eight blocks, the contender in five."""
    whole = comparison(("16.12", "16.12 (2)", "17.8"), workload=WORKLOAD)
    requested = study()
    requested = replace(requested, contexts=(replace(requested.contexts[0], comparison=whole),))
    blocks = [
        rate_block(n, 1000.0 + n, 1001.0 + n % 2, 2000.0 if n <= 5 else None)._replace(wall_s=10.0) for n in range(1, 9)
    ]
    plans = replace(plans_of(OLD, OLD, NEW), undone_by=((None,), (OFF,)))
    measured(tmp_path, requested, [1.0], plans, blocks)
    measuring = Measuring()
    attribute(requested, tmp_path, measuring, Progress())
    assert [one.contexts[0].comparison.design.fixed_blocks for one in measuring.requested] == [5]


def test_too_little_time_for_enough_blocks_is_reported(tmp_path: Path) -> None:
    requested = replace(study(), budget_s=59.0)
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW, undone_by=OFF))
    assert "too short" in attribute(requested, tmp_path, Measuring(), Progress())["1-1"]


def test_little_time_means_fewer_blocks(tmp_path: Path) -> None:
    requested = replace(study(), budget_s=75.0)
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW, undone_by=OFF))
    measuring = Measuring()
    attribute(requested, tmp_path, measuring, Progress())
    # Three trials of 5 seconds in each block.
    assert [one.contexts[0].comparison.design.fixed_blocks for one in measuring.requested] == [5]


def test_a_failed_attribution_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    requested = study(2)
    measured(tmp_path, requested, [2.0, 2.0], plans_of(OLD, NEW, undone_by=OFF))
    errors = [WorkloadError("the old plan was not restored", slug="s", where="q", found="f", expected="e", to_do="t")]

    def fail_once() -> None:
        if errors:
            raise errors.pop()

    found = attribute(requested, tmp_path, Measuring(fail_once), Progress())
    assert found == {"1-1": "the old plan was not restored (q): f"}
    results = Results(tmp_path)
    results.add_fact(NOT_ATTRIBUTED, found)
    results.close()
    first, second = read_answer(tmp_path).answers
    assert first.attributions[1].failure == found["1-1"]
    assert second.attributions[1].found is not None


def test_the_time_of_a_failed_attribution_is_spent(tmp_path: Path) -> None:
    requested = study(2)
    measured(tmp_path, requested, [2.0, 2.0], plans_of(OLD, NEW, undone_by=OFF))

    def measure(of: Study, folder: Path) -> StopReason:
        measuring(of, folder)
        if len(measuring.requested) == 1:
            raise WorkloadError("lost", slug="s", where="q", found="f", expected="e", to_do="t")
        return StopReason.BLOCKS

    measuring, without_failure = Measuring(), Measuring()
    attribute(requested, tmp_path, measure, Progress())
    other = tmp_path / "other"
    measured(other, requested, [2.0, 2.0], plans_of(OLD, NEW, undone_by=OFF))
    attribute(requested, other, without_failure, Progress())
    assert [one.budget_s for one in measuring.requested] == [one.budget_s for one in without_failure.requested]


def test_ctrl_c_leaves_the_verdicts_untouched(tmp_path: Path) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))

    def interrupt() -> None:
        raise KeyboardInterrupt

    assert attribute(study(), tmp_path, Measuring(interrupt), Progress()) == {}
    (one,) = read_answer(tmp_path).answers
    assert (one.stopped, one.attributions) == (StopReason.DECIDED, {})


@pytest.mark.parametrize("is_raised", [True, False])
def test_an_interrupt_is_reported_so_that_nothing_else_begins(tmp_path: Path, *, is_raised: bool) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    noted: list[bool] = []

    def interrupted(_of: Study, _folder: Path) -> StopReason:
        if is_raised:
            raise KeyboardInterrupt
        return StopReason.INTERRUPTED

    attribute(study(), tmp_path, interrupted, Progress(), note_interrupt=lambda: noted.append(True))
    assert noted == [True]


def test_an_interrupted_attribution_is_resumed(tmp_path: Path) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    attribute(study(), tmp_path, Measuring(), Progress())
    results = Results(follow_up_folder(tmp_path, FollowUp.ATTRIBUTIONS, 1, 1))
    results.add_fact("ended", "interrupted")
    results.close()
    again: list[Study] = []

    def go_on(of: Study, _: Path) -> StopReason:
        again.append(of)
        return StopReason.BLOCKS

    # Much of the budget is spent, but the question is the same.
    attribute(replace(study(), budget_s=130.0), tmp_path, go_on, Progress())
    assert [one.contexts[0].comparison.design.fixed_blocks for one in again] == [8]


def jit(value: str) -> PlanOverride:
    return PlanOverride(candidate=Candidate(why=OverrideReason.OTHER_VALUE, settings=(("jit", value),)))


@pytest.mark.parametrize(
    ("plans", "workload", "restoration"),
    [
        (
            plans_of(OLD, NEW, undone_by=OFF),
            WORKLOAD,
            PlanRestoration(settings=(Setting(name="enable_x", value="off"),)),
        ),
        (plans_of(OLD, NEW), WORKLOAD, None),
        (plans_of(OLD, NEW), replace(WORKLOAD, rewrite=REWRITE), PlanRestoration(rewrite=REWRITE)),
        (plans_of(OLD, OLD), replace(WORKLOAD, rewrite=REWRITE), None),
        (
            replace(plans_of(captured(scan("t"), scan("u")), captured(scan("v"), scan("w"))), undone_by=((OFF, None),)),
            WORKLOAD,
            None,
        ),
        (
            replace(
                plans_of(captured(scan("t"), scan("u")), captured(scan("v"), scan("w"))),
                undone_by=((jit("on"), jit("off")),),
            ),
            WORKLOAD,
            None,
        ),
    ],
)
def test_changed_plans_are_restored_together_or_not_at_all(
    plans: CapturedPlans, workload: PgbenchWorkload, restoration: PlanRestoration | None
) -> None:
    assert restoration_of(compared(comparison(("16", "17")).arms, plans).compared, workload) == restoration


def test_uris_of_external_servers_come_from_the_study_not_the_results(tmp_path: Path) -> None:
    """URIs in results lack users and passwords."""
    uris = ("postgresql://me:secret@db.example/old", "postgresql://me:secret@db.example/new")
    requested = study()
    (context,) = requested.contexts
    arms = tuple(
        replace(arm, server=RunningServer(uri=uri)) for arm, uri in zip(context.comparison.arms, uris, strict=True)
    )
    requested = replace(requested, contexts=(replace(context, comparison=replace(context.comparison, arms=arms)),))
    measured(tmp_path, without_secrets(requested), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    measuring = Measuring()
    attribute(requested, tmp_path, measuring, Progress())
    (one,) = measuring.requested
    assert [arm.server for arm in one.contexts[0].comparison.arms] == [
        RunningServer(uri=uris[1]),
        RunningServer(uri=uris[0]),
        RunningServer(uri=uris[1]),
    ]


def test_a_different_rewrite_is_measured_again(tmp_path: Path) -> None:
    requested = study(workload=replace(WORKLOAD, rewrite=REWRITE))
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW))
    attribute(requested, tmp_path, Measuring(), Progress())
    other = study(workload=replace(WORKLOAD, rewrite=replace(REWRITE, text="SELECT 2;")))
    again: list[Study] = []

    def note(of: Study, _: Path) -> StopReason:
        again.append(of)
        return StopReason.BLOCKS

    attribute(requested, tmp_path, note, Progress())
    assert again == []
    attribute(other, tmp_path, note, Progress())
    assert len(again) == 1


def test_the_effect_of_an_earlier_rewrite_is_not_shown_for_one_that_fails(tmp_path: Path) -> None:
    requested = study(workload=replace(WORKLOAD, rewrite=REWRITE))
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW))
    attribute(requested, tmp_path, Measuring(), Progress())
    other = study(workload=replace(WORKLOAD, rewrite=replace(REWRITE, text="SELECT 2;")))

    def fail() -> None:
        raise WorkloadError("the rewrite returns different rows", slug="s", where="q")

    results = Results(tmp_path)
    results.add_fact(NOT_ATTRIBUTED, attribute(other, tmp_path, Measuring(fail), Progress()))
    results.close()
    (one,) = read_answer(tmp_path).answers
    assert one.attributions[1].found is None
    assert one.attributions[1].failure.startswith("the rewrite returns different rows")


def test_the_time_of_a_different_rewrite_is_not_charged(tmp_path: Path) -> None:
    """Eight blocks of the first rewrite have used up the budget of all attributions."""
    requested = replace(study(workload=replace(WORKLOAD, rewrite=REWRITE)), budget_s=240.0)
    measured(tmp_path, requested, [2.0], plans_of(OLD, NEW))
    first = Measuring()
    attribute(requested, tmp_path, first, Progress())
    other = replace(study(workload=replace(WORKLOAD, rewrite=replace(REWRITE, text="SELECT 2;"))), budget_s=240.0)
    second: list[Study] = []

    def note(of: Study, _: Path) -> StopReason:
        second.append(of)
        return StopReason.BLOCKS

    attribute(other, tmp_path, note, Progress())
    assert [one.contexts[0].comparison.design.fixed_blocks for one in (*first.requested, *second)] == [8, 8]


def test_finished_attributions_leave_the_time_to_the_others(tmp_path: Path) -> None:
    requested = replace(study(2), budget_s=240.0)
    measured(tmp_path, requested, [2.0, 2.0], plans_of(OLD, NEW, undone_by=OFF))
    first = Measuring()

    def only_the_first(of: Study, folder: Path) -> StopReason:
        if first.requested:
            raise KeyboardInterrupt
        return first(of, folder)

    attribute(requested, tmp_path, only_the_first, Progress())
    second = Measuring()
    attribute(requested, tmp_path, second, Progress())
    assert [one.contexts[0].comparison.design.fixed_blocks for one in (*first.requested, *second.requested)] == [8, 8]


def test_a_reason_from_an_earlier_run_does_not_hide_later_results(tmp_path: Path) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    results = Results(tmp_path)
    results.add_fact(NOT_ATTRIBUTED, {"1-1": "no room"})
    results.close()
    assert read_answer(tmp_path).answers[0].attributions[1].failure == "no room"
    attribute(study(), tmp_path, Measuring(), Progress())
    assert read_answer(tmp_path).answers[0].attributions[1].found is not None


def test_a_damaged_attribution_leaves_the_verdict_readable(tmp_path: Path) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    attribute(study(), tmp_path, Measuring(), Progress())
    (follow_up_folder(tmp_path, FollowUp.ATTRIBUTIONS, 1, 1) / FILE_NAME).write_bytes(b"no database")
    (one,) = read_answer(tmp_path).answers
    assert "results could not be read" in one.attributions[1].failure
    # A run does not fail either.
    assert attribute(study(), tmp_path, Measuring(), Progress()) == {}


def garbage(folder: Path) -> None:
    folder.mkdir(parents=True)
    (folder / FILE_NAME).write_bytes(b"x" * 4096)


def without_contexts(folder: Path) -> None:
    folder.parent.mkdir(parents=True)
    Results.begin(
        folder, replace(study(), contexts=()).metadata, (), {"host": {"cpus": 2}, "client": {"version": "1"}}
    ).close()


@pytest.mark.parametrize(("damage", "is_measured"), [(garbage, False), (without_contexts, True)])
def test_a_damaged_attribution_does_not_stop_the_others(
    tmp_path: Path, damage: Callable[[Path], None], *, is_measured: bool
) -> None:
    requested = study(2)
    measured(tmp_path, requested, [2.0, 2.0], plans_of(OLD, NEW, undone_by=OFF))
    damage(follow_up_folder(tmp_path, FollowUp.ATTRIBUTIONS, 1, 1))
    measuring = Measuring()

    def measure(of: Study, folder: Path) -> StopReason:
        if holds_results(folder):
            read_results(folder)
            move_away(folder, "now")
        return measuring(of, folder)

    reasons = attribute(requested, tmp_path, measure, Progress())
    assert [one.contexts[0].levels[0][1] for one in measuring.requested] == (["c1", "c2"] if is_measured else ["c2"])
    assert list(reasons) == ([] if is_measured else ["1-1"])


def test_a_finished_attribution_stays_when_block_sizes_change(tmp_path: Path) -> None:
    measured(tmp_path, study(), [2.0], plans_of(OLD, NEW, undone_by=OFF))
    attribute(study(), tmp_path, Measuring(), Progress())
    results = Results(tmp_path)
    longer = rate_block(9, 1009.0, 2001.0)
    trials = {arm: trial._replace(window_count=100) for arm, trial in longer.trials.items()}
    results.add_block(1, longer._replace(trials=trials, wall_s=10.0))
    results.close()
    measuring = Measuring()
    assert attribute(study(), tmp_path, measuring, Progress()) == {}
    assert measuring.requested == []
