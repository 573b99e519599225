"""Each caveat appears above its limit, and not below it."""

import math
import re
from collections.abc import Mapping
from dataclasses import replace

import pytest

from pgversus.answers.answer import Caveat
from pgversus.answers.caveats import _failed_transactions
from pgversus.answers.load_caveats import load_caveats, measured_of
from pgversus.records.trials import Block
from pgversus.report.caveats import caveat_text
from pgversus.stats.effects import Samples
from pgversus.study.comparison import CacheState, Comparison
from pgversus.study.metrics import Metric
from tests.builders import comparison, judged_by, open_loop, rate_block

QUIET = {
    "client_cpu_s": 0.1,
    "client_cpu_user_s": 0.05,
    "host_cpu_s": 1.0,
    "host_cpu_user_s": 0.75,
    "server_cpu_user_s": 0.7,
    "server_cpu_system_s": 0.2,
    "host_steal_s": 0.0,
    "cpu_throttled_s": 0.0,
    "checkpoints_timed": 0.0,
    "checkpoints_requested": 0.0,
    "autovacuum_runs": 0.0,
    "autoanalyze_runs": 0.0,
}


def blocks(
    contender: Mapping[str, float] | None = None, *, number: int = 6, trend: float = 0.0, transactions: int = 1000
) -> list[Block]:
    """Blocks with trials of one second and these counters of the contender."""
    made = []
    for n in range(1, number + 1):
        block = rate_block(n, 1000.0, 1000.0 * (1.001 if n % 2 else 0.999), transactions=transactions)
        trials = {
            arm: trial._replace(
                seconds=1.0,
                counters=QUIET | dict(contender or {}) if arm else QUIET,
                trend=trend + (0.001 if n % 2 else -0.001) if arm else 0.0,
            )
            for arm, trial in block.trials.items()
        }
        made.append(block._replace(trials=trials))
    return made


def found(of: list[Block], requested: Comparison | None = None) -> list[Caveat]:
    whole = requested or comparison()
    measured = [measured_of(arm, of) for arm in whole.arms]
    return list(load_caveats(whole, Samples(of), measured, cpus=2, shows_percentiles=True))


def slugs(of: list[Block], requested: Comparison | None = None) -> list[tuple[str, int | None]]:
    return [(caveat.slug, caveat.arm) for caveat in found(of, requested)]


def test_a_quiet_run_has_no_caveat() -> None:
    assert slugs(blocks()) == []


@pytest.mark.parametrize(
    ("name", "counters", "never_acts"),
    [
        ("checkpoint_timeout", {}, True),
        # One that is due is skipped if nothing was written.
        ("checkpoint_timeout", {"checkpoints_timed": 1.0}, True),
        ("checkpoint_timeout", {"autovacuum_runs": 1.0}, True),
        ("max_wal_size", {"checkpoints_requested": 1.0, "checkpoint_write_s": 0.1}, False),
        ("autovacuum_naptime", {"checkpoints_timed": 1.0, "checkpoint_buffers_written": 5.0}, True),
        ("autovacuum", {"autoanalyze_runs": 1.0}, False),
        ("checkpoint_warning", {}, False),
        ("work_mem", {}, False),
    ],
)
def test_a_compared_setting_of_background_work_that_never_ran_is_a_caveat(
    name: str, counters: dict[str, float], *, never_acts: bool
) -> None:
    of = replace(comparison(), factors=(name,))
    slug = "no-autovacuum-ran" if name.startswith("autovacuum") else "no-checkpoint-ran"
    assert ((slug, None) in slugs(blocks(counters), of)) is never_acts


@pytest.mark.parametrize(
    ("slug", "counters", "below"),
    [
        ("client-bound", {"client_cpu_s": 0.91}, {"client_cpu_s": 0.89}),
        ("host-disturbed", {"host_cpu_user_s": 0.75 + 0.21}, {"host_cpu_user_s": 0.75 + 0.19, "host_cpu_s": 2.0}),
        ("host-stolen", {"host_steal_s": 0.11}, {"host_steal_s": 0.09}),
        ("disturbed-windows", {"disturbed_windows": 1.0}, {}),
        ("throttled", {"cpu_throttled_s": 0.02}, {"cpu_throttled_s": 0.005}),
        (
            "checkpoint-on-one-side",
            {"checkpoints_timed": 1.0, "checkpoint_buffers_written": 9.0},
            {"checkpoints_timed": 1.0},
        ),
        ("autovacuum-on-one-side", {"autoanalyze_runs": 1.0}, {"tuples_deleted": 1.0}),
    ],
)
def test_a_counter_beyond_its_limit_is_a_caveat_of_its_arm(
    slug: str, counters: dict[str, float], below: dict[str, float]
) -> None:
    assert slugs(blocks(counters)) == [(slug, 1)]
    assert slugs(blocks(below)) == []


def test_each_host_that_sends_load_has_threads_of_its_own() -> None:
    assert slugs(blocks({"client_cpu_s": 1.5})) == [("client-bound", 1)]
    assert slugs(blocks({"client_cpu_s": 1.5, "load_hosts": 2.0})) == []
    assert slugs(blocks({"client_cpu_s": 4.0, "load_hosts": 8.0})) == [("client-bound", 1)]


def test_counters_that_are_not_reported_raise_no_caveat() -> None:
    silent = [
        block._replace(trials={arm: trial._replace(counters={}) for arm, trial in block.trials.items()})
        for block in blocks()
    ]
    assert slugs(silent) == []


def test_checkpoints_on_both_sides_raise_no_caveat() -> None:
    both = [
        block._replace(
            trials={
                arm: trial._replace(counters={**trial.counters, "checkpoints_timed": 1.0})
                for arm, trial in block.trials.items()
            },
        )
        for block in blocks()
    ]
    assert slugs(both) == []


def test_a_trend_within_blocks_means_a_short_warm_up() -> None:
    assert slugs(blocks(trend=math.log(1.08))) == [("not-steady", 1)]
    assert slugs(blocks(trend=math.log(1.04))) == []
    assert slugs(blocks(trend=math.log(1.08), number=3)) == []


def test_caveats_name_no_options_because_a_study_file_has_none() -> None:
    reported = found(blocks({"client_cpu_s": 0.91}, trend=math.log(1.08), transactions=90))
    assert {"not-steady", "few-transactions", "client-bound"} <= {caveat.slug for caveat in reported}
    assert not [caveat_text(caveat) for caveat in reported if re.search(r"(?<!\w)-{1,2}[a-z]", caveat_text(caveat))]


def test_a_load_on_a_cold_cache_need_not_be_steady_but_the_cache_must_be_cold() -> None:
    cold = replace(comparison(), cache=CacheState.COLD)
    assert slugs(blocks({"still_cached_share": 0.0}, trend=0.5), cold) == [("cache-not-cold", None)]
    clean = [
        block._replace(
            trials={
                arm: trial._replace(counters={**trial.counters, "still_cached_share": 0.01})
                for arm, trial in block.trials.items()
            },
        )
        for block in blocks()
    ]
    assert slugs(clean, cold) == []


def test_few_transactions_are_reported_for_windows_and_percentiles() -> None:
    few = slugs(blocks(transactions=90))
    assert ("few-for-percentile", None) in few
    # 8 windows, 4 clients: 96 transactions are 3 for each client and window.
    assert ("few-transactions", 1) in few
    assert slugs(blocks(transactions=499)) == [("few-for-percentile", None)]


@pytest.mark.parametrize(
    ("metric", "failed", "slugs"),
    [
        (Metric.LATENCY_P95, 2, ["failed-transactions"]),
        (Metric.LATENCY_P95, 20, ["failed-transactions", "latency-without-failed"]),
        (Metric.TPS, 20, ["failed-transactions"]),
    ],
)
def test_failed_transactions_are_missing_from_latencies(metric: Metric, failed: int, slugs: list[str]) -> None:
    made = [
        block._replace(trials={arm: trial._replace(failed=failed if arm else 0) for arm, trial in block.trials.items()})
        for block in blocks()
    ]
    whole = comparison(design=judged_by(metric))
    measured = [measured_of(arm, made) for arm in whole.arms]
    assert [one.slug for one in _failed_transactions(whole, measured)] == slugs


def at_rate(transactions: int, *, failed: int = 0, number: int = 6, latency_s: float = 0.0) -> list[Block]:
    """Blocks with this number of transactions of the contender in eight seconds, and 400 of the baseline."""
    return [
        block._replace(
            trials={
                arm: trial._replace(
                    seconds=8.0,
                    transactions=transactions if arm else 400,
                    latency_sum_s=latency_s * transactions,
                    failed=failed if arm else 0,
                )
                for arm, trial in block.trials.items()
            },
        )
        for block in blocks(number=number)
    ]


def rates(
    of: list[Block], rate: float | None = 50.0, clients: int = 1, metric: Metric = Metric.LATENCY_MEAN
) -> list[Caveat]:
    made = comparison(workload=replace(open_loop(), rate=rate, clients=clients), design=judged_by(metric))
    return [caveat for caveat in found(of, made) if caveat.slug == "rate-not-reached"]


def test_a_missed_rate_is_reported_with_both_numbers() -> None:
    (caveat,) = rates(at_rate(320))
    assert caveat.arm == 1
    assert "17.8 reached only 40 of 50 transactions per second" in caveat_text(caveat)
    assert "queue" in caveat_text(caveat)
    both = rates(at_rate(320), rate=200_000)
    assert [one.arm for one in both] == [None, 1]
    assert "16.12 reached only 50 of 200 000 transactions per second" in caveat_text(both[0])
    assert rates(at_rate(320), rate=None) == []


def test_a_rate_is_reached_at_95_percent_or_if_chance_or_window_ends_explain_the_rest() -> None:
    assert rates(at_rate(373, number=100)) != []
    assert rates(at_rate(381, number=100)) == []
    # One block, 400 expected: the standard deviation is 20 transactions.
    assert rates(at_rate(340, number=1)) == []
    # 8 windows of 8 clients: 64 may end after their windows, if transactions are that slow.
    assert rates(at_rate(340, number=100, latency_s=0.2), clients=8) == []
    assert rates(at_rate(340, number=100), clients=8) != []
    assert rates(at_rate(320, failed=80)) == []


def test_a_percentile_needs_more_of_the_rate_than_a_mean() -> None:
    # Of 400; one transaction may end after each of the 8 windows of a block.
    assert rates(at_rate(398, number=1000), metric=Metric.LATENCY_P95) == []
    assert rates(at_rate(385, number=1000), metric=Metric.LATENCY_P95) != []
    assert rates(at_rate(385, number=1000)) == []


def test_correlated_ratios_are_drift() -> None:
    drifting = [
        block._replace(
            trials={**block.trials, 1: block.trials[1]._replace(transactions=1000 + 10 * block.number)},
        )
        for block in blocks(number=14)
    ]
    assert ("drift", 1) in slugs(drifting)
    assert ("drift", 1) not in slugs(drifting[:11])
    assert ("drift", 1) not in slugs(drifting, comparison(design=judged_by(Metric.LATENCY_P95)))


def test_drift_is_judged_by_the_metric_of_the_verdict() -> None:
    drifting = [
        block._replace(
            trials={**block.trials, 1: block.trials[1]._replace(quantiles={0.95: 0.001 + 0.0001 * block.number})},
        )
        for block in blocks(number=14)
    ]
    assert ("drift", 1) in slugs(drifting, comparison(design=judged_by(Metric.LATENCY_P95)))
    assert ("drift", 1) not in slugs(drifting)
