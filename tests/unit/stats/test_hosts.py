"""The same comparison on several hosts: a verdict for all of them only where none contradicts it."""

import numpy as np
import pytest

from pgversus.records.trials import Block, Trial
from pgversus.stats.analysis import interim_result
from pgversus.stats.confidence import Verdict, look_rule
from pgversus.stats.effects import Samples
from pgversus.stats.hosts import results_by_host
from pgversus.study.design import Design
from pgversus.study.metrics import Metric
from tests.unit.engine.test_scheduler import comparison


def trial(arm: int, tps: float) -> Trial:
    return Trial(
        arm=arm,
        transactions=round(1000 * tps),
        seconds=1000.0,
        latency_sum_s=1.0,
        latency_max_s=1.0,
        quantiles={},
    )


def samples(ratios: dict[str, float], blocks: int = 20) -> Samples:
    """Blocks in which each host has this ratio, with noise of 0.5 %; hosts take turns."""
    noise = np.random.default_rng(7)
    hosts = [*ratios]
    return Samples(
        Block(
            number=number,
            trials={0: trial(0, 100.0), 1: trial(1, 100.0 * ratios[host] * float(np.exp(noise.normal(0, 0.005))))},
            host=host,
        )
        for number, host in ((number, hosts[number % len(hosts)]) for number in range(1, blocks + 1))
    )


def verdict(ratios: dict[str, float]) -> Verdict:
    requested = comparison()
    return interim_result(samples(ratios), requested, look_rule(Design(), 1), 1).verdict


@pytest.mark.parametrize(
    ("ratios", "expected"),
    [
        ({"": 1.05}, Verdict.FASTER),
        ({"db1": 1.05}, Verdict.FASTER),
        ({"db1": 1.05, "db2": 1.06}, Verdict.FASTER),
        ({"db1": 0.95, "db2": 0.94}, Verdict.SLOWER),
        ({"db1": 1.0, "db2": 1.001}, Verdict.EQUIVALENT),
        # Their mean is faster, and one of them is not.
        ({"db1": 1.30, "db2": 0.95}, Verdict.UNDECIDED),
        ({"db1": 1.30, "db2": 1.0}, Verdict.UNDECIDED),
        # Neither of them is shown to differ by more than the margin, and their mean is equivalent.
        ({"db1": 1.022, "db2": 0.979}, Verdict.UNDECIDED),
    ],
)
def test_a_verdict_holds_for_all_hosts(ratios: dict[str, float], expected: Verdict) -> None:
    assert verdict(ratios) is expected


def test_hosts_with_few_of_a_fixed_number_of_blocks_must_agree_as_well() -> None:
    fixed = look_rule(Design(fixed_blocks=20), 1)
    assert interim_result(samples({"db1": 1.10, "db2": 0.98}), comparison(), fixed, 1).verdict is Verdict.UNDECIDED
    assert interim_result(samples({"db1": 1.10, "db2": 1.08}), comparison(), fixed, 1).verdict is Verdict.FASTER


def test_each_host_has_a_result_of_its_own() -> None:
    found = results_by_host(samples({"db2": 0.9, "db1": 1.1}), Metric.TPS, look_rule(Design(), 1), 1, 0.02)
    assert [one.host for one in found] == ["db1", "db2"]
    assert [one.verdict for one in found] == [Verdict.FASTER, Verdict.SLOWER]
    assert [np.exp(one.log_ratio.point) for one in found] == pytest.approx([1.1, 0.9], rel=0.01)


def test_a_host_with_few_blocks_contradicts_nothing() -> None:
    few = samples({"db1": 1.05}, blocks=12)
    for number, ratio in ((13, 0.8), (14, 0.8)):
        few.add(Block(number=number, trials={0: trial(0, 100.0), 1: trial(1, 100.0 * ratio)}, host="db2"))
    found = results_by_host(few, Metric.TPS, look_rule(Design(), 1), 1, 0.02)
    assert [one.verdict for one in found] == [Verdict.FASTER, Verdict.UNDECIDED]
