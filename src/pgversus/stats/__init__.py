"""Samples in, estimates and verdicts out. Pure, and knows nothing of PostgreSQL.

plateau.py      levels that cannot be told apart from the best
noise.py        spread within blocks and between them
block_model.py  what the next block would cost and tell, by its number of rounds
sensitivity.py  how small a difference could have been seen
histogram.py    latency distributions in bins of 1 %
trials.py       what was measured: windows, trials, blocks
confidence.py   how wide an interval must be for the looks that are taken
on_demand.py    values computed when they are asked for
samples.py      values of metrics on the log scale, each computed once
effects.py      ratios between two arms, and the level of one arm
verdict.py      the rule that turns an interval into a verdict
forecast.py     how many blocks more an answer would need
attribution.py  how much of a difference changed plans account for
analysis.py     all of it for one comparison: the object that every renderer shows
counter_table.py      the counters of many trials as one table
counter_estimates.py  what counters say of each arm and of their ratio
counters.py     how much counters grew between two readings
"""
