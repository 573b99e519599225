"""Rows of counters: first what happened on one side only, then the largest ratios."""

from dataclasses import replace

from pgversus.report.counters import counter_rows
from tests.builders import answer, rate_block


def test_what_happened_on_one_side_only_comes_first_and_has_no_change() -> None:
    blocks = []
    for number in range(1, 6):
        block = rate_block(number, 1000.0, 1000.0 + number)
        counters = ({"temp_files": 0.0, "buffers_hit": 1000.0}, {"temp_files": 50_000.0, "buffers_hit": 90_000.0})
        trials = {arm: replace(trial, counters=counters[arm]) for arm, trial in block.trials.items()}
        blocks.append(replace(block, trials=trials))
    whole = answer(blocks)
    first, second = counter_rows(whole, whole.analysis.results[0])
    assert (first.name, first.baseline, first.contender) == ("temp_files per transaction", "0", "500")
    assert (first.change, first.interval) == ("", "")
    assert (second.name, second.change) == ("buffers_hit per transaction", "90x")
