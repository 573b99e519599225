"""Faults on live servers at random moments, and what must hold after each: `python -m tests.faults`.

fault.py       A fault, and the outcome of one try
study.py       The study that is struck: as short as one can be that has every phase
watched.py     A run of pgversus while it runs: how far it is, which processes belong to it
invariants.py  What must hold: nothing finished is lost, nothing is left, no half verdict
resuming.py    After a struck run: what must hold, then the same command again
kills.py       SIGKILL of pgversus, its guard, a postmaster, a backend, pgbench
disks.py       A disk that becomes full: of results, clusters, cached data, a build
pauses.py      SIGSTOP and SIGCONT of pgversus, pgbench, a backend
pairs.py       Two runs on one results folder, or on one cache, of which one is killed
uris.py        A server given by URI that goes away and returns
memory.py      Servers that get no more memory: refused, or killed for it
clocks.py      A time of day that jumps, and jumping_clock.py, which makes it jump for pgversus alone
truncation.py  Results cut off at every byte
catalog.py     Every fault by its name, and one try of it
__main__.py    So many tries of each, and a table
"""
