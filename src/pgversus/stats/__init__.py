"""Samples in, estimates and verdicts out. Pure, and knows nothing of PostgreSQL.

effects.py      ratios between arms, and levels of one arm
confidence.py   how wide an interval must be, the verdict it gives, how many blocks an answer needs
analysis.py     all of it for one comparison: sensitivity, plateaus
block_model.py  noise within and between blocks, and the best number of rounds
counters.py     what counters say of each arm and of their ratio; disturbance of windows
attribution.py  how much of a difference changed plans account for
lazy.py         values computed on demand
"""
