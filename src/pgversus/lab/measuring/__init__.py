"""Real servers under load or an operation, as the engine drives them.

harness.py             how a context is measured: by load, or as an operation
load_harness.py        a context that is measured by load
operation_harness.py   a context that is measured as an operation
arms.py                an arm's server: started on a copy of its snapshot
server_set.py          the servers of all arms of a context, started and stopped together
postgres_apparatus.py  the apparatus on real servers and a real pgbench
short_windows.py       the same with windows of hundredths of a second, each a run of its own
slices.py              the same as slices of a longer run
places.py              on which processors they begin
pilot.py               the discarded first load: does it run, does it write, how slow is it
warm_up.py             load that is thrown away until it is steady
load.py                one window of pgbench
operation.py           an operation, once
private_command.py     a program of an operation, without passwords on its command line
watching.py            what a long operation is doing
readings.py            what servers and host have counted, before and after a window
"""
