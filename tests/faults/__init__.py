"""Faults on live servers at random moments, and the invariants after each: `python -m tests.faults`.

fault.py       A fault, and the outcome of one try
study.py       The study that is struck: the shortest one that has every phase
watched.py     A running pgversus: its progress and its processes
invariants.py  Conditions that must hold: no finished block is lost, nothing is left behind, no premature verdict
resuming.py    After a struck run: the invariants, then the same command again
kills.py       SIGKILL of pgversus, its guard, a postmaster, a backend, pgbench
disks.py       A full disk: of results, clusters, cached data, a build
pauses.py      SIGSTOP and SIGCONT of pgversus, pgbench, a backend
pairs.py       Two runs on one results folder, or on one cache, of which one is killed
uris.py        An external server that goes away and returns
memory.py      Servers without further memory: allocations fail, or the kernel kills a process
clocks.py      A time of day that jumps, with jumping_clock.py, which makes it jump for pgversus alone
truncation.py  Results truncated at every byte
catalog.py     Every fault by its name, and one try of it
__main__.py    Runs a number of tries of each fault, and prints a table
"""
