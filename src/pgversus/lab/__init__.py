"""The orchestrator: joins everything below it.

compare.py        one comparison from names to an answer
arms.py           an arm's server: loaded, copied, started, stopped
preparation.py    builds, clusters, data and equality of the arms
pilot.py          the discarded first load: does it run, does it write, how slow is it
apparatus.py      what the engine drives, as a protocol
postgres_apparatus.py  that protocol on real servers and a real pgbench
engine.py         blocks, looks, and when to stop
load.py           one window of pgbench
gates.py          caveats from what was seen
run_directory.py  the run's private directories and their removal
progress.py       what the outside may watch
"""
