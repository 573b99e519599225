"""What a run finds, as plain data that every layer above shares. Pure.

trials.py       windows, trials, blocks, latency histograms
preparation.py  what is known of a context before its first block; caveats
plans.py        captured plans, and the settings that may restore one
"""
