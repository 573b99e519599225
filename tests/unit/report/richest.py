"""Answers that together make reports show nearly all of their texts."""

from collections.abc import Iterator
from dataclasses import replace

from pgversus.answers.answer import Answer, AttributionResult, Caveat, StudyAnswer, Unanswered
from pgversus.answers.caveats import caveats
from pgversus.answers.plans import ComparedPlans, NotCompared, PlansAnswer, StatisticsCause, compared
from pgversus.records.plans import (
    Candidate,
    CapturedPlans,
    OverrideReason,
    PlanOverride,
    RemainingDifference,
    SampledPlans,
    UncertaintyKind,
)
from pgversus.records.preparation import (
    DATABASE_LOCALE,
    RUNNING_SERVER,
    ArmFacts,
    BuildRecord,
    Difference,
    Preparation,
    RestoreProblem,
)
from pgversus.records.trials import Block, FailedTrial, Phase, Trial
from pgversus.statements.statement import NO_VALUES
from pgversus.stats.analysis import ContenderResult
from pgversus.stats.attribution import Attribution, BoundedValue
from pgversus.stats.confidence import Interval, Verdict
from pgversus.stats.effects import LogEstimate, Samples
from pgversus.stats.hosts import HostResult
from pgversus.study.build_options import BuildProfile, BuildSystem
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.counters import COUNTERS
from pgversus.study.dataset import Dataset
from pgversus.study.design import Design, StopReason
from pgversus.study.metrics import Metric
from pgversus.study.settings import Setting
from pgversus.study.study import Skipped
from tests.builders import answer, comparison, judged_by, open_loop, operation_block, rate_block, study_answer, vacuum
from tests.unit.plans.captures import captured, plans_of, with_rows
from tests.unit.plans.raw import node, scan
from tests.unit.report.cases import CASES, noisy, steady

FIGURES = (
    "workload,load,scale,level,jit,tps,confounded\n"
    "w1,c4,50,16.12,,100,\nw1,c4,50,17.8,,110,\n"
    "w2,c4,1,16.12,,100,'no room'\nw2,c4,1,17.8,,300,\n"
    "w3,c4,1,16.12,,100,yes\nw3,c4,1,17.8,,101,\n"
    "w4,c4,1,16.12,,100,\nw4,c4,1,17.8,,101,\n"
    "w5,c4,,16.12,on,100,\nw5,c4,,17.8,on,110,\n"
    "w6,c4,1,16.12,,100,\nw6,c4,1,17.8,,110,\n"
)
_PAIR = ("16.12", "17.8")
_BLOCKS = 14
OTHER_LOCALE = RestoreProblem(item=DATABASE_LOCALE, message="4", is_setting=False)


def whole_studies() -> Iterator[StudyAnswer]:
    """Yield studies of loads, of operations, of very many verdicts, and of one context."""
    loads = [_told(CASES[name]()) for name in ("faster", "slower_by_half", "equivalent", "undecided", "invalid")]
    lost = [
        Unanswered(context=loads[0].context, failure="'8.3'", stopped=StopReason.BUDGET),
        Unanswered(context=replace(loads[0].context, levels=()), failure=None, stopped=StopReason.BUDGET),
    ]
    skipped = [Skipped(label="16.12", reason="17")]
    yield study_answer(
        [*loads, *_warned(), *_with_plans(), _sized(), _tails()],
        unanswered=lost,
        published=FIGURES,
        metrics=("latency_p95", "wal_bytes", "host_cpu_s", "buffers_read"),
        skipped=skipped,
        stopped=StopReason.BUDGET,
    )
    yield study_answer([CASES["operation"](), CASES["steps"](), _decided_early()], published="level,tps\n16,1\n")
    yield study_answer([CASES["faster"]()] * 120, stopped=StopReason.INTERRUPTED)
    yield study_answer([answer(steady(1.5), comparison(design=Design(fixed_blocks=6, seed=7)))])
    yield study_answer([answer(steady(1.1), comparison(design=Design(fixed_blocks=6, seed=7)))] * 2)
    yield study_answer([], unanswered=lost[:1])
    yield _mapped()
    yield _swept()
    yield study_answer([CASES["faster"](), *_warned()[:1] * 5])


def single_comparisons() -> Iterator[Answer]:
    """Yield single comparisons with every verdict, every reason to stop, and everything shown next to them."""
    yield from (make() for make in CASES.values())
    yield from _warned()
    yield from _with_plans()
    yield _sized()
    yield _tails()
    yield _decided_early()
    yield from _stopped()


def all_plans() -> PlansAnswer:
    """Return compared plans with every override, and with different rows and statistics."""
    found = [one for plans in _plans() for one in compared(comparison(_PAIR).arms, plans).compared]
    (first, *_) = found
    ways = [
        PlanOverride(candidate=Candidate(why=why, settings=(("enable_x", "off"),)), but_for=but_for)
        for why in OverrideReason
        for but_for in (None, *RemainingDifference)
    ]
    undone: list[ComparedPlans] = [
        replace(one, undone_by=way, is_searched=True) for one in (first, found[-1]) for way in (None, *ways)
    ]
    unlike = compared(
        comparison(_PAIR).arms, plans_of(captured(scan("t")), captured(scan("t"), rows=4, statistics="b"))
    )
    rows = compared(comparison(_PAIR).arms, _other_rows())
    causes = [replace(one, cause=cause) for one in unlike.unlike for cause in StatisticsCause]
    return PlansAnswer(
        compared=(*found, *undone, *unlike.compared, *rows.compared),
        unlike=(*unlike.unlike, *causes),
        not_compared=(NotCompared(statement="q", reason=NO_VALUES),),
    )


def _other_rows() -> CapturedPlans:
    """Return plans of statements with different rows, a different order of rows, and rows that cannot be compared."""
    one = captured(scan("t"))
    pairs = [
        (one, captured(scan("t"), rows=4)),
        (with_rows(one, in_order="1"), with_rows(one, in_order="2")),
        (one, with_rows(one, *UncertaintyKind, digest="y")),
    ]
    arms = (replace(one, statements=tuple(pair[side].statements[0] for pair in pairs)) for side in (0, 1))
    return plans_of(*arms)


def _told(one: Answer) -> Answer:
    """Return the answer with facts of the host, of servers, and of counters."""
    blocks = tuple(
        block._replace(
            repeated_rounds=1,
            trials={arm: _counted(trial, arm, block.number) for arm, trial in block.trials.items()},
        )
        for block in one.blocks
    )
    built = BuildRecord(
        source="0123456",
        source_sha256="0",
        checked=None,
        commit=None,
        is_changed=False,
        system=BuildSystem.MESON,
        profile=BuildProfile.FULL,
        options=("cassert",),
        diff_stat="3",
    )
    arms = tuple(
        replace(arm, built_from=replace(built, diff_stat="" if index == 0 else "3"))
        for index, arm in enumerate(one.arms)
    )
    again = answer(
        blocks,
        one.comparison,
        caveats=one.caveats,
        differences=one.differences,
        stopped=one.stopped,
        is_from_file=True,
        invalid=frozenset(result.contender for result in one.analysis.results if result.verdict is Verdict.INVALID),
    )
    host = {"cpus_usable": 1, "memory_bytes": 2**33, "copies": "copy", "kernel": "6"}
    return replace(again, arms=arms, host=host)


def _counted(trial: Trial, arm: int, block: int) -> Trial:
    each = {name: (1.0 + arm) * (1 + block / 1000) for name in COUNTERS if name != "wal_bytes"}
    each["temp_bytes"] = 900.0 * arm
    return trial._replace(counters={name: value * trial.transactions for name, value in each.items()})


def _stopped() -> Iterator[Answer]:
    """Yield answers with advice on what to do next."""
    for stopped in StopReason:
        yield answer(steady(1.1, blocks=2), stopped=stopped)
    for is_from_file in (False, True):
        for blocks in ([], noisy(0.02, blocks=8), noisy(9.0, blocks=9)):
            yield answer(blocks, stopped=StopReason.BUDGET, is_from_file=is_from_file)
        percentile = comparison(design=judged_by(Metric.LATENCY_P95))
        yield answer(noisy(0.02, blocks=8), percentile, stopped=StopReason.BUDGET, is_from_file=is_from_file)
    far = [rate_block(n, 1000.0, 1000.0 * (200.0 if n % 2 else 0.01)) for n in range(1, 9)]
    yield answer(far)
    yield answer(noisy(0.02, blocks=8), comparison(design=Design(max_blocks=9, seed=7)), is_from_file=True)
    yield answer(steady(2.4), comparison(workload=open_loop()), stopped=StopReason.BUDGET)
    yield answer([rate_block(n, 1000.0, 1e9 * 10 ** (n % 3)) for n in range(1, 9)])
    yield answer([rate_block(n, 1e9 * 10 ** (n % 3), 1000.0) for n in range(1, 9)])


def _warned() -> list[Answer]:
    """Return answers with every caveat."""
    differences = [
        Difference(kind=kind, name="jit", values=("1", ""), is_default=False)
        for kind in ("build", "database", "setting", "index", "table")
    ]
    differences += [Difference(kind="build", name=f"--{n}", values=("1", "2"), is_default=False) for n in range(10)]
    problems = tuple(
        RestoreProblem(item=str(n), message="4", is_setting=is_setting)
        for n in range(10)
        for is_setting in (True, False)
    )
    facts = [
        ArmFacts(
            version=label, origin=origin, compiler="gcc", flags="", sha256=None, not_restored=(*problems, OTHER_LOCALE)
        )
        for label, origin in zip(("16.12", "99.1"), ("zonky", RUNNING_SERVER), strict=True)
    ]
    pinned = replace(Design(seed=7), client_processors=(0, 1), server_processors=(2, 3))
    sampled = replace(
        _other_rows(), sampled=(SampledPlans(told=0, others=0, failure="1"), SampledPlans(told=9, others=3))
    )
    found = []
    for way in (1, -1):
        for writes in (True, False):
            for requested in (
                comparison(_PAIR, design=pinned),
                replace(comparison(_PAIR), cache=CacheState.COLD),
                comparison(_PAIR, workload=open_loop(), design=judged_by(Metric.LATENCY_P95)),
            ):
                blocks = _troubled(way)
                known = Preparation(
                    design=requested.design,
                    arms=(replace(facts[0], origin=RUNNING_SERVER), facts[1]) if writes else tuple(facts),
                    differences=tuple(differences),
                    writes=writes,
                    connect_allowance_s=0,
                    not_explained="2",
                    unchecked_settings="4",
                )
                results = [_on_hosts(result, way) for result in answer(blocks, requested).analysis.results]
                reported = caveats(
                    requested,
                    known,
                    Samples(blocks),
                    StopReason.INTERRUPTED,
                    cpus=2,
                    failure="3",
                    plans=sampled,
                    results=results,
                )
                one = answer(
                    blocks, requested, caveats=reported, differences=differences, stopped=StopReason.INTERRUPTED
                )
                found.append(replace(one, arms=known.arms))
    idle = [Caveat(slug=slug, values={"names": ["jit"]}) for slug in ("no-checkpoint-ran", "no-autovacuum-ran")]
    return [*found, answer(steady(1.1), caveats=tuple(idle))]


def _on_hosts(result: ContenderResult, way: int) -> ContenderResult:
    """Return a result of two hosts, which agree or not."""
    estimate = LogEstimate(point=0.1, standard_error=0.01, n=5)
    one = HostResult(host="db1", verdict=Verdict.FASTER, log_ratio=estimate, interval=Interval(low=0.05, high=0.15))
    other = replace(one, host="db2", verdict=Verdict.FASTER if way > 0 else Verdict.SLOWER)
    return replace(result, hosts=(one, other))


def _troubled(way: int) -> list[Block]:
    """Return blocks with every countable problem; the contender drifts and becomes faster or slower."""
    made = []
    for number in range(1, _BLOCKS + 1):
        block = rate_block(number, 1000.0, 1000.0, transactions=90)
        trials = {
            arm: trial._replace(
                seconds=8.0,
                transactions=60 + arm * number,
                failed=2,
                unclocked=30,
                trend=way * (0.1 + number / 1000),
                counters=_trouble(arm),
            )
            for arm, trial in block.trials.items()
        }
        failures = tuple(FailedTrial(arm=arm, phase=list(Phase)[arm], message="'no'") for arm in (0, 1))
        made.append(block._replace(trials=trials, failures=failures if number == 1 else ()))
    return made


def _trouble(arm: int) -> dict[str, float]:
    return {
        "client_cpu_s": 15.9,
        "client_cpu_user_s": 1.0,
        "host_cpu_s": 16.0,
        "host_cpu_user_s": 15.0,
        "server_cpu_user_s": 1.0,
        "server_cpu_system_s": 1.0,
        "host_steal_s": 8.0,
        "cpu_throttled_s": 4.0,
        "still_cached_share": 0.5,
        "disturbed_windows": 1.0,
        "pressure_memory_s": 4.0,
        "pressure_io_s": 4.0,
        "buffers_read": 0.0,
        "checkpoint_buffers_written": 0.0,
        "background_buffers_written": 0.0,
        "wal_bytes": 0.0,
        "temp_bytes": 0.0,
        "server_io_write_bytes": 0.0,
        "server_io_extend_bytes": 0.0,
        "checkpoint_write_s": 0.1 * arm,
        "checkpoints_timed": 1.0 * arm,
        "checkpoints_requested": 0.0,
        "autovacuum_runs": 2.0 * arm,
        "autoanalyze_runs": 0.0,
        "tuples_inserted": 3.0,
        "tuples_updated": 0.0,
        "tuples_deleted": 0.0,
    }


def _plans() -> list[CapturedPlans]:
    """Return plans with a different operator, different conditions, different execution, and no difference."""
    old = captured(scan("t"), *(scan("t", Filter=f"(a = {n})") for n in range(8)))
    new = captured(
        scan("t", "Index Scan", Index_Name="i"), *(scan("u", Filter=f"(b = {n})", Actual_Rows=n) for n in range(8))
    )
    sort = node("Sort", scan("t"), Sort_Key=["t.a"])
    spilled = captured({**sort, "Temp Written Blocks": 9, "Actual Loops": 3, "Actual Rows": 1})
    in_memory = captured({**sort, "Temp Written Blocks": 0, "Sort Key": ["t.a"]})
    other_keys = captured(node("Sort", scan("t"), Sort_Key=["t.b"]))
    return [
        plans_of(old, new),
        plans_of(new, old),
        plans_of(in_memory, other_keys),
        plans_of(old, old),
        plans_of(spilled, in_memory),
    ]


def _with_plans() -> list[Answer]:
    """Return answers with every claim about the effect of plans."""
    off = PlanOverride(candidate=Candidate(why=OverrideReason.NEW_SWITCH, settings=(("enable_x", "off"),)))
    shares = ((0.98, 0.93, 1.03), (0.7, 0.55, 0.9), (0.2, -0.1, 0.6), None)
    found = []
    for base in (
        CASES["faster"](),
        CASES["slower_by_half"](),
        CASES["undecided"](),
        _told(CASES["faster"]()),
        _tails(),
    ):
        for plans in _plans():
            ways = tuple(tuple(off for _ in of) for of in plans.undone_by)
            for captured_plans in (plans, replace(plans, undone_by=ways)):
                made = replace(base, plans=lambda base=base, of=captured_plans: compared(base.comparison.arms, of))  # type: ignore[misc]
                found.append(made)
        is_faster = base.analysis.results[0].verdict is Verdict.FASTER
        found += [
            replace(found[-1], plans=found[at].plans, attributions={1: _attributed(share, rest, is_faster=is_faster)})
            for at in (-9, -1)
            for share, rest in zip((*shares, shares[0]), Verdict, strict=True)
        ]
        failed = AttributionResult(restoration="", found=None, failure="'no room'", wall_s=0.0)
        without = (
            failed,
            replace(failed, failure="", blocks=3, stopped=StopReason.INTERRUPTED),
            replace(failed, failure="", stopped=StopReason.BUDGET),
        )
        found += [replace(found[-1], attributions={1: one}) for one in without]
    return found


def _attributed(share: tuple[float, float, float] | None, rest: Verdict, *, is_faster: bool) -> AttributionResult:
    value, sign = (6.0, 1) if is_faster else (0.2, -1)
    found = Attribution(
        whole=BoundedValue(value=value, low=value / 2, high=value * 2),
        plans=BoundedValue(value=5.0, low=4.5, high=5.5),
        rest=BoundedValue(value=1.2, low=1.1, high=1.3),
        whole_s=BoundedValue(value=sign * 0.058, low=0.05, high=0.066),
        plans_s=BoundedValue(value=sign * 2.5, low=2.0, high=3.0),
        rest_s=BoundedValue(value=0.001, low=-0.002, high=0.004),
        share=None if share is None else BoundedValue(value=share[0], low=share[1], high=share[2]),
        share_of_time=None if share is None else BoundedValue(value=share[0] / 2, low=share[1] / 2, high=share[2]),
        rest_verdict=rest,
        blocks=1 if share is None else 8,
    )
    return AttributionResult(
        restoration="enable_x = off", found=found, failure="", wall_s=61.0, results="r", needs_check=True
    )


def _sized() -> Answer:
    one = answer(steady(1.1))
    sizes = {"public.t": 100}, {"public.t": 2_000_000}
    return replace(one, arms=tuple(replace(arm, sizes=of) for arm, of in zip(one.arms, sizes, strict=True)))


def _tails() -> Answer:
    return replace(CASES["tail_latency"](), host={"cpus_usable": 4, "copies": "reflink"})


def _decided_early() -> Answer:
    """Return an answer with an arm that got no more blocks once it was decided."""
    operation = vacuum()
    blocks = [operation_block(number, operation, (2.0,), (1.6,), (2.0,)) for number in range(1, 5)]
    later = [operation_block(number, operation, (1.0,), (1.0,), (1.0,)) for number in range(5, 13)]
    kept = [block._replace(trials={arm: block.trials[arm] for arm in (0, 2)}) for block in later]
    return answer([*blocks, *kept], comparison(("15.10", "17", "16.6"), judged_by(Metric.TIME), operation))


def _mapped() -> StudyAnswer:
    whole = study_answer([answer(steady(effect)) for effect in (2.5, 0.9, 1.0, 0.4)])
    places = [("10", "3"), ("10", "20"), ("10", "50"), ("100", "3")]
    placed = [
        replace(one, context=replace(one.context, levels=(("scale", scale), ("dead", dead))))
        for one, (scale, dead) in zip(whole.answers, places, strict=True)
    ]
    return replace(whole, answers=tuple(placed))


def _swept() -> StudyAnswer:
    """Return a study of a setting whose levels are amounts."""
    levels = ("4MB", "64MB", "1GB")
    requested = comparison(levels)
    arms = tuple(
        replace(arm, settings=(Setting(name="work_mem", value=level),), dataset=Dataset(pgbench_scale=1))
        for arm, level in zip(requested.arms, levels, strict=True)
    )
    swept: Comparison = replace(requested, arms=arms, factors=("work_mem",))
    return study_answer([answer([rate_block(n, 1000.0, 1100.0, 1100.0 + n) for n in range(1, 9)], swept)])
