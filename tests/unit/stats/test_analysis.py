import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from pgversus.records.trials import Block
from pgversus.stats.analysis import Analysis, analyze, interim_result, quantities_of
from pgversus.stats.confidence import Verdict, look_rule
from pgversus.stats.effects import Samples
from pgversus.study.comparison import Comparison
from pgversus.study.design import Design
from pgversus.study.metrics import JUDGED, Metric, StepTime
from pgversus.study.workload import Step
from tests.builders import (
    comparison,
    judged_by,
    latency_block,
    operation_block,
    rate_block,
    rate_blocks,
    scaled,
    swapped,
    vacuum,
)

OPERATION = vacuum(Step(name="dump", program=("pg_dump", "-f", "db.sql")))
FIRST = OPERATION.steps[0].name
MIRROR = {Verdict.FASTER: Verdict.SLOWER, Verdict.SLOWER: Verdict.FASTER}
NOISE = st.lists(st.tuples(st.floats(0.9, 1.1), st.floats(0.9, 1.1)), min_size=4, max_size=20)


def analyzed(blocks: list[Block], of: Comparison | None = None, invalid: frozenset[int] = frozenset()) -> Analysis:
    requested = of or comparison()
    return analyze(Samples(blocks), requested, look_rule(requested.design, len(requested.contenders)), invalid)


def noisy(pairs: list[tuple[float, float]], effect: float = 1.0) -> list[Block]:
    return [rate_block(i, 1000 * a, 1000 * b * effect) for i, (a, b) in enumerate(pairs, start=1)]


@given(st.lists(st.floats(1.0, 1e5), min_size=4, max_size=30))
def test_equal_samples_are_never_faster(rates: list[float]) -> None:
    result = analyzed(rate_blocks(rates, rates)).result_of(1)
    assert result.verdict is Verdict.EQUIVALENT
    assert result.ratios[Metric.TPS].value == pytest.approx(1.0)


@given(NOISE, st.floats(0.8, 1.25), st.floats(0.01, 100))
def test_the_speed_of_the_host_does_not_change_verdicts(
    pairs: list[tuple[float, float]], effect: float, factor: float
) -> None:
    blocks = noisy(pairs, effect)
    before = analyzed(blocks).result_of(1)
    after = analyzed(scaled(scaled(blocks, 0, factor), 1, factor)).result_of(1)
    assert after.verdict is before.verdict
    assert after.ratios[Metric.TPS].value == pytest.approx(before.ratios[Metric.TPS].value)
    assert after.ratios[Metric.TPS].low == pytest.approx(before.ratios[Metric.TPS].low)


@given(NOISE, st.floats(0.8, 1.25), st.sampled_from([Metric.TPS, Metric.LATENCY_MEAN]))
def test_swapping_the_arms_mirrors_verdict_and_interval(
    pairs: list[tuple[float, float]], effect: float, metric: Metric
) -> None:
    blocks, requested = noisy(pairs, effect), comparison(design=judged_by(metric))
    there, back = analyzed(blocks, requested).result_of(1), analyzed(swapped(blocks), requested).result_of(1)
    assert back.verdict is MIRROR.get(there.verdict, there.verdict)
    one, other = there.ratios[metric], back.ratios[metric]
    assert one.low is not None
    assert one.high is not None
    assert other.value == pytest.approx(1 / one.value)
    assert other.low == pytest.approx(1 / one.high)
    assert other.high == pytest.approx(1 / one.low)


@given(NOISE, st.floats(0.5, 2.0))
def test_every_interval_contains_its_point(pairs: list[tuple[float, float]], effect: float) -> None:
    found = analyzed(noisy(pairs, effect))
    estimates = [*found.result_of(1).ratios.values(), *found.arm_values[0].values(), *found.arm_values[1].values()]
    bounded = [(e.low, e.value, e.high) for e in estimates if e.low is not None and e.high is not None]
    assert bounded
    assert all(low <= value * (1 + 1e-12) and value <= high * (1 + 1e-12) for low, value, high in bounded)


def test_the_interval_of_a_fixed_design_matches_scipys_paired_t_test() -> None:
    rng = np.random.default_rng(5)
    baseline, contender = rng.lognormal(7, 0.05, 12), rng.lognormal(7.04, 0.05, 12)
    requested = comparison(design=Design(fixed_blocks=12, seed=7))
    ratio = analyzed(rate_blocks(list(baseline), list(contender)), requested).result_of(1).ratios[Metric.TPS]
    expected = stats.ttest_rel(np.log(contender), np.log(baseline)).confidence_interval(0.95)
    assert ratio.low == pytest.approx(math.exp(expected.low))
    assert ratio.high == pytest.approx(math.exp(expected.high))


@pytest.mark.parametrize(
    ("metric", "verdict"),
    [(Metric.TPS, Verdict.FASTER), (Metric.LATENCY_MEAN, Verdict.FASTER), (Metric.LATENCY_P50, Verdict.FASTER)],
)
def test_twice_the_rate_is_faster_by_every_metric(metric: Metric, verdict: Verdict) -> None:
    blocks = [rate_block(n, 1000.0 + n, 2000.0 - n) for n in range(1, 11)]
    result = analyzed(blocks, comparison(design=judged_by(metric))).result_of(1)
    assert result.verdict is verdict
    assert (result.ratios[metric].value > 1) is metric.more_is_better


def test_one_block_has_no_interval() -> None:
    found = analyzed([rate_block(1, 100.0, 300.0)])
    result = found.result_of(1)
    assert result.verdict is Verdict.UNDECIDED
    assert result.ratios[Metric.TPS].value == pytest.approx(3.0)
    for estimate in (*result.ratios.values(), *found.arm_values[0].values()):
        assert estimate.low is None
        assert estimate.high is None


def test_no_blocks_give_no_estimates() -> None:
    found = analyzed([])
    assert found.arm_values == ({}, {})
    result = found.result_of(1)
    assert result.verdict is Verdict.UNDECIDED
    assert result.log_ratio is None
    assert result.ratios == {}
    assert result.blocks == 0
    assert result.seconds_measured == 0


def test_three_blocks_are_before_the_first_look() -> None:
    blocks = rate_blocks([100.0, 100.1, 100.2, 100.0], [200.0, 200.1, 199.9, 200.1])
    assert analyzed(blocks[:3]).result_of(1).verdict is Verdict.UNDECIDED
    assert analyzed(blocks).result_of(1).verdict is Verdict.FASTER


def test_a_quantile_needs_enough_transactions_in_blocks_with_both_arms() -> None:
    requested = comparison(design=judged_by(Metric.LATENCY_P95))
    paired = [latency_block(n, [1000] * 200, [3000] * 200) for n in range(1, 5)]
    alone = [latency_block(n, [1000] * 20) for n in range(5, 9)]
    result = analyzed([*paired, *alone], requested).result_of(1)
    assert result.verdict is Verdict.SLOWER
    assert result.ratios[Metric.LATENCY_P95].low is not None
    assert result.ratios[Metric.LATENCY_P95].value == pytest.approx(3.0, rel=0.02)


def test_a_quantile_without_enough_transactions_gives_no_verdict() -> None:
    requested = comparison(design=judged_by(Metric.LATENCY_P95))
    blocks = [latency_block(n, [1000] * 500, [3000] * 20) for n in range(1, 21)]
    result = analyzed(blocks, requested).result_of(1)
    assert result.verdict is Verdict.UNDECIDED
    assert Metric.LATENCY_P95 not in result.ratios
    assert Metric.LATENCY_P95 not in result.paired_values
    assert result.ratios[Metric.LATENCY_P50].low is not None


def test_the_maximum_has_neither_interval_nor_ratio() -> None:
    blocks = [latency_block(n, [1000, 5000 + n], [2000, 9000 - n]) for n in range(1, 11)]
    found = analyzed(blocks)
    assert Metric.LATENCY_MAX not in found.result_of(1).ratios
    value = found.arm_values[0][Metric.LATENCY_MAX]
    assert value.value == pytest.approx(0.005010)
    assert (value.low, value.high) == (None, None)


@pytest.mark.parametrize("metric", [Metric.TPS, Metric.LATENCY_MEAN])
def test_blocks_without_an_arm_are_ignored_for_a_contender(metric: Metric) -> None:
    requested = comparison(design=judged_by(metric))
    whole = rate_blocks([100.0, 101.0, 99.0, 100.5, 100.0], [120.0, 119.0, 121.0, 120.0, 120.5])
    lone = [rate_block(6, 10.0, None), rate_block(7, None, 9000.0), Block(number=8, trials={})]
    alone, mixed = analyzed(whole, requested).result_of(1), analyzed([*lone, *whole], requested).result_of(1)
    assert mixed == alone
    assert mixed.blocks == 5


def test_values_of_arms_use_blocks_that_ratios_ignore() -> None:
    blocks = [*rate_blocks([100.0] * 4, [120.0] * 4), rate_block(5, 100.0, None)]
    found = analyzed(blocks)
    assert found.arm_values[0][Metric.TPS].n == 5
    assert found.arm_values[1][Metric.TPS].n == 4
    assert found.result_of(1).ratios[Metric.TPS].n == 4


@given(NOISE, st.lists(st.floats(1.0, 1e4), max_size=5))
def test_the_quotient_of_paired_values_is_the_ratio(pairs: list[tuple[float, float]], alone: list[float]) -> None:
    blocks = [*noisy(pairs), *(rate_block(100 + number, rate, None) for number, rate in enumerate(alone))]
    found = analyzed(blocks).result_of(1)
    for metric in (Metric.TPS, Metric.LATENCY_MEAN):
        ours, theirs = found.paired_values[metric]
        assert theirs / ours == pytest.approx(found.ratios[metric].value)


def test_a_contender_without_common_blocks_has_no_values() -> None:
    assert not analyzed([rate_block(1, 100.0, None), rate_block(2, None, 100.0)]).result_of(1).paired_values


def test_measured_seconds_cover_both_arms_of_paired_blocks() -> None:
    blocks = [rate_block(1, 100.0, 50.0), rate_block(2, 100.0, None)]
    assert analyzed(blocks).result_of(1).seconds_measured == pytest.approx(1.0 + 2.0)


def test_an_invalid_contender_does_not_affect_other_verdicts() -> None:
    requested = comparison(("a", "b", "c"))
    blocks = [rate_block(n, 100.0 + n / 100, 200.0, 50.0) for n in range(1, 9)]
    found = analyzed(blocks, requested, invalid=frozenset({1}))
    assert [result.verdict for result in found.results] == [Verdict.INVALID, Verdict.SLOWER]
    assert [result.contender for result in found.results] == [1, 2]
    assert found.result_of(2) is found.results[1]


def test_more_contenders_make_each_interval_wider() -> None:
    series = ([100.0, 101.0, 99.0, 100.5, 100.0], [120.0, 119.0, 121.0, 120.0, 120.5])
    two = analyzed(rate_blocks(*series)).result_of(1).ratios[Metric.TPS]
    three = analyzed(rate_blocks(*series, series[0]), comparison(("a", "b", "c"))).result_of(1).ratios[Metric.TPS]
    assert three.value == two.value
    assert three.low is not None
    assert two.low is not None
    assert three.low < two.low


def test_a_wider_margin_turns_a_small_difference_into_equivalence() -> None:
    blocks = rate_blocks([100.0, 100.1, 99.9, 100.0, 100.05], [101.0, 101.1, 101.0, 100.9, 101.0])
    small, wide = Design(margin=0.002, seed=7), Design(margin=0.05, seed=7)
    assert analyzed(blocks, comparison(design=small)).result_of(1).verdict is Verdict.FASTER
    assert analyzed(blocks, comparison(design=wide)).result_of(1).verdict is Verdict.EQUIVALENT


@pytest.mark.parametrize("metric", [metric for metric in JUDGED if metric is not Metric.TIME])
def test_interim_verdicts_match_the_full_analysis(metric: Metric) -> None:
    rng = np.random.default_rng(9)
    requested = comparison(design=judged_by(metric))
    rule = look_rule(requested.design, 1)
    blocks = [
        latency_block(n, rng.lognormal(7.0, 0.2, 300).astype(np.int64), rng.lognormal(7.1, 0.2, 300).astype(np.int64))
        for n in range(1, 15)
    ]
    verdicts = []
    for n in range(len(blocks) + 1):
        interim = interim_result(Samples(blocks[:n]), requested, rule, 1)
        result = analyze(Samples(blocks[:n]), requested, rule).result_of(1)
        # As text: after one block the standard error is not a number, which from Python 3.13 on makes them unequal.
        assert repr((result.verdict, result.log_ratio)) == repr((interim.verdict, interim.log_ratio))
        verdicts.append(interim.verdict)
    assert verdicts[-1] is Verdict.SLOWER


def test_an_operation_has_a_ratio_per_step() -> None:
    requested = comparison(design=judged_by(Metric.TIME), workload=OPERATION)
    blocks = [operation_block(n, OPERATION, (2.0 + n / 100, 1.0), (1.0 + n / 200, 1.0)) for n in range(1, 7)]
    found = analyze(Samples(blocks), requested, look_rule(requested.design, 1))
    (result,) = found.results
    assert result.verdict is Verdict.FASTER
    ratios = {name: result.ratios[StepTime(name)].value for name in (FIRST, "dump")}
    assert ratios == pytest.approx({FIRST: 0.5, "dump": 1.0})
    assert result.ratios[Metric.TIME].value == pytest.approx(2 / 3, abs=0.01)
    assert set(found.arm_values[0]) == {Metric.TIME, StepTime(FIRST), StepTime("dump")}


def test_a_single_step_has_no_separate_ratio() -> None:
    requested = comparison(design=judged_by(Metric.TIME), workload=vacuum())
    assert quantities_of(requested) == tuple(Metric)
