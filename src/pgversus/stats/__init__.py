"""Estimates and verdicts from samples. Pure, and independent of PostgreSQL.

effects.py      ratios between arms, and values of one arm
confidence.py   widths of intervals, verdicts, and the number of blocks that an answer needs
moderation.py   standard errors of many ratios, estimated together
hosts.py        a comparison on each host of a fleet
analysis.py     the analysis of one comparison: sensitivity, plateaus
block_model.py  noise within and between blocks, and the best number of rounds
counters.py     means and ratios of counters; disturbed windows
attribution.py  the share of a difference that plan changes account for
lazy.py         values computed on demand
"""
