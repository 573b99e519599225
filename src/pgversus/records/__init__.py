"""Records of a run, as plain data that every layer above shares. Pure.

trials.py       windows, trials, blocks, latency histograms
preparation.py  properties of a context before its first block
plans.py        captured plans, and settings that may restore one
dry_run.py      what a run would fetch, build, load and store
inventory.py    entries of the cache, and servers on this host
"""
