"""Blocks, looks and stopping. Arms are numbers; servers, clock and progress are injected.

testbed.py        protocols of the objects that the engine drives
events.py         what hosts report
hosts.py          the hosts that measure, one task at a time each
context_state.py  the state of one context
forecast.py       the blocks that a context still needs
assignments.py    the next task of each host
scheduler.py      looks, when to stop
time_left.py      the remaining time of a study
block_runner.py   one start of the servers, and the blocks measured on it
progress.py       events for observers
"""
